"""Backups: a whole store in one file, tried before it counts, and put back from it.

A backup is a SQLite database of the program's own schema, whatever engine it comes from; so it can be looked at, and served, as it is.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pegword.core.errors import Conflict, Damaged, Invalid
from pegword.core.memory import SECOND_US
from pegword.core.text import Analyser
from pegword.services import moving
from pegword.services.moving import Moved, Prints
from pegword.services.progress import Progress, Steps, nothing
from pegword.services.sound import faults_of_index, faults_of_rows
from pegword.store import copying, fact_rows, files
from pegword.store.copying import BACKUP, TABLES, require_whole
from pegword.store.engine import Engine, Tx
from pegword.store.migrate import migrate, schema_known, schema_of
from pegword.store.sqlite import SqliteEngine
from pegword.store.sqlite_file import Use

_NO_COLONS = str.maketrans("", "", ":-")


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup holds: the rows of each table, its size in *bytes*, and what was found wrong in it and so in the store (*faults*)."""

    path: Path
    tables: Mapping[str, int]
    bytes: int
    faults: tuple[str, ...]

    @property
    def said(self) -> str:
        """How much that is, for a reader."""
        return copying.said(self.tables)


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, and the backup that was made of what was there before, None when nothing was."""

    moved: Moved
    before: Path | None


def back_up(source: Engine, path: Path, analyser: Analyser, *, clock: Callable[[], int], progress: Progress = nothing) -> BackedUp:
    """Write all that *source* holds at one moment into a new file at *path*, of mode 0600; whoever writes to *source* goes on.

    The file gets its name only when it was opened as a store and compared: every row with the one that was read, the index with the
    memories, and the file with SQLite's own rules. Raises `Invalid` when *path* exists or cannot be made, `Damaged` when the copy is not
    what was read.
    """
    return _backed_up(source, path, analyser, clock, progress)[0]


def restore(
    file: Path, target: Engine, analyser: Analyser, *, replace: bool = False, clock: Callable[[], int], progress: Progress = nothing
) -> Restored:
    """Put what the backup at *file* holds into *target*, compared as a move is. The backup is not changed.

    A target that holds anything is refused with `Conflict`, or, with *replace*, first backed up itself, into the backup's folder, and
    then replaced in one transaction: whatever happens, it holds the old or the new. Raises `Damaged` for a backup that is.
    """
    file = file.absolute()
    require_backup(file, target.url)
    with _opened(file) as source:
        wrong = source.integrity()
        if wrong:
            raise Damaged(f"the backup {file} is damaged: {wrong[0]}; take another one")
        with target.read() as tx:
            holds = {} if copying.unfinished(tx) else copying.held(tx)
        if not holds:
            moved = moving.move(source, target, analyser, progress, name=f"the backup {file}")
            return Restored(moved, None)
        if not replace:
            told = copying.said(holds)
            raise Conflict(f"the target is not empty: it holds {told}; --replace backs that up and then replaces it", code="not_empty")
        before = file.with_name(f"replaced-{_moment(clock()).translate(_NO_COLONS)}{file.suffix}")
        _, kept = _backed_up(target, before, analyser, clock, progress)
        return Restored(_replaced(source, target, kept, analyser, progress), before)


def require_backup(file: Path, target_url: str = "") -> None:
    """Raise unless *file* can be opened and holds a store: `Invalid`, `Damaged`, `NewerDatabase`; and `Conflict` when it is the target
    itself, which is a SQLite file under whatever name. For before a target is made, which a wrong name would leave behind empty."""
    try:
        with closing(SqliteEngine(file, create=False, use=Use.FROZEN)) as engine:
            holds = schema_of(engine)
    except Damaged as error:
        raise Damaged(f"the backup {file} cannot be read: {error}; take another one") from error
    if not holds:
        raise Invalid(f"{file} holds no store", field="file")
    path = Path(target_url.removeprefix("sqlite://"))
    if target_url.startswith("sqlite://") and path.exists() and path.samefile(file):
        raise Conflict(f"{file} is the target itself; name another file, or another target")


def _backed_up(source: Engine, path: Path, analyser: Analyser, clock: Callable[[], int], progress: Progress) -> tuple[BackedUp, Prints]:
    with files.made_whole(path) as partial:
        prints = _copied(source, partial, progress)
        made = json.dumps({"from": source.url, "at": _moment(clock())})
        with _scratch(partial) as copy:
            copying.finish(copy)
            copy.write(lambda tx: fact_rows.put(tx, BACKUP, made))
            faults = _faults(copy, analyser, progress)
        size = partial.stat().st_size
    return BackedUp(path, moving.counts(prints), size, tuple(faults)), prints


def _copied(source: Engine, partial: Path, progress: Progress) -> Prints:
    """Copy what *source* holds now into the empty file at *partial*; the fingerprints of both."""
    with source.read() as tx:
        in_one = tx.copy_file(partial, lambda done, of: progress("copying pages", done, of))
        with _scratch(partial) as copy:
            if not in_one:
                position = copying.begin(copy, source.url)
                copying.copy(tx, copy, position, Steps(progress, "copying", moving.rows_of(tx)))
            prints = moving.compared(tx, copy, progress)
    moving.require_equal(prints)
    return prints


def _replaced(source: Engine, target: Engine, kept: Prints, analyser: Analyser, progress: Progress) -> Moved:
    """Replace all that *target* holds, which is what was *kept*, in one transaction."""
    with source.read() as tx:
        total = moving.rows_of(tx)

        def work(there: Tx) -> Prints:
            if copying.held(there) != moving.counts(kept) or moving.differs(there, kept):
                raise Conflict("somebody has written to the target since it was backed up; stop who uses it, and try again")
            copying.bring_all(tx, there, TABLES, Steps(progress, "replacing", total))
            step = Steps(progress, "comparing", 2 * total)
            prints = {t.name: (copying.fingerprint(tx, t, step), copying.fingerprint(there, t, step)) for t in TABLES}
            moving.require_equal(prints)
            return prints

        prints = target.write(work)
    target.checkpoint()
    moving.mend_index(target, analyser, progress)
    with target.read() as there:
        faults = faults_of_rows(there, progress)
    return Moved(moving.counts(prints), tuple(faults), behind=False)


def _faults(copy: Engine, analyser: Analyser, progress: Progress) -> list[str]:
    """What is wrong with a copy, and so with what it was made from."""
    progress("checking the file", 0, 0)
    faults = copy.integrity()
    with copy.read() as tx:
        return [*faults, *faults_of_rows(tx, progress), *faults_of_index(tx, analyser, progress)]


@contextmanager
def _scratch(path: Path) -> Iterator[Engine]:
    """The file at *path* as a store that nobody else uses."""
    engine = SqliteEngine(path, use=Use.SCRATCH)
    try:
        migrate(engine)
        yield engine
    finally:
        engine.close()


@contextmanager
def _opened(file: Path) -> Iterator[Engine]:
    """The backup at *file*, to be read. One of an older schema is brought to this program's in a copy: the file itself stays as it is."""
    engine = SqliteEngine(file, create=False, use=Use.FROZEN)
    try:
        if schema_of(engine) == schema_known():
            require_whole(engine)
            yield engine
            return
    finally:
        engine.close()
    with tempfile.TemporaryDirectory(prefix="pegword-") as folder:
        copy = Path(folder) / "backup.db"
        with closing(SqliteEngine(file, create=False, use=Use.FROZEN)) as engine, engine.read() as tx:
            tx.copy_file(copy, lambda _, __: None)
        with _scratch(copy) as older:
            require_whole(older)
            yield older


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at // SECOND_US, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
