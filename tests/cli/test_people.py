"""Commands for users and keys."""

from pathlib import Path

import pytest

from pegword.assembly import open_services
from pegword.settings import load
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("each_engine")


def test_a_key_s_token_stands_alone_on_stdout_and_lets_its_agent_in(cli: Cli, database: Path | str) -> None:
    """Scripts take the token as it is: TOKEN=$(pegword key add ...). What else there is to say goes to stderr."""
    cli.ok("user", "add", "alice", "--email", "alice@example.org")

    made = cli.ok(
        "key", "add", "--user", "alice", "--scopes", "read,write", "--project-word", "general", "--expires", "90d", "--name", "laptop"
    )

    assert made.out == f"{made.out.strip()}\n"
    assert " " not in made.out
    assert made.err.startswith("pegword: key ")
    services = open_services(cli.database if isinstance(database, Path) else database, load(environment={}))
    caller = services.access.caller_of(made.out.strip())
    services.close()
    assert (caller.user_name, caller.right, caller.project_word, caller.human) == ("alice", "write", "general", False)


def test_the_highest_of_the_scopes_is_the_key_s_right(cli: Cli) -> None:
    """Each scope holds those before it, so the answer lists them all."""
    cli.ok("user", "add", "alice")

    for asked, granted in (("read", ["read"]), ("write", ["read", "write"]), ("approve,read", ["read", "write", "approve"])):
        assert granted == cli.ok("key", "add", "--user", "alice", "--scopes", asked, "--json").json["scopes"]


def test_users_and_keys_are_listed_without_tokens(cli: Cli) -> None:
    """Nobody keeps a token, so nobody can list one."""
    cli.ok("user", "add", "alice")
    made = cli.ok("key", "add", "--user", "alice", "--json").json

    assert [user["name"] for user in cli.ok("user", "list", "--json").json["users"]] == ["alice"]
    listed = cli.ok("key", "list", "--json")
    assert [key["key_id"] for key in listed.json["keys"]] == [made["key_id"]]
    assert made["token"] not in listed.out + cli.ok("key", "list").out


def test_a_revoked_key_is_revoked_once_and_shown_as_such(cli: Cli) -> None:
    """Revoking what is not in force is refused."""
    cli.ok("user", "add", "alice")
    key_id = cli.ok("key", "add", "--user", "alice", "--json").json["key_id"]

    cli.ok("key", "revoke", key_id)

    assert cli.ok("key", "list", "--json").json["keys"][0]["revoked_at"] is not None
    assert cli("key", "revoke", key_id).code == 1


def test_empty_lists_say_what_to_do_next(cli: Cli) -> None:
    assert "pegword user add" in cli.ok("user", "list").out
    assert "pegword key add" in cli.ok("key", "list").out
