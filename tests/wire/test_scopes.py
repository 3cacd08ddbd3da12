"""Scopes in sessions as hosts of Turnstone know them: visible sets, coordinators, projects; each with what is different here."""

from typing import Any

import httpx2
import pytest

from tests.wire.conftest import Site, save
from tests.wire.test_sessions import host, make

__all__ = ["host"]
EVERY_ACTION: dict[str, dict[str, str]] = {
    "save": {"name": "plan", "content": "mine"}, "get": {"name": "plan"}, "delete": {"name": "plan"},
    "search": {"query": "quokka"}, "list": {},
}  # fmt: skip
ASK = {"role": "user", "content": "Where does the quokka go?"}


def tool(client: httpx2.Client, session: str, action: str, scope: str = "", **more: str) -> Any:
    """What the tool answers in a session."""
    arguments = {"action": action, **EVERY_ACTION[action], **more, **({"scope": scope} if scope else {})}
    answer = client.post("/v1/api/tool", json={"session": session, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


def session(client: httpx2.Client, **said: Any) -> str:
    return str(make(client, **said)["session_id"])


def names(client: httpx2.Client, in_session: str) -> list[str]:
    """The memories that a turn of the session shows."""
    answer = client.post("/v1/api/turn", json={"messages": [ASK], "session": {"id": in_session}, "k": 50}).json()
    return sorted(f"{m['scope']}/{m['scope_id'] and 'own'}" for m in answer["memories"])


@pytest.fixture
def everywhere(alice: httpx2.Client, bob: httpx2.Client) -> None:
    """A memory of the quokka wherever Alice and Bob may save one outside of sessions."""
    for client in (alice, bob):
        save(client, "plan", "The quokka goes home.", scope="user")
        for at in ("ws1", "ws2"):
            save(client, "plan", f"The quokka goes to {at}.", scope="workstream", scope_id=at)
    save(alice, "plan", "The quokka goes anywhere.")


@pytest.mark.usefixtures("everywhere")
def test_what_is_visible_is_global_and_the_own_workstream_and_the_own_user(alice: httpx2.Client, host: httpx2.Client) -> None:
    """In list, search and turn alike; for somebody who is no user, no user's rows."""
    hers = session(alice, workstream_id="ws1")
    somebody = session(host, anonymous=True, workstream_id="ws1")

    assert ["global/", "user/own", "workstream/own"] == names(alice, hers)
    assert ["global/"] == names(host, somebody)
    for action in ("list", "search"):
        assert ["global", "user", "workstream"] == sorted(m["scope"] for m in tool(alice, hers, action)["memories"])
        assert ["global"] == [m["scope"] for m in tool(host, somebody, action)["memories"]]
    told = tool(host, somebody, "list", "user")
    assert (True, True) == (told["is_error"], "anonymous" in told["text"])


def test_neither_an_interactive_session_nor_a_child_has_the_coordinator_scope(alice: httpx2.Client) -> None:
    """For no action, though the user is the coordinator's: the kind is what counts. The answer names what is valid."""
    coordinator = session(alice, kind="coordinator", workstream_id="ws1")
    tool(alice, coordinator, "save", content="The quokka is secret.")
    for other in (session(alice, workstream_id="ws1"), session(alice, parent_id=coordinator)):
        for action in EVERY_ACTION:
            answer = tool(alice, other, action, "coordinator")

            assert answer["is_error"]
            assert "coordinator is for coordinator sessions only; must be one of ['global'" in answer["text"]
        assert [] == names(alice, other)
    assert "secret" in tool(alice, coordinator, "get")["text"]


@pytest.mark.usefixtures("everywhere")
def test_a_coordinator_has_no_scope_but_its_own(alice: httpx2.Client) -> None:
    """Whatever it is told to look at; without a scope it looks at its own."""
    coordinator = session(alice, kind="coordinator", workstream_id="ws1")
    for action in EVERY_ACTION:
        for scope in ("global", "workstream", "user", "project", "mind"):
            answer = tool(alice, coordinator, action, scope)

            assert (True, True) == (answer["is_error"], f"{scope} is not available to coordinators" in answer["text"])
    assert ([], []) == (names(alice, coordinator), tool(alice, coordinator, "list")["memories"])
    assert 4 == alice.get("/v1/api/memories").json()["total"]


def test_two_coordinators_of_a_user_share_and_another_users_do_not(alice: httpx2.Client, bob: httpx2.Client) -> None:
    first, second = session(alice, kind="coordinator"), session(alice, kind="coordinator", workstream_id="ws9")
    his = session(bob, kind="coordinator")
    tool(alice, first, "save", content="The quokka is secret.")

    assert "secret" in tool(alice, second, "get")["text"]
    assert ["coordinator/own"] == names(alice, second)
    assert tool(bob, his, "get")["is_error"]
    assert [] == names(bob, his)


def test_an_anonymous_coordinator_cannot_be(host: httpx2.Client) -> None:
    answer = host.post("/v1/api/sessions", json={"kind": "coordinator", "anonymous": True})

    assert (400, "user") == (answer.status_code, answer.json()["field"])


def test_a_project_is_saved_to_where_it_is_named(server: Site, bob: httpx2.Client) -> None:
    """Not by default: the default scope of a save is the same in every session. A reader is told where to save instead."""
    owner = server.client(server.token("alice", "approve"))
    project = make(owner, "/v1/api/shared", kind="project", title="Harbour", members=[{"user": "bob", "write": False}])["id"]
    hers, his = session(owner, project_id=project), session(bob, project_id=project)

    assert "global" == tool(owner, hers, "save")["memories"][0]["scope"]
    assert ("project", project) == tuple(
        tool(owner, hers, "save", "project", content="The quokka is ours.")["memories"][0][f] for f in ("scope", "scope_id")
    )
    assert "ours" in tool(bob, his, "get", "project")["text"]
    for action in ("save", "delete"):
        refused = tool(bob, his, action, "project")
        assert (True, True) == (refused["is_error"], "read, not written; use one of global, user" in refused["text"])
    owner.patch(f"/v1/api/shared/project/{project}", json={"archived": True})
    assert "no project is attached" in tool(owner, hers, "get", "project")["text"]
