"""An engine whose changes count only if they are still allowed when they are done."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from pegword.store.around import Around
from pegword.store.engine import Engine, Tx

T = TypeVar("T")


class Checked(Around):
    """*engine*, but that *check* is called at the end of each write transaction, in it, and undoes it by raising.

    At the end, since a write may wait for others in the middle of its transaction too.
    """

    def __init__(self, engine: Engine, check: Callable[[Tx], None]) -> None:
        super().__init__(engine)
        self._check = check

    def read(self, *, single: bool = False) -> AbstractContextManager[Tx]:
        """As of the engine."""
        return self._engine.read(single=single)

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run *work* in a write transaction of the engine, and then the check."""

        def checked(tx: Tx) -> T:
            result = work(tx)
            self._check(tx)
            return result

        return self._engine.write(checked)

    def checkpoint(self) -> bool:
        """As of the engine."""
        return self._engine.checkpoint()
