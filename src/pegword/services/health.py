"""Whether memories can be saved and read right now: found out by doing it, not by asking."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from pegword.core.errors import Unavailable
from pegword.store import fact_rows
from pegword.store.engine import Engine

PROBE_EVERY_S = 5.0
PROBE_WAIT_S = 2.0
_FACT = "probe"


class Health:
    """Probes one store by writing a row to it and reading it back, at most once in `PROBE_EVERY_S` seconds.

    *clock* gives microseconds since 1970; the spacing is by *monotonic*, in seconds.
    """

    def __init__(self, engine: Engine, *, clock: Callable[[], int], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._monotonic = monotonic
        self._asking = threading.Lock()
        self._probe: Future[None] | None = None
        self._probed_at = 0.0

    def check(self) -> None:
        """Return when the last probe succeeded; else raise what it met.

        Raises `Unavailable` when a probe takes longer than `PROBE_WAIT_S` seconds: whoever asks is not kept waiting for a database that is.
        """
        with self._asking:
            now = self._monotonic()
            if self._probe is None or (self._probe.done() and now - self._probed_at >= PROBE_EVERY_S):
                self._probe, self._probed_at = Future(), now
                threading.Thread(target=self._run, args=(self._probe,), name="pegword-probe", daemon=True).start()
            probe = self._probe
        try:
            probe.result(PROBE_WAIT_S)
        except TimeoutError:
            raise Unavailable(f"the database took no write within {PROBE_WAIT_S:.0f} seconds", code="slow") from None

    def _run(self, probe: "Future[None]") -> None:
        try:
            now = str(self._clock())
            self._engine.write(lambda tx: fact_rows.put(tx, _FACT, now))
            with self._engine.read() as tx:
                fact_rows.get(tx, _FACT)
        except BaseException as error:
            probe.set_exception(error)
        else:
            probe.set_result(None)
