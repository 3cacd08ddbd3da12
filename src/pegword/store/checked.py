"""An engine whose changes count only if they are still allowed when they are done."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TypeVar

from pegword.store.engine import Engine, Tx

T = TypeVar("T")


class Checked:
    """*engine*, but that *check* is called at the end of each write transaction, in it, and undoes it by raising.

    At the end, since a write may wait for others in the middle of its transaction too.
    """

    def __init__(self, engine: Engine, check: Callable[[Tx], None]) -> None:
        self.flavor = engine.flavor
        self.url = engine.url
        self.one_writer = engine.one_writer
        self.in_process = engine.in_process
        self._engine = engine
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

    def integrity(self, *, thorough: bool = True) -> list[str]:
        """As of the engine."""
        return self._engine.integrity(thorough=thorough)

    def about(self) -> Mapping[str, str]:
        """As of the engine."""
        return self._engine.about()

    def checkpoint(self) -> bool:
        """As of the engine."""
        return self._engine.checkpoint()

    def close(self) -> None:
        """Nothing: whoever opened the engine closes it."""
