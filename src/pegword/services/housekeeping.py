"""What is done after an answer: receipts and access counts, folding, rebuilding, sweeping out what has expired.

One thread a process. Nothing here is part of a promise: what is lost with the process is done again or was best effort.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol

from pegword.core.errors import PegwordError, Unavailable
from pegword.store import folding, nudge_rows, once_rows, receipt_rows, removing, session_index_rows, session_rows
from pegword.store.engine import MANY_ROWS, Engine, Tx, told
from pegword.store.sweeping import sweep

WAITING_MAX = 1_000
AT_ONCE = 16  # in one transaction: a save waits for it
SWEEP_EVERY_S = 30.0
JOIN_S = 8.0
MARKS_KEPT_US = 366 * 24 * 3_600 * 1_000_000  # longer than any cool-down

_log = logging.getLogger("pegword.housekeeping")


@dataclass(frozen=True, slots=True, eq=False)
class InScopes:
    """*work* that holds the scopes of these keys `beside` others. Where several works share a transaction, all scopes are held before the
    first of them changes anything: who waits for a scope with a memory's row in hand would wait for whoever has the scope and wants the
    row."""

    work: Callable[[Tx], None]
    scopes: Sequence[str]

    def __call__(self, tx: Tx) -> None:
        """Do the work."""
        self.work(tx)


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """*what* is to be done by *do*, which does many such things at once: all that wait for the same *do* are done by one call of it.
    *scopes* are held as those of `InScopes`."""

    do: Callable[[Tx, Sequence[Any]], None]
    what: Any
    scopes: Sequence[str] = ()

    def __call__(self, tx: Tx) -> None:
        """Do it by itself."""
        self.do(tx, [self.what])


class Keeper(Protocol):
    """What services ask of a housekeeper."""

    def later(self, work: Callable[[Tx], None]) -> None:
        """As `Housekeeper.later`."""

    def done_within(self, work: Callable[[Tx], None], seconds: float) -> None:
        """As `Housekeeper.done_within`."""

    def due(self, scope_key: str) -> None:
        """As `Housekeeper.due`."""

    def deleted(self) -> None:
        """As `Housekeeper.deleted`."""

    def flush(self, seconds: float) -> None:
        """As `Housekeeper.flush`."""


class Housekeeper:
    """Does small work on its own thread, in order; more than `WAITING_MAX` waiting is dropped, oldest first.

    *clock* gives microseconds since 1970; *reindex* brings scopes of an older analyser up to date, *restore* indexes again what was swept
    while a clock ran ahead. Receipts, and the answers to writes that are done once, are kept as long as named. Nothing runs before `start`,
    but `settle` can be called without it.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], int],
        reindex: Callable[[], object],
        restore: Callable[[int], set[str]],
        receipts_kept_us: int,
        answers_kept_us: int,
    ) -> None:
        self._engine = engine
        self._reindex = reindex
        self._restore = restore
        self._receipts_kept_us = receipts_kept_us
        self._answers_kept_us = answers_kept_us
        self._clock = clock
        self._waiting: deque[Callable[[Tx], None]] = deque()
        self._queue = threading.Lock()
        self._scopes: dict[str, None] = {}
        self._cut_log = False
        self._put_off = 0  # how often the database took nothing
        self._wake = threading.Event()
        self._doing = threading.Lock()
        self._rested = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to work on a thread of its own, and look at once for what earlier processes left."""
        with self._engine.read() as tx:
            self._scopes.update(dict.fromkeys(folding.due(tx)))
        self._thread = threading.Thread(target=self._run, name="pegword-housekeeper", daemon=True)
        self._thread.start()

    def later(self, work: Callable[[Tx], None]) -> None:
        """Do *work* in a write transaction some time after the answer; best effort. It must hold little, for many may wait."""
        with self._queue:
            self._waiting.append(work)
            if len(self._waiting) > WAITING_MAX:
                self._waiting.popleft()
        self._wake.set()

    def done_within(self, work: Callable[[Tx], None], seconds: float) -> None:
        """As `later`, and wait until it is done and committed, at most *seconds*, and no longer when the database takes nothing now;
        without a thread, do it on this one."""
        put_off = self._put_off
        self.later(work)
        if self._thread is None:
            self.settle()
            return
        with self._rested:
            self._rested.wait_for(lambda: not self._waits(work) or self._put_off > put_off, seconds)

    def due(self, scope_key: str) -> None:
        """The tail of this scope is full, or many of its slots are dead."""
        self._scopes[scope_key] = None
        self._wake.set()

    def deleted(self) -> None:
        """Something was deleted: let it vanish from the write-ahead log too."""
        self._cut_log = True
        self._wake.set()

    def flush(self, seconds: float) -> None:
        """Wait until nothing waits, at most *seconds*; without a thread, do it on this one."""
        if self._thread is None:
            self.settle()
            return
        self._wake.set()
        with self._rested:
            self._rested.wait_for(lambda: not self._waiting and not self._doing.locked(), seconds)

    def settle(self) -> None:
        """Do all that waits, now, on this thread."""
        with self._doing:
            self._settle()

    def close(self) -> None:
        """Do what waits, sweep, then stop; what the database does not take now is given up."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            if self._thread.is_alive():
                return
        with self._doing:
            if self._try(self.sweep):
                self._settle()

    def _run(self) -> None:
        self._try(self._reindex)
        swept_at = -SWEEP_EVERY_S
        while not self._stopping:
            with self._doing:
                self._try(self._settle)
                if time.monotonic() - swept_at >= SWEEP_EVERY_S:
                    swept_at = time.monotonic()
                    self._try(self.sweep)
            with self._rested:
                self._rested.notify_all()
            self._wake.wait(SWEEP_EVERY_S)
            self._wake.clear()

    def _settle(self) -> None:
        """Do what waits; when the database takes nothing now, leave it until the next time, or for good when this is the last."""
        while works := self._first():
            if not self._all(works):
                self._put_off += 1
                return
            with self._queue:
                while self._waiting and self._waiting[0] in works:
                    self._waiting.popleft()
            with self._rested:
                self._rested.notify_all()
        while self._scopes:
            key, _ = self._scopes.popitem()
            if not self._try(lambda key=key: folding.tidy(self._engine, key)):  # type: ignore[misc]
                return
        if self._cut_log:
            self._try(self._cut)

    def _waits(self, work: Callable[[Tx], None]) -> bool:
        with self._queue:
            return work in self._waiting

    def _first(self) -> list[Callable[[Tx], None]]:
        """What waits longest; it stays in the queue until it is done."""
        with self._queue:
            return list(islice(self._waiting, AT_ONCE))

    def _all(self, works: Sequence[Callable[[Tx], None]]) -> bool:
        """Do *works* in one transaction, or, when one of them fails, each in its own. False when the database takes nothing now."""
        try:
            self._engine.write(partial(_in_one, works=works))
        except Unavailable as error:
            _log.warning("housekeeping put off: %s", error)
            return False
        except Exception:
            taken = [self._try(partial(self._engine.write, partial(_in_one, works=[work]))) for work in works]
            return all(taken)
        return True

    def _cut(self) -> None:
        self._cut_log = False
        done = False
        try:
            done = self._engine.checkpoint()
        finally:
            self._cut_log = self._cut_log or not done

    def sweep(self) -> None:
        """Take what has expired out of the index, and forget what is kept for a time and is old enough: receipts, kept answers, indexes of
        sessions, closed sessions, emptied scopes, and what nudges noted."""
        now = self._clock()
        for key in sweep(self._engine, now) | self._restore(now):
            self._scopes[key] = None
        self._engine.write(lambda tx: receipt_rows.drop_before(tx, now - self._receipts_kept_us))
        while self._engine.write(lambda tx: once_rows.drop_before(tx, now - self._answers_kept_us)):
            pass
        while self._engine.write(lambda tx: session_index_rows.drop_before(tx, now - session_index_rows.KEPT_US)):
            pass
        while self._engine.write(lambda tx: _forget_sessions(tx, now - session_rows.CLOSED_KEPT_US)):
            pass
        removing.forget_done(self._engine, now - removing.SLOTS_KEPT_US)
        self._engine.write(lambda tx: nudge_rows.drop_before(tx, now, now - MARKS_KEPT_US))

    def _try(self, work: Callable[[], object]) -> bool:
        """Run *work*; what goes wrong is logged, for nobody waits for it. False when the database takes nothing now."""
        try:
            work()
        except Unavailable as error:
            _log.warning("housekeeping put off: %s", error)
            return False
        except PegwordError as error:
            _log.error("housekeeping failed: %s", error)
        except BaseException:
            _log.exception("housekeeping failed")
        return True


def _forget_sessions(tx: Tx, before: int) -> bool:
    """Forget some sessions that were closed *before*, with all that hangs on them; False when there were none."""
    tx.alone(MANY_ROWS)
    ids = session_rows.forget_closed(tx, before)
    session_index_rows.forget_sessions(tx, ids)
    nudge_rows.forget_sessions(tx, ids)
    return bool(ids)


def _in_one(tx: Tx, works: Sequence[Callable[[Tx], None]]) -> None:
    """Do *works*, all that they hold first."""
    scopes = {key for work in works if isinstance(work, InScopes | Together) for key in work.scopes}
    if scopes:
        tx.beside(*sorted(scopes), *sorted(map(told, scopes)))
    tx.alone(MANY_ROWS)
    done: set[Callable[..., None]] = set()
    for work in works:
        if not isinstance(work, Together):
            work(tx)
        elif work.do not in done:
            done.add(work.do)
            work.do(tx, [other.what for other in works if isinstance(other, Together) and other.do == work.do])
