"""Commands for sessions, workstreams and projects."""

import pytest

from pegword.cli import failing
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("each_engine")


def test_a_session_s_id_stands_alone_and_a_turn_takes_it(cli: Cli) -> None:
    """The turn sees the session's workstream; a closed session is refused until it is resumed."""
    cli.ok("save", "plan", "The quokka waits.", "--scope", "workstream", "--scope-id", "ws1")
    made = cli.ok("session", "add", "--workstream", "ws1")
    session = made.out.strip()

    assert made.out == f"{session}\n"
    assert "plan" in cli.ok("turn", "--session", session, "--message", "quokka", "--explain").out
    assert cli.ok("turn", "--message", "quokka").out == ""
    cli.ok("session", "close", session)
    assert (failing.REFUSED, True) == ((refused := cli("turn", "--session", session)).code, "closed" in refused.err)
    cli.ok("session", "resume", session)
    assert "waits" in cli.ok("turn", "--session", session, "--message", "quokka").out
    assert cli("turn", "--session", session, "--workstream", "ws1").code == failing.INVALID


def test_sessions_are_listed_and_shown_to_their_user(cli: Cli) -> None:
    cli.ok("user", "add", "alice")
    parent = cli.ok("session", "add", "--kind", "coordinator", "--json").json
    child = cli.ok("session", "add", "--parent", parent["session_id"], "--json").json

    assert (["coordinator"], "child", parent["session_id"]) == (parent["scopes"], child["kind"], child["parent_id"])
    assert [child["session_id"], parent["session_id"]] == [s["session_id"] for s in cli.ok("session", "list", "--json").json["sessions"]]
    assert child == cli.ok("session", "show", child["session_id"], "--json").json
    assert "coordinator session of sam with scopes coordinator" in cli.ok("session", "show", parent["session_id"]).out
    assert cli("session", "show", parent["session_id"], "--user", "alice").code == failing.REFUSED
    cli.ok("session", "close", parent["session_id"])
    assert cli.ok("session", "list").out == "no sessions\n"
    assert cli.ok("session", "list", "--all").out.count("yes") == 2


def test_a_workstream_goes_with_its_memories_only_when_that_is_said(cli: Cli) -> None:
    for name in ("one", "two"):
        cli.ok("save", name, "x", "--scope", "workstream", "--scope-id", "ws1")

    assert cli.ok("workstream", "list", "--json").json["workstreams"] == [{"workstream_id": "ws1", "memories": 2}]
    refused = cli("workstream", "delete", "ws1")
    assert (failing.REFUSED, True) == (refused.code, "holds 2 memories" in refused.err)
    assert cli.ok("workstream", "delete", "ws1", "--with-memories").out == "deleted workstream ws1 and its 2 memories\n"
    assert cli.ok("workstream", "list").out == "no workstreams\n"


@pytest.mark.parametrize("group", ["project", "workstream"])
def test_what_is_shared_is_made_shown_changed_and_deleted(cli: Cli, group: str) -> None:
    """The same commands for projects and for workstreams with members."""
    cli.ok("user", "add", "alice")
    cli.ok("user", "add", "bob")
    made = cli.ok(group, "add", "Harbour", "--member", "alice", "--reader", "bob")
    at = made.out.strip()
    owner = [{"user": "sam", "write": True}] if group == "project" else []

    assert made.out == f"{at}\n"
    shown = cli.ok(group, "show", at, "--json").json
    assert [{"user": "alice", "write": True}, {"user": "bob", "write": False}, *owner] == shown["members"]
    assert cli.ok(group, "join", at, "bob", "--json").json["members"][1] == {"user": "bob", "write": True}
    cli.ok(group, "leave", at, "alice")
    assert "alice" not in cli.ok(group, "show", at).out
    assert cli.ok(group, "change", at, "--title", "Pier", "--archive", "--json").json["archived"] is True
    assert "Pier" in cli.ok(group, "list").out
    assert cli(group, "show", at, "--user", "alice").code == failing.REFUSED
    assert cli(group, "change", at, "--unarchive", "--user", "bob").code == failing.DENIED
    shared = ["--shared"] if group == "workstream" else []
    assert cli.ok(group, "delete", at, *shared).out == f"deleted {group} {at}\n"
    assert cli.ok(group, "list").out == f"no {group}s\n"
