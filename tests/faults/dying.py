"""Work that is ended by ``kill -9`` at a chosen action of its disk, in a process of its own. Imported by a process that forks quickly."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from pegword.core.errors import Busy
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.store import blocks, folding, migrate, postings, reindex
from tests.faults.disk import Disk, kill_at
from tests.faults.work import CALLER, SCOPES, Asked, open_on, take_steps
from tests.store.test_index import BLOCK, DEAD, TAIL

DAY_S = 86_400
MEMORIES = 60


def shrink_index() -> None:
    """Tails, blocks and graves so small that a few saves fill them: what the fixture `small_index` does, for a process that soon ends."""
    for module in (folding, postings):
        module.TAIL_MAX = TAIL
        module.needs_rebuild = lambda dead_n, _: dead_n > DEAD
    folding.BLOCK_POSTINGS_MAX = BLOCK
    blocks._BLOCK_BYTES = BLOCK * 8
    folding.REBUILD_BLOCKS_MAX = 5
    reindex.BLOCKS_AT_ONCE = 5
    reindex.SLOTS_AT_ONCE = 5


def fill(services: Services, asked: Asked) -> None:
    """A store with much to do: tails to be folded, blocks full of the dead, memories that will expire, receipts; in every scope."""
    chance = Random(1)
    take_steps(services, asked, chance, MEMORIES)
    for number in range(MEMORIES):
        scope = SCOPES[number % len(SCOPES)]
        name, text = f"m{number % 40}", f"walrus tea {number} honey x{number}"
        soon = services.clock() + DAY_S * 1_000_000 if number % 5 == 0 else None
        draft = Draft(name, text, scope, tags=("walrus",), expires_at=soon)
        asked.ask(scope, name, text, partial(services.memories.save, CALLER, draft))


def _tidy(services: Services) -> None:
    for scope in SCOPES:
        folding.tidy(services.engine, scope.key)


def _rebuild(services: Services) -> None:
    for scope in SCOPES:
        folding.rebuild(services.engine, scope.key)


def _sweep(services: Services) -> None:
    services.housekeeper.sweep()
    services.housekeeper.settle()


def _checkpoint(services: Services) -> None:
    if not services.engine.checkpoint():
        raise Busy("somebody reads")


# What can be broken off, and is taken up again by whoever comes next.
WORKS: Mapping[str, Callable[[Services], object]] = {
    "folding": _tidy,
    "rebuilding": _rebuild,
    "re-indexing": lambda services: services.reindexer.run(everything=True),
    "sweeping": _sweep,
    "cutting the log": _checkpoint,
    "starting": lambda _: None,
}


def open_later(path: Path, vfs: str) -> Services:
    """The store on the day after next, when what was to expire has."""
    return open_on(path, vfs, later_s=2 * DAY_S)


def die_working(path: Path, work: str, last: int) -> None:
    """Do *work* on the store at *path*; be killed before the *last*-th action."""
    shrink_index()
    disk = Disk(kill_at(last))
    services = open_later(path, disk.name)
    WORKS[work](services)
    services.close()


def die_writing(path: Path, diary: Path, seed: str, last: int) -> None:
    """Save, change, delete and tidy, and write down in *diary* what was acknowledged; be killed before the *last*-th action."""
    shrink_index()
    disk = Disk(kill_at(last))
    services = open_on(path, disk.name)
    take_steps(services, Asked(diary=diary), Random(seed), 60)
    services.close()


def die_after_answering(path: Path, diary: Path, seed: str, last: int) -> None:
    """The same with the planted fault that the answer comes before the commit."""
    from tests.faults.mutants import HastySqlite

    shrink_index()
    disk = Disk(kill_at(last))
    services = open_on(path, disk.name, kind=HastySqlite)
    with suppress(Busy):
        take_steps(services, Asked(diary=diary), Random(seed), 60)
    services.close()


def at_schema(path: Path, number: int) -> None:
    """A database as the program that knew *number* migrations left it, with something in it."""
    known = migrate.migrations()
    real, migrate.migrations = migrate.migrations, lambda: known[:number]
    try:
        services = open_on(path, "")
        services.access.add_user("alice")
        services.close()
    finally:
        migrate.migrations = real
