"""A whole store carried to another database, of the same kind or of another, and held against the original row by row."""

from collections.abc import Mapping
from dataclasses import dataclass

from pegword.core.errors import Damaged
from pegword.core.text import Analyser
from pegword.services.progress import Progress, Steps, nothing
from pegword.services.reindexing import Reindexer
from pegword.services.sound import faults_of_index, faults_of_rows
from pegword.store import copying
from pegword.store.copying import MOVING, TABLES, Fingerprint, Table
from pegword.store.engine import Engine, Tx

Prints = Mapping[str, tuple[Fingerprint, Fingerprint]]


@dataclass(frozen=True, slots=True)
class Moved:
    """What a copy holds: the rows of each table, and what is wrong with them there as here (*faults*).

    *behind* says that the source was written to while the copy was made; it is not finished then.
    """

    tables: Mapping[str, int]
    faults: tuple[str, ...]
    behind: bool

    @property
    def said(self) -> str:
        """How much that is, for a reader."""
        return copying.said(self.tables)


def move(source: Engine, target: Engine, analyser: Analyser, progress: Progress = nothing, *, name: str = "") -> Moved:
    """Carry all that *source* holds into *target*, which must hold nothing, or an unfinished copy of the same source.

    The source is told apart by its *name*, which is its address unless it has another.

    The copy is of one moment, and is compared with it before it counts. Where the source was written to meanwhile, it stays unfinished
    (`Moved.behind`): the same call again takes over what has changed. Raises `Conflict` for a target that holds anything else, `Damaged`
    when the copy is not what was read.
    """
    copying.require_whole(source)
    name = name or source.url
    position = copying.begin(target, name)
    with source.read() as tx:
        with target.read() as there:
            brought = rows_of(there)
        copying.copy(tx, target, position, Steps(progress, "copying", rows_of(tx), brought))
        prints = compared(tx, target, progress)
        if different(prints):  # what was brought before an interruption is of another moment
            for table in different(prints):
                step = Steps(progress, f"copying {table.name} again", prints[table.name][0].rows)
                copying.copy_again(tx, target, table, name, step)
            prints = compared(tx, target, progress)
    require_equal(prints)
    mend_index(target, analyser, progress)
    with target.read() as there:
        faults = faults_of_rows(there, progress)
    behind = moved_on(source, prints)
    if not behind:
        copying.finish(target)
    return Moved(counts(prints), tuple(faults), behind)


def rows_of(tx: Tx) -> int:
    """How many rows all tables hold together."""
    return sum(copying.count(tx, table) for table in TABLES)


def compared(source: Tx, target: Engine, progress: Progress = nothing) -> Prints:
    """The fingerprints of every table, here and there."""
    step = Steps(progress, "comparing", 2 * rows_of(source))
    with target.read() as there:
        return {t.name: (copying.fingerprint(source, t, step), copying.fingerprint(there, t, step)) for t in TABLES}


def different(prints: Prints) -> list[Table]:
    """The tables that are not the same here and there."""
    return [table for table in TABLES if prints[table.name][0] != prints[table.name][1]]


def require_equal(prints: Prints) -> None:
    """Raise `Damaged` unless every table is the same here and there."""
    left = ", ".join(table.name for table in different(prints))
    if left:
        raise Damaged(f"the copy of {left} is not what was read; look after the disk, and begin anew with an empty target")


def counts(prints: Prints) -> dict[str, int]:
    """How many rows each table has that has any."""
    return {name: here.rows for name, (here, _) in prints.items() if here.rows}


def mend_index(target: Engine, analyser: Analyser, progress: Progress) -> None:
    """Hold the copied index against the memories, and make it anew where it came damaged; raise `Damaged` when that does not help."""
    with target.read() as tx:
        faults = faults_of_index(tx, analyser, progress)
    if not faults:
        return
    Reindexer(target, analyser).run(lambda done, of: progress("making the index anew", done, of), everything=True)
    with target.read() as tx:
        faults = faults_of_index(tx, analyser, progress)
    if faults:
        raise Damaged(f"the index does not agree with the memories: {faults[0]}")


def moved_on(source: Engine, prints: Prints) -> bool:
    """Whether *source* was written to since the fingerprints were taken: every save, delete, user and key shows."""
    with source.read() as tx:
        return differs(tx, prints)


def differs(tx: Tx, prints: Prints) -> bool:
    """Whether what *tx* sees was written to since the fingerprints were taken of it."""
    return any(copying.fingerprint(tx, table) != prints[table.name][0] for table in TABLES if table.name in MOVING)
