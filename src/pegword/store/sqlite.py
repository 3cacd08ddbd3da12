"""SQLite through apsw, which brings a current SQLite: opening, transactions, and what its errors mean.

Every commit is flushed to disk (`synchronous=FULL`) before the caller hears of it. Writers share commits: whoever gets the writer
lock first commits the work of all who wait. WAL is used on local file systems only; elsewhere a rollback journal is.
"""

import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import apsw

from pegword.core.errors import Busy, Damaged, Invalid, NewerDatabase, PegwordError, ReadOnly, StorageFull, Unavailable
from pegword.store.engine import Parameters, Row
from pegword.store.filesystem import network_file_system

T = TypeVar("T")

APPLICATION_ID = 0x50656757  # "PegW"
BUSY_WAIT_MS = 5_000
BATCH_MAX = 64
READERS_KEPT_MAX = 8
CACHE_KIB = 16_384  # for each connection
STATEMENTS_CACHED = 256
WAL_PAGES_BEFORE_CHECKPOINT = 1_000
WAL_BYTES_KEPT = 64 << 20

_MEANING: tuple[tuple[type[Exception], Callable[[str], PegwordError], str], ...] = (
    (apsw.BusyError, Busy, "another process holds the database; nothing was changed, try again"),
    (apsw.LockedError, Busy, "another process holds the database; nothing was changed, try again"),
    (apsw.ReadOnlyError, ReadOnly, "the database cannot be written to; nothing was changed"),
    (apsw.CantOpenError, Unavailable, "the database file cannot be opened"),
    (apsw.FullError, StorageFull, "the disk is full; nothing was changed"),
    (apsw.CorruptError, Damaged, "the database file is damaged; run an integrity check and restore a backup"),
    (apsw.NotADBError, Damaged, "the database file is no SQLite database"),
    (apsw.IOError, Unavailable, "the disk did not answer as it should; nothing was changed"),
    (apsw.ConnectionClosedError, Unavailable, "the database is closed"),
    (UnicodeDecodeError, Damaged, "a stored text is damaged: it is no UTF-8; restore it from a backup"),
    (UnicodeEncodeError, Invalid, "a text holds half of a character, which cannot be stored"),
    (OverflowError, Invalid, "a number is beyond 64 bits"),
)
_RAISED = (apsw.Error, UnicodeError, OverflowError)


class SqliteTx:
    """An open transaction on one connection. *seen* is told every statement, for counting them."""

    def __init__(self, connection: apsw.Connection, seen: Callable[[str], None] | None) -> None:
        self._connection = connection
        self._seen = seen

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        if self._seen:
            self._seen(sql)
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except _RAISED as error:
            raise _meant(error) from error

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        if self._seen:
            self._seen(sql)
        try:
            self._connection.execute(sql, parameters)
        except _RAISED as error:
            raise _meant(error) from error
        return self._connection.changes()

    def run_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        if self._seen:
            self._seen(sql)
        try:
            self._connection.executemany(sql, parameters)
        except _RAISED as error:
            raise _meant(error) from error

    def alone(self, _name: str) -> None:
        """Every writer is."""

    def beside(self, _name: str) -> None:
        """Nobody else writes."""


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
        self._leader = 0
        _make_private(path, create)
        opened = path.stat()
        self._identity = (opened.st_dev, opened.st_ino)
        self._journal = _journal_for(path, notice, allow_unsafe_sqlite)
        self.read_only = not os.access(path, os.W_OK)
        if self.read_only:
            notice(f"{path} is not writable: reads work, every write is refused")
        self._writer = self._connect(adopt=create)

    @contextmanager
    def read(self) -> Iterator[SqliteTx]:
        """A read transaction on a connection of its own."""
        keep = not self._unchanging()  # of a file that is read as unchanging, nothing is kept: somebody may begin to change it
        with _meaning():
            self._check_file()
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
            if keep and len(self._readers) < READERS_KEPT_MAX and not self._closed:
                self._readers.append(connection)
            else:
                connection.close()

    def write(self, work: Callable[[SqliteTx], T]) -> T:
        """Run *work* in a write transaction; return when it is committed and on disk. *work* must not write by another way."""
        if self._closed:
            raise Unavailable("the database is closed", code="closed")
        if self._leader == threading.get_ident():
            raise RuntimeError("a write inside a write would wait for itself")
        job = _Job(work)
        self._waiting.append(job)
        try:
            with self._writing:
                self._leader = threading.get_ident()
                try:
                    while not job.done:  # a full batch of others may come first
                        self._commit_waiting()
                finally:
                    self._leader = 0
        except BaseException:
            with suppress(ValueError):  # who was interrupted while waiting does not want it any more
                self._waiting.remove(job)
            raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def checkpoint(self) -> bool:
        """Move the write-ahead log into the file and cut it, so that deleted text is in neither; False when somebody still reads it.

        On a connection of its own that waits for nobody: no save stands behind it.
        """
        if self._journal != "wal" or self.read_only:
            return True
        with _meaning():
            connection = self._connect()
            try:
                connection.set_busy_timeout(0)
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
            except apsw.BusyError:
                return False
            finally:
                connection.close()
        return not busy

    def close(self) -> None:
        """Close every idle connection; one still in use is closed when it is given back."""
        self._closed = True
        with self._writing:
            self._writer.close()
        while self._readers:
            self._readers.pop().close()

    def _commit_waiting(self) -> None:
        """Do the work of everybody who waits in one transaction. Called with the writer lock held.

        No job is done without an error unless its work is committed, whatever interrupts this.
        """
        jobs: list[_Job] = []
        tx = SqliteTx(self._writer, self._seen)
        committing = False
        try:
            while self._waiting and len(jobs) < BATCH_MAX:
                jobs.append(self._waiting[0])  # in this order, so that an interrupt loses none
                self._waiting.popleft()
            with _meaning():
                self._check_file()
                self._writer.execute("BEGIN IMMEDIATE")
                for job in jobs:
                    self._do(tx, job, alone=len(jobs) == 1)
                committing = True
                self._writer.execute("COMMIT")
        except BaseException as error:
            if committing and not isinstance(error, Exception) and not self._writer.in_transaction:
                raise  # the interrupt came after the commit: what was done is done
            undone = error if isinstance(error, Exception) else Busy("the write was interrupted; nothing was changed, try again")
            if isinstance(error, Busy):  # who came while we waited has waited too: nobody starts a wait of their own behind this one
                jobs += [self._waiting.popleft() for _ in range(len(self._waiting))]
            for job in jobs:
                job.error = job.error or undone
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            if not isinstance(error, Exception):
                raise
        finally:
            for job in jobs:
                job.done = True

    def _do(self, tx: SqliteTx, job: _Job, *, alone: bool) -> None:
        """Do one job; when others share the transaction, an error undoes this job and no other."""
        if alone:
            job.result = job.work(tx)
            return
        self._writer.execute("SAVEPOINT job")
        try:
            job.result = job.work(tx)
        except Exception as error:
            if not self._writer.in_transaction:
                raise
            self._writer.execute("ROLLBACK TO job")
            job.error = error
        self._writer.execute("RELEASE job")

    def _name_and_flags(self) -> tuple[str, int]:
        """How SQLite is told to open the file."""
        if not self.read_only:
            return str(self.path), apsw.SQLITE_OPEN_READWRITE
        if self._unchanging():
            return f"file:{quote(str(self.path))}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return str(self.path), apsw.SQLITE_OPEN_READONLY

    def _unchanging(self) -> bool:
        """Whether nobody changes the file: it lies where nothing can be written beside it, and no process has a log open."""
        return self.read_only and not os.access(self.path.parent, os.W_OK) and not Path(f"{self.path}-wal").exists()

    def _check_file(self) -> None:
        """Refuse to go on when the path leads to another file than the one that was opened: what is saved there would be lost."""
        try:
            now = self.path.stat()
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self._identity:
            raise Unavailable(
                "the database file was removed or replaced: stop Pegword, remove the files beside it ending in -wal and -shm, start again",
                code="replaced",
            )

    def _connect(self, *, adopt: bool = False) -> apsw.Connection:
        """A connection with every setting. The file must be marked as ours; with *adopt*, one that is still empty is marked so."""
        with _meaning():
            self._check_file()
            connection = apsw.Connection(*self._name_and_flags(), statementcachesize=STATEMENTS_CACHED)
            connection.set_busy_timeout(BUSY_WAIT_MS)  # first, so that everything after it waits
            application = connection.pragma("application_id")
            empty = not application and not connection.execute("SELECT count(*) FROM sqlite_schema").get
            if application != APPLICATION_ID and not (adopt and empty):
                raise NewerDatabase(f"{self.path} is no database of Pegword; name another file")
            if not self.read_only:
                if connection.pragma("journal_mode") != self._journal:
                    connection.pragma("journal_mode", self._journal)
                if application != APPLICATION_ID:
                    self.path.chmod(0o600)
                    connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("synchronous", "FULL")
                connection.pragma("secure_delete", "ON")
                connection.pragma("wal_autocheckpoint", WAL_PAGES_BEFORE_CHECKPOINT)
                connection.pragma("journal_size_limit", WAL_BYTES_KEPT)
            connection.pragma("cache_size", -CACHE_KIB)
            connection.pragma("temp_store", "MEMORY")
        return connection


@contextmanager
def _meaning() -> Iterator[None]:
    """Turn what apsw raises into what it means."""
    try:
        yield
    except _RAISED as error:
        raise _meant(error) from error


def _meant(error: Exception) -> Exception:
    """What an exception of the driver means; one that means a fault of ours stays itself."""
    for kind, meaning, sentence in _MEANING:
        if isinstance(error, kind):
            return meaning(sentence)
    return error


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
