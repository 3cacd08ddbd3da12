"""What is done after an answer: receipts and access counts, folding, rebuilding, sweeping out what has expired.

One thread a process. Nothing here is part of a promise: what is lost with the process is done again or was best effort.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

from pegword.core.errors import PegwordError
from pegword.store import folding, receipt_rows
from pegword.store.engine import Engine, Tx
from pegword.store.sweeping import sweep

WAITING_MAX = 10_000
SWEEP_EVERY_S = 30.0
RECEIPT_KEPT_US = 7 * 24 * 3_600 * 1_000_000

_log = logging.getLogger("pegword.housekeeping")


class Housekeeper:
    """Does small work on its own thread, in order; more than `WAITING_MAX` waiting is dropped, oldest first.

    *clock* gives microseconds since 1970; *reindex* brings scopes of an older analyser up to date. Nothing runs
    before `start`, but `settle` can be called without it.
    """

    def __init__(self, engine: Engine, *, clock: Callable[[], int], reindex: Callable[[], object] = int) -> None:
        self._engine = engine
        self._reindex = reindex
        self._clock = clock
        self._waiting: deque[Callable[[Tx], None]] = deque(maxlen=WAITING_MAX)
        self._scopes: dict[str, None] = {}
        self._cut_log = False
        self._wake = threading.Event()
        self._doing = threading.Lock()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to work on a thread of its own, and look at once for what earlier processes left."""
        with self._engine.read() as tx:
            self._scopes.update(dict.fromkeys(folding.due(tx)))
        self._thread = threading.Thread(target=self._run, name="pegword-housekeeper", daemon=True)
        self._thread.start()

    def later(self, work: Callable[[Tx], None]) -> None:
        """Do *work* in a write transaction some time after the answer; best effort."""
        self._waiting.append(work)
        self._wake.set()

    def due(self, scope_key: str) -> None:
        """The tail of this scope is full, or many of its slots are dead."""
        self._scopes[scope_key] = None
        self._wake.set()

    def deleted(self) -> None:
        """Something was deleted: let it vanish from the write-ahead log too."""
        self._cut_log = True
        self._wake.set()

    def settle(self) -> None:
        """Do all that waits, now, on this thread."""
        with self._doing:
            self._settle()

    def close(self) -> None:
        """Do what waits, then stop."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.settle()

    def _run(self) -> None:
        self._try(self._reindex)
        while not self._stopping:
            self._wake.wait(SWEEP_EVERY_S)
            self._wake.clear()
            with self._doing:
                self._settle()
                self._try(self.sweep)

    def _settle(self) -> None:
        while self._waiting:
            works = [self._waiting.popleft() for _ in range(min(len(self._waiting), 100))]
            self._try(lambda works=works: self._engine.write(lambda tx: [work(tx) for work in works]))  # type: ignore[misc]
        while self._scopes:
            key = next(iter(self._scopes))
            del self._scopes[key]
            self._try(lambda key=key: folding.tidy(self._engine, key))  # type: ignore[misc]
        if self._cut_log:
            self._cut_log = False
            self._try(self._engine.checkpoint)

    def sweep(self) -> None:
        """Take what has expired out of the index, and forget receipts that are old enough."""
        now = self._clock()
        for key in sweep(self._engine, now):
            self._scopes[key] = None
        self._engine.write(lambda tx: receipt_rows.drop_before(tx, now - RECEIPT_KEPT_US))

    def _try(self, work: Callable[[], object]) -> None:
        """Run *work*; what goes wrong is logged, for nobody waits for it."""
        try:
            work()
        except PegwordError as error:
            _log.warning("housekeeping put off: %s", error)
        except Exception:
            _log.exception("housekeeping failed")
