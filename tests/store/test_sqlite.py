"""SQLite as an engine: how the file is opened, what is refused, how writers share a commit."""

import os
import stat
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from pegword.core.errors import Busy, Damaged, Invalid, NewerDatabase, ReadOnly
from pegword.store import sqlite_file
from pegword.store.filesystem import network_file_system
from pegword.store.migrate import migrate, migrations, schema_of
from pegword.store.sqlite import BATCH_MAX, SqliteEngine, SqliteTx
from pegword.store.sqlite_file import Use, has_wal_race

_MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:35 / /mnt/share rw - nfs4 server:/x rw
41 22 0:36 / /mnt/sp\\040ace rw - fuse.sshfs host:/ rw
42 22 0:37 / /srv/data rw - 9p data rw
43 40 0:38 / /mnt/share/local rw - xfs /dev/vdb rw
"""


@pytest.fixture
def engine(store_path: Path) -> SqliteEngine:
    opened = SqliteEngine(store_path)
    opened.write(lambda tx: tx.run("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
    return opened


def numbers(engine: SqliteEngine) -> list[int]:
    with engine.read() as tx:
        return [row[0] for row in tx.rows("SELECT x FROM t ORDER BY x")]


def test_a_new_file_is_private_and_journalled_safely(engine: SqliteEngine) -> None:
    """Mode 0600; WAL, flushed at every commit; what is deleted is overwritten."""
    connection = engine._writer

    assert 0o600 == stat.S_IMODE(engine.path.stat().st_mode)
    assert ("wal", 2, 1) == tuple(connection.pragma(name) for name in ("journal_mode", "synchronous", "secure_delete"))


def test_the_log_and_shared_memory_are_private_too(engine: SqliteEngine) -> None:
    for suffix in ("-wal", "-shm"):
        assert 0o600 == stat.S_IMODE(Path(f"{engine.path}{suffix}").stat().st_mode)


def test_a_symbolic_link_is_refused(tmp_path: Path, store_path: Path) -> None:
    """Nobody plants a link where the store will be made."""
    store_path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Invalid, match="symbolic link"):
        SqliteEngine(store_path)


def two_names(path: Path) -> Path:
    """A second name of the store at *path*, which is made."""
    SqliteEngine(path).close()
    other = path.with_name("another.db")
    other.hardlink_to(path)
    return other


def check_two_names(path: Path) -> None:
    """Under each of its names it is refused, and left as it is, until it has one only; a look at it is taken all the same."""
    other = two_names(path)
    before = path.read_bytes()
    for name in (path, other):
        for use in (Use.STORE, Use.SCRATCH):
            with pytest.raises(Invalid, match=r"has another name too, a hard link: .* -samefile ") as refusal:
                SqliteEngine(name, create=False, use=use)
            assert ("database", "other_names") == (refusal.value.field, refusal.value.code)
        SqliteEngine(name, create=False, use=Use.LOOK).close()
        SqliteEngine(name, create=False, use=Use.FROZEN).close()
    assert before == path.read_bytes()
    other.unlink()
    SqliteEngine(path, create=False).close()


def test_a_file_of_two_names_is_refused(store_path: Path) -> None:
    """Its log is found by the name, so that two programs under two names would write past each other."""
    check_two_names(store_path)


def test_a_name_that_a_killed_restore_left_is_no_other_name(store_path: Path) -> None:
    """Nobody opens that one; it is refused itself."""
    SqliteEngine(store_path).close()
    partial = store_path.with_name(f"{store_path.name}.partial")
    partial.hardlink_to(store_path)
    with pytest.raises(Invalid, match="another name"):
        SqliteEngine(partial, create=False)
    SqliteEngine(store_path, create=False).close()
    store_path.with_name("third.db").hardlink_to(store_path)
    with pytest.raises(Invalid, match="another name"):
        SqliteEngine(store_path, create=False)


def test_two_programs_under_two_names_are_noticed_as_such(store_path: Path) -> None:
    """The one that runs goes on; the one that comes under the other name does not begin."""
    running = SqliteEngine(store_path)
    other = store_path.with_name("another.db")
    other.hardlink_to(store_path)
    with pytest.raises(Invalid, match="another name"):
        SqliteEngine(other, create=False)
    running.write(lambda tx: tx.run("CREATE TABLE goes_on (x)"))
    running.close()


def test_two_names_that_are_not_looked_for_are_noticed(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: every file has one name."""
    monkeypatch.setattr("pegword.store.sqlite_file.has_other_names", lambda _: False)
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        check_two_names(store_path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no regular file"):
        SqliteEngine(tmp_path)


def test_no_database_is_made_where_one_was_expected(store_path: Path) -> None:
    with pytest.raises(Invalid, match="no database"):
        SqliteEngine(store_path, create=False)

    assert not store_path.exists()


def test_a_database_of_another_program_is_refused_untouched(store_path: Path) -> None:
    other = apsw.Connection(str(store_path))
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = store_path.read_bytes()

    with pytest.raises(NewerDatabase, match="no database of Pegword"):
        SqliteEngine(store_path)

    assert before == store_path.read_bytes()


def test_a_file_that_is_no_database_is_refused_untouched(store_path: Path) -> None:
    store_path.write_text("dear diary, " * 1_000, encoding="utf-8")
    before = store_path.read_bytes()

    with pytest.raises(Damaged, match="no SQLite database"):
        SqliteEngine(store_path)

    assert before == store_path.read_bytes()


def test_a_newer_schema_is_refused(engine: SqliteEngine) -> None:
    """An older program never writes into what it does not understand."""
    migrate(engine)
    engine.write(lambda tx: tx.run("INSERT INTO schema_migrations (number, name) VALUES (9999, 'from the future')"))

    with pytest.raises(NewerDatabase, match="9999"):
        migrate(engine)


def test_migrations_are_numbered_without_gaps() -> None:
    assert list(range(1, len(migrations()) + 1)) == [number for number, _, _ in migrations()]


@pytest.mark.parametrize("new", [False, True])
def test_a_migration_that_fails_leaves_nothing_behind(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, new: bool) -> None:
    """All that are missing are one transaction: the next start finds the old state and tries again."""
    if not new:
        migrate(engine)
    before = schema_of(engine)
    broken = [*migrations(), (migrations()[-1][0] + 1, "broken.sql", "CREATE TABLE half (x BIGINT); CREATE TABLE half (x BIGINT)")]
    monkeypatch.setattr("pegword.store.migrate.migrations", lambda: broken)
    with pytest.raises(apsw.SQLError):
        migrate(engine)

    with engine.read() as tx:
        assert [] == tx.rows("SELECT name FROM sqlite_schema WHERE name = 'half'")
        assert (not new) == bool(tx.rows("SELECT name FROM sqlite_schema WHERE name = 'structured_memories'"))
    assert before == schema_of(engine)


@pytest.mark.parametrize(
    ("version", "race"),
    [
        ((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 44, 5), True), ((3, 44, 6), False), ((3, 45, 0), True),
        ((3, 50, 6), True), ((3, 50, 7), False), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 54, 1), False),
    ],
)  # fmt: skip
def test_versions_with_the_wal_race_are_known(version: tuple[int, ...], race: bool) -> None:
    assert race == has_wal_race(version)


def test_an_unsafe_sqlite_is_refused_or_used_without_wal(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file.apsw, "sqlite_lib_version", lambda: "3.45.0")
    with pytest.raises(Invalid, match=r"3\.45\.0"):
        SqliteEngine(store_path)
    lines: list[str] = []
    engine = SqliteEngine(store_path, allow_unsafe_sqlite=True, notice=lines.append)

    assert "delete" == engine._writer.pragma("journal_mode")
    assert ["rollback journal" in line for line in lines] == [True]


def test_a_network_file_system_gets_a_rollback_journal(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WAL needs memory shared between processes, which no network file system has. One clear line says so. The folder is flushed too
    (EXTRA), for there a commit is the removal of a name."""
    monkeypatch.setattr(sqlite_file, "network_file_system", lambda _: "nfs4")
    lines: list[str] = []
    engine = SqliteEngine(store_path, notice=lines.append)

    assert ("delete", 3) == (engine._writer.pragma("journal_mode"), engine._writer.pragma("synchronous"))
    assert 1 == len(lines)
    assert "nfs4" in lines[0]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/x.db", ""), ("/mnt/share/x.db", "nfs4"), ("/mnt/sp ace/x.db", "fuse.sshfs"), ("/srv/data/deep/x.db", "9p"),
        ("/mnt/share/local/x.db", ""), ("/mnt/shared/x.db", ""),
    ],
)  # fmt: skip
def test_the_file_system_of_a_path_is_that_of_its_nearest_mount(path: str, kind: str) -> None:
    assert kind == network_file_system(Path(path), _MOUNTS)


def test_a_failing_job_undoes_itself_alone(engine: SqliteEngine) -> None:
    """Writers share a commit; one that fails takes nothing of the others with it."""
    gate = threading.Barrier(6)
    errors: list[BaseException] = []

    def write(number: int) -> None:
        def work(tx: SqliteTx) -> None:
            tx.run("INSERT INTO t VALUES (?)", (number,))
            if number % 2:
                raise Invalid("odd")

        gate.wait()
        try:
            engine.write(work)
        except Invalid as error:
            errors.append(error)

    with engine._writing:  # all six wait, so that they share one commit
        threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        while len(engine._waiting) < 6:
            time.sleep(0.001)
    for thread in threads:
        thread.join()

    assert [0, 2, 4] == numbers(engine)
    assert 3 == len(errors)


def test_writers_that_wait_share_one_commit(store_path: Path) -> None:
    commits: list[str] = []
    engine = SqliteEngine(store_path)
    engine.write(lambda tx: tx.run("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
    engine._writer.set_exec_trace(lambda _, sql, __: commits.append(sql) or True)
    many = 2 * BATCH_MAX + 10
    with engine._writing:
        threads = [
            threading.Thread(target=engine.write, args=(lambda tx, n=n: tx.run("INSERT INTO t VALUES (?)", (n,)),)) for n in range(many)
        ]
        for thread in threads:
            thread.start()
        while len(engine._waiting) < many:
            time.sleep(0.001)
    for thread in threads:
        thread.join()

    assert many == len(numbers(engine))
    assert 3 == commits.count("COMMIT")


def test_a_reader_sees_one_snapshot(engine: SqliteEngine) -> None:
    """What is committed while a reader reads is not in its answers."""
    with engine.read() as tx:
        before = tx.rows("SELECT count(*) FROM t")
        engine.write(lambda other: other.run("INSERT INTO t VALUES (1)"))

        assert before == tx.rows("SELECT count(*) FROM t")

    assert [1] == numbers(engine)


def test_of_the_connections_that_nobody_uses_one_keeps_what_it_read(engine: SqliteEngine) -> None:
    """However many read at once, the process does not hold the same pages as often; and the next reader finds them."""
    engine.write(lambda tx: tx.run("CREATE TABLE pages (text TEXT)"))
    engine.write(lambda tx: tx.run_many("INSERT INTO pages VALUES (?)", [("x" * 1_000,) for _ in range(1_000)]))
    with ExitStack() as reading:
        for tx in [reading.enter_context(engine.read()) for _ in range(4)]:
            assert [(1_000_000,)] == tx.rows("SELECT sum(length(text)) FROM pages")
    check_one_is_warm(engine)


def check_one_is_warm(engine: SqliteEngine) -> None:
    held = [connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0] for connection in (*engine._warm, *engine._cold)]

    assert 4 == len(held)
    assert held[0] > 1_000_000
    assert max(held[1:]) < 100_000


def check_that_a_reader_after_the_other_finds_its_pages(engine: SqliteEngine) -> None:
    test_of_the_connections_that_nobody_uses_one_keeps_what_it_read(engine)
    read = []
    for _ in range(3):
        with engine.read() as tx:
            tx.rows("SELECT sum(length(text)) FROM pages")
            read.append(tx._connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS, True)[0])
    with engine.read() as tx:
        tx.rows("SELECT sum(length(text)) FROM pages")
        read.append(tx._connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0])

    assert 0 == read[-1]
    check_one_is_warm(engine)


def test_a_reader_after_the_other_finds_its_pages(engine: SqliteEngine) -> None:
    """However many connections lie beside: in turn, each would read all of it from the file again."""
    check_that_a_reader_after_the_other_finds_its_pages(engine)


def test_connections_that_take_turns_are_noticed(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the one that comes back has to give its pages up, since others lie there."""

    def put_back(engine: SqliteEngine, connection: apsw.Connection) -> None:
        if engine._warm:
            connection.pragma("shrink_memory")
        engine._warm.appendleft(connection)

    monkeypatch.setattr(SqliteEngine, "_put_back", put_back)
    with pytest.raises(AssertionError):
        check_that_a_reader_after_the_other_finds_its_pages(engine)


def test_reads_go_on_while_another_process_holds_the_write_lock(engine: SqliteEngine) -> None:
    other = apsw.Connection(str(engine.path))
    other.execute("BEGIN IMMEDIATE")

    assert [] == numbers(engine)

    other.execute("ROLLBACK")
    other.close()


def test_a_lock_that_stays_is_busy_and_changes_nothing(engine: SqliteEngine) -> None:
    """The answer says that it may be tried again."""
    engine._writer.set_busy_timeout(10)
    other = apsw.Connection(str(engine.path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy) as caught:
        engine.write(lambda tx: tx.run("INSERT INTO t VALUES (1)"))
    other.execute("ROLLBACK")
    other.close()

    assert caught.value.retry_after_s >= 1
    assert [] == numbers(engine)
    engine.write(lambda tx: tx.run("INSERT INTO t VALUES (2)"))
    assert [2] == numbers(engine)


def test_a_file_that_cannot_be_written_is_read(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a silent degrade: reads work, each write says that it was refused, and one line says so at the start."""
    engine.write(lambda tx: tx.run("INSERT INTO t VALUES (1)"))
    engine.close()
    monkeypatch.setattr(os, "access", lambda *_: False)
    lines: list[str] = []
    again = SqliteEngine(engine.path, notice=lines.append)

    assert [1] == numbers(again)
    assert "not writable" in lines[0]
    with pytest.raises(ReadOnly):
        again.write(lambda tx: tx.run("INSERT INTO t VALUES (2)"))
