"""Several processes on one database: nothing is lost, nobody is refused."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import SOURCE, Cli
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("each_engine")

WRITERS = 4
# The command line, in which nobody who waits for another gives up because the machine is slow.
UNHURRIED = "from tests.patience import without_hurry; without_hurry(setattr); from pegword.cli import main; main()"


def started(cli: Cli, *arguments: str) -> "subprocess.Popen[str]":
    """A command that has been started."""
    return cli.start(*arguments, entry=UNHURRIED, PYTHONPATH=f"{SOURCE}:{Path(__file__).parents[2]}")


def test_commands_that_run_at_the_same_time_all_succeed(cli: Cli) -> None:
    """The first of them makes the database, the user and the tables; the others must not notice."""
    commands = [started(cli, "save", f"note_{number}", f"The lamp number {number}.", "--json") for number in range(WRITERS)]
    ended = [(process.communicate(timeout=PATIENCE_S), process.returncode) for process in commands]

    assert [(code, err) for (_, err), code in ended] == [(0, "")] * WRITERS
    listed = cli.ok("list", "--json").json
    assert listed["total"] == WRITERS
    assert len(cli.ok("user", "list", "--json").json["users"]) == 1
    assert cli.ok("search", "lamp", "--json").json["total"] == WRITERS


def test_the_same_name_saved_at_the_same_time_is_one_memory_with_every_version(cli: Cli) -> None:
    cli.ok("save", "count", "none")
    for process in [started(cli, "save", "count", f"text {number}") for number in range(WRITERS)]:
        _, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, err) == (0, "")

    kept = cli.ok("versions", "count", "--json").json["versions"]
    assert [version["version"] for version in kept] == list(range(WRITERS + 1, 0, -1))
    assert {version["content"] for version in kept} == {"none", *(f"text {number}" for number in range(WRITERS))}
