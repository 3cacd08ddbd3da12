"""A PostgreSQL that restarts, is killed, ends sessions, stalls or is full: nothing acknowledged is lost, nothing is done twice."""

import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL
from pegword.core.errors import PegwordError, Unavailable
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store.postgres import CONNECTIONS_MAX, HEAL_WAIT_S, PostgresEngine
from tests.faults.cluster import Cluster, Proxy, cluster
from tests.faults.harness import AT_MOST, PATIENCE_S, Tally, how_many
from tests.faults.ledger import PYTHON, SERVE, Ledger, Server, ask, joined, writers
from tests.faults.work import CALLER, look, stored
from tests.patience import PATIENCE_S as ENOUGH_S
from tests.patience import comes_to, until

RESTARTS = how_many("POSTGRES_RESTARTS", 9)
CUTS = how_many("POSTGRES_CUTS", 60)
TERMINATIONS = how_many("POSTGRES_TERMINATIONS", 40)
STALL_S = how_many("POSTGRES_STALL_S", 3)
WRITERS = 8
HEALED_S_MAX = 20 * HEAL_WAIT_S  # it takes about half of one; a pool that does not heal takes for ever
WAYS = ("immediate", "fast", "kill -9")

pytestmark = pytest.mark.timeout(PATIENCE_S)


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture
def postgres(server: Cluster) -> Cluster:
    """The cluster, with nothing in its database."""
    server.empty()
    return server


def token_of(postgres: Cluster) -> str:
    services = open_services(postgres.url, load(environment={}))
    services.access.add_user("alice")
    _, token = services.access.add_key("alice")
    services.close()
    return token


def restart_under_load(tally: Tally, command: Sequence[str], postgres: Cluster, folder: Path, restarts: int, ways: Sequence[str]) -> Tally:
    """One server of ours under eight writers, while PostgreSQL is ended and started again and again."""
    token, ledger, stop = token_of(postgres), Ledger(), threading.Event()
    ours = Server(command, postgres.url, folder)
    threads = writers(WRITERS, ours.port, token, ledger, 1, stop)
    for number, chance in enumerate(tally.schedule(restarts)):
        before = ledger.answers
        until(lambda before=before: ledger.answers > before + 50)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.3))
        postgres.end(ways[number % len(ways)])
        time.sleep(chance.uniform(0, 0.5))
        postgres.start()
        began, before = time.monotonic(), ledger.answers
        until(lambda before=before: ledger.answers > before)  # type: ignore[misc]
        healed = time.monotonic() - began
        tally.notes["slowest healing s"] = round(max(healed, tally.notes.get("slowest healing s", 0)), 1)
        tally.book(wrong=[*ledger.wrong, *([f"it took {healed:.1f} s to heal"] if healed > HEALED_S_MAX else [])])
        ledger.wrong.clear()
    stop.set()
    joined(threads)
    code = ours.stop()
    found, wrong = look(postgres.url)
    tally.acknowledged = ledger.answers
    tally.notes["answered 503"] = ledger.answered(503)
    tally.book(
        lost=ledger.lost({name: text for (_, name), text in found.items()}),
        wrong=wrong + ([f"ended with {code}"] if code else []),
        faults=0,
    )
    return tally


def test_a_server_goes_on_through_restarts_of_postgresql(postgres: Cluster, folder: Path) -> None:
    """Ended at once, in good order, and by kill -9: the answers meanwhile are 503, the same process heals, each success holds."""
    restart_under_load(Tally("PostgreSQL restarted under 8 writers"), SERVE, postgres, folder, RESTARTS, WAYS).hold()


def test_a_server_whose_commits_do_not_wait_for_the_disk_is_caught(postgres: Cluster, folder: Path) -> None:
    command = [PYTHON, "-m", "tests.faults.serving", "careless-postgres", "serve"]
    tally = Tally("PostgreSQL restarted, synchronous_commit=off")
    for _ in range(AT_MOST):  # the clock that writes may come just before each of the kills, though hardly ever
        restart_under_load(tally, command, postgres, folder, 3, ["kill -9"])
        if tally.noticed:
            break
        postgres.empty()
    tally.catch()


class Cutting:
    """Cuts the next connection on which a COMMIT passes: before it, after it was done, or at a byte of whatever is answered."""

    def __init__(self) -> None:
        self.where = ""
        self.left = 0
        self.cut = 0
        self._prepared: set[bytes] = set()  # what a commit is called on this connection, once the driver has prepared it

    def aim(self, chance: random.Random) -> None:
        """Choose where to cut next."""
        self.where = chance.choice(["before the commit", "after the commit", "anywhere"])
        self.left = chance.randrange(1, 3_000)

    def asked(self, data: bytes) -> bytes | None:
        self._prepared.update(name + b"\x00" for name in re.findall(rb"(_pg3_\w+)\x00COMMIT\x00", data))
        commits = b"COMMIT" in data or any(name in data for name in self._prepared)
        return self._cut() if commits and self.where == "before the commit" else data

    def answered(self, data: bytes) -> bytes | None:
        if self.where == "after the commit" and b"COMMIT\x00" in data:
            return self._cut()
        if self.where == "anywhere":
            self.left -= len(data)
            if self.left <= 0:
                return self._cut()
        return data

    def _cut(self) -> None:
        self.where = ""
        self.cut += 1
        self._prepared.clear()


@pytest.fixture
def cutting() -> Cutting:
    return Cutting()


@pytest.fixture
def proxy(postgres: Cluster, cutting: Cutting) -> Iterator[Proxy]:
    token_of(postgres)
    made = Proxy(postgres.port, cutting.asked, cutting.answered)
    yield made
    made.close()


def cut_and_try_again(tally: Tally, postgres: Cluster, proxy: Proxy, cutting: Cutting, count: int) -> Tally:
    """Saves whose connection is cut; each is tried again as long as it is not answered with success."""
    services = open_services(postgres.url_at(proxy.port), load(environment={}))
    direct = open_services(postgres.url, load(environment={}))
    for number, chance in enumerate(tally.schedule(count)):
        name, text, wrong = f"n{number}", f"saved through cuts z{number}", []
        cutting.aim(chance)
        before = cutting.cut
        for _ in range(5):
            try:
                services.memories.save(CALLER, Draft(name, text, GLOBAL, tags=("cut",)))
                break
            except Unavailable as error:
                there = (GLOBAL.key, name) in stored(direct)
                if there and error.code != "in_doubt":
                    wrong.append(f"{name} was refused ({error!r}), yet it is there")
                tally.notes[error.code] = tally.notes.get(error.code, 0) + 1
        cutting.where = ""
        memory = direct.memories.get(CALLER, GLOBAL, name, counted=False)
        if memory.version != 1:
            wrong.append(f"{name} was done {memory.version} times")
        tally.book(acknowledged=1, lost=[] if memory.content == text else [name], wrong=wrong, faults=cutting.cut - before)
    services.close()
    direct.close()
    _, unsound = look(postgres.url)
    tally.wrong += unsound
    return tally


def test_a_connection_that_is_cut_is_in_doubt_only_at_its_commit_and_nothing_is_done_twice(
    postgres: Cluster, proxy: Proxy, cutting: Cutting
) -> None:
    """Cut before the commit, after it, or in the middle of an answer: what is refused is absent, what is tried again is there once."""
    cut_and_try_again(Tally("the way to PostgreSQL cut"), postgres, proxy, cutting, CUTS).hold()


def test_an_engine_that_takes_a_lost_answer_for_a_refusal_is_caught(
    postgres: Cluster, proxy: Proxy, cutting: Cutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PostgresEngine._write_once

    def sure(self: PostgresEngine, work: Callable[..., object]) -> object:
        try:
            return real(self, work)
        except Unavailable as error:
            raise Unavailable("nothing was changed, try again") from error

    monkeypatch.setattr(PostgresEngine, "_write_once", sure)
    cut_and_try_again(Tally("the way to PostgreSQL cut, doubt not told", until_noticed=True), postgres, proxy, cutting, 45).catch()


def under_writers(
    tally: Tally,
    postgres: Cluster,
    url: str,
    serve: Callable[[Services], object],
    hurt: Callable[[Tally, Ledger], None],
    patience_s: float = ENOUGH_S,
) -> Tally:
    """Eight writers at a server of this process, while *hurt* does what it does; then saves are taken, and no connection is left over."""
    services = open_services(url, load(environment={}))
    site = serve(services)
    token, ledger, stop = site.token("alice"), Ledger(), threading.Event()  # type: ignore[attr-defined]
    threads = writers(WRITERS, site.port, token, ledger, 1, stop)  # type: ignore[attr-defined]
    until(lambda: ledger.answers > 20)
    hurt(tally, ledger)
    before = ledger.answers
    goes_on = comes_to(lambda: ledger.answers > before + 20, patience_s)
    stop.set()
    joined(threads)
    ready = comes_to(lambda: ask(site.port, "GET", "/readyz")[0] == 200, patience_s)  # type: ignore[attr-defined]
    found, wrong = look(postgres.url)
    wrong += ledger.wrong + ([] if goes_on else ["no save was taken afterwards"]) + ([] if ready else ["it was never ready again"])
    if not comes_to(lambda: len(postgres.sessions()) <= CONNECTIONS_MAX):  # one that was ended may be there for a moment
        wrong.append(f"{len(postgres.sessions())} connections are open")
    refused = ledger.answered(503)
    tally.notes["answered 503"] = refused
    tally.acknowledged += ledger.answers
    tally.book(lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong, faults=0)
    return tally


def test_sessions_that_the_server_ends_lose_nothing(postgres: Cluster, serve: Callable[[Services], object]) -> None:
    """One after the other, in the middle of whatever they do: what was not committed is done again or refused, and the pool stays whole."""

    def hurt(tally: Tally, _: Ledger) -> None:
        for chance in tally.schedule(TERMINATIONS):
            sessions = postgres.sessions()
            if sessions:
                postgres.terminate(chance.choice(sessions))
            time.sleep(chance.uniform(0, 0.05))
            tally.book()

    under_writers(Tally("PostgreSQL sessions ended"), postgres, postgres.url, serve, hurt).hold()


def without_connections(tally: Tally, postgres: Cluster, serve: Callable[[Services], object], patience_s: float = ENOUGH_S) -> Tally:
    """PostgreSQL gives our role no connection any more, until each writer has heard of it."""

    def hurt(tally: Tally, ledger: Ledger) -> None:
        for _ in tally.schedule(1):
            before = ledger.answered(500, 503)
            try:
                postgres.allow(0)
                until(lambda before=before: ledger.answered(500, 503) >= before + WRITERS)  # type: ignore[misc]
            finally:
                postgres.allow(-1)
            tally.book(wrong=ledger.wrong)
            ledger.wrong.clear()

    return under_writers(tally, postgres, postgres.url, serve, hurt, patience_s)


def test_a_server_without_a_connection_to_spare_is_503_until_it_has_one(postgres: Cluster, serve: Callable[[Services], object]) -> None:
    """Each answer is 503 with Retry-After; all is well when there are connections again."""
    without_connections(Tally("PostgreSQL without connections to spare"), postgres, serve).hold()


def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: an engine waits 0.3 s for a connection to answer, then takes it for an accident, and forgets it."""
    real = PostgresEngine._begun

    def begun(self: PostgresEngine, begin: bytes) -> object:
        found: list[object] = []
        thread = threading.Thread(target=lambda: _quietly(lambda: found.append(real(self, begin))), daemon=True)
        thread.start()
        thread.join(0.3)
        if not found:
            raise RuntimeError("the database does not answer")
        return found[0]

    monkeypatch.setattr(PostgresEngine, "_begun", begun)


def _quietly(work: Callable[[], object]) -> None:
    with suppress(PegwordError):
        work()


def test_an_engine_that_does_not_wait_for_a_connection_is_caught(
    postgres: Cluster, serve: Callable[[Services], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    hurried(monkeypatch)
    tally = Tally("PostgreSQL without connections to spare, not waited for", until_noticed=True)
    without_connections(tally, postgres, serve, 5).catch()


@pytest.fixture
def straight(postgres: Cluster) -> Iterator[Proxy]:
    """A way to the server that changes nothing."""
    token_of(postgres)
    made = Proxy(postgres.port, lambda data: data, lambda data: data)
    yield made
    made.close()


def stall(
    tally: Tally, postgres: Cluster, way: Proxy, serve: Callable[[Services], object], seconds: float, patience_s: float = ENOUGH_S
) -> Tally:
    """Nothing comes through for *seconds*, in either direction; twice."""

    def hurt(tally: Tally, ledger: Ledger) -> None:
        for _chance in tally.schedule(2):
            way.silent.set()
            time.sleep(seconds)
            before = ledger.answers
            way.silent.clear()
            comes_to(lambda before=before: ledger.answers > before, patience_s)  # type: ignore[misc]
            tally.book(wrong=ledger.wrong)
            ledger.wrong.clear()

    return under_writers(tally, postgres, postgres.url_at(way.port), serve, hurt, patience_s)


def test_a_stall_is_waited_for_and_loses_nothing(postgres: Cluster, straight: Proxy, serve: Callable[[Services], object]) -> None:
    """Then all goes on."""
    stall(Tally(f"PostgreSQL stalled for {STALL_S} s"), postgres, straight, serve, STALL_S).hold()


def test_an_engine_that_does_not_wait_for_a_stall_is_caught(
    postgres: Cluster, straight: Proxy, serve: Callable[[Services], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    hurried(monkeypatch)
    stall(Tally("PostgreSQL stalled for 1 s, not waited for", until_noticed=True), postgres, straight, serve, 1, 5).catch()
