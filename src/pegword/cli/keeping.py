"""Commands that keep a whole store: backup, restore, migrate."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pegword.cli import output
from pegword.cli.asking import OnStore
from pegword.cli.failing import REFUSED
from pegword.cli.options import AsJson, Config
from pegword.cli.progress import progress_bar

ToOrDefault = Annotated[
    str | None, typer.Option("--to", metavar="URL", help="Where to. Default: the database that every command uses.", show_default=False)
]


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make; it must not exist.", show_default=False)],
    *,
    ask: OnStore,
) -> None:
    """Write the whole store into one file.

    A server may run and write meanwhile; the file is of one moment. It gets its name when it was opened and compared with the store, row by
    row. It holds everything, the hashes of tokens too: keep it as you keep the store.
    """
    from pegword.assembly import clock_us
    from pegword.core.text import Analyser
    from pegword.services.backups import back_up

    began = time.monotonic()
    with ask.opened() as store, progress_bar() as progress:
        made = back_up(store.services.engine, file.absolute(), Analyser(store.settings.memory_language), clock=clock_us, progress=progress)
    seconds = time.monotonic() - began
    if ask.as_json:
        output.document({"file": str(made.path), "bytes": made.bytes, **_told(made.tables, made.faults, seconds)})
    else:
        output.say(f"backed up {made.said} to {file}, compared row by row")
    _end(made.faults, as_json=ask.as_json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", show_default=False)],
    to: ToOrDefault = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is there; that is backed up first, into the folder of FILE.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup back, into any kind of database.

    The target must be empty. If it is stopped, the next run goes on. Stop the server before.
    """
    from pegword.assembly import clock_us, opened_bare
    from pegword.core.text import Analyser
    from pegword.services import backups
    from pegword.settings import database_of, load

    settings = load(config).with_flags(database_url=to)
    output.warn(settings.warnings, as_json=as_json)
    began = time.monotonic()
    analyser = Analyser(settings.memory_language)
    place = database_of(settings.database_url)
    backups.require_backup(file.absolute(), "" if isinstance(place, str) else f"sqlite://{place}")
    with opened_bare(place, create=True) as target, progress_bar() as progress:
        done = backups.restore(file, target, analyser, replace=replace, clock=clock_us, progress=progress)
        url = target.url
    seconds = time.monotonic() - began
    if as_json:
        before = None if done.before is None else str(done.before)
        output.document({"to": url, "replaced": before, **_told(done.moved.tables, done.moved.faults, seconds)})
    else:
        if done.before is not None:
            output.say(f"what was there before is in {done.before}")
        output.say(f"restored {done.moved.said} to {url}, compared row by row")
    _end(done.moved.faults, as_json=as_json)


def migrate(
    to: Annotated[str, typer.Option("--to", metavar="URL", help="Where to: an empty database of either kind.", show_default=False)],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Where from. Default: the database that every command uses.", show_default=False),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Carry the whole store to another database.

    From SQLite to PostgreSQL, back, or from one to another of the same kind; every row is compared afterwards. If it is stopped, the same
    command goes on. Stop the server before: what is saved meanwhile is not carried over, and the command says so.
    """
    from pegword.assembly import opened_bare
    from pegword.core.errors import Conflict
    from pegword.core.text import Analyser
    from pegword.services import moving
    from pegword.settings import database_of, load

    settings = load(config).with_flags(database_url=source)
    output.warn(settings.warnings, as_json=as_json)
    began = time.monotonic()
    there, target = database_of(settings.database_url), database_of(settings.with_flags(database_url=to).database_url)
    with opened_bare(there) as old, opened_bare(target, create=True) as new, progress_bar() as progress:
        if old.url == new.url:
            raise Conflict("--from and --to name the same database")
        moved = moving.move(old, new, Analyser(settings.memory_language), progress)
        if moved.behind:
            raise Conflict(
                f"{old.url} was written to meanwhile, so {new.url} is not finished: stop who writes, and run the same command again",
                code="behind",
            )
        names = (old.url, new.url)
    seconds = time.monotonic() - began
    if as_json:
        output.document({"from": names[0], "to": names[1], **_told(moved.tables, moved.faults, seconds)})
    else:
        output.say(f"moved {moved.said} to {names[1]}, compared row by row")
    _end(moved.faults, as_json=as_json)


def _told(tables: Mapping[str, int], faults: Sequence[str], seconds: float) -> dict[str, Any]:
    return {"memories": tables.get("structured_memories", 0), "rows": tables, "faults": list(faults), "seconds": round(seconds, 3)}


def _end(faults: Sequence[str], *, as_json: bool) -> None:
    """Say what was wrong before and is so still, and end with the code for that."""
    if not faults:
        return
    if not as_json:
        for fault in faults:
            output.note(fault)
        output.note("this was so before, and was carried as it is; pegword doctor says what to do")
    raise typer.Exit(REFUSED)
