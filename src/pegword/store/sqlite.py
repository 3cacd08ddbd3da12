"""SQLite through apsw, which brings a current SQLite: transactions, group commit, and going on after the disk failed.

A commit is on disk before the caller hears of it. Writers share commits: whoever gets the writer lock first commits the work of all
who wait.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from pegword.core.errors import Busy, Damaged, DiskFailed, PegwordError, ReadOnly, Unavailable
from pegword.store.engine import Parameters, Row
from pegword.store.sqlite_file import APPLICATION_ID, RAISED, SqliteFile, Use, meaning, meant
from pegword.store.tails import KeptTails

T = TypeVar("T")

BATCH_MAX = 64
READERS_KEPT_MAX = 8
PAGES_AT_ONCE = 1_000  # copied between two looks at how far it is
INTEGRITY_LINES_MAX = 20
DISK_FAILURES_MAX = 3  # in a row; then writes are refused without trying the disk, for DISK_REST_S seconds
DISK_REST_S = 5.0


class SqliteTx:
    """An open transaction on one connection. *seen* is told every statement, for counting them. *kept_tails*: as in `Tx`."""

    def __init__(self, connection: apsw.Connection, seen: Callable[[str], None] | None, kept_tails: KeptTails | None = None) -> None:
        self.kept_tails = kept_tails
        self._connection = connection
        self._seen = seen

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        if self._seen:
            self._seen(sql)
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except RAISED as error:
            raise meant(error, self._connection) from error

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        if self._seen:
            self._seen(sql)
        try:
            self._connection.execute(sql, parameters)
        except RAISED as error:
            raise meant(error, self._connection) from error
        return self._connection.changes()

    def run_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        if self._seen:
            self._seen(sql)
        try:
            self._connection.executemany(sql, parameters)
        except RAISED as error:
            raise meant(error, self._connection) from error

    def alone(self, *_names: str) -> None:
        """Every writer is."""

    def beside(self, *_names: str) -> None:
        """Nobody else writes."""

    def copy_file(self, path: Path, progress: Callable[[int, int], None]) -> bool:
        """Copy the file page by page, as this transaction sees it. Writers go on beside it."""
        with meaning(self._connection), closing(apsw.Connection(str(path))) as target:
            self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # from here on, this is the moment that is copied
            with target.backup("main", self._connection, "main") as pages:
                while not pages.done:
                    pages.step(PAGES_AT_ONCE)
                    progress(pages.page_count - pages.remaining, pages.page_count)
        return True


class _Job:
    """One caller's work on its way through a shared commit. Its caller waits until it is done, or until it is to lead the next commit."""

    def __init__(self, work: Callable[[SqliteTx], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self._called = threading.Lock()
        self._called.acquire()

    def wait(self) -> None:
        """Return when `call` is called, or has been."""
        self._called.acquire()

    def call(self) -> None:
        """Let the caller go on. At most once before it has waited."""
        self._called.release()


class SqliteEngine:
    """One SQLite file. Threads may share it; so may processes on one machine.

    *path* is created with mode 0600 if it is absent and *create* is true. *notice* is told, in one line each, what an operator should
    know of how the file was opened. *seen* is told every statement.
    """

    flavor: Mapping[str, str] = {"blob": "BLOB", "bytewise": "", "clustered": "WITHOUT ROWID"}
    one_writer = True
    in_process = True

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        notice: Callable[[str], None] = lambda _: None,
        seen: Callable[[str], None] | None = None,
        allow_unsafe_sqlite: bool = False,
        vfs: str = "",
        use: Use = Use.STORE,
    ) -> None:
        self.path = path
        self.url = f"sqlite://{path.absolute()}"
        self._seen = seen
        self._warm: deque[apsw.Connection] = deque()  # of the connections that nobody uses, the one that keeps the pages it read
        self._cold: deque[apsw.Connection] = deque()  # and the others
        self._kept_tails = KeptTails()
        self._waiting: deque[_Job] = deque()
        self._line = threading.Lock()  # held for moments, around the line of those who wait and who leads them
        self._led = False
        self._writing = threading.Lock()
        self._closed = False
        self._leader = 0
        self._monotonic = time.monotonic
        self._failures = 0  # of the disk, in a row
        self._rest_until = 0.0
        self._worn = False  # the disk failed the writer: it is renewed before the next write
        self._file = SqliteFile(path, create=create, notice=notice, allow_unsafe_sqlite=allow_unsafe_sqlite, vfs=vfs, use=use)
        self._writer = self._file.connect(adopt=create)

    @contextmanager
    def read(self, *, single: bool = False) -> Iterator[SqliteTx]:
        """A read transaction on a connection of its own; for a *single* statement the connection alone.

        Whether the file is still the one that was opened is not looked at for that: whoever reads more, or writes, does.
        """
        keep = not self._file.unchanging()  # of a file that is read as unchanging, nothing is kept: somebody may begin to change it
        if not single:
            self._file.check()
        connection = self._idle() or self._file.connect(reading=True)
        try:
            with meaning(connection):
                if not single:
                    connection.execute("BEGIN")
                yield SqliteTx(connection, self._seen, None if single else self._kept_tails)
        except DiskFailed:
            keep = False
            raise
        finally:
            with suppress(apsw.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            if keep and not self._closed:
                self._put_back(connection)
            else:
                connection.close()

    def write(self, work: Callable[[SqliteTx], T]) -> T:
        """Run *work* in a write transaction; return when it is committed and on disk. *work* must not write by another way."""
        if self._closed:
            raise Unavailable("the database is closed", code="closed")
        if self._leader == threading.get_ident():
            raise RuntimeError("a write inside a write would wait for itself")
        job = _Job(work)
        try:
            self._queue(job)
            if not job.leads:
                job.wait()
            if job.leads:
                with self._writing:
                    self._leader = threading.get_ident()
                    try:
                        while not job.done:  # a full batch of others may come first
                            self._commit_waiting(job)
                    finally:
                        self._leader = 0
        except BaseException:
            with self._line, suppress(ValueError):  # who was interrupted while waiting does not want it any more
                self._waiting.remove(job)
            raise
        finally:
            self._hand_on(job)
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def integrity(self, *, thorough: bool = True) -> list[str]:
        """What SQLite finds wrong with the pages, the trees and the constraints of the file; what is not *thorough* does not hold the
        trees against each other."""
        check = "integrity_check" if thorough else "quick_check"
        try:
            with self.read() as tx:
                said = [str(line) for (line,) in tx.rows(f"PRAGMA {check}({INTEGRITY_LINES_MAX})")]
        except Damaged as error:
            return [str(error)]
        return [] if said == ["ok"] else said

    def about(self) -> Mapping[str, str]:
        with self.read() as tx:
            return {"engine": "sqlite", "version": apsw.sqlite_lib_version(), "journal": str(tx.rows("PRAGMA journal_mode")[0][0])}

    def checkpoint(self) -> bool:
        """Move the write-ahead log into the file and cut it, so that deleted text is in neither; False when somebody still reads it.

        On a connection of its own that waits for nobody: no save stands behind it.
        """
        if self._file.journal != "wal" or self._file.read_only:
            return True
        connection = self._file.connect()
        try:
            with meaning(connection):
                connection.set_busy_timeout(0)
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
        except Busy:
            return False
        finally:
            connection.close()
        return not busy

    def close(self) -> None:
        """Close every idle connection; one still in use is closed when it is given back."""
        self._closed = True
        with suppress(apsw.Error):  # what a disk that fails keeps from being tidied up stands in the log, and is found there
            with self._writing:
                self._writer.close()
            while idle := self._idle():
                idle.close()

    def _idle(self) -> apsw.Connection | None:
        """A connection that nobody uses, first the one that keeps its pages."""
        with suppress(IndexError):
            return (self._warm or self._cold).pop()
        return None

    def _put_back(self, connection: apsw.Connection) -> None:
        """Keep a connection that nobody uses now, one with the pages it read: with those of all, a busy server would grow for hours."""
        if not self._warm:
            self._warm.append(connection)
        elif len(self._cold) < READERS_KEPT_MAX - 1:
            with suppress(apsw.Error):
                connection.pragma("shrink_memory")
            self._cold.append(connection)
        else:
            connection.close()

    def _queue(self, job: _Job) -> None:
        """Have *job* done: by who leads now, or else by its own caller."""
        with self._line:
            self._waiting.append(job)
            if not self._led:
                self._led = job.leads = True

    def _hand_on(self, job: _Job) -> None:
        """Let the next who waits lead when the caller of *job* did. Who is done hears of it at once and needs no lock for that."""
        with self._line:
            if not job.leads:
                return
            job.leads = False
            if self._waiting:
                first = self._waiting[0]
                first.leads = True
                first.call()
            else:
                self._led = False

    def _commit_waiting(self, leading: _Job) -> None:
        """Do the work of everybody who waits in one transaction. Called with the writer lock held, by the caller of *leading*.

        No job is done without an error unless its work is committed, whatever interrupts this.
        """
        jobs: list[_Job] = []
        committing = False
        try:
            with self._line:
                while self._waiting and len(jobs) < BATCH_MAX:
                    jobs.append(self._waiting[0])  # in this order, so that an interrupt loses none
                    self._waiting.popleft()
            self._file.check()
            self._try_the_disk()
            tx = SqliteTx(self._writer, self._seen)
            self._begin()
            for job in jobs:
                self._do(tx, job, alone=len(jobs) == 1)
            committing = True
            self._writer.execute("COMMIT")
            self._failures = 0
        except BaseException as error:
            if committing and not isinstance(error, Exception) and not self._writer.in_transaction:
                raise  # the interrupt came after the commit: what was done is done
            undone = self._undo(error, committing)
            if isinstance(undone, Busy) and isinstance(error, Exception):
                # Who came while we waited has waited too: nobody starts a wait of their own behind this one.
                with self._line:
                    jobs += [self._waiting.popleft() for _ in range(len(self._waiting))]
            for job in jobs:
                job.error = job.error or undone
            if not isinstance(error, Exception):
                raise
        finally:
            for job in jobs:
                job.done = True
                if job is not leading:
                    job.call()

    def _undo(self, error: BaseException, committing: bool) -> BaseException:
        """Take back the open transaction, and say what those hear whose work was in it."""
        if not isinstance(error, Exception):
            undone: Exception = Busy("the write was interrupted; nothing was changed, try again")
        else:
            undone = meant(error, self._writer) if isinstance(error, RAISED) else error
            if undone is not error:
                undone.__cause__ = error
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except apsw.Error:
            self._worn = True
        cause = error if isinstance(error, apsw.IOError) else error.__cause__
        if isinstance(undone, Unavailable) and isinstance(cause, apsw.IOError):
            return self._after_failure(undone, getattr(cause, "extendedresult", 0) if committing else 0)
        return undone

    def _try_the_disk(self) -> None:
        """Renew the writer if the disk failed it; refuse at once while the disk is given a rest."""
        left = self._rest_until - self._monotonic()
        if left > 0:
            raise ReadOnly(
                f"the disk failed {self._failures} times in a row: writes are refused for some seconds, reads go on; nothing was changed",
                retry_after_s=int(left) + 1,
            )
        if self._worn:
            self._renew()

    def _after_failure(self, failure: Unavailable, at_commit: int) -> Unavailable:
        """Count a failure of the disk and begin anew on another connection; the failure as those hear of it whose work it undid.

        *at_commit* is SQLite's number for what failed at a commit. Only what was to be flushed then may be there although it was refused.
        """
        if isinstance(failure, DiskFailed):
            self._failures += 1
            if self._failures >= DISK_FAILURES_MAX:
                self._rest_until = self._monotonic() + DISK_REST_S
        self._worn = True
        with suppress(PegwordError):
            self._renew()
        in_log = at_commit == apsw.SQLITE_IOERR_FSYNC and self._worn
        if not in_log and at_commit != apsw.SQLITE_IOERR_DIR_FSYNC:
            return failure
        doubt = type(failure)(
            "the disk failed during the save, and it is not known whether it was saved: look, then try again", code="in_doubt"
        )
        doubt.__cause__ = failure
        return doubt

    def _renew(self) -> None:
        """Put a new writer in the place of one that the disk failed.

        A commit whose flush failed may stand in the log all the same, and a restart would find it there. So the new writer commits
        something that changes nothing: that takes the same place in the log, and what stood behind it no longer fits to it.
        """
        fresh = self._file.connect()
        worn, self._writer = self._writer, fresh
        with suppress(apsw.Error):
            worn.close(True)
        with meaning(fresh):
            fresh.pragma("application_id", APPLICATION_ID)
        self._worn = False

    def _begin(self) -> None:
        """Take the write lock first: a transaction that reads before it writes would fail when others wrote in between, without waiting."""
        self._writer.execute("BEGIN IMMEDIATE")

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
