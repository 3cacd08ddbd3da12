"""Nothing acknowledged is lost when the power is cut: what SQLite had not flushed by then is dropped, torn or kept, as chance has it."""

import random
import shutil
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from pegword.core.errors import PegwordError
from pegword.store.sqlite import SqliteEngine
from pegword.store.sqlite_file import SqliteFile
from tests.faults.disk import PowerDisk
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.mutants import HastySqlite
from tests.faults.work import Asked, look, open_on, take_steps
from tests.store.test_index import small_index as small_index

LOSSES = how_many("POWER_LOSSES", 300)
LOSSES_OTHER = how_many("POWER_LOSSES_ROLLBACK", max(60, LOSSES // 10))
STEPS = 30
ACTIONS_A_RUN = 700  # roughly what the steps ask of the disk

pytestmark = [pytest.mark.timeout(PATIENCE_S), pytest.mark.usefixtures("small_index")]


def lose_power(
    folder: Path, template: Path | None, chance: random.Random, kind: type[SqliteEngine] = SqliteEngine
) -> tuple[Asked, list[str], list[str]]:
    """One run of work that the power cut ends: what was asked, what is lost of it, and what else is wrong."""
    path = folder / "store" / "pegword.db"
    path.parent.mkdir()
    if template is not None:
        shutil.copyfile(template, path)
    disk = PowerDisk(chance.randrange(1, ACTIONS_A_RUN))
    asked = Asked(deaf=lambda: disk.dark)
    try:
        with suppress(PegwordError, apsw.Error):
            services = open_on(path, disk.name, kind=kind)
            with suppress(PegwordError, apsw.Error):
                take_steps(services, asked, chance, STEPS, going_on=lambda: not disk.dark)
            disk.left = 0
            services.engine.close()
        disk.left = 0
        disk.after(chance)
    finally:
        disk.unregister()
    found, wrong = look(path)
    return asked, asked.lost(found) if not wrong else [], wrong


def run(tally: Tally, count: int, folder: Path, template: Path | None, kind: type[SqliteEngine] = SqliteEngine) -> Tally:
    """*count* power cuts, each in a life of its own."""
    for number, chance in enumerate(tally.schedule(count)):
        here = folder / str(number)
        here.mkdir()
        asked, lost, wrong = lose_power(here, template, chance, kind)
        tally.book(acknowledged=asked.answers, lost=lost, wrong=wrong)
        shutil.rmtree(here)
    return tally


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has been opened and closed once."""
    path = tmp_path_factory.mktemp("power") / "template.db"
    open_on(path, "").close()
    return path


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The planted fault: every connection flushes less than it must."""
    real = SqliteFile._set_up

    def set_up(self: SqliteFile, connection: apsw.Connection, *, adopt: bool) -> None:
        real(self, connection, adopt=adopt)
        connection.pragma("synchronous", request.param)

    monkeypatch.setattr(SqliteFile, "_set_up", set_up)


def test_what_was_acknowledged_is_there_after_the_power_was_cut(folder: Path, template: Path) -> None:
    """Saves, changes, deletes, folds, re-indexes and checkpoints, cut off anywhere: every answer holds with its exact content, the pages
    are whole, the index agrees with the rows, and the next start needs nobody."""
    run(Tally("power loss"), LOSSES, folder, template).hold()


def test_a_first_start_that_the_power_cuts_off_is_begun_again(folder: Path) -> None:
    """From an absent file on: there is no state that the next start does not take up."""
    run(Tally("power loss from the first start on"), LOSSES_OTHER, folder, None).hold()


@pytest.mark.usefixtures("rollback_journal")
def test_the_same_holds_with_a_rollback_journal(folder: Path) -> None:
    """On a network file system the journal is another one, and the promise the same."""
    run(Tally("power loss, rollback journal"), LOSSES_OTHER, folder, None).hold()


@pytest.mark.parametrize("careless", ["NORMAL", "OFF"], indirect=True)
@pytest.mark.usefixtures("careless")
def test_a_store_that_flushes_less_is_caught(folder: Path, template: Path, request: pytest.FixtureRequest) -> None:
    tally = Tally(f"power loss, synchronous={request.node.callspec.params['careless']}", until_noticed=True)
    run(tally, 30, folder, template).catch()


@pytest.mark.parametrize("careless", ["FULL"], indirect=True)
@pytest.mark.usefixtures("rollback_journal", "careless")
def test_a_rollback_journal_whose_end_is_not_flushed_is_caught(folder: Path) -> None:
    """There a commit is the end of the journal's name, and that lies in the folder."""
    run(Tally("power loss, rollback journal, synchronous=FULL", until_noticed=True), 60, folder, None).catch()


def test_a_store_that_answers_before_it_commits_is_caught(folder: Path, template: Path) -> None:
    run(Tally("power loss, answer before commit", until_noticed=True), 30, folder, template, HastySqlite).catch()
