"""A disk that is full, fails, or became read-only: what is refused is refused, reads go on, and work goes on when the disk does."""

import errno
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegword.core.caller import GLOBAL
from pegword.core.errors import DiskFailed, ReadOnly, StorageFull, Unavailable
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.store.sqlite import DISK_FAILURES_MAX, DISK_REST_S, SqliteEngine
from tests.faults import work
from tests.faults.disk import Disk
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.ledger import Ledger, ask, joined, writers
from tests.faults.mutants import CheerfulSqlite, ForgetfulSqlite
from tests.faults.work import CALLER, Asked, look, open_on, take_steps
from tests.patience import comes_to, until
from tests.store.test_index import small_index as small_index
from tests.wire.conftest import Site

LIVES = how_many("DISK_LIVES", 15)
STEPS = 40
WRITERS = 8

pytestmark = pytest.mark.timeout(PATIENCE_S)

# What the disk does not do any more, and what the system says to it.
FAILURES: dict[str, tuple[tuple[str, ...], int]] = {
    "EIO on flushing": (("flush",), errno.EIO),
    "EIO on writing": (("write",), errno.EIO),
    "EIO on reading": (("read",), errno.EIO),
    "EIO on anything": (("read", "write", "flush", "cut", "remove", "flush names"), errno.EIO),
    "no room to write": (("write",), errno.ENOSPC),
    "no room to flush": (("flush",), errno.ENOSPC),
    "read-only in mid-run": (("write", "flush", "cut", "remove"), errno.EROFS),
}


class Failing:
    """A fault that can be switched on and off: each of *actions* fails with *number*, or some of them, by *chance*."""

    def __init__(self, actions: tuple[str, ...], number: int, chance: Callable[[], bool] = lambda: True) -> None:
        self.on = False
        self.injected = 0
        self.disk = Disk(self._fault)
        self._actions = actions
        self._number = number
        self._chance = chance

    def _fault(self, action: str, _name: str) -> None:
        if self.on and action in self._actions and self._chance():
            self.injected += 1
            self.disk.fail(action, self._number)


def as_a_kill_leaves_it(path: Path) -> Path:
    """The files of a store that is in use, as they would be found if its process were killed now."""
    copy = path.parent / "found" / path.name
    copy.parent.mkdir()
    for suffix in ("", "-wal", "-journal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    return copy


def one_life(tally: Tally, here: Path, failure: str, chance: random.Random, kind: type[SqliteEngine] = SqliteEngine) -> None:
    """Work on a sound disk, on a failing one, and, in two lives of three, on a sound one again; then the process is killed."""
    here.mkdir()
    path, asked = here / "pegword.db", Asked()
    often = chance.choice((0.1, 0.5, 1.0))
    failing = Failing(*FAILURES[failure], lambda: chance.random() < often)
    services = open_on(path, failing.disk.name, kind=kind)
    engine = services.engine
    assert isinstance(engine, SqliteEngine)
    seconds = iter(range(1 << 30))
    engine._monotonic = lambda: next(seconds)  # type: ignore[method-assign, assignment]
    wrong: list[str] = []
    take_steps(services, asked, chance, STEPS // 2)
    failing.on = True
    until = chance.choice((1, 2, STEPS))
    take_steps(services, asked, chance, STEPS // 2, going_on=lambda: failing.injected < until)
    failing.on = False
    if chance.random() < 0.67:
        for _ in range(10):
            next(seconds)
        try:
            asked.ask(GLOBAL, "again", "it goes on x0", lambda: services.memories.save(CALLER, Draft("again", "it goes on x0", GLOBAL)))
        except Unavailable as error:
            wrong.append(f"{failure}: the disk is sound again, the save was refused: {error!r}")
    found, unsound = look(as_a_kill_leaves_it(path))
    services.engine.close()
    failing.disk.unregister()
    lost = [f"{failure}: {text}" for text in asked.lost(found)] if not unsound else []
    tally.notes["in doubt"] = tally.notes.get("in doubt", 0) + sum(len(contents) for contents in asked.in_doubt.values())
    tally.book(acknowledged=asked.answers, lost=lost, wrong=[*wrong, *(f"{failure}: {text}" for text in unsound)], faults=failing.injected)
    shutil.rmtree(here)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.usefixtures("small_index")
def test_what_a_failing_disk_refused_is_absent_and_what_it_took_is_there(folder: Path, failure: str) -> None:
    """Found by whoever opens the file after a kill: the acknowledged, nothing of the refused, a sound index. The same process goes on."""
    tally = Tally(f"disk: {failure}")
    for number, chance in enumerate(tally.schedule(LIVES)):
        one_life(tally, folder / str(number), failure, chance)
    tally.hold()


@pytest.mark.parametrize("failure", ["EIO on anything", "no room to write", "no room to flush"])
@pytest.mark.usefixtures("small_index", "rollback_journal")
def test_the_same_holds_with_a_rollback_journal(folder: Path, failure: str) -> None:
    """There what was refused is taken back from the journal, at once or by whoever opens the file next."""
    tally = Tally(f"disk, rollback journal: {failure}")
    for number, chance in enumerate(tally.schedule(LIVES)):
        one_life(tally, folder / str(number), failure, chance)
    tally.hold()


@pytest.mark.usefixtures("small_index")
def test_a_store_that_leaves_what_it_refused_in_its_log_is_caught(folder: Path) -> None:
    """A flush that failed says nothing of the bytes: they may stand in the log, whole, and come back at the next start."""
    tally = Tally("disk: EIO on flushing, the log left as it is", until_noticed=True)
    for number, chance in enumerate(tally.schedule(60)):  # one in four shows it
        one_life(tally, folder / str(number), "EIO on flushing", chance, ForgetfulSqlite)
    tally.catch()


@pytest.mark.usefixtures("small_index")
def test_a_store_that_does_not_listen_to_its_disk_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally("disk: no room to write, answered as done", until_noticed=True)
    monkeypatch.setattr(work, "KINDS", {"save": 1})  # upkeep that is never done would be tried for ever
    for number, chance in enumerate(tally.schedule(10)):
        one_life(tally, folder / str(number), "no room to write", chance, CheerfulSqlite)
    tally.catch()


def save(services: Services, name: str) -> None:
    services.memories.save(CALLER, Draft(name, "walrus", GLOBAL))


def test_after_three_failures_in_a_row_the_disk_is_given_a_rest(folder: Path) -> None:
    """Writes are then refused at once, as read-only, and the disk is not asked; reads go on; after the rest it is tried again."""
    failing = Failing(("flush",), errno.EIO)
    services = open_on(folder / "pegword.db", failing.disk.name)
    engine = services.engine
    assert isinstance(engine, SqliteEngine)
    now = [100.0]
    engine._monotonic = lambda: now[0]  # type: ignore[method-assign]
    save(services, "before")
    failing.on = True
    for _ in range(DISK_FAILURES_MAX):
        with pytest.raises(DiskFailed):
            save(services, "during")
    asked_of_the_disk = failing.injected
    with pytest.raises(ReadOnly) as caught:
        save(services, "during")

    assert asked_of_the_disk == failing.injected
    assert 0 < caught.value.retry_after_s <= DISK_REST_S + 1
    assert ["before"] == [m.name for m in services.memories.list(CALLER, _everything()).memories]
    now[0] += DISK_REST_S + 0.1
    with pytest.raises(DiskFailed):
        save(services, "during")
    failing.on = False
    with pytest.raises(ReadOnly):
        save(services, "during")
    now[0] += DISK_REST_S + 0.1
    save(services, "after")
    assert ["after", "before"] == sorted(m.name for m in services.memories.list(CALLER, _everything()).memories)
    services.close()
    failing.disk.unregister()


def test_one_success_ends_the_count_of_failures(folder: Path) -> None:
    """Only failures in a row lead to a rest."""
    failing = Failing(("flush",), errno.EIO)
    services = open_on(folder / "pegword.db", failing.disk.name)
    for number in range(3 * DISK_FAILURES_MAX):
        failing.on = number % DISK_FAILURES_MAX != 0
        if failing.on:
            with pytest.raises(DiskFailed):
                save(services, f"n{number}")
        else:
            save(services, f"n{number}")
    services.close()
    failing.disk.unregister()


@pytest.mark.parametrize(
    ("failure", "kind"), [("no room to write", StorageFull), ("EIO on flushing", DiskFailed), ("read-only in mid-run", ReadOnly)]
)
def test_a_first_start_on_such_a_disk_says_why(folder: Path, failure: str, kind: type[Exception]) -> None:
    """And leaves nothing that keeps the next one from starting."""
    failing = Failing(*FAILURES[failure])
    failing.on = True
    with pytest.raises(kind):
        open_on(folder / "pegword.db", failing.disk.name)
    failing.disk.unregister()

    assert ({}, []) == look(folder / "pegword.db")


ANSWERS = {
    "no room to write": {(507, "storage_full")},
    "EIO on flushing": {(503, "disk_failed"), (503, "in_doubt"), (503, "read_only")},
    "read-only in mid-run": {(503, "read_only")},
}


@pytest.mark.parametrize("failure", ANSWERS)
def test_a_server_on_such_a_disk_refuses_saves_answers_reads_and_goes_on_afterwards(
    folder: Path, serve: Callable[[Services], Site], failure: str
) -> None:
    """Eight clients save: refusals have their status and say when to ask again, readiness tells, reads are answered; the same process
    takes saves again when the disk does; what was answered is there, what was refused is not."""
    tally = Tally(f"a server under 8 writers: {failure}")
    for number, chance in enumerate(tally.schedule(how_many("DISK_SERVERS", 2))):
        here = folder / str(number)
        here.mkdir()
        serve_through(tally, here, serve, failure, chance)
    tally.hold()


def serve_through(tally: Tally, here: Path, serve: Callable[[Services], Site], failure: str, chance: random.Random) -> None:
    failing = Failing(*FAILURES[failure])
    services = open_on(here / "pegword.db", failing.disk.name)
    engine = services.engine
    assert isinstance(engine, SqliteEngine)
    site = serve(services)
    token, ledger, stop = site.token("alice"), Ledger(), threading.Event()
    threads = writers(WRITERS, site.port, token, ledger, chance.randrange(1 << 30), stop)
    until(lambda: ledger.answers > 50)
    failing.on = True
    until(lambda: ledger.answered(503, 507) > 50)
    told: list[tuple[int, Any, dict[str, str]]] = []
    comes_to(lambda: told.append(ask(site.port, "GET", "/readyz")) or _answer(told[-1]) in ANSWERS[failure])
    ready = told[-1]
    read = ask(site.port, "GET", "/v1/api/memories", token=token)
    found = ask(site.port, "POST", "/v1/api/memories/search", {"query": "content"}, token=token)
    failing.on = False
    engine._rest_until = 0.0
    before = ledger.answers
    until(lambda: ledger.answers > before + 50)
    ready_again = comes_to(lambda: ask(site.port, "GET", "/readyz")[0] == 200)
    stop.set()
    joined(threads)
    with engine.read() as tx:  # the files are copied one by one: until both are, nobody may move the log into the database and cut it
        tx.rows("SELECT count(*) FROM facts")
        found_so = as_a_kill_leaves_it(here / "pegword.db")
    stored, wrong = look(found_so)
    wrong += ledger.wrong
    refusals = {answer for answer in ledger.statuses if answer[0] in (500, 503, 507)}
    wrong += [f"answered {answer}" for answer in refusals - ANSWERS[failure]]
    if _answer(ready) not in ANSWERS[failure] or int(ready[2].get("retry-after", 0)) < 1:
        wrong.append(f"/readyz said {ready}")
    wrong += [f"{name} answered {answer[0]}" for name, answer in (("list", read), ("search", found)) if answer[0] != 200]
    wrong += [] if ready_again else ["it was never ready again"]
    lost = ledger.lost({name: content for (_, name), content in stored.items()})
    refused = sum(number for answer, number in ledger.statuses.items() if answer in refusals)
    tally.notes["refused"] = tally.notes.get("refused", 0) + refused
    tally.book(acknowledged=ledger.answers, lost=lost, wrong=wrong, faults=failing.injected)


def _answer(told: tuple[int, Any, dict[str, str]]) -> tuple[int, str]:
    return told[0], told[1].get("code", "")


def _everything() -> Any:
    from pegword.core.caller import reach

    return reach(CALLER)
