"""SQLite through apsw, which brings a current SQLite: opening, transactions, and what its errors mean.

Every commit is flushed to disk (`synchronous=FULL`) before the caller hears of it. Writers share commits: whoever gets the writer
lock first commits the work of all who wait. WAL is used on local file systems only; elsewhere a rollback journal is.
"""

import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from pegword.core.errors import Busy, Damaged, Invalid, NewerDatabase, PegwordError, ReadOnly, StorageFull, Unavailable
from pegword.store.engine import Parameters, Row
from pegword.store.filesystem import network_file_system

T = TypeVar("T")

APPLICATION_ID = 0x50656757  # "PegW"
BUSY_WAIT_MS = 10_000
BATCH_MAX = 64
READERS_KEPT_MAX = 8
CACHE_KIB = 16_384  # for each connection
STATEMENTS_CACHED = 256
WAL_PAGES_BEFORE_CHECKPOINT = 1_000

_MEANING: tuple[tuple[type[Exception], type[Unavailable] | type[Damaged], str], ...] = (
    (apsw.BusyError, Busy, "another process holds the database; nothing was changed, try again"),
    (apsw.LockedError, Busy, "another process holds the database; nothing was changed, try again"),
    (apsw.ReadOnlyError, ReadOnly, "the database cannot be written to; nothing was changed"),
    (apsw.CantOpenError, Unavailable, "the database file cannot be opened"),
    (apsw.FullError, StorageFull, "the disk is full; nothing was changed"),
    (apsw.CorruptError, Damaged, "the database file is damaged; run an integrity check and restore a backup"),
    (apsw.NotADBError, Damaged, "the database file is no SQLite database"),
    (apsw.IOError, Unavailable, "the disk did not answer as it should; nothing was changed"),
)


class SqliteTx:
    """An open transaction on one connection. *seen* is told every statement, for counting them."""

    def __init__(self, connection: apsw.Connection, seen: Callable[[str], None] | None) -> None:
        self._connection = connection
        self._seen = seen

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        if self._seen:
            self._seen(sql)
        return self._connection.execute(sql, parameters).fetchall()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        if self._seen:
            self._seen(sql)
        self._connection.execute(sql, parameters)
        return self._connection.changes()

    def run_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        if self._seen:
            self._seen(sql)
        self._connection.executemany(sql, parameters)


class _Job:
    """One caller's work on its way through a shared commit."""

    def __init__(self, work: Callable[[SqliteTx], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False


class SqliteEngine:
    """One SQLite file. Threads may share it; so may processes on one machine.

    *path* is created with mode 0600 if it is absent and *create* is true. *notice* is told, in one line each, what an operator should
    know of how the file was opened. *seen* is told every statement.
    """

    flavor: Mapping[str, str] = {"blob": "BLOB", "bytewise": "", "clustered": "WITHOUT ROWID"}

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        notice: Callable[[str], None] = lambda _: None,
        seen: Callable[[str], None] | None = None,
        allow_unsafe_sqlite: bool = False,
    ) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self._seen = seen
        self._readers: deque[apsw.Connection] = deque()
        self._waiting: deque[_Job] = deque()
        self._writing = threading.Lock()
        self._closed = False
        _make_private(path, create)
        self._journal = _journal_for(path, notice, allow_unsafe_sqlite)
        self.read_only = not os.access(path, os.W_OK)
        if self.read_only:
            notice(f"{path} is not writable: reads work, every write is refused")
        self._writer = self._connect()

    @contextmanager
    def read(self) -> Iterator[SqliteTx]:
        """A read transaction on a connection of its own."""
        with _meaning():
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect()
            connection.execute("BEGIN")
        try:
            with _meaning():
                yield SqliteTx(connection, self._seen)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if len(self._readers) < READERS_KEPT_MAX and not self._closed:
                self._readers.append(connection)
            else:
                connection.close()

    def write(self, work: Callable[[SqliteTx], T]) -> T:
        """Run *work* in a write transaction; return when it is committed and on disk."""
        job = _Job(work)
        self._waiting.append(job)
        with self._writing:
            while not job.done:  # a full batch of others may come first
                self._commit_waiting()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file and cut it, so that deleted text is in neither."""
        if self._journal == "wal" and not self.read_only:
            with self._writing, _meaning():
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close every idle connection; one still in use is closed when it is given back."""
        self._closed = True
        with self._writing:
            self._writer.close()
        while self._readers:
            self._readers.pop().close()

    def _commit_waiting(self) -> None:
        """Do the work of everybody who waits in one transaction. Called with the writer lock held."""
        jobs = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
        tx = SqliteTx(self._writer, self._seen)
        try:
            with _meaning():
                self._writer.execute("BEGIN IMMEDIATE")
                for job in jobs:
                    self._do(tx, job, alone=len(jobs) == 1)
                if self._writer.in_transaction:
                    self._writer.execute("COMMIT")
        except BaseException as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            for job in jobs:
                job.error = job.error or error
        finally:
            for job in jobs:
                job.done = True

    def _do(self, tx: SqliteTx, job: _Job, *, alone: bool) -> None:
        """Do one job; when others share the transaction, an error undoes this job and no other."""
        if not alone:
            self._writer.execute("SAVEPOINT job")
        try:
            with _meaning():
                job.result = job.work(tx)
        except BaseException as error:
            if alone or not self._writer.in_transaction:
                raise
            self._writer.execute("ROLLBACK TO job")
            job.error = error
        if not alone:
            self._writer.execute("RELEASE job")

    def _connect(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY if self.read_only else apsw.SQLITE_OPEN_READWRITE
        with _meaning():
            connection = apsw.Connection(str(self.path), flags=flags, statementcachesize=STATEMENTS_CACHED)
            connection.set_busy_timeout(BUSY_WAIT_MS)  # first, so that everything after it waits
            application = connection.pragma("application_id")
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
            if tables and application != APPLICATION_ID:
                raise NewerDatabase(f"{self.path} is a SQLite database of another program; name another file")
            if not self.read_only:
                if connection.pragma("journal_mode") != self._journal:
                    connection.pragma("journal_mode", self._journal)
                if application != APPLICATION_ID:
                    connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("synchronous", "FULL")
                connection.pragma("secure_delete", "ON")
                connection.pragma("wal_autocheckpoint", WAL_PAGES_BEFORE_CHECKPOINT)
            connection.pragma("cache_size", -CACHE_KIB)
            connection.pragma("temp_store", "MEMORY")
        return connection


@contextmanager
def _meaning() -> Iterator[None]:
    """Turn what apsw raises into what it means."""
    try:
        yield
    except PegwordError:
        raise
    except apsw.Error as error:
        for kind, meaning, sentence in _MEANING:
            if isinstance(error, kind):
                raise meaning(sentence) from error
        raise


def _make_private(path: Path, create: bool) -> None:
    """Make the file with mode 0600 if it is absent; refuse what is no regular file."""
    if path.is_symlink():
        raise Invalid(f"{path} is a symbolic link; name the file itself", field="database")
    if path.exists():
        if not stat.S_ISREG(path.stat().st_mode):
            raise Invalid(f"{path} is no regular file", field="database")
        return
    if not create:
        raise Invalid(f"there is no database at {path}", field="database")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise Invalid(f"{path} cannot be created: {error.strerror}", field="database") from error


def _journal_for(path: Path, notice: Callable[[str], None], allow_unsafe_sqlite: bool) -> str:
    """The journal mode that is safe here: WAL on a local file system with a sound SQLite, else DELETE."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if has_wal_race(version):
        shown = apsw.sqlite_lib_version()
        if not allow_unsafe_sqlite:
            raise Invalid(f"SQLite {shown} can corrupt a database in WAL mode; install apsw 3.51.3 or newer")
        notice(f"SQLite {shown} can corrupt a database in WAL mode: using a rollback journal, which is slower")
        return "delete"
    network = network_file_system(path)
    if network:
        notice(f"{path} lies on {network}, where WAL is not safe: using a rollback journal, which is slower")
        return "delete"
    return "wal"


def has_wal_race(version: tuple[int, ...]) -> bool:
    """Whether this SQLite has the WAL-reset race: 3.7.0 to 3.51.2, but for the repaired 3.44.6 and 3.50.7."""
    if not (3, 7, 0) <= version < (3, 51, 3):
        return False
    return not ((3, 44, 6) <= version < (3, 45, 0) or (3, 50, 7) <= version < (3, 51, 0))
