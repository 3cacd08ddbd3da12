"""The memory tool in the embedded library."""

import json
from collections.abc import Iterator

import pytest

from pegword import Busy, Conflict, Invalid, OpenMemories, ToolResult, Unavailable
from pegword.services.memories import Memories
from pegword.testing import memories_in_memory


@pytest.fixture
def memories() -> Iterator[OpenMemories]:
    with memories_in_memory() as opened:
        yield opened


def test_a_session_offers_its_tool_and_does_what_is_asked_of_it(memories: OpenMemories) -> None:
    with memories.session(workstream_id="ws1") as session:
        schema = session.tool_schema(dialect="anthropic")
        assert schema is not None
        assert ["global", "workstream", "user"] == schema["input_schema"]["properties"]["scope"]["enum"]
        result = session.call_tool({"action": "save", "name": "plan", "content": "Ship on Tuesday.", "scope": "workstream"})

        assert ("created", False, "ws1") == (result.outcome, result.is_error, result.memories[0].scope.id)
        assert isinstance(result, ToolResult)
        assert "Ship on Tuesday." in session.turn("When do we ship?").block


def test_arguments_may_be_the_text_that_a_model_wrote(memories: OpenMemories) -> None:
    session = memories.session()

    assert "No memories stored." == session.call_tool(json.dumps({"action": "list"})).text
    for nonsense in (None, 5, "nonsense", [], {"action": object()}):
        assert session.call_tool(nonsense).text.startswith("Error: ")


def test_an_unknown_dialect_and_a_closed_session_are_the_hosts_mistakes(memories: OpenMemories) -> None:
    session = memories.session()
    with pytest.raises(Invalid, match="one of openai, anthropic, mcp"):
        session.tool_schema(dialect="gemini")
    with pytest.raises(Invalid, match="dialect must be a text"):
        session.tool_schema(dialect=5)  # type: ignore[arg-type]
    session.close()
    with pytest.raises(Conflict):
        session.tool_schema()
    with pytest.raises(Conflict):
        session.call_tool({"action": "list"})


def test_a_coordinator_writes_where_nobody_else_reads(memories: OpenMemories) -> None:
    coordinator = memories.session(kind="coordinator")
    assert "scope=coordinator" in coordinator.call_tool({"action": "save", "name": "plan", "content": "Ship on Tuesday."}).text

    assert 0 == memories.list().total
    assert "Ship on Tuesday." in memories.session(kind="coordinator").call_tool({"action": "get", "name": "plan"}).text
    assert coordinator.child().call_tool({"action": "get", "name": "plan", "scope": "coordinator"}).is_error


def test_what_may_work_later_is_told_to_the_model(memories: OpenMemories, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that somebody else holds: the agent goes on, and the model knows that nothing was saved."""

    def busy(*_: object) -> None:
        raise Busy("the database is busy; nothing was changed; try again")

    monkeypatch.setattr(Memories, "save", busy)
    result = memories.session().call_tool({"action": "save", "name": "n", "content": "c"})

    assert (True, "Error: the database is busy; nothing was changed; try again") == (result.is_error, result.text)


def test_a_library_that_is_closed_says_so(memories: OpenMemories) -> None:
    session = memories.session()
    memories.close()

    with pytest.raises(Unavailable, match="closed"):
        session.call_tool({"action": "list"})
