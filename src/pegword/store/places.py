"""Places that several threads share, given in the order in which they are asked for."""

import threading
from collections import deque

__all__ = ["Places"]


class Places:
    """*count* places. Who has waited longest has the next one.

    A semaphore of `threading` wakes who waits, but lets whoever comes by take the place first: of many who write one thing after the other,
    some would wait for ever.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._line = threading.Lock()  # held for moments
        self._waiting: deque[threading.Lock] = deque()

    def take(self, patience_s: float) -> bool:
        """Have a place, within *patience_s* seconds; False when there was none."""
        with self._line:
            if self._free:
                self._free -= 1
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        try:
            if mine.acquire(timeout=patience_s):
                return True
        except BaseException:
            if self._leave(mine):
                self.give_back()
            raise
        return self._leave(mine)

    def give_back(self) -> None:
        """Let go of a place that `take` gave."""
        with self._line:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def _leave(self, mine: threading.Lock) -> bool:
        """Go out of the line; True when the place had come just then."""
        with self._line:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return False
        return True
