"""Several processes on one database: nothing is lost, nobody is refused."""

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("each_engine")

WRITERS = 4


def test_commands_that_run_at_the_same_time_all_succeed(cli: Cli) -> None:
    """The first of them makes the database, the user and the tables; the others must not notice."""
    started = [cli.start("save", f"note_{number}", f"The lamp number {number}.", "--json") for number in range(WRITERS)]
    ended = [(process.communicate(timeout=60), process.returncode) for process in started]

    assert [(code, err) for (_, err), code in ended] == [(0, "")] * WRITERS
    listed = cli.ok("list", "--json").json
    assert listed["total"] == WRITERS
    assert len(cli.ok("user", "list", "--json").json["users"]) == 1
    assert cli.ok("search", "lamp", "--json").json["total"] == WRITERS


def test_the_same_name_saved_at_the_same_time_is_one_memory_with_every_version(cli: Cli) -> None:
    cli.ok("save", "count", "none")
    started = [cli.start("save", "count", f"text {number}") for number in range(WRITERS)]
    for process in started:
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")

    kept = cli.ok("versions", "count", "--json").json["versions"]
    assert [version["version"] for version in kept] == list(range(WRITERS + 1, 0, -1))
    assert {version["content"] for version in kept} == {"none", *(f"text {number}" for number in range(WRITERS))}
