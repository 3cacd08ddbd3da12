"""Others on the same file: a lock that is held for long, several servers, and transactions that read before they write."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from pegword.core.errors import Busy, ReadOnly
from pegword.http import app
from pegword.http.app import WRITE_WAIT_S
from pegword.services.bundle import Services
from pegword.store import sqlite, sqlite_file
from pegword.store.sqlite import SqliteEngine, SqliteTx, _Job
from pegword.store.sqlite_file import BUSY_WAIT_MS
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.ledger import PYTHON, UNHURRIED, Ledger, Server, ask, joined, writers
from tests.faults.mutants import DeferredSqlite, SelfishSqlite
from tests.faults.work import look, open_on
from tests.patience import until
from tests.stored import held
from tests.wire.conftest import Site

LONG_S = how_many("LOCK_S", 12)  # as long as it takes that somebody has waited in the line in vain
CLIENTS = 60  # more than there are threads for writers
PROCESSES = 4
SAVES = how_many("SAVES_A_PROCESS", 500)
NAMES = 200
SLACK_S = 100.0  # a slow machine's

pytestmark = pytest.mark.timeout(PATIENCE_S)


@pytest.fixture
def site(folder: Path, serve: Callable[[Services], Site]) -> Site:
    return serve(open_on(folder / "pegword.db", ""))


def saves(
    port: int, token: str, ledger: Ledger, answers: list[tuple[float, int, str]], stop: threading.Event, seed: int
) -> list[threading.Thread]:
    """Clients that save once, and again as long as they are not told to *stop*; how long each answer took, its status and code."""

    def client(number: int) -> None:
        step = 0
        while not stop.is_set():
            name, step = f"c{seed}_{number}_{step}", step + 1
            content = f"saved by {number} x{number * 1_000 + step}"
            ledger.intended[name] = [content]
            began = time.monotonic()
            status, answer, headers = ask(port, "POST", "/v1/api/memories", {"name": name, "content": content}, token, 120)
            answers.append((time.monotonic() - began, status, answer.get("code", "")))
            ledger.statuses[status, answer.get("code", "")] += 1
            ledger.intended[name] = []
            if status == 201:
                ledger.answers += 1
                ledger.acknowledged[name] = content
            elif status != 503 or int(headers.get("retry-after", 0)) < 1:
                ledger.wrong.append(f"answered {status} {answer} {headers}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    return threads


def test_all_saves_succeed_that_wait_for_a_lock_held_for_three_seconds(
    folder: Path, serve: Callable[[Services], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody hears of it; it took a little longer. A machine that is slow must not make more than three seconds of it, so both waits are
    longer here than they are: what they are is more than three. So what is answered while all of them wait has not waited behind them:
    a probe that touches no database, and a read."""
    assert min(BUSY_WAIT_MS / 1_000, WRITE_WAIT_S) > 3
    monkeypatch.setattr(sqlite_file, "BUSY_WAIT_MS", PATIENCE_S * 1_000)
    monkeypatch.setattr(app, "WRITE_WAIT_S", PATIENCE_S)
    tally, ledger, stop = Tally("a foreign lock held for 3 s"), Ledger(), threading.Event()
    answers: list[tuple[float, int, str]] = []
    site = serve(open_on(folder / "pegword.db", ""))
    token = site.token("alice")
    with held(folder / "pegword.db"):
        threads = saves(site.port, token, ledger, answers, stop, 1)
        until(lambda: len(ledger.intended) == CLIENTS)
        stop.set()
        asked = {path: ask(site.port, "GET", path, token=token)[0] for path in ("/livez", "/v1/api/memories")}
        time.sleep(3)
        answered = len(answers)
    joined(threads)
    found, wrong = look(folder / "pegword.db")
    wrong += [f"answered {answer}" for answer in ledger.statuses if answer[0] != 201]
    tally.book(acknowledged=ledger.answers, lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong)
    tally.hold()
    assert ({"/livez": 200, "/v1/api/memories": 200}, 0) == (asked, answered)
    assert CLIENTS == len(ledger.acknowledged)


def test_a_lock_held_for_long_is_answered_within_the_deadline_and_reads_go_on(folder: Path, site: Site) -> None:
    """More clients than threads: each save is refused with 503 and Retry-After after one wait for the lock, or in the line; probes that
    touch no database and reads are answered; afterwards saves are taken again, and nothing that was refused is there."""
    tally, ledger, stop = Tally(f"a foreign lock held for {LONG_S} s"), Ledger(), threading.Event()
    answers: list[tuple[float, int, str]] = []
    token = site.token("alice")
    quick: list[tuple[str, float, int]] = []
    with held(folder / "pegword.db"):
        threads = saves(site.port, token, ledger, answers, stop, 2)
        ends = time.monotonic() + LONG_S
        while time.monotonic() < ends or len(answers) < CLIENTS:
            for path, as_whom in (("/livez", ""), ("/v1/api/memories", token)):
                began = time.monotonic()
                status, _, _ = ask(site.port, "GET", path, token=as_whom)
                quick.append((path, time.monotonic() - began, status))
            time.sleep(0.1)
        refused = len(answers)
        stop.set()
    joined(threads)
    saved, _, _ = ask(site.port, "POST", "/v1/api/memories", {"name": "after", "content": "x1"}, token)
    found, wrong = look(folder / "pegword.db")
    found.pop(("g", "after"), None)
    wrong += ledger.wrong
    wrong += [f"{path} answered {status} after {took:.2f} s" for path, took, status in quick if status != 200]
    deadline = BUSY_WAIT_MS / 1_000 + WRITE_WAIT_S + SLACK_S
    wrong += [f"a save was answered {status} {code} after {took:.1f} s" for took, status, code in answers if took > deadline]
    tally.notes = {"refused": refused, "slowest answer s": round(max(took for took, _, _ in answers), 1)}
    tally.notes["slowest /livez s"] = round(max(took for path, took, _ in quick if path == "/livez"), 3)
    tally.book(acknowledged=ledger.answers, lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong)
    tally.hold()
    assert 201 == saved
    assert refused >= CLIENTS


class Watched(_Job):
    """A write that knows how many waits for the lock had begun when it came into the line, and how many when it was done with."""

    begun: ClassVar[list[int]] = []  # one for each wait; a list of its own for each count
    waits: ClassVar[list[int]] = []  # what each that is done with has met

    def __init__(self, work: Callable[[SqliteTx], object]) -> None:
        self._done = False
        self.before = 0
        super().__init__(work)

    @property
    def done(self) -> bool:  # type: ignore[override]
        return self._done

    @done.setter
    def done(self, done: bool) -> None:
        self._done = done
        if done:
            self.waits.append(len(self.begun) - self.before)


class Standing(deque[Watched]):
    """The line of those who write."""

    def append(self, job: Watched) -> None:
        job.before = len(job.begun)
        super().append(job)


def most_waits(path: Path, kind: type[SqliteEngine], monkeypatch: pytest.MonkeyPatch) -> int:
    """Eight writers come while somebody else holds the lock, and come again: how many waits for the lock have begun at most between a
    writer's coming and its answer. Where each stands in a line of its own, it comes when it asks.

    Both are noted where they happen, and not by the writers, who may be held up before and after it.
    """
    monkeypatch.setattr(Watched, "begun", begun := [])
    monkeypatch.setattr(Watched, "waits", waits := [])
    monkeypatch.setattr(sqlite, "_Job", Watched)
    engine, asked = kind(path), threading.Semaphore(0)
    engine.write(lambda tx: tx.run("CREATE TABLE t (x)"))
    waits.clear()
    engine._waiting = Standing()  # type: ignore[assignment]
    engine._writer.set_busy_timeout(300)
    begin = engine._begin

    def counted() -> None:
        if not begun:
            for _ in range(8):  # the first wait is that of all who come at first
                assert asked.acquire(timeout=PATIENCE_S)
        begun.append(1)
        begin()

    engine._begin = counted  # type: ignore[method-assign]
    alone: list[int] = []

    def client() -> None:
        for _ in range(2):
            before = len(begun)
            asked.release()
            with pytest.raises(Busy):
                engine.write(lambda tx: tx.run("INSERT INTO t VALUES (1)"))
            alone.append(len(begun) - before)

    with held(path):
        threads = [threading.Thread(target=client) for _ in range(8)]
        for thread in threads:
            thread.start()
        joined(threads)
    engine.close()
    assert 16 == len(waits) == len(alone)
    return max(waits if kind is SqliteEngine else alone)


def test_those_who_have_their_answer_do_not_stand_behind_those_who_still_wait(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the lock is held, new writers come as others are refused: each is answered after the rest of one wait and the whole of the
    next at most. Where everybody waits alone, it is caught: the last of the eight who came at first has stood behind all the others."""
    assert most_waits(folder / "together.db", SqliteEngine, monkeypatch) <= 2
    assert most_waits(folder / "alone.db", SelfishSqlite, monkeypatch) > 2


def many_servers(tally: Tally, folder: Path, command: Sequence[str], saves: int) -> None:
    """Four processes, sixteen clients, names that all of them save."""
    path = folder / "pegword.db"
    services = open_on(path, "")
    services.access.add_user("alice")
    _, token = services.access.add_key("alice")
    services.close()
    servers = [Server(command, f"sqlite:///{path}", folder) for _ in range(PROCESSES)]
    acknowledged: list[tuple[str, str]] = []
    wrong: list[str] = []

    def client(number: int) -> None:
        port = servers[number % PROCESSES].port
        for step in range(saves // 4):
            name, content = f"n{(number * 7 + step) % NAMES}", f"client {number} step {step} x{number}y{step}"
            status, answer, _ = ask(port, "POST", "/v1/api/memories", {"name": name, "content": content}, token)
            if status in (200, 201):
                acknowledged.append((name, content))
            else:
                wrong.append(f"{status} {answer}")

    began = time.monotonic()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(4 * PROCESSES)]
    for thread in threads:
        thread.start()
    joined(threads, PATIENCE_S)
    tally.notes["saves a second"] = round(len(acknowledged) / (time.monotonic() - began))
    wrong += [f"a server ended with {code}" for server in servers if (code := server.stop())]
    found, unsound = look(path)
    services = open_on(path, "")
    with services.engine.read() as tx:
        versions = dict(tx.rows("SELECT name, version FROM structured_memories"))
        texts = set(tx.rows("SELECT name, content FROM memory_versions"))
    services.close()
    saved = Counter(name for name, _ in acknowledged)
    wrong += unsound
    wrong += [
        f"{name} has {versions.get(name)} versions, {count} were acknowledged"
        for name, count in saved.items()
        if versions.get(name) != count
    ]
    wrong += [f"{name} was saved by nobody" for _, name in found if name not in saved]
    tally.book(acknowledged=len(acknowledged), lost=[str(item) for item in set(acknowledged) - texts], wrong=wrong, faults=PROCESSES)


def test_several_servers_on_one_file_lose_nothing_and_do_nothing_twice(folder: Path) -> None:
    """No save fails, and each memory has as many versions as were acknowledged."""
    tally = Tally(f"{PROCESSES} servers on one file")
    many_servers(tally, folder, UNHURRIED, SAVES)
    tally.hold()


def test_a_server_that_takes_back_what_it_answered_is_caught(folder: Path) -> None:
    tally = Tally(f"{PROCESSES} servers on one file, some writes taken back")
    many_servers(tally, folder, [PYTHON, "-m", "tests.faults.serving", "DroppingSqlite", "serve"], 80)
    tally.catch()


def read_then_write(folder: Path, kind: type[SqliteEngine]) -> list[str]:
    """What goes wrong when one process reads and then writes, and another writes in between."""
    path = folder / f"{kind.__name__}.db"
    mine, other = kind(path), SqliteEngine(path)
    mine.write(lambda tx: tx.run("CREATE TABLE t (x)"))
    mine._writer.set_busy_timeout(5_000)
    wrong: list[str] = []
    stopped = threading.Event()
    other._writer.set_busy_handler(lambda _: stopped.set() or time.sleep(0.005) or True)
    between = threading.Thread(target=lambda: other.write(lambda tx: tx.run("INSERT INTO t VALUES (1)")))

    def work(tx: SqliteTx) -> None:
        tx.rows("SELECT count(*) FROM t")
        between.start()
        until(lambda: stopped.is_set() or not between.is_alive())  # it stands before the lock, or has written
        tx.run("INSERT INTO t VALUES (2)")

    try:
        mine.write(work)
    except Busy as error:
        wrong.append(f"{error!r}")
    between.join()
    with other.read() as tx:
        rows = sorted(tx.rows("SELECT x FROM t"))
    if rows != [(1,), (2,)]:
        wrong.append(f"stored: {rows}")
    mine.close()
    other.close()
    return wrong


def test_a_write_that_reads_first_waits_for_others_and_never_fails_by_them(folder: Path) -> None:
    """It takes the write lock when it begins. One that began as a read would fail at once when somebody wrote in between."""
    tally = Tally("a write between a reading and a writing")
    tally.book(acknowledged=2, wrong=read_then_write(folder, SqliteEngine))
    tally.hold()


def test_a_write_that_begins_as_a_read_is_caught(folder: Path) -> None:
    tally = Tally("a write between a reading and a writing, deferred")
    tally.book(wrong=read_then_write(folder, DeferredSqlite))
    tally.catch()


def test_what_reads_cannot_write(folder: Path) -> None:
    """Whatever a read transaction is asked: it never becomes a write."""
    engine = SqliteEngine(folder / "pegword.db")
    engine.write(lambda tx: tx.run("CREATE TABLE t (x)"))
    with pytest.raises(ReadOnly), engine.read() as tx:
        tx.run("INSERT INTO t VALUES (1)")
    engine.close()


def test_every_write_takes_the_write_lock_first(folder: Path, site: Site) -> None:
    """Under clients that save, change and delete, with all upkeep beside them: the writer begins in one way only."""
    assert site.services is not None
    engine = site.services.engine
    assert isinstance(engine, SqliteEngine)
    seen: set[str] = set()
    engine._writer.set_exec_trace(lambda _, sql, __: seen.add(sql.split(" WHERE")[0]) or True)
    ledger, stop = Ledger(), threading.Event()
    threads = writers(4, site.port, site.token("alice"), ledger, 1, stop)
    until(lambda: ledger.answers > 100)
    stop.set()
    joined(threads)

    assert {"BEGIN IMMEDIATE"} == {sql for sql in seen if sql.startswith("BEGIN")}
