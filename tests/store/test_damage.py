"""What goes wrong with the file: damaged bytes, a file that is gone, a folder that cannot be written, readers that stay."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Session, reach
from pegword.core.errors import Busy, Damaged, NewerDatabase, Unavailable
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store import sqlite_file
from pegword.store.sqlite import SqliteEngine, SqliteTx
from pegword.store.sqlite_file import APPLICATION_ID

SAID = [{"role": "user", "content": "walrus tea"}]
DAMAGES = {
    "another text": "content = 'altered'",
    "no UTF-8": "content = CAST(x'77ff6c' AS TEXT)",
    "tags that are no JSON": "tags = '[\"a'",
    "tags that are no list": "tags = '5'",
    "no tags at all": "tags = 'null'",
    "another name": "name = 'other'",
}


@pytest.fixture
def hurt(services: Services, alice: Caller, request: pytest.FixtureRequest) -> str:
    """A store with a good memory and one that was damaged on disk; the id of the latter."""
    services.memories.save(alice, Draft("good", "walrus tea", GLOBAL))
    bad = services.memories.save(alice, Draft("bad", "walrus tea, first", GLOBAL)).memory
    services.memories.save(alice, Draft("bad", "walrus tea", GLOBAL))
    services.engine.write(lambda tx: tx.run(f"UPDATE structured_memories SET {request.param} WHERE memory_id = ?", (bad.memory_id,)))
    return bad.memory_id


@pytest.mark.parametrize("hurt", DAMAGES.values(), ids=DAMAGES.keys(), indirect=True)
def test_a_damaged_memory_is_reported_and_not_served(
    services: Services, alice: Caller, bob: Caller, hurt: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One bad row stands in no list, search or turn, keeps nobody from the others, is named in the log, and says so when asked for."""
    for caller in (alice, bob):
        assert ["good"] == [h.memory.name for h in services.memories.search(caller, reach(caller), "walrus").hits]
        assert ["good"] == [m.name for m in services.memories.list(caller, reach(caller)).memories]
        assert ["good"] == [s.memory.name for s in services.turns.turn(caller, Session(), SAID).shown]
        with pytest.raises(Damaged):
            services.memories.get_by_id(caller, hurt)
    assert any("damaged" in record.message for record in caplog.records)


@pytest.mark.parametrize("hurt", DAMAGES.values(), ids=DAMAGES.keys(), indirect=True)
def test_a_damaged_memory_can_be_deleted_and_the_index_made_again(services: Services, alice: Caller, hurt: str) -> None:
    """Nothing that is broken must be kept, and it keeps nobody from mending the rest."""
    services.reindexer.run(everything=True)
    assert ["good"] == [h.memory.name for h in services.memories.search(alice, reach(alice), "walrus").hits]
    services.memories.delete_by_id(alice, hurt)

    assert 1 == services.memories.list(alice, reach(alice)).total


@pytest.mark.parametrize("what", ["content = 'altered'", "content = CAST(x'77ff6c' AS TEXT)", "tags = 'null'"])
def test_a_damaged_version_is_left_out_and_its_memory_can_be_deleted(services: Services, alice: Caller, what: str) -> None:
    """Neither the history nor an explanation shows a text that nobody wrote."""
    services.memories.save(alice, Draft("n", "walrus tea", GLOBAL))
    turn = services.turns.turn(alice, Session(), SAID)
    services.turns.explain(alice, turn.receipt)
    memory = services.memories.save(alice, Draft("n", "walrus milk", GLOBAL)).memory
    services.engine.write(lambda tx: tx.run(f"UPDATE memory_versions SET {what} WHERE version = 1"))

    assert [2] == [v.version for v in services.memories.versions(alice, memory.memory_id).versions]
    assert "" == services.turns.explain(alice, turn.receipt).block
    with pytest.raises(Damaged):
        services.memories.revert(alice, memory.memory_id, 1)
    services.memories.delete_by_id(alice, memory.memory_id)


@pytest.mark.parametrize("hurt", [DAMAGES["another text"], DAMAGES["tags that are no JSON"]], indirect=True)
def test_a_damaged_memory_can_be_reverted_and_deleted(services: Services, alice: Caller, hurt: str) -> None:
    """Its versions are whole; and nothing that is broken must be kept."""
    assert ["walrus tea", "walrus tea, first"] == [v.content for v in services.memories.versions(alice, hurt).versions]
    services.memories.revert(alice, hurt, 1)
    assert "walrus tea, first" == services.memories.get_by_id(alice, hurt).content
    services.memories.delete_by_id(alice, hurt)

    assert 1 == services.memories.list(alice, reach(alice)).total


@pytest.mark.parametrize(("column", "value"), [("counts", b"\x01"), ("marks", b"\x01\x02"), ("marks", b"text")])
def test_a_damaged_tail_is_refused_and_can_be_made_again(services: Services, alice: Caller, column: str, value: bytes) -> None:
    services.memories.save(alice, Draft("good", "walrus tea", GLOBAL))
    services.engine.write(lambda tx: tx.run(f"UPDATE ix_tail SET {column} = ?", (value,)))
    with pytest.raises(Damaged, match="reindex"):
        services.memories.search(alice, reach(alice), "walrus")
    services.reindexer.run(everything=True)

    assert 1 == services.memories.search(alice, reach(alice), "walrus").total


@pytest.mark.parametrize("what", ["counts = 7", "marks = 'text'"])
def test_a_tail_that_is_no_bytes_is_refused_and_can_be_made_again(services: Services, alice: Caller, store_path: Path, what: str) -> None:
    """SQLite stores any type anywhere."""
    services.memories.save(alice, Draft("good", "walrus tea", GLOBAL))
    services.engine.write(lambda tx: tx.run(f"UPDATE ix_tail SET {what}"))
    with pytest.raises(Damaged, match="reindex"):
        services.memories.search(alice, reach(alice), "walrus")
    services.reindexer.run(everything=True)

    assert 1 == services.memories.search(alice, reach(alice), "walrus").total


@pytest.mark.parametrize("data", [b"", b"\x01\x02\x03", b"\xff\xff\xff\xff\x01\x00\x01\x00"], ids=["empty", "cut", "a slot far away"])
def test_a_damaged_index_is_refused_and_can_be_made_again(services: Services, alice: Caller, data: bytes) -> None:
    """No wrong answer and no memory filled by a number that was never written; a re-index mends it."""
    services.memories.save(alice, Draft("good", "walrus tea", GLOBAL))
    services.reindexer.run(everything=True)
    services.engine.write(lambda tx: tx.run("UPDATE ix_block SET postings = ? WHERE term = 'walrus'", (data,)))
    with pytest.raises(Damaged, match="reindex"):
        services.memories.search(alice, reach(alice), "walrus")
    services.reindexer.run(everything=True)

    assert 1 == services.memories.search(alice, reach(alice), "walrus").total


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_no_longer_there_takes_no_save(services: Services, alice: Caller, store_path: Path, how: str) -> None:
    """What is saved into a file without a name would be lost: nobody is told that it was saved."""
    services.memories.save(alice, Draft("n", "x", GLOBAL))
    store_path.rename(store_path.with_suffix(".old"))
    if how == "replaced":
        store_path.write_bytes(store_path.with_suffix(".old").read_bytes())
    with pytest.raises(Unavailable, match="removed or replaced"):
        services.memories.save(alice, Draft("n", "y", GLOBAL))
    if how == "replaced":
        store_path.unlink()
    store_path.with_suffix(".old").rename(store_path)

    assert "created" == services.memories.save(alice, Draft("m", "y", GLOBAL)).outcome


def test_a_database_in_a_folder_that_cannot_be_written_is_read(
    services: Services, alice: Caller, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed properly, it has no log beside it and is read as it is."""
    services.memories.save(alice, Draft("n", "walrus", GLOBAL))
    services.close()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not Path(f"{store_path}-wal").exists()
    opened = open_services(store_path, load(environment={}))

    assert ["n"] == [h.memory.name for h in opened.memories.search(alice, reach(alice), "walrus").hits]
    assert not Path(f"{store_path}-shm").exists()
    opened.engine.close()


def test_an_empty_file_is_taken_over_privately_and_another_programs_is_not(tmp_path: Path) -> None:
    empty, marked, absent = tmp_path / "empty.db", tmp_path / "marked.db", tmp_path / "absent.db"
    empty.touch(0o644)
    other = apsw.Connection(str(marked))
    other.pragma("application_id", 7)
    other.close()
    with pytest.raises(NewerDatabase):
        SqliteEngine(empty, create=False)
    with pytest.raises(NewerDatabase):
        SqliteEngine(marked)
    SqliteEngine(empty).close()
    SqliteEngine(absent).close()

    assert 0o600 == empty.stat().st_mode & 0o777
    assert APPLICATION_ID == apsw.Connection(str(absent)).pragma("application_id")


def test_a_delete_while_somebody_reads_holds_up_no_save_and_is_finished_later(
    services: Services, alice: Caller, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is cut when the reader has gone; until then saves go on at once."""
    memory = services.memories.save(alice, Draft("n", "walruscanary", GLOBAL)).memory
    reader = apsw.Connection(str(store_path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM structured_memories").fetchall()
    services.memories.delete_by_id(alice, memory.memory_id)
    monkeypatch.setattr(sqlite_file, "BUSY_WAIT_MS", 90_000)
    services.engine._writer.set_busy_timeout(90_000)  # type: ignore[attr-defined]
    start = time.monotonic()
    services.housekeeper.settle()
    services.memories.save(alice, Draft("m", "x", GLOBAL))
    assert time.monotonic() - start < 60  # and not 90
    reader.execute("COMMIT")
    reader.close()
    services.housekeeper.settle()

    assert b"canary" not in b"".join(p.read_bytes() for p in store_path.parent.iterdir())


def test_writers_that_wait_behind_a_foreign_lock_are_answered_together(store_path: Path) -> None:
    """Nobody starts a wait of their own behind the others': all hear Busy after the one wait that they shared."""
    engine, waits = SqliteEngine(store_path), []
    engine.write(lambda tx: tx.run("CREATE TABLE t (x)"))
    engine._writer.set_busy_timeout(300)
    other = apsw.Connection(str(store_path))
    other.execute("BEGIN IMMEDIATE")
    begin = engine._begin
    engine._begin = lambda: (waits.append(1), begin())[1]  # type: ignore[method-assign, func-returns-value]
    outcomes = in_one_batch(engine, *[lambda tx: tx.run("INSERT INTO t VALUES (1)")] * 100)
    other.execute("ROLLBACK")
    other.close()
    engine.close()

    assert [Busy] * 100 == outcomes
    assert 1 == len(waits)


def in_one_batch(engine: SqliteEngine, *works: Callable[[SqliteTx], object]) -> list[object]:
    """What each of *works* returned or raised, all of them in one commit."""
    outcomes: list[object] = [None] * len(works)

    def write(number: int) -> None:
        try:
            outcomes[number] = engine.write(works[number])
        except BaseException as error:
            outcomes[number] = type(error)

    with engine._writing:
        threads = [threading.Thread(target=write, args=(number,)) for number in range(len(works))]
        for thread in threads:
            thread.start()
            while len(engine._waiting) < threads.index(thread) + 1:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return outcomes


def test_an_interrupt_after_the_commit_tells_nobody_that_nothing_was_changed(store_path: Path) -> None:
    """The longest part of a batch is the flush, so that is where Ctrl-C lands: what is on disk by then was saved."""
    engine = SqliteEngine(store_path)
    engine.write(lambda tx: tx.run("CREATE TABLE t (x)"))
    writer = engine._writer

    class Interrupted:
        """The writer, interrupted when a commit returns."""

        def __getattr__(self, name: str) -> object:
            return getattr(writer, name)

        def execute(self, sql: str, *rest: object) -> object:
            result = writer.execute(sql, *rest)
            if sql == "COMMIT":
                engine._writer = writer
                raise KeyboardInterrupt
            return result

    engine._writer = Interrupted()  # type: ignore[assignment]
    outcomes = in_one_batch(engine, *(lambda tx, n=n: tx.run("INSERT INTO t VALUES (?)", (n,)) for n in range(3)))
    with engine.read() as tx:
        assert [(3,)] == tx.rows("SELECT count(*) FROM t")

    assert [1, 1, KeyboardInterrupt] == sorted(outcomes, key=str)
    engine.close()


def test_an_interrupt_undoes_the_batch_and_nobody_is_told_a_lie(store_path: Path) -> None:
    """Ctrl-C in one thread is raised in the one that led the commit, and the others hear that nothing was changed."""
    engine = SqliteEngine(store_path)
    engine.write(lambda tx: tx.run("CREATE TABLE t (x)"))

    def interrupted(tx: SqliteTx) -> None:
        raise KeyboardInterrupt

    outcomes = in_one_batch(
        engine, lambda tx: tx.run("INSERT INTO t VALUES (1)"), interrupted, lambda tx: tx.run("INSERT INTO t VALUES (2)")
    )
    with engine.read() as tx:
        stored = [row[0] for row in tx.rows("SELECT x FROM t ORDER BY x")]

    assert sorted(stored) == [number for number, outcome in zip((1, 0, 2), outcomes, strict=True) if outcome == 1 and number]
    assert 1 == outcomes.count(KeyboardInterrupt)
    assert 1 == engine.write(lambda tx: tx.run("INSERT INTO t VALUES (3)"))
    engine.close()


def test_a_write_inside_a_write_is_refused(store_path: Path) -> None:
    """It would wait for itself for ever."""
    engine = SqliteEngine(store_path)
    with pytest.raises(RuntimeError, match="inside a write"):
        engine.write(lambda _: engine.write(lambda _: None))
    engine.close()
    with pytest.raises(Unavailable, match="closed"):
        engine.write(lambda _: None)
