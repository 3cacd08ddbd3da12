"""Every principal and kind of session, on every read and write path, for every scope, their own and others'."""

from typing import Any

import httpx2
import pytest

from tests.wire.conftest import Site
from tests.wire.isolation import matrix
from tests.wire.isolation.world import World, built

# The arguments of the tool that the probes use, or that say nothing of whose memories are meant.
ARGUMENTS = {
    "action", "name", "content", "query", "scope", "limit", "type", "description", "tags", "priority", "confidence", "expires_at",
}  # fmt: skip


@pytest.fixture
def world(server: Site) -> World:
    return built(server)


def test_everybody_sees_what_is_theirs_and_nothing_else(world: World) -> None:
    """On every path, in every spelling: no more, and no less, so that a probe that asks wrongly fails too."""
    assert [] == list(matrix.reading(world))


def test_everybody_changes_what_is_theirs_and_nothing_else(world: World) -> None:
    """Nobody but a coordinator session's tool writes a coordinator scope; readers write nothing; others' things stay as they are."""
    assert [] == list(matrix.changing(world))


def test_an_empty_set_of_scopes_is_nothing(world: World) -> None:
    assert [] == list(matrix.empty(world))


def test_nobody_ends_or_resumes_what_is_not_theirs(world: World) -> None:
    assert [] == list(matrix.ending(world))


def test_what_is_foreign_answers_exactly_as_what_is_absent(world: World) -> None:
    """By its id: status and body, byte for byte, for reading and for writing."""
    none = "00000000-0000-4000-8000-000000000000"
    for asker in world.askers:
        if asker.session:
            continue
        for name, memory_id in world.ids.items():
            if name not in asker.reads:
                hidden, absent = (_by_id(asker.client, one) for one in (memory_id, none))
                assert (asker.name, name, hidden) == (asker.name, name, absent)


def _by_id(client: httpx2.Client, memory_id: str) -> list[tuple[int, bytes]]:
    asked: list[tuple[str, str, dict[str, Any] | None]] = [
        ("GET", "", None), ("GET", "/versions", None), ("PATCH", "", {"content": "mine"}), ("POST", "/revert", {"version": 1}),
        ("DELETE", "", None),
    ]  # fmt: skip
    answers = [client.request(method, f"/v1/api/memory/{memory_id}{rest}", json=body) for method, rest, body in asked]
    return [(answer.status_code, answer.content) for answer in answers]


def test_no_path_is_left_out(world: World) -> None:
    """The paths come from the server's own description; one that is not in the tables fails here, and so does one that is gone."""
    described = world.askers[0].client.get("/openapi.json").json()["paths"]
    paths = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    tried = {*matrix.READS, *matrix.CHANGES, *matrix.SESSIONS, *matrix.ELSEWHERE}

    assert paths == {path for path in tried if not path.startswith("tool ")}


def test_no_action_and_no_argument_of_the_tool_is_left_out(world: World) -> None:
    """Taken from the schema that each session is offered, in every dialect."""
    actions, arguments = set(), set()
    for asker in world.askers:
        for dialect, at in (("openai", "parameters"), ("anthropic", "input_schema"), ("mcp", "inputSchema")):
            params = {"dialect": dialect, **({"session": asker.session} if asker.session else {})}
            tool = asker.client.get("/v1/api/tool", params=params).json().get("tool")
            if tool is not None:
                form = tool.get("function", tool)[at]["properties"]
                actions |= set(form["action"]["enum"])
                arguments |= set(form)
                words = set(form["scope"]["enum"])
                assert not words - {"global", "user", "workstream", "project", "coordinator"}
                assert ("coordinator" in words) == (words == {"coordinator"}) == _is_coordinator(asker.reads)

    assert {f"tool {action}" for action in actions} == {path for path in {*matrix.READS, *matrix.CHANGES} if path.startswith("tool ")}
    assert ARGUMENTS == arguments


def _is_coordinator(reads: frozenset[str]) -> bool:
    return any(name.endswith("coordinator") for name in reads)
