"""PostgreSQL alone: what it is told at the start, what its errors mean, and how a broken connection heals."""

import os
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from pegword.assembly import open_engine, open_services
from pegword.core.caller import GLOBAL, Caller, Visible
from pegword.core.errors import Busy, Invalid, PegwordError, ReadOnly, StorageFull, Unavailable
from pegword.core.memory import Draft
from pegword.settings import load
from pegword.store import fact_rows
from pegword.store.engine import Tx
from pegword.store.migrate import migrate
from pegword.store.postgres import ATTEMPTS_MAX, WRITERS_MAX, PostgresEngine, meant
from tests import postgres
from tests.patience import PATIENCE_S

CALLER = Caller("u1", "alice", "key:1")
LATIN = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"


@pytest.fixture
def engine(postgres_database: postgres.Database) -> Iterator[PostgresEngine]:
    postgres_database.empty()
    opened = PostgresEngine(postgres_database.url)
    yield opened
    opened.close()


def put(tx: Tx, name: str = "n", value: str = "v") -> None:
    fact_rows.put(tx, name, value)


def fact(engine: PostgresEngine, name: str = "n", *, single: bool = False) -> str | None:
    with engine.read(single=single) as tx:
        return fact_rows.get(tx, name)


def break_all(database: postgres.Database) -> None:
    """End every connection of engines to the database, as a restart of the server does."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pegword'"
        )


@pytest.mark.parametrize("setting", ["off", "local"])
def test_a_commit_is_on_disk_whatever_the_database_s_own_setting(
    postgres_database: postgres.Database, engine: PostgresEngine, setting: str
) -> None:
    """An administrator's relaxed default is not taken over; a stricter one is kept."""
    with psycopg.connect(postgres_database.url, autocommit=True) as connection:
        name = psycopg.sql.Identifier(postgres_database.name)
        connection.execute(psycopg.sql.SQL(f"ALTER DATABASE {{}} SET synchronous_commit = '{setting}'").format(name))
        try:
            with PostgresEngine(postgres_database.url).read() as tx:
                assert [("on",)] == tx.rows("SHOW synchronous_commit")
            connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET synchronous_commit = 'remote_write'").format(name))
            with PostgresEngine(postgres_database.url).read() as tx:
                assert [("remote_write",)] == tx.rows("SHOW synchronous_commit")
        finally:
            connection.execute(psycopg.sql.SQL("ALTER DATABASE {} RESET synchronous_commit").format(name))


def test_a_read_sees_one_snapshot(engine: PostgresEngine) -> None:
    """What is committed meanwhile is not seen until the next read."""
    engine.write(lambda tx: put(tx, value="before"))
    with engine.read() as tx:
        assert "before" == fact_rows.get(tx, "n")
        thread = threading.Thread(target=lambda: engine.write(lambda tx: put(tx, value="after")))
        thread.start()
        thread.join(PATIENCE_S)
        assert "before" == fact_rows.get(tx, "n")

    assert "after" == fact(engine)


def test_a_read_cannot_write(engine: PostgresEngine) -> None:
    with engine.read() as tx, pytest.raises(ReadOnly):
        put(tx)


def test_an_error_of_the_work_undoes_it(engine: PostgresEngine) -> None:
    def broken(tx: Tx) -> None:
        put(tx)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        engine.write(broken)

    assert fact(engine) is None


def test_a_write_inside_a_write_is_refused(engine: PostgresEngine) -> None:
    """It would wait for the locks of the one that waits for it."""
    with pytest.raises(RuntimeError, match="inside"):
        engine.write(lambda _: engine.write(put))
    engine.write(put)


def test_what_broke_before_its_commit_is_done_again(postgres_database: postgres.Database, engine: PostgresEngine) -> None:
    """Nobody hears of it; the work runs twice and is stored once."""
    runs = []

    def work(tx: Tx) -> None:
        put(tx)
        runs.append(1)
        if len(runs) == 1:
            break_all(postgres_database)
            put(tx)

    engine.write(work)

    assert 2 == len(runs)
    assert "v" == fact(engine)


@pytest.mark.parametrize("committed", [False, True])
def test_what_breaks_at_its_commit_is_in_doubt_and_not_done_again(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """The caller is told so, and one run of the work is all there is, whether it arrived or not."""
    real, runs = psycopg.Connection.execute, []

    def breaking(self: Any, query: Any, *arguments: Any, **more: Any) -> Any:
        if query != "COMMIT":
            return real(self, query, *arguments, **more)
        if committed:
            real(self, query)
        self.pgconn.finish()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    def work(tx: Tx) -> None:
        runs.append(1)
        put(tx)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", breaking)
        with pytest.raises(Unavailable, match="not known") as raised:
            engine.write(work)

    assert "in_doubt" == raised.value.code
    assert [1] == runs
    assert ("v" if committed else None) == fact(engine)


@pytest.mark.parametrize("single", [False, True])
def test_connections_that_broke_while_nobody_used_them_are_not_noticed(
    postgres_database: postgres.Database, engine: PostgresEngine, single: bool
) -> None:
    """Reads and writes after a restart of the server go on as if nothing had been, on every connection that was open."""
    readers = [engine.read() for _ in range(4)]
    for reader in readers:
        reader.__enter__()
    for reader in readers:
        reader.__exit__(None, None, None)
    break_all(postgres_database)

    for _ in range(6):
        assert fact(engine, single=single) is None
    engine.write(put)


@pytest.mark.parametrize("error", [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected])
def test_who_loses_against_others_is_done_again_and_in_the_end_told(engine: PostgresEngine, error: type[psycopg.Error]) -> None:
    runs = []

    def loses(tx: Tx, times: int) -> str:
        runs.append(1)
        if len(runs) <= times:
            raise meant(error()) from error()
        put(tx)
        return "done"

    assert "done" == engine.write(lambda tx: loses(tx, 2))
    runs.clear()
    with pytest.raises(Busy):
        engine.write(lambda tx: loses(tx, 1_000))

    assert ATTEMPTS_MAX == len(runs)


def test_a_lock_that_somebody_keeps_is_busy(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for as long as the setting says, then the caller is told."""
    engine.write(put)
    with engine.read() as holder:
        holder._connection.execute("COMMIT")  # type: ignore[attr-defined]
        holder._connection.execute("BEGIN")  # type: ignore[attr-defined]
        put(holder)

        def impatient(tx: Any) -> None:
            tx.run("SET LOCAL lock_timeout = 50")
            put(tx)

        with pytest.raises(Busy, match="nothing was changed"):
            engine.write(impatient)


@pytest.mark.usefixtures("unhurried")
def test_more_writers_than_connections_for_them_wait_in_a_line(engine: PostgresEngine) -> None:
    """Readers always have a connection."""
    inside, go = threading.Semaphore(0), threading.Event()

    def slow(tx: Tx) -> None:
        inside.release()
        go.wait(PATIENCE_S)
        put(tx, threading.current_thread().name)

    threads = [threading.Thread(target=lambda: engine.write(slow), name=f"t{n}") for n in range(WRITERS_MAX + 4)]
    for thread in threads:
        thread.start()
    for _ in range(WRITERS_MAX):
        assert inside.acquire(timeout=PATIENCE_S)
    read = fact(engine)
    go.set()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert read is None
    assert ["v"] * len(threads) == [fact(engine, thread.name) for thread in threads]


def test_a_server_that_vanishes_is_noticed_by_its_silence(postgres_database: postgres.Database) -> None:
    """Connections ask whether the other side is there; whoever names an interval in the address has that one."""
    opened = PostgresEngine(f"{postgres_database.url}{'&' if '?' in postgres_database.url else '?'}keepalives_idle=77")
    with opened.read() as tx:
        told = tx._connection.info.get_parameters()
    opened.close()

    assert ("77", "5", "2", "20000") == tuple(
        told[name] for name in ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    )


def test_a_closed_engine_says_so(engine: PostgresEngine) -> None:
    engine.close()
    for attempt in (lambda: fact(engine), lambda: engine.write(put)):
        with pytest.raises(Unavailable) as raised:
            attempt()
        assert "closed" == raised.value.code


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda url: url.replace("pegword_test", "pegword_absent"), "does not exist"),
        (lambda _: "postgresql://somebody:hush@127.0.0.1:1/none", "somebody:***@127.0.0.1"),
        (lambda _: "postgresql://somebody@127.0.0.1:1/none?password=hush", "password=***"),
        (lambda _: "postgresql://[", "postgresql://["),
        (lambda _: "postgresql://somebody@127.0.0.1:1/none?sslpassword=hush", "sslpassword=***"),
        (lambda _: "postgresql://somebody:a@hush:5@127.0.0.1:1/none", "%40"),
        (lambda _: "postgresql://somebody:a@hush@127.0.0.1:1/none", "%40"),
        (lambda _: "postgresql://somebody:1/hush@127.0.0.1:1/none", "%2F"),
        (lambda _: "postgresql://somebody:%zzhush@127.0.0.1:1/none", "percent-encoded"),
    ],
)
def test_a_server_that_cannot_be_had_is_one_sentence_without_the_password(
    postgres_database: postgres.Database, change: Any, words: str
) -> None:
    with pytest.raises(PegwordError) as raised:
        open_engine(change(postgres_database.url))

    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "hush" not in str(raised.value)


def test_a_server_that_may_forget_is_named(postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync or full_page_writes switched off: it serves, and the operator is told."""
    monkeypatch.setattr("pegword.store.postgres._UNSAFE", "SELECT 'fsync'")
    told: list[str] = []
    PostgresEngine(postgres_database.url, notice=told.append).close()

    assert ["PostgreSQL runs with fsync = off: what was acknowledged can be lost when the machine stops"] == told


@pytest.mark.parametrize(("setting", "value"), [("SERVER_MAJOR_MIN", 99)])
def test_a_server_that_is_too_old_is_refused(
    postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch, setting: str, value: int
) -> None:
    monkeypatch.setattr(f"pegword.store.postgres.{setting}", value)
    with pytest.raises(Invalid, match="too old: 99 or newer"):
        PostgresEngine(postgres_database.url)


def test_another_encoding_is_refused(postgres_server: str) -> None:
    """A text that it cannot hold would be found out too late."""
    latin = postgres.Database(postgres_server, f"pegword_test_latin_{os.getpid()}", more=LATIN, fill=False)
    try:
        with pytest.raises(Invalid, match="must be UTF8: it is LATIN1"):
            PostgresEngine(latin.url)
    finally:
        latin.close()


def test_a_role_without_rights_is_told_what_it_lacks(postgres_database: postgres.Database, engine: PostgresEngine) -> None:
    nobody = f"pegword_nobody_{os.getpid()}"
    with engine.read() as tx:
        tx.rows("SELECT 1")
        tx._connection.execute("COMMIT")  # type: ignore[attr-defined]
        tx._connection.execute(f"CREATE ROLE {nobody}")  # type: ignore[attr-defined]
        try:
            with pytest.raises(ReadOnly, match="role may not"):
                engine.write(lambda tx: (tx.run(f"SET LOCAL ROLE {nobody}"), put(tx)))
        finally:
            tx._connection.execute(f"DROP ROLE {nobody}")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("DiskFull", StorageFull), ("TooManyConnections", Busy), ("OutOfMemory", Busy), ("QueryCanceled", Busy),
        ("AdminShutdown", Unavailable), ("CannotConnectNow", Unavailable), ("ConnectionFailure", Unavailable),
        ("ReadOnlySqlTransaction", ReadOnly), ("IoError", Unavailable), ("CharacterNotInRepertoire", Invalid),
        ("NumericValueOutOfRange", Invalid), ("InvalidPassword", Unavailable), ("UntranslatableCharacter", Invalid),
    ],
)  # fmt: skip
def test_every_state_has_its_meaning(state: str, kind: type[PegwordError]) -> None:
    assert type(meant(getattr(psycopg.errors, state)())) is kind


def test_a_fault_of_ours_stays_itself() -> None:
    """A wrong statement is no condition of the database; it must be seen."""
    error = psycopg.errors.SyntaxError()

    assert error is meant(error)


@pytest.mark.usefixtures("unhurried")
def test_many_processes_that_start_at_once_on_an_empty_database_all_succeed(postgres_server: str) -> None:
    """One of them makes the tables; the others wait for it."""
    empty = postgres.Database(postgres_server, f"pegword_test_first_{os.getpid()}", fill=False)
    failures: list[BaseException] = []

    def start(number: int) -> None:
        try:
            engine = PostgresEngine(empty.url)
            try:
                migrate(engine)
            finally:
                engine.close()
            services = open_services(empty.url, load(environment={}))
            services.memories.save(CALLER, Draft(f"n{number}", "tea", GLOBAL))
            services.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    try:
        assert [] == failures
        services = open_services(empty.url, load(environment={}))
        assert 6 == services.memories.list(CALLER, Visible((GLOBAL,))).total
        services.close()
    finally:
        empty.close()


def test_a_statement_is_prepared_once_for_all_reads_of_a_connection(engine: PostgresEngine) -> None:
    """The end of a transaction does not undo it: to prepare one took longer than to run it."""
    sql = "SELECT prepare_time, statement_timestamp() FROM pg_prepared_statements WHERE statement LIKE '%of pg_prepared%' AND 1 = ?"
    sql = sql.replace("FROM", "/* of pg_prepared */ FROM")
    seen = []
    for _ in range(3):
        with engine.read() as tx:
            seen += tx.rows(sql, (1,))
    with pytest.raises(NotImplementedError):
        engine.write(lambda tx: failing(tx.rows(sql, (1,))))
    with engine.read() as tx:
        seen += tx.rows(sql, (1,))

    assert 4 == len(seen)
    assert 1 == len({prepared for prepared, _ in seen})
    assert 4 == len({now for _, now in seen})


def failing(_: object) -> None:
    raise NotImplementedError


def test_parameters_are_numbered_in_their_order(engine: PostgresEngine) -> None:
    """By place or by name; a name that comes twice is one parameter, and a cast is none."""
    with engine.read() as tx:
        assert [(1, "b", 3)] == tx.rows("SELECT ?::bigint, ?::text, ?::bigint", (1, "b", 3))
        assert [(2, 1, 2, "50%")] == tx.rows(
            "SELECT CAST(:b AS BIGINT), CAST(:a AS BIGINT), CAST(:b AS BIGINT), '50%'", {"a": 1, "b": 2, "c": 3}
        )
