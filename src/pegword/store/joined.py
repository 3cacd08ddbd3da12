"""An engine whose reads and writes all take part in one transaction that is open already."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from pegword.store.around import Around
from pegword.store.engine import Engine, Tx

T = TypeVar("T")


class Joined(Around):
    """*engine* as it looks from inside of its write transaction *tx*: what is written is committed with that, and not before.

    Reads see what was written so far. For the thread that has the transaction, and for as long as that is open.
    """

    def __init__(self, engine: Engine, tx: Tx) -> None:
        super().__init__(engine)
        self._tx = tx
        self.used = False  # whether the transaction was read or written through here

    @contextmanager
    def read(self, *, single: bool = False) -> Iterator[Tx]:  # noqa: ARG002
        """The transaction itself."""
        self.used = True
        yield self._tx

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run *work* in the transaction; an exception of its own undoes it, and nothing before it."""
        self.used = True
        self._tx.run("SAVEPOINT joined")
        try:
            result = work(self._tx)
        except Exception:
            with suppress(Exception):  # what the database says of a transaction that it gave up itself
                self._tx.run("ROLLBACK TO SAVEPOINT joined")
                self._tx.run("RELEASE SAVEPOINT joined")
            raise
        self._tx.run("RELEASE SAVEPOINT joined")
        return result

    def checkpoint(self) -> bool:
        """False: that has to wait until the transaction has ended."""
        return False
