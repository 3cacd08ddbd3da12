"""Copies, backups, restores and imports that are ended by ``kill -9``, in a process of their own. Imported by a process that forks quickly.

What is killed is what the command line runs. It may end before any action of its disk, before any change of a file's name, and whenever it
tells how far it is.
"""

import io
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from pegword import lines
from pegword.assembly import build_services, clock_us, open_engine, random_id
from pegword.core.caller import GLOBAL
from pegword.core.memory import Draft
from pegword.core.text import Analyser
from pegword.services import backups, moving
from pegword.settings import load
from pegword.store import copying, files
from pegword.store.migrate import migrate
from tests.faults.disk import Disk, Fault, kill_at
from tests.faults.mutants import HastySqlite

ROWS_AT_ONCE = 9  # so few that a small store takes many steps
LINES_AT_ONCE = 10

OLD_DRAFT = Draft("old", "what was there before", GLOBAL)

Place = Path | str


def watched(fault: Fault) -> Callable[[str, int, int], None]:
    """Let every disk, every change of a file's name and every word of progress go through *fault*; what to tell progress to."""
    disk = Disk(fault, over="unix")
    apsw.set_default_vfs(disk.name)
    copying.ROWS_AT_ONCE = ROWS_AT_ONCE
    for name in ("_flush", "_name", "_claimed"):
        real = getattr(files, name)
        setattr(files, name, lambda *arguments, real=real, name=name: (fault("rename", name), real(*arguments))[1])
    return lambda what, _done, _of: disk.fault("tell", what)  # and so the disk lives as long as this does


def migrate_to(fault: Fault, source: Place, target: Place) -> None:
    """What `pegword migrate` does."""
    progress = watched(fault)
    with closing(open_engine(source)) as old, closing(open_engine(target)) as new:
        migrate(new)
        moving.move(old, new, Analyser(), progress)


def back_up(fault: Fault, source: Place, file: Path) -> None:
    """What `pegword backup` does."""
    progress = watched(fault)
    with closing(open_engine(source)) as engine:
        backups.back_up(engine, file, Analyser(), clock=clock_us, progress=progress)


def replace(fault: Fault, file: Path, target: Place) -> None:
    """What `pegword restore --replace` does."""
    progress = watched(fault)
    with closing(open_engine(target)) as engine:
        backups.restore(file, engine, Analyser(), replace=True, clock=clock_us, progress=progress)


def bring(fault: Fault, data: bytes, target: Place, diary: Path, *, hasty: bool = False) -> None:
    """What `pegword import` does; *diary* is told how many lines are done."""
    from pegword.services import transfer

    transfer.LINES_AT_ONCE = LINES_AT_ONCE
    progress = watched(fault)
    engine = HastySqlite(Path(target)) if hasty else open_engine(target)
    migrate(engine)
    services = build_services(engine, load(environment={}), clock=clock_us, new_id=random_id)
    caller = services.access.agent(services.access.ensure_user("alice"), "key:1")

    def told(done: int) -> None:
        diary.write_text(f"{done}", encoding="utf-8")
        progress("importing", done, 0)

    services.transfer.bring(caller, lines.read(io.BytesIO(data)), progress=told)
    services.close()


def bring_hastily(fault: Fault, data: bytes, target: Place, diary: Path) -> None:
    """The same, with the planted fault that it is said to be done before it is."""
    bring(fault, data, target, diary, hasty=True)


def killed(last: int, mutant: str, work: Callable[..., None], *arguments: Any) -> None:
    """Do *work*, with a planted fault if *mutant* names one; be killed before the *last*-th action."""
    if mutant:
        MUTANTS[mutant]()
    work(kill_at(last), *arguments)


def counted(report: Path, work: Callable[..., None], *arguments: Any) -> None:
    """Do *work* to its end, and write to *report* how many actions it took."""
    count = 0

    def fault(action: str, _: str) -> None:
        nonlocal count
        count += action != "read"

    work(fault, *arguments)
    report.write_text(f"{count}", encoding="utf-8")


def _no_mark() -> None:
    """A copy that says nothing of being one."""
    copying.begin = lambda _, source: copying.Position(0, (), source)
    copying._advance = lambda *_: None


def _named_at_once() -> None:
    """A backup that is written under its own name."""

    @contextmanager
    def made(path: Path) -> Any:
        path.touch()
        yield path

    files.made_whole = made


def _table_by_table() -> None:
    """A restore that commits each table by itself."""

    def replaced(source: Any, target: Any, *_: Any) -> Any:
        with source.read() as tx:
            for table in copying.TABLES:
                target.write(lambda there, table=table: copying.bring_all(tx, there, (table,), lambda _: None))

    backups._replaced = replaced


MUTANTS: dict[str, Callable[[], None]] = {"no mark": _no_mark, "named at once": _named_at_once, "table by table": _table_by_table}
