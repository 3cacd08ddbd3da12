"""How many requests each credential may send: more are answered 429, so that one agent that runs wild leaves the server to the others."""

import threading
import time
from collections.abc import Callable

from pegword.http.failures import TooMany

WINDOW_S = 60.0
KNOWN_MAX = 1_024  # credentials remembered before those that have been quiet for a minute are forgotten


class Rates:
    """What each credential has left, in this process. From any thread. *monotonic* gives seconds.

    A credential that was quiet may send a whole minute's worth at once; from then on as many come back each second as the rate says.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._full_at: dict[str, float] = {}  # when all of a credential's minute will have come back

    def take(self, credential: str, per_minute: int) -> None:
        """Count one request, of at most *per_minute* (0: any number); `TooMany` when there is none left, which does not count."""
        if not per_minute:
            return
        now, cost = self._monotonic(), WINDOW_S / per_minute
        with self._lock:
            full_at = max(now, self._full_at.get(credential, now)) + cost
            wait_s = full_at - now - WINDOW_S
            if wait_s <= 1e-6:  # a minute's worth of costs does not add up to a minute exactly
                self._full_at[credential] = full_at
                if len(self._full_at) > KNOWN_MAX:
                    self._forget(now)
                return
        raise TooMany(
            f"this token has sent more than {per_minute} requests in a minute; wait, then try again", retry_after_s=int(wait_s) + 1
        )

    def _forget(self, now: float) -> None:
        self._full_at = {credential: full_at for credential, full_at in self._full_at.items() if full_at > now}
