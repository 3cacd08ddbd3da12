"""Sessions of the embedded library."""

from collections.abc import Iterator
from typing import Any

import pytest

from pegword import Conflict, Invalid, NotFound, OpenMemories
from pegword.testing import FrozenClock, memories_in_memory


@pytest.fixture
def memories() -> Iterator[OpenMemories]:
    with memories_in_memory() as opened:
        yield opened


def test_a_session_sees_its_own_workstream_and_no_other(memories: OpenMemories) -> None:
    for at in ("ws1", "ws2"):
        memories.save("plan", f"The quokka goes to {at}.", scope="workstream", scope_id=at)
    with memories.session(workstream_id="ws1") as session:
        shown = session.turn("Where does the quokka go?").shown

        assert ["The quokka goes to ws1."] == [s.memory.content for s in shown]
        assert ("interactive", "ws1", False) == (session.record.kind, session.record.workstream_id, session.record.closed)
    assert session.record.closed


def test_a_coordinator_sees_nothing_of_its_user(memories: OpenMemories) -> None:
    memories.save("plan", "The quokka is global.")
    memories.save("mine", "The quokka is mine.", scope="user")

    turn = memories.session(kind="coordinator").turn("quokka")
    assert ("", "", 0) == (turn.block, turn.hint, turn.in_scope)


def test_a_child_has_what_its_parent_has_and_ends_with_it(memories: OpenMemories) -> None:
    parent = memories.session(workstream_id="ws1", persona="scribe")
    child = parent.child()

    assert ("child", "ws1", "scribe", parent.id) == (
        child.record.kind, child.record.workstream_id, child.record.persona, child.record.parent_id,
    )  # fmt: skip
    parent.close()
    with pytest.raises(Conflict, match="the session is closed"):
        child.turn("anything")
    with pytest.raises(Conflict, match="the session is closed"):
        parent.child()
    parent.resume()
    child.resume()
    assert "" == child.turn("anything").block


def test_a_session_is_found_again_by_its_id(memories: OpenMemories) -> None:
    made = memories.session(resumed=True)

    assert made.record == memories.session_by_id(made.id).record
    with pytest.raises(NotFound, match="Session not found"):
        memories.session_by_id("none")
    with pytest.raises(Invalid, match="persona must be a text"):
        made.child(persona=5)  # type: ignore[arg-type]


def test_a_turn_of_a_session_can_be_explained(memories: OpenMemories) -> None:
    memories.save("plan", "The quokka is global.")
    session = memories.session()
    receipt = session.turn("quokka").receipt

    assert ["plan"] == [c.name for c in session.explain(receipt).considered]


def test_a_workstream_is_deleted_when_that_is_said(memories: OpenMemories) -> None:
    memories.save("plan", "Ship.", scope="workstream", scope_id="ws1")
    with pytest.raises(Conflict, match="holds 1 memory"):
        memories.delete_workstream("ws1")

    assert 1 == memories.delete_workstream("ws1", with_memories=True).memories
    assert 0 == memories.list(scope="workstream").total


def test_a_session_tells_of_a_denial_and_the_next_turn_nudges() -> None:
    """And a session that is taken up again resumes; a text alone is what the user says next."""
    clock = FrozenClock()
    with memories_in_memory("alice", clock=clock) as memories:
        memories.save("tea", "She drinks green tea.")
        with memories.session() as session:
            told = [session.turn("hello").nudge]
            clock.advance(600)
            assert session.report("denial", channel="any")
            told.append(session.turn("what now?").nudge)
            assert [False, False, True] == [session.report("tool_call", tool="run", arguments={"a": 1}) for _ in range(3)]
        clock.advance(600)
        session.resume()
        told.append(session.turn("and on").nudge)

    assert ["start", "denial", "resume"] == [nudge.kind if nudge else "" for nudge in told]


@pytest.mark.parametrize("wrong", [{"kind": 3}, {"kind": "denial", "valid_s": "1"}, {"kind": "tool_call", "tool": "x", "arguments": [1]}])
def test_what_can_be_no_event_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with memories_in_memory("alice") as memories, memories.session() as session, pytest.raises(Invalid) as refusal:
        session.report(**wrong)

    assert list(wrong)[-1] == refusal.value.field


def test_mode_index_in_the_library(memories: OpenMemories) -> None:
    """`Turn.index` for the system message, `Turn.text` for the tail; without a session or a workstream it is refused."""
    memories.save("deploy_day", "We deploy on Tuesdays.")
    with memories.session() as session:
        first = session.turn("on which day do we deploy?", mode="index")
        memories.save("deploy_hour", "We deploy before lunch.")
        second = session.turn("on which day do we deploy?", mode="index")
        silent = session.turn("on which day do we deploy?", tool=False)
    of_workstream = memories.turn("on which day do we deploy?", mode="index", workstream_id="w")
    with pytest.raises(Invalid, match="mode index needs a session"):
        memories.turn("on which day do we deploy?", mode="index")

    assert first.index == second.index
    assert 2 == (of_workstream.index or "").count("<memory ")
    assert {"deploy_day": True, "deploy_hour": False} == {s.memory.name: s.pointer for s in second.shown}
    assert ("", None) == (silent.hint, silent.index)
