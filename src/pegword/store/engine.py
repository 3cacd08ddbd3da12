"""What a database engine must be able to do: open, run statements in a transaction, say what went wrong.

Statements are written once for all engines, in the files beside this one. Parameters are ``?`` in order or ``:name``. An
engine fills the words of `Engine.flavor` into migrations, and turns its driver's exceptions into `pegword.core.errors`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pegword.store.tails import KeptTails

T = TypeVar("T")
Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any]

# Whoever changes rows of several memories in one transaction holds their scopes first, in order. Who holds them `beside` others, or changes
# rows of several sessions or receipts, holds this `alone` after that, so that two of them never wait for each other's rows.
MANY_ROWS = "many rows"


def told(scope_key: str) -> str:
    """The lock that what tells of a scope's memories after an answer, a receipt or an index of a session, holds `beside` others, as it does
    the scope itself, and who deletes one of them alone."""
    return f"told of {scope_key}"


class Tx(Protocol):
    """An open transaction: one snapshot for reads, all or nothing for writes."""

    @property
    def kept_tails(self) -> "KeptTails | None":
        """What its engine keeps of the index between transactions that read; None in one that may write: what it sees may be taken back."""

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Run one statement and return all of its rows."""

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement and return how many rows it changed."""

    def run_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Run one statement once for each set of parameters."""

    def alone(self, *names: str) -> None:
        """Wait until nobody else holds any of *names*, mostly a scope's key, one after the other, and keep everybody off them until the
        transaction ends.

        First in a write transaction, before what it guards is read. An engine whose writers take turns has nothing to do.
        """

    def beside(self, *names: str) -> None:
        """Hold each of *names* together with all who do the same, and keep off whoever wants it `alone`; one after the other, as given."""

    def copy_file(self, path: Path, progress: Callable[[int, int], None]) -> bool:
        """Copy all that this transaction sees into the empty file at *path*, as a SQLite database, if the engine knows a quicker way
        than row by row; False when it does not. *progress* is told how much of how much."""


class Engine(Protocol):
    """One open database."""

    flavor: Mapping[str, str]
    url: str
    one_writer: bool  # whether one transaction at a time writes, so that many changes are best made in one
    in_process: bool  # whether statements take the time of this process, so that many at once are no quicker than one after the other

    def read(self, *, single: bool = False) -> AbstractContextManager[Tx]:
        """A read transaction: everything in it sees one snapshot. In one for a *single* statement, that alone is one: where a transaction
        costs more than the statement, there is none around it."""

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run *work* in a write transaction and return its result once that is committed and on disk.

        *work* may be run again, or its transaction shared with other callers' work; an exception of its own undoes it alone.
        """

    def integrity(self, *, thorough: bool = True) -> list[str]:
        """What the engine itself finds wrong with how its database lies on the disk, a line each; it reads all of it. One that is not
        *thorough* leaves out what takes longest."""

    def about(self) -> Mapping[str, str]:
        """What the engine says of itself and its server, by name: for whoever looks for what is wrong."""

    def checkpoint(self) -> bool:
        """Let nothing that was deleted live on in a log; False when that has to wait for a reader."""

    def close(self) -> None:
        """Give back every connection."""


def among(column: str, count: int) -> str:
    """The condition that *column* is one of *count* parameters; none at all when *count* is 0.

    Counts are rounded up, so that few different statements are prepared: pass the parameters through `padded`.
    """
    return f"{column} IN ({', '.join('?' * _rounded(count))})" if count else "1 = 0"


def padded(values: Sequence[Any]) -> list[Any]:
    """*values* for `among`, the last one repeated as often as it takes."""
    return [*values, *([values[-1]] * (_rounded(len(values)) - len(values)))] if values else []


def _rounded(count: int) -> int:
    step = 1 << max(0, count.bit_length() - 3)  # 1-8 as they are, then in steps of an eighth to a quarter
    return -(-count // step) * step
