"""PostgreSQL through psycopg 3: connections, transactions, and what its errors mean.

Writers work at once, each in a transaction of its own (READ COMMITTED); where one must not meet another, the statements' owner says so
with `alone` and `beside`, which are advisory locks here. A commit is flushed to disk before the caller hears of it. What broke before
its COMMIT was sent is done again, on a new connection; what broke after that is in doubt, and its caller is told so.
"""

import hashlib
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from re import sub
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from pegword.core.address import without_password
from pegword.core.errors import Busy, Damaged, Invalid, PegwordError, ReadOnly, StorageFull, Unavailable
from pegword.store.engine import Parameters, Row
from pegword.store.places import Places
from pegword.store.tails import KeptTails

T = TypeVar("T")
Connection = psycopg.Connection[Row]

SERVER_MAJOR_MIN = 16  # storage of bytes is named where a table is made
CONNECTIONS_MAX = 20
WRITERS_MAX = 8  # of those, so that readers always have some
IDLE_S_MAX = 600.0
CONNECT_WAIT_S = 5
HEAL_WAIT_S = 5.0  # as long as a broken connection is made again before the caller is told
LOCK_WAIT_MS = 5_000
STATEMENT_WAIT_MS = 30_000
IDLE_IN_TRANSACTION_MS = 60_000
ATTEMPTS_MAX = 5
STATEMENTS_PREPARED = 300

_SETTINGS = f"""
    SET client_encoding = 'UTF8'; SET timezone = 'UTC'; SET lock_timeout = {LOCK_WAIT_MS}; SET statement_timeout = {STATEMENT_WAIT_MS};
    SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}; SET jit = off;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
# A server that is cut off, or whose machine is gone, says nothing: after some 20 seconds its connections count as broken.
_VANISHED = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "2", "tcp_user_timeout": "20000"}
_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_UNSAFE = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name"

_ABOUT = """
    SELECT name, setting FROM pg_settings
    WHERE name IN ('server_version', 'data_checksums', 'fsync', 'full_page_writes', 'synchronous_commit')
"""
_NOW = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), pg_is_in_recovery()"

_TRY_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
_IN_DOUBT = "the connection to the database broke at the commit, and it is not known whether this was done: look, then try again"
_MEANING: tuple[tuple[str, Callable[[str], PegwordError], str], ...] = (
    ("40", Busy, "others changed the same at the same time; nothing was changed, try again"),
    ("55P03", Busy, "others held what this needs for too long; nothing was changed, try again"),
    ("57014", Busy, "the database took too long; nothing was changed, try again"),
    ("25006", ReadOnly, "the database cannot be written to; nothing was changed"),
    ("53100", StorageFull, "the database's disk is full; nothing was changed"),
    ("53", Busy, "the database has no room for more work; nothing was changed, try again"),
    ("XX001", Damaged, "the database is damaged; run an integrity check and restore a backup"),
    ("XX002", Damaged, "the database is damaged; run an integrity check and restore a backup"),
    ("2200", Invalid, "a number is beyond 64 bits"),
    ("2202", Invalid, "a text holds a character that cannot be stored"),
    ("22P05", Invalid, "a text holds a character that cannot be stored"),
    ("42501", ReadOnly, "the database role may not do this; give it the rights that the operations guide names"),
    ("28", Unavailable, "the database refuses the role or its password"),
    ("3D000", Unavailable, "there is no such database on the server; create it first"),
    ("08", Unavailable, "the connection to the database broke; nothing was changed, try again"),
    ("57P", Unavailable, "the database is going down or starting; nothing was changed, try again"),
    ("58", Unavailable, "the database's disk did not answer as it should; nothing was changed"),
)
_RAISED = (psycopg.Error, UnicodeError, OverflowError, struct.error)


class PostgresTx:
    """An open transaction on one connection. *seen* is told every statement, for counting them. *kept_tails*: as in `Tx`."""

    def __init__(self, connection: Connection, seen: Callable[[str], None] | None, kept_tails: KeptTails | None = None) -> None:
        self.kept_tails = kept_tails
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        self._seen = seen

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        self._execute(sql, parameters)
        try:
            return self._cursor.fetchall()
        except _RAISED as error:
            raise meant(error) from error

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        self._execute(sql, parameters)
        return self._cursor.rowcount

    def run_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        if self._seen:
            self._seen(sql)
        try:
            self._cursor.executemany(_numbered(sql)[0], parameters)
        except _RAISED as error:
            raise meant(error) from error

    def alone(self, *names: str) -> None:
        self._hold("SELECT pg_advisory_xact_lock(lock) FROM unnest($1::bigint[]) AS lock", names)

    def beside(self, *names: str) -> None:
        self._hold("SELECT pg_advisory_xact_lock_shared(lock) FROM unnest($1::bigint[]) AS lock", names)

    def copy_file(self, path: Path, progress: Callable[[int, int], None]) -> bool:  # noqa: ARG002
        return False

    def _hold(self, sql: LiteralString, names: Sequence[str]) -> None:
        locks = [int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True) for name in names]
        try:
            self._cursor.execute(sql, (locks,), prepare=True)
        except _RAISED as error:
            raise meant(error) from error

    def _execute(self, sql: str, parameters: Parameters) -> None:
        if self._seen:
            self._seen(sql)
        written, names = _numbered(sql)
        values = [parameters[name] for name in names] if isinstance(parameters, Mapping) else parameters
        try:
            self._cursor.execute(written, values, prepare=True)
        except _RAISED as error:
            raise meant(error) from error


class _Single(PostgresTx):
    """One statement that reads, by itself: on another connection where the first one turns out to be broken."""

    def __init__(self, engine: "PostgresEngine") -> None:
        self._engine = engine

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        until = time.monotonic() + HEAL_WAIT_S
        while True:
            connection = self._engine._taken(until)
            try:
                return PostgresTx(connection, self._engine._seen).rows(sql, parameters)
            except Unavailable:
                if not connection.broken or time.monotonic() > until:
                    raise
            finally:
                self._engine._give_back(connection)


class PostgresEngine:
    """One PostgreSQL database. Threads may share it; any number of processes may, on any number of machines.

    *url* is ``postgresql://…``; *notice* is told, in one line each, what an operator should know of the
    server. *seen* is told every statement. At most *connections_max* connections are open at once.
    """

    flavor: Mapping[str, str] = {
        "blob": "BYTEA STORAGE EXTERNAL",  # packed already: to compress it would only cost
        "bytewise": 'COLLATE "C"',
        "clustered": "WITH (toast_tuple_target = 8160)",  # a full block stays in its row
    }
    one_writer = False
    in_process = False

    def __init__(
        self,
        url: str,
        *,
        notice: Callable[[str], None] = lambda _: None,
        seen: Callable[[str], None] | None = None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self.url = without_password(url)
        self._seen = seen
        self._writing = threading.local()
        self._kept_tails = KeptTails()
        self._writers = Places(min(WRITERS_MAX, max(1, connections_max // 2)))
        self._look(url, notice)
        self._pool = ConnectionPool(
            url,
            connection_class=Connection,
            kwargs={
                "autocommit": True,
                "connect_timeout": CONNECT_WAIT_S,
                "fallback_application_name": "pegword",
                "cursor_factory": psycopg.RawCursor,  # statements are taken as they are: to look for parameters in long ones took longest
                **_watched(url),
            },
            min_size=0,
            max_size=connections_max,
            max_idle=IDLE_S_MAX,
            timeout=HEAL_WAIT_S,
            reconnect_timeout=1.0,  # who needs a connection asks again, so that a server that is back is found at once
            configure=self._configure,
            open=True,
            name="pegword",
        )

    @contextmanager
    def read(self, *, single: bool = False) -> Iterator[PostgresTx]:
        """A read transaction on a connection of its own; its BEGIN, or a *single* statement itself, shows whether that still holds."""
        if single:
            yield _Single(self)
            return
        connection = self._begun(_READ)
        try:
            yield PostgresTx(connection, self._seen, self._kept_tails)
        finally:
            self._give_back(connection)

    def write(self, work: Callable[[PostgresTx], T]) -> T:
        """Run *work* in a write transaction; return when it is committed and on disk. It may be run several times."""
        if getattr(self._writing, "now", False):
            raise RuntimeError("a write inside a write would wait for itself")
        if not self._writers.take(LOCK_WAIT_MS / 1_000):
            raise Busy("others write for too long; nothing was changed, try again")
        self._writing.now = True
        try:
            for attempt in range(ATTEMPTS_MAX):
                try:
                    return self._write_once(work)
                except _Again as again:
                    last = again.meaning
                    time.sleep(0.002 * (1 << 2 * attempt))
            raise last
        finally:
            self._writing.now = False
            self._writers.give_back()

    def integrity(self, *, thorough: bool = True) -> list[str]:  # noqa: ARG002
        """Nothing: the server checks its pages when it reads them, where it was made with checksums."""
        return []

    def about(self) -> Mapping[str, str]:
        with self.read() as tx:
            told = {name: setting for name, setting in tx.rows(_ABOUT)}  # noqa: C416
            ((clock_us, replica),) = tx.rows(_NOW)
        return {"engine": "postgresql", "clock_us": str(clock_us), "replica": "on" if replica else "off", **told}

    def checkpoint(self) -> bool:
        """Nothing to do: the server's own vacuum clears what was deleted."""
        return True

    def close(self) -> None:
        """Give back every connection."""
        self._pool.close()

    def _configure(self, connection: Connection) -> None:
        """Set up a new connection; it may lead to another server than the last one, which does not have all that that one had."""
        _configure(connection)
        self._kept_tails.clear()

    def _write_once(self, work: Callable[[PostgresTx], T]) -> T:
        connection = self._begun(_WRITE)
        try:
            try:
                result = work(PostgresTx(connection, self._seen))
            except Exception as error:
                cause = error.__cause__
                if isinstance(cause, _TRY_AGAIN) or (isinstance(error, Unavailable) and connection.broken):
                    raise _Again(error) from error
                raise
            try:
                connection.execute("COMMIT")
            except psycopg.Error as error:
                if isinstance(error, _TRY_AGAIN):
                    raise _Again(meant(error)) from error
                if connection.broken:
                    raise Unavailable(_IN_DOUBT, code="in_doubt") from error
                raise meant(error) from error
            return result
        finally:
            self._give_back(connection)

    def _begun(self, begin: bytes) -> Connection:
        """A connection on which a transaction has begun; those that broke while nobody used them are put away."""
        until = time.monotonic() + HEAL_WAIT_S
        while True:
            connection = self._taken(until)
            try:
                _say(connection, begin)
                return connection
            except psycopg.Error as error:
                self._give_back(connection)
                if not connection.broken or time.monotonic() > until:
                    raise meant(error) from error

    def _taken(self, until: float) -> Connection:
        """A connection that nobody uses, for which it is waited *until* then (seconds of the monotonic clock)."""
        try:
            return self._pool.getconn(max(0.1, until - time.monotonic()))
        except PoolTimeout as error:
            raise Unavailable("the database does not answer; nothing was changed, try again") from error
        except PoolClosed as error:
            raise Unavailable("the database is closed", code="closed") from error

    def _give_back(self, connection: Connection) -> None:
        """End what is still open on *connection* and hand it back; one that broke is put away by the pool."""
        if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                _say(connection, b"ROLLBACK")
        self._pool.putconn(connection)

    def _look(self, url: str, notice: Callable[[str], None]) -> None:
        """Refuse a server that cannot serve, and say of one that can what makes it less than safe."""
        _check_address(url, self.url)
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_WAIT_S) as connection:
                version = connection.info.server_version // 10_000
                encoding = connection.execute("SHOW server_encoding").fetchall()[0][0]
                off = [row[0] for row in connection.execute(_UNSAFE).fetchall()]
        except psycopg.Error as error:
            detail = str(error).strip().splitlines()
            raise Unavailable(f"{self.url} cannot be opened: {detail[-1] if detail else type(error).__name__}") from error
        if version < SERVER_MAJOR_MIN:
            raise Invalid(f"PostgreSQL {version} is too old: {SERVER_MAJOR_MIN} or newer is needed", field="database")
        if encoding != "UTF8":
            raise Invalid(f"the database's encoding must be UTF8: it is {encoding}", field="database")
        for name in off:
            notice(f"PostgreSQL runs with {name} = off: what was acknowledged can be lost when the machine stops")


class _Again(Exception):
    """The transaction was undone by no fault of its own. *meaning* is what its caller hears when it does not help to try again."""

    def __init__(self, meaning: Exception) -> None:
        super().__init__(str(meaning))
        self.meaning = meaning


def _check_address(url: str, shown: str) -> None:
    """Refuse an address that cannot be read as it was meant, in words that hold nothing of a password in it."""
    try:
        read = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        detail = sub('"[^"]*"', '"…"', str(error).strip())
        raise Invalid(f"{shown} cannot be opened: {detail}", field="database") from None
    cut = f"{read.get('host', '')}{read.get('port', '')}{'' if '%40' in url else read.get('dbname', '')}"
    if "@" in cut:  # a password was taken to end before it does, and its rest for a host, a port or a database
        raise Invalid(
            f"{shown} cannot be opened: in the name or the password of an address, write @ as %40, / as %2F, : as %3A and % as %25",
            field="database",
        )


def _watched(url: str) -> Mapping[str, str]:
    """The connection parameters by which a server that has vanished is noticed; what *url* says itself counts more."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    return {name: value for name, value in _VANISHED.items() if name not in given}


def meant(error: Exception) -> Exception:
    """What an exception of the driver means; one that means a fault of ours stays itself."""
    if isinstance(error, UnicodeError):
        return Invalid("a text holds half of a character, which cannot be stored")
    if isinstance(error, OverflowError | struct.error):
        return Invalid("a number is beyond 64 bits")
    state = getattr(error, "sqlstate", None) or ""
    for beginning, meaning, sentence in _MEANING:
        if state.startswith(beginning):
            return meaning(sentence)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable("the connection to the database broke; nothing was changed, try again")
    if isinstance(error, psycopg.DataError) and not state:
        return Invalid("a text holds a character that cannot be stored")
    return error


def _configure(connection: Connection) -> None:
    connection.execute(_SETTINGS)
    connection.prepared_max = STATEMENTS_PREPARED
    connection.adapters.register_dumper(int, Int8BinaryDumper)  # one type for all, so that a statement is prepared once


def _say(connection: Connection, command: bytes) -> None:
    """Send a command that has neither parameters nor rows, on the short way, for it comes with every transaction; a ROLLBACK for another
    reason too: the driver forgets at each one that it sees which statements were prepared."""
    result = connection.pgconn.exec_(command)
    if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
        raise errors.error_from_result(result)


@lru_cache(maxsize=1_000)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """*sql* with its parameters numbered, as the server takes them, and their names in that order, where they have any."""
    names: dict[str, int] = {}
    counted = count(1)
    sql = sub(r"(?<![:\w]):([a-z_]+)", lambda name: f"${names.setdefault(name[1], len(names) + 1)}", sql)
    return sub(r"\?", lambda _: f"${next(counted)}", sql), tuple(names)
