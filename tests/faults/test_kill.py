"""Nothing acknowledged is lost when the process is killed, whatever it was doing; and what was broken off is taken up again."""

import multiprocessing
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pegword.assembly import open_services
from pegword.settings import load
from pegword.store.migrate import migrations
from tests.faults import dying
from tests.faults.disk import Disk
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.ledger import PYTHON, SERVE, Ledger, Server, joined, writers
from tests.faults.work import Asked, look
from tests.patience import PATIENCE_S as ENOUGH_S
from tests.patience import until
from tests.store.test_index import small_index as small_index

KILLS = how_many("KILLS", 20)
KILLS_AT_AN_ACTION = how_many("KILLS_AT_AN_ACTION", 60)
KILLS_OF_A_WORK = how_many("KILLS_OF_A_WORK", max(12, KILLS_AT_AN_ACTION // 5))
KILLS_OF_A_START = how_many("KILLS_OF_A_START", max(20, KILLS_AT_AN_ACTION // 3))
WRITERS = 16
ACTIONS_A_LIFE = 900

pytestmark = pytest.mark.timeout(PATIENCE_S)


@pytest.fixture
def token(folder: Path) -> str:
    services = open_services(folder / "pegword.db", load(environment={}))
    services.access.add_user("alice")
    _, token = services.access.add_key("alice")
    services.close()
    return token


def crash_rounds(tally: Tally, command: Sequence[str], folder: Path, token: str, rounds: int) -> None:
    """Start the server, let writers write, kill it at a random moment; again and again, with one ledger, on one file."""
    ledger = Ledger()
    database = folder / "pegword.db"
    for number, chance in enumerate(tally.schedule(rounds)):
        began = time.monotonic()
        server = Server(command, f"sqlite:///{database}", folder)
        tally.notes["slowest start s"] = round(max(tally.notes.get("slowest start s", 0), time.monotonic() - began), 2)
        before = ledger.answers
        threads = writers(WRITERS, server.port, token, ledger, chance.randrange(1 << 30))
        wanted = before + chance.randrange(WRITERS + 4, 20 * WRITERS)
        until(lambda wanted=wanted: ledger.answers >= wanted)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.02))
        server.kill()
        joined(threads)
        looked = number >= rounds - 1 or number % 10 == 9
        found, wrong = look(database) if looked else ({}, [])
        lost = ledger.lost({name: content for (_, name), content in found.items()}) if looked and not wrong else []
        tally.book(acknowledged=ledger.answers - before, lost=lost, wrong=[*wrong, *ledger.wrong])
        ledger.wrong.clear()


def test_every_acknowledged_save_survives_kill_9(folder: Path, token: str) -> None:
    """16 writers over HTTP, the server killed at random moments: saves, changes and deletes that were answered are there, the file is
    sound, the index agrees with the rows, and memories are found by their own words."""
    tally = Tally("kill -9 of a server under 16 writers")
    crash_rounds(tally, SERVE, folder, token, KILLS)
    tally.hold()
    assert tally.acknowledged > KILLS * WRITERS


def test_a_server_that_answers_before_it_commits_is_caught(folder: Path, token: str) -> None:
    tally = Tally("kill -9 of a server, answer before commit", until_noticed=True)
    crash_rounds(tally, [PYTHON, "-m", "tests.faults.serving", "SleepySqlite", "serve"], folder, token, 3)
    tally.catch()


@pytest.fixture(scope="module")
def forks() -> Any:
    """Makes processes that have everything imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.faults.dying"])
    return context


def die(forks: Any, target: Any, *arguments: Any) -> bool:
    """Whether a process that does this was killed on the way; False when it came to its end."""
    process = forks.Process(target=target, args=arguments)
    process.start()
    process.join(ENOUGH_S)
    code = process.exitcode
    process.close()
    assert code in (0, -9), f"the process ended with {code}"
    return bool(code)


def kill_writing(tally: Tally, forks: Any, folder: Path, target: Any, count: int) -> Tally:
    for number, chance in enumerate(tally.schedule(count)):
        here = folder / str(number)
        here.mkdir()
        path, diary = here / "pegword.db", here / "diary"
        die(forks, target, path, diary, f"{chance.random()}", chance.randrange(1, ACTIONS_A_LIFE))
        asked = Asked.read_from(diary)
        found, wrong = look(path)
        tally.book(acknowledged=asked.answers, lost=[] if wrong else asked.lost(found), wrong=wrong)
        shutil.rmtree(here)
    return tally


@pytest.mark.usefixtures("small_index")
def test_what_was_acknowledged_is_there_after_a_kill_at_any_action(folder: Path, forks: Any) -> None:
    """From the first start on, killed before one of the actions on its disk: saves, changes, deletes, folds, re-indexes, checkpoints."""
    kill_writing(Tally("kill -9 at an action of the disk"), forks, folder, dying.die_writing, KILLS_AT_AN_ACTION).hold()


@pytest.mark.usefixtures("small_index")
def test_a_store_that_answers_before_it_commits_is_caught(folder: Path, forks: Any) -> None:
    kill_writing(
        Tally("kill -9 at an action, answer before commit", until_noticed=True), forks, folder, dying.die_after_answering, 24
    ).catch()


@pytest.fixture
def filled(folder: Path, small_index: None) -> tuple[Path, Asked]:
    """A closed store with much to do in it, and what was saved there."""
    path, asked = folder / "filled.db", Asked()
    services = dying.open_on(path, "")
    dying.fill(services, asked)
    services.close()
    return path, asked


def actions_of(work: str, path: Path) -> int:
    """How often the disk is asked to change something while *work* is done on a copy of *path*."""
    count = 0

    def counted(action: str, _: str) -> None:
        nonlocal count
        count += action != "read"

    copy = path.with_name("counted.db")
    shutil.copyfile(path, copy)
    disk = Disk(counted)
    services = dying.open_later(copy, disk.name)
    dying.WORKS[work](services)
    services.close()
    disk.unregister()
    return count


@pytest.mark.parametrize("work", [work for work in dying.WORKS if work != "starting"])
def test_work_that_was_killed_changed_no_memory_and_is_done_by_who_comes_next(
    folder: Path, forks: Any, filled: tuple[Path, Asked], work: str
) -> None:
    """Killed anywhere, it leaves the old state or the new one: every memory is there, the index agrees, and the work can be done again."""
    path, asked = filled
    tally = Tally(f"kill -9 amid {work}")
    actions = actions_of(work, path)
    for number, chance in enumerate(tally.schedule(KILLS_OF_A_WORK)):
        copy = folder / f"{number}.db"
        shutil.copyfile(path, copy)
        killed = die(forks, dying.die_working, copy, work, chance.randrange(1, actions + 1))
        found, wrong = look(copy)
        lost = asked.lost(found)
        services = dying.open_later(copy, "")
        dying.WORKS[work](services)
        services.close()
        again, wrong_again = look(copy)
        lost += asked.lost(again)
        tally.book(acknowledged=asked.answers, lost=lost, wrong=[*wrong, *wrong_again, *([] if killed else ["it was not killed"])])
    tally.hold()


def test_a_start_that_was_killed_is_begun_again(folder: Path, forks: Any) -> None:
    """A first start, and one that brings an older schema up to date: the next start finds the old state or the new one, and goes on."""
    tally = Tally("kill -9 amid a first start or a migration")
    schemas = [0, *range(2, len(migrations()))]
    for number, chance in enumerate(tally.schedule(KILLS_OF_A_START)):
        schema = random.Random(number).choice(schemas)
        path, copy = folder / f"{number}.db", folder / f"{number}-copy.db"
        if schema:
            dying.at_schema(path, schema)
            shutil.copyfile(path, copy)
        actions = start_actions(copy)
        killed = die(forks, dying.die_working, path, "starting", chance.randrange(1, actions + 1))
        _, wrong = look(path)
        services = open_services(path, load(environment={}))
        users = [user.name for user in services.access.users()]
        services.close()
        lost = [] if users == (["alice"] if schema else []) else [f"from schema {schema}: users are {users}"]
        tally.book(acknowledged=bool(schema), lost=lost, wrong=[*wrong, *([] if killed else [f"from schema {schema}: it was not killed"])])
    tally.hold()


def start_actions(path: Path) -> int:
    """How often the disk is asked to change something while the store at *path*, which may be absent, is opened and closed."""
    count = 0

    def counted(action: str, _: str) -> None:
        nonlocal count
        count += action != "read"

    disk = Disk(counted)
    dying.open_later(path, disk.name).close()
    disk.unregister()
    return count
