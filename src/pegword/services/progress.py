"""How far long work is, told to whoever asks."""

from collections.abc import Callable

# Told what is being done, how much of it is done, and of how much (0: nobody knows).
Progress = Callable[[str, int, int], None]


class Steps:
    """Adds up steps for a *progress* that is told *what*, how much and of how much."""

    def __init__(self, progress: Progress, what: str, total: int, done: int = 0) -> None:
        self._progress = progress
        self._what = what
        self._total = total
        self._done = done
        self(0)

    def __call__(self, step: int) -> None:
        self._done = min(self._total, self._done + step)
        self._progress(self._what, self._done, self._total)


def nothing(_what: str, _done: int, _of: int) -> None:
    """Progress that tells nobody."""
