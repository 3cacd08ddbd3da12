"""GET and POST /v1/api/tool: the memory tool over HTTP."""

from typing import Any

import httpx2
import pytest

from pegword.services.bundle import Services
from tests.wire.conftest import Site, save

PATH = "/v1/api/tool"


def call(client: httpx2.Client, **arguments: Any) -> Any:
    answer = client.post(PATH, json={"arguments": arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


def session(services: Services, name: str, **more: Any) -> str:
    """The id of a new session of that user."""
    caller = services.access.agent(services.access.ensure_user(name), "library")
    return services.sessions.create(caller, **more).session_id


def test_a_call_answers_text_outcome_and_what_it_is_about(alice: httpx2.Client) -> None:
    """The whole answer of a call."""
    answer = call(alice, action="save", name="Deploy Day", content="We deploy on Tuesdays.")
    memory = answer["memories"][0]

    assert answer == {
        "text": f"Saved memory 'deploy_day' (type=project, scope=global, id={memory['memory_id']}, version=1).",
        "is_error": False,
        "outcome": "created",
        "memories": [
            {"memory_id": memory["memory_id"], "name": "deploy_day", "scope": "global", "scope_id": "", "type": "project", "version": 1}
        ],
    }
    assert alice.get("/v1/api/memories/deploy_day").json()["source"] == "agent"


def test_what_the_tool_saves_the_other_routes_find_and_the_other_way_round(alice: httpx2.Client) -> None:
    save(alice, "lunch", "The canteen is closed in August.")
    call(alice, action="save", name="deploy_day", content="We deploy on Tuesdays.")

    assert [m["name"] for m in call(alice, action="search", query="canteen")["memories"]] == ["lunch"]
    assert alice.post("/v1/api/memories/search", json={"query": "deploy"}).json()["total"] == 1


def test_a_mistake_of_the_model_is_an_answer_for_the_model(alice: httpx2.Client) -> None:
    answer = call(alice, action="search")

    assert answer == {"text": "Error: search needs a query; use list to see the newest", "is_error": True, "memories": []}


@pytest.mark.parametrize("arguments", [None, [], "nonsense", 5, True, {}, {"action": 5}, '{"action": "list"}', [{"action": "list"}]])
def test_whatever_stands_for_the_arguments_is_answered_with_one_text(alice: httpx2.Client, arguments: Any) -> None:
    for body in ({"arguments": arguments}, {}):
        answer = alice.post(PATH, json=body)
        assert answer.status_code == 200
        assert answer.json()["text"]


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "mcp"])
def test_the_tool_is_offered_in_each_dialect(alice: httpx2.Client, dialect: str) -> None:
    tool = alice.get(PATH, params={"dialect": dialect}).json()["tool"]

    assert "memory" == (tool["function"] if dialect == "openai" else tool)["name"]


def test_without_a_dialect_it_is_openais_and_without_a_session_an_interactive_one(alice: httpx2.Client) -> None:
    tool = alice.get(PATH).json()["tool"]

    assert ["global", "user"] == tool["function"]["parameters"]["properties"]["scope"]["enum"]
    tool = alice.get(PATH, params={"workstream_id": "w1"}).json()["tool"]
    assert ["global", "workstream", "user"] == tool["function"]["parameters"]["properties"]["scope"]["enum"]


def test_an_unknown_dialect_is_refused(alice: httpx2.Client) -> None:
    answer = alice.get(PATH, params={"dialect": "gemini"})

    assert answer.status_code == 400
    assert answer.json()["error"] == "unknown dialect 'gemini'; it must be one of openai, anthropic, mcp"


def test_a_session_decides_what_is_offered_and_where_it_goes(alice: httpx2.Client, services: Services) -> None:
    coordinator = session(services, "alice", kind="coordinator")
    tool = alice.get(PATH, params={"session": coordinator, "dialect": "anthropic"}).json()["tool"]
    assert ["coordinator"] == tool["input_schema"]["properties"]["scope"]["enum"]
    answer = alice.post(PATH, json={"session": coordinator, "arguments": {"action": "save", "name": "plan", "content": "Ship on Tuesday."}})

    assert answer.json()["memories"][0]["scope"] == "coordinator"
    assert alice.get("/v1/api/memories").json()["memories"] == []
    assert call(alice, action="list")["text"] == "No memories stored."
    assert alice.get(f"/v1/api/memory/{answer.json()['memories'][0]['memory_id']}").status_code == 404


def test_anothers_session_is_absent_and_a_closed_one_is_said_to_be(alice: httpx2.Client, bob: httpx2.Client, services: Services) -> None:
    hers = session(services, "alice")
    for session_id in (hers, "none"):
        for answer in (
            bob.get(PATH, params={"session": session_id}), bob.post(PATH, json={"session": session_id, "arguments": {"action": "list"}}),
        ):  # fmt: skip
            assert (404, "Session not found") == (answer.status_code, answer.json()["error"])
    services.sessions.close(services.access.agent(services.access.user("alice"), "library"), hers)
    answer = alice.post(PATH, json={"session": hers, "arguments": {"action": "list"}})
    assert (409, "session_closed") == (answer.status_code, answer.json()["code"])


def test_a_session_without_memory_is_offered_no_tool(alice: httpx2.Client, services: Services) -> None:
    """The host adds nothing to its list; a call is told."""
    services.sessions._has_memory = lambda persona: persona != "scribe"
    scribe = session(services, "alice", persona="scribe")

    assert alice.get(PATH, params={"session": scribe}).json() == {"tool": None}
    answer = alice.post(PATH, json={"session": scribe, "arguments": {"action": "list"}}).json()
    assert (True, "Error: memory is off in this session.") == (answer["is_error"], answer["text"])


def test_a_token_that_may_only_read_has_a_tool_that_only_reads(charlie: httpx2.Client, alice: httpx2.Client) -> None:
    save(alice)
    actions = charlie.get(PATH).json()["tool"]["function"]["parameters"]["properties"]["action"]["enum"]

    assert ["search", "list", "get"] == actions
    assert "Error: this session may only read memory" in call(charlie, action="delete", name="deploy_day")["text"]
    assert 1 == len(call(charlie, action="list")["memories"])


def test_without_a_token_there_is_no_tool(nobody: httpx2.Client) -> None:
    assert (401, 401) == (nobody.get(PATH).status_code, nobody.post(PATH, json={"arguments": {"action": "list"}}).status_code)


def test_bob_reaches_nothing_of_alices_through_the_tool(alice: httpx2.Client, bob: httpx2.Client) -> None:
    """Not by a scope, not by the id of her workstream, not by an argument that names her."""
    save(alice, "vault", "The vault opens with quokka.", scope="user")
    save(alice, "vault", "The vault opens with quokka.", scope="workstream", scope_id="ws")
    for arguments in (
        {"action": "search", "query": "quokka"}, {"action": "list"},
        {"action": "list", "scope": "user", "user_id": "alice", "scope_id": "ws"},
        {"action": "list", "scope": "workstream", "scope_id": "ws"},
    ):  # fmt: skip
        answer = bob.post(PATH, json={"session": {"workstream_id": "ws"}, "arguments": arguments}).json()
        assert answer["memories"] == []
        assert "No memories" in answer["text"]
    for action in ("get", "delete"):
        for scope in ("user", "workstream"):
            arguments = {"action": action, "name": "vault", "scope": scope}
            assert bob.post(PATH, json={"session": {"workstream_id": "ws"}, "arguments": arguments}).json()["is_error"]
    assert 2 == alice.get("/v1/api/memories").json()["total"]


def test_the_type_is_spelt_as_the_token_reads_it(server: Site) -> None:
    client = server.client(server.token("alice", project_word="general"))

    assert "(type=general, scope=global" in call(client, action="save", name="n", content="c")["text"]
    assert "general" in client.get(PATH).json()["tool"]["function"]["parameters"]["properties"]["type"]["enum"]


@pytest.mark.parametrize("workstream_id", ["w" * 257, "w\nv"], ids=["long", "line break"])
def test_a_workstream_that_cannot_be_is_the_hosts_mistake(alice: httpx2.Client, workstream_id: str) -> None:
    """It is refused by its own name, in every route that takes one; the model, which cannot mend it, is told nothing."""
    named = {"session": {"workstream_id": workstream_id}}
    answers = [
        alice.post(PATH, json={**named, "arguments": {"action": "list"}}),
        alice.post("/v1/api/turn", json={**named, "messages": []}),
        alice.get(PATH, params={"workstream_id": workstream_id}),
    ]

    assert [(400, "workstream_id")] * 3 == [(answer.status_code, answer.json().get("field")) for answer in answers]


def test_unknown_fields_beside_the_arguments_are_warned_of(alice: httpx2.Client) -> None:
    answer = alice.post(PATH, json={"arguments": {"action": "list"}, "colour": "red"}).json()

    assert ["colour: no such field here; ignored"] == answer["warnings"]
