"""Closed sessions go in time, with all that hangs on them; open ones never do."""

from typing import Any

import pytest

from pegword.core.caller import Caller, scope_of
from pegword.core.errors import Conflict, NotFound
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.store import session_rows
from tests.conftest import Clock

DAY_S = 24 * 3_600
SAID = [{"role": "user", "content": "No, that's wrong: where does the quokka sleep?"}]


def used(services: Services, caller: Caller, **said: Any) -> str:
    """The id of a session in which something of each kind was kept."""
    session = services.sessions.create(caller, **said)
    services.turns.turn(caller, session, SAID, mode="index")
    services.nudges.report(caller, session, "tool_call", tool="run", arguments="x")
    services.nudges.report(caller, session, "tool_error", valid_s=86_400)
    services.housekeeper.settle()
    return session.session_id


def hanging(services: Services, session_id: str) -> dict[str, int]:
    """The rows of each table that name a session."""
    counts = {
        "sessions": "sessions WHERE session_id = ?", "indexes": "session_indexes WHERE index_key = 'session:' || ?",
        "marks": "nudge_marks WHERE session_key = ?", "events": "nudge_events WHERE session_key = ?",
        "calls": "nudge_calls WHERE session_key = ?",
    }  # fmt: skip
    with services.engine.read() as tx:
        return {name: tx.rows(f"SELECT count(*) FROM {rest}", (session_id,))[0][0] for name, rest in counts.items()}


NOTHING = dict.fromkeys(("sessions", "indexes", "marks", "events", "calls"), 0)


def check_ended_ones_go(services: Services, alice: Caller, clock: Clock) -> None:
    """Thirty days after it was closed, not a moment earlier, and with everything that hangs on it."""
    services.memories.save(alice, Draft("nest", "The quokka sleeps in the harbour.", scope_of(alice, "workstream", "ws1")))
    ended, open_one = used(services, alice, workstream_id="ws1"), used(services, alice, workstream_id="ws1")
    assert 0 not in hanging(services, ended).values()
    services.sessions.close(alice, ended)
    clock.pass_s(30 * DAY_S - 60)
    services.housekeeper.sweep()
    assert 1 == hanging(services, ended)["sessions"]
    clock.pass_s(61)
    services.housekeeper.sweep()

    assert NOTHING == hanging(services, ended)
    with services.engine.read() as tx:
        assert [] == tx.rows(
            "SELECT memory_id FROM session_index_memories AS n"
            " WHERE NOT EXISTS (SELECT 1 FROM session_indexes AS i WHERE i.index_id = n.index_id)"
        )
    with pytest.raises(NotFound, match="Session not found"):
        services.sessions.get(alice, ended)
    assert [open_one] == [s.session_id for s in services.sessions.list(alice, include_closed=True)]
    assert 1 == services.turns.turn(alice, services.sessions.get(alice, open_one), SAID).in_scope


def test_a_closed_session_goes_after_thirty_days(services: Services, alice: Caller, clock: Clock) -> None:
    check_ended_ones_go(services, alice, clock)


def test_an_open_one_stays_however_old(services: Services, alice: Caller, clock: Clock) -> None:
    """Nor does one go that was taken up again, and closed again since."""
    old, resumed, again = (services.sessions.create(alice).session_id for _ in range(3))
    for session_id in (resumed, again):
        services.sessions.close(alice, session_id)
    clock.pass_s(29 * DAY_S)
    for session_id in (resumed, again):
        services.sessions.resume(alice, session_id)
    services.sessions.close(alice, again)
    clock.pass_s(29 * DAY_S)
    services.housekeeper.sweep()
    assert {old, resumed, again} == {s.session_id for s in services.sessions.list(alice, include_closed=True)}
    clock.pass_s(400 * DAY_S)
    services.housekeeper.sweep()

    assert {old, resumed} == {s.session_id for s in services.sessions.list(alice, include_closed=True)}


def test_a_parent_goes_with_its_children_or_after_them(services: Services, alice: Caller, clock: Clock) -> None:
    """A child that is left for a moment says that its parent is closed; one that is open keeps its parent."""
    parent = services.sessions.create(alice)
    early, late = (services.sessions.create(alice, parent_id=parent.session_id) for _ in range(2))
    services.sessions.close(alice, early.session_id)
    clock.pass_s(31 * DAY_S)
    services.housekeeper.sweep()
    assert {parent.session_id, late.session_id} == {s.session_id for s in services.sessions.list(alice, include_closed=True)}

    services.sessions.close(alice, parent.session_id)
    services.engine.write(lambda tx: tx.run("DELETE FROM sessions WHERE session_id = ?", (parent.session_id,)))
    child = services.sessions.get(alice, late.session_id)
    assert (True, parent.session_id) == (child.closed, child.parent_id)
    with pytest.raises(Conflict, match="parent is closed"):
        services.sessions.resume(alice, late.session_id)
    clock.pass_s(31 * DAY_S)
    services.housekeeper.sweep()
    assert [] == services.sessions.list(alice, include_closed=True)


def test_a_closed_parent_of_an_open_child_stays(services: Services, alice: Caller, clock: Clock) -> None:
    """None is made so; if one were, the child would still find its parent."""
    parent = services.sessions.create(alice)
    child = services.sessions.create(alice, parent_id=parent.session_id)
    services.engine.write(lambda tx: tx.run("UPDATE sessions SET closed_at = 1 WHERE session_id = ?", (parent.session_id,)))
    services.housekeeper.sweep()
    assert {parent.session_id, child.session_id} == {s.session_id for s in services.sessions.list(alice, include_closed=True)}


def test_many_go_some_at_a_time(services: Services, alice: Caller, bob: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all users, in several transactions."""
    monkeypatch.setattr(session_rows, "FORGOTTEN_AT_ONCE", 3)
    for caller in (alice, bob) * 4:
        services.sessions.close(caller, services.sessions.create(caller).session_id)
    kept = services.sessions.create(bob)
    clock.pass_s(31 * DAY_S)
    services.housekeeper.sweep()

    assert [] == services.sessions.list(alice, include_closed=True)
    assert [kept] == services.sessions.list(bob, include_closed=True)


@pytest.mark.parametrize("table", ["session_index_rows", "nudge_rows"])
def test_what_is_left_hanging_is_noticed(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """Planted: the row of the session goes, and not what hangs on it."""
    monkeypatch.setattr(f"pegword.services.housekeeping.{table}.forget_sessions", lambda *_: None)
    monkeypatch.setattr(f"pegword.services.housekeeping.{table}.drop_before", lambda *_: False)
    with pytest.raises(AssertionError):
        check_ended_ones_go(services, alice, clock)
