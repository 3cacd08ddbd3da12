"""Planted faults: what each of the tests here must catch, or it would be worth nothing."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from pegword.core.errors import Busy, ReadOnly
from pegword.store.sqlite import SqliteEngine, SqliteTx, _Job


class HastySqlite(SqliteEngine):
    """Answers before it commits: the first write commits, and then every third, for all."""

    _written = 0

    def write(self, work: Callable[[SqliteTx], Any]) -> Any:
        if not self._writer.in_transaction:
            self._writer.execute("BEGIN IMMEDIATE")
        result = _done(self, work)
        self._written += 1
        if self._written % 3 == 1:
            self._writer.execute("COMMIT")
        return result


class SleepySqlite(SqliteEngine):
    """Answers before it commits, and sleeps over it: whenever its server ends, nothing that it was told is on disk."""

    def write(self, work: Callable[[SqliteTx], Any]) -> Any:
        with self._writing:
            if not self._writer.in_transaction:
                self._writer.execute("BEGIN IMMEDIATE")
            return _done(self, work)


class ForgetfulSqlite(SqliteEngine):
    """Leaves in the log what it refused when the disk failed to flush it."""

    def _renew(self) -> None:
        self._worn = False


class CheerfulSqlite(SqliteEngine):
    """Says that it is done, whatever the disk said."""

    def _undo(self, error: BaseException, committing: bool) -> Any:
        super()._undo(error, committing)


class ConfusedSqlite(SqliteEngine):
    """Takes a file that may only be read for an accident."""

    def write(self, work: Callable[[SqliteTx], Any]) -> Any:
        try:
            return super().write(work)
        except ReadOnly as error:
            raise RuntimeError("this cannot be") from error


class SelfishSqlite(SqliteEngine):
    """Lets each writer wait by itself for a lock that others hold, one after the other."""

    _turn = threading.Lock()

    def write(self, work: Callable[[SqliteTx], Any]) -> Any:
        with self._turn:
            return super().write(work)


class DroppingSqlite(SqliteEngine):
    """Takes back one write in ten, and says that it was done."""

    _written = 0

    def write(self, work: Callable[[SqliteTx], Any]) -> Any:
        self._written += 1
        if self._written % 10:
            return super().write(work)
        results: list[Any] = []

        def taken_back(tx: SqliteTx) -> None:
            results.append(work(tx))
            raise _TakenBack

        with suppress(_TakenBack):
            super().write(taken_back)
        return results[0]


class _TakenBack(Exception):
    pass


class HoardingSqlite(SqliteEngine):
    """Keeps memory, an open file and a thread of its writes: whatever the machine can do, at most a hundred times a second."""

    _kept: ClassVar[list[Any]] = []
    _last = 0.0

    def write(self, work: Callable[[SqliteTx], Any]) -> Any:
        if time.monotonic() - self._last >= 0.01:
            self._last = time.monotonic()
            self._kept += [b"x" * (1 << 20), self.path.open("rb")]
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        return super().write(work)


class StubbornSqlite(SqliteEngine):
    """Refuses one write in twenty for nothing."""

    _asked = 0

    def write(self, work: Callable[[SqliteTx], Any]) -> Any:
        self._asked += 1
        if self._asked % 20 == 0:
            raise Busy("somebody holds the database")
        return super().write(work)


class DeferredSqlite(SqliteEngine):
    """Begins its writes as if they were reads, and finds out too late that somebody else has written."""

    def _begin(self) -> None:
        self._writer.execute("BEGIN")


def _done(engine: SqliteEngine, work: Callable[[SqliteTx], Any]) -> Any:
    job = _Job(work)
    engine._do(SqliteTx(engine._writer, None), job, alone=False)
    if job.error is not None:
        raise job.error
    return job.result
