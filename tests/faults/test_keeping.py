"""Copies, backups, restores and imports that are killed: the old state or the new one, never between, and the same again finishes it."""

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegword.assembly import open_engine, open_services
from pegword.core.errors import Conflict
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store.migrate import migrate
from pegword.store.sqlite import SqliteEngine
from tests.conftest import Clock
from tests.faults import dying_keeping
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.work import look
from tests.keeping.conftest import PAIRS, Place, fill, made, rows_of
from tests.keeping.conftest import postgres_target as postgres_target

KILLS = how_many("KILLS_OF_A_KEEPING", 8)
MEMORIES = 12
LINES = 60

pytestmark = pytest.mark.timeout(PATIENCE_S)

Rows = dict[str, list[Any]]


@pytest.fixture(scope="module")
def forks() -> Any:
    """Makes processes that have everything imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.faults.dying_keeping"])
    return context


@pytest.fixture
def places(request: pytest.FixtureRequest, folder: Path) -> tuple[Place, Place]:
    """A database to copy from, and one to copy to."""
    return made(request, folder)


def run(forks: Any, target: Any, *arguments: Any) -> int:
    """The exit code of a process that does this."""
    process = forks.Process(target=target, args=arguments)
    process.start()
    process.join(240)
    code = int(process.exitcode)
    process.close()
    return code


def actions(forks: Any, folder: Path, work: Any, *arguments: Any) -> int:
    """How many actions *work* takes that is not killed."""
    report = folder / "actions"
    assert 0 == run(forks, dying_keeping.counted, report, work, *arguments)
    return int(report.read_text(encoding="utf-8"))


def rows(database: Place) -> Rows:
    """All that a database holds, whether it is a store or not."""
    engine = open_engine(database)
    migrate(engine)
    try:
        return rows_of(engine)
    finally:
        engine.close()


def opened(database: Place) -> Services | None:
    """The store in *database*; None when it says that it is none."""
    try:
        return open_services(database, load(environment={}))
    except Conflict:
        return None


def filled(database: Place) -> Rows:
    """Put something into every table; what that is."""
    services = open_services(database, load(environment={}), clock=Clock())
    fill(services, MEMORIES)
    services.close()
    return rows(database)


def emptied(database: Place) -> None:
    """Leave nothing in *database*."""
    if isinstance(database, Path):
        for path in database.parent.glob(f"{database.name}*"):
            path.unlink()
    else:
        engine = open_engine(database)
        engine.write(lambda tx: [tx.run(f"DELETE FROM {table.name}") for table in dying_keeping.copying.TABLES])
        engine.close()


def kill_migrations(tally: Tally, forks: Any, folder: Path, source: Place, target: Place, count: int, mutant: str = "") -> Tally:
    expected = filled(source)
    most = actions(forks, folder, dying_keeping.migrate_to, source, target)
    for chance in tally.schedule(count):
        emptied(target)
        code = run(forks, dying_keeping.killed, chance.randrange(1, most + 1), mutant, dying_keeping.migrate_to, source, target)
        wrong = [] if code == -9 else [f"it was not killed, and ended with {code}"]
        services = opened(target)
        if services is not None:
            services.close()
            there = rows(target)
            if there != expected and any(there.values()):
                wrong.append("half of a store is opened as if it were one")
        if not mutant:
            after = run(forks, dying_keeping.killed, 10**9, "", dying_keeping.migrate_to, source, target) if opened_not(target) else 0
            wrong += [] if after == 0 else [f"the second run ended with {after}"]
            wrong += [] if rows(target) == expected else ["the second run did not finish it"]
            wrong += [] if rows(source) == expected else ["the source was changed"]
        tally.book(acknowledged=sum(map(len, expected.values())), wrong=wrong)
    return tally


def opened_not(database: Place) -> bool:
    """Whether *database* holds no finished store that has anything in it."""
    services = opened(database)
    if services is None:
        return True
    services.close()
    return not any(rows(database).values())


@pytest.mark.parametrize("places", PAIRS, ids="-to-".join, indirect=True)
def test_a_migration_that_is_killed_is_no_store_until_the_next_one_finishes_it(
    places: tuple[Place, Place], forks: Any, folder: Path
) -> None:
    """Anywhere from its first action to its last; the source is never touched."""
    kinds = " to ".join("SQLite" if isinstance(place, Path) else "PostgreSQL" for place in places)
    kill_migrations(Tally(f"kill -9 amid a migration from {kinds}"), forks, folder, *places, KILLS).hold()


@pytest.mark.parametrize("places", PAIRS[:1], ids="-to-".join, indirect=True)
def test_a_copy_that_does_not_say_that_it_is_one_is_caught(places: tuple[Place, Place], forks: Any, folder: Path) -> None:
    kill_migrations(Tally("kill -9 amid a migration, no mark", until_noticed=True), forks, folder, *places, 25, "no mark").catch()


def kill_backups(tally: Tally, forks: Any, folder: Path, source: Place, count: int, mutant: str = "") -> Tally:
    expected, file = filled(source), folder / "kept.backup"
    most = actions(forks, folder, dying_keeping.back_up, source, file)
    for chance in tally.schedule(count):
        file.unlink(missing_ok=True)
        code = run(forks, dying_keeping.killed, chance.randrange(1, most + 1), mutant, dying_keeping.back_up, source, file)
        wrong = [] if code == -9 else [f"it was not killed, and ended with {code}"]
        wrong += whole_backup(file, expected) if file.exists() else []
        if not mutant:
            file.unlink(missing_ok=True)
            after = run(forks, dying_keeping.killed, 10**9, "", dying_keeping.back_up, source, file)
            wrong += [f"the second run ended with {after}"] if after else whole_backup(file, expected)
            left = [path.name for path in folder.iterdir() if path.name.startswith("kept") and path != file]
            wrong += [f"{left} is left"] if left else []
            wrong += [] if rows(source) == expected else ["the source was changed"]
        tally.book(acknowledged=sum(map(len, expected.values())), wrong=wrong)
    return tally


def whole_backup(file: Path, expected: Rows) -> list[str]:
    """What is wrong with a backup that has its name."""
    try:
        engine = SqliteEngine(file, create=False)
        there = rows_of(engine)
        engine.close()
    except Exception as error:
        return [f"a backup is there and cannot be read: {error!r}"]
    return [] if there == expected else ["a backup is there and is not what was backed up"]


@pytest.mark.parametrize("places", [PAIRS[0], PAIRS[2]], ids="-to-".join, indirect=True)
def test_a_backup_that_is_killed_has_no_name_or_is_whole(places: tuple[Place, Place], forks: Any, folder: Path) -> None:
    """And the next one is made, over nothing that the killed one has left."""
    kind = "SQLite" if isinstance(places[0], Path) else "PostgreSQL"
    kill_backups(Tally(f"kill -9 amid a backup of {kind}"), forks, folder, places[0], KILLS).hold()


@pytest.mark.parametrize("places", PAIRS[:1], ids="-to-".join, indirect=True)
def test_a_backup_that_has_its_name_at_once_is_caught(places: tuple[Place, Place], forks: Any, folder: Path) -> None:
    kill_backups(Tally("kill -9 amid a backup, named at once", until_noticed=True), forks, folder, places[0], 25, "named at once").catch()


def kill_replacements(tally: Tally, forks: Any, folder: Path, source: Place, target: Place, count: int, mutant: str = "") -> Tally:
    new, file = filled(source), folder / "kept.backup"
    assert 0 == run(forks, dying_keeping.killed, 10**9, "", dying_keeping.back_up, source, file)
    old: Rows = {}

    def again() -> None:
        emptied(target)
        for path in folder.glob("replaced-*"):
            path.unlink()
        services = open_services(target, load(environment={}))
        services.access.add_user("bob")
        services.memories.save(services.access.agent(services.access.user("bob"), "key:b"), dying_keeping.OLD_DRAFT)
        services.close()
        old.update(rows(target))

    again()
    most = actions(forks, folder, dying_keeping.replace, file, target)
    for chance in tally.schedule(count):
        again()
        code = run(forks, dying_keeping.killed, chance.randrange(1, most + 1), mutant, dying_keeping.replace, file, target)
        wrong = [] if code == -9 else [f"it was not killed, and ended with {code}"]
        there = rows(target)
        wrong += [] if there in (old, new) else ["it holds neither the old nor the new"]
        safe = [path for path in folder.glob("replaced-*") if not path.name.endswith((".partial", "-journal"))]
        if there == new and not any(whole_backup(path, old) == [] for path in safe):
            wrong.append("the old is gone, and in no backup")
        tally.book(acknowledged=sum(map(len, old.values())), wrong=wrong)
    return tally


@pytest.mark.parametrize("places", PAIRS[:2], ids="-to-".join, indirect=True)
def test_a_restore_that_replaces_and_is_killed_leaves_the_old_or_the_new(places: tuple[Place, Place], forks: Any, folder: Path) -> None:
    """And where it is the new, the old is in a backup."""
    kind = "SQLite" if isinstance(places[1], Path) else "PostgreSQL"
    kill_replacements(Tally(f"kill -9 amid a restore into {kind}"), forks, folder, *places, KILLS).hold()


@pytest.mark.parametrize("places", PAIRS[:1], ids="-to-".join, indirect=True)
def test_a_restore_that_commits_each_table_by_itself_is_caught(places: tuple[Place, Place], forks: Any, folder: Path) -> None:
    tally = Tally("kill -9 amid a restore, table by table", until_noticed=True)
    kill_replacements(tally, forks, folder, *places, 40, "table by table").catch()


def kill_imports(tally: Tally, forks: Any, folder: Path, target: Place, count: int, *, hasty: bool = False) -> Tally:
    data = b"".join(
        json.dumps({"name": f"n{n}", "content": f"walrus tea x{n}", "tags": ["a", f"t{n}"], "sitting": n // 7}).encode() + b"\n"
        for n in range(LINES)
    )
    diary = folder / "diary"
    most = actions(forks, folder, bringing(hasty), data, target, diary)
    for chance in tally.schedule(count):
        emptied(target)
        diary.unlink(missing_ok=True)
        last = chance.randrange(most // 2 if hasty else 1, most + 1)  # the first half goes by before anything is said to be done
        code = run(forks, dying_keeping.killed, last, "", bringing(hasty), data, target, diary)
        if code == 0:  # ids are drawn anew each time, and so are the pages that hold them: it can take a few actions less than was counted
            continue
        wrong = [] if code == -9 else [f"it was not killed, and ended with {code}"]
        found, torn = look(target)
        done = int(diary.read_text(encoding="utf-8") or 0) if diary.exists() else 0
        names = {name for _, name in found}
        lost = [f"line {n + 1} was done, and is not there" for n in range(done) if f"n{n}" not in names]
        if not hasty:
            after = run(forks, dying_keeping.killed, 10**9, "", dying_keeping.bring, data, target, diary)
            found, torn_later = look(target)
            wrong += [*torn_later, *([] if after == 0 else [f"the second run ended with {after}"])]
            wrong += [] if {name for _, name in found} == {f"n{n}" for n in range(LINES)} else ["the second run did not finish it"]
        tally.book(acknowledged=done, lost=lost, wrong=[*wrong, *torn])
    return tally


def bringing(hasty: bool) -> Callable[..., None]:
    return dying_keeping.bring_hastily if hasty else dying_keeping.bring


@pytest.mark.parametrize("places", PAIRS[:2], ids="-to-".join, indirect=True)
def test_an_import_that_is_killed_leaves_whole_memories_and_is_finished_by_the_same_lines(
    places: tuple[Place, Place], forks: Any, folder: Path
) -> None:
    """All lines that were said to be done are there, each with its version, its tags and its index."""
    kind = "SQLite" if isinstance(places[1], Path) else "PostgreSQL"
    kill_imports(Tally(f"kill -9 amid an import into {kind}"), forks, folder, places[1], KILLS).hold()


@pytest.mark.parametrize("places", PAIRS[:1], ids="-to-".join, indirect=True)
def test_an_import_that_is_said_to_be_done_before_it_is_is_caught(places: tuple[Place, Place], forks: Any, folder: Path) -> None:
    kill_imports(
        Tally("kill -9 amid an import, answer before commit", until_noticed=True), forks, folder, places[1], 30, hasty=True
    ).catch()
