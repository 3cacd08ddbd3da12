"""Nudges of sessions: from turns and from what hosts report, apart by the cool-down, over restarts and processes."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Session
from pegword.core.errors import Forbidden, Invalid
from pegword.core.memory import Draft
from pegword.core.nudge import KINDS, MEMORY_DIRECTED, TEXTS, choose
from pegword.core.nudge_queue import OF_A_KIND_MAX
from pegword.services.bundle import Services
from pegword.services.nudges import EVENTS_REMEMBERED_MAX, SESSIONS_REMEMBERED_MAX, VALID_S, Remembered
from pegword.settings import load
from tests.conftest import Clock, Statements

Message = dict[str, Any]
ERROR: list[Message] = [
    {"role": "assistant", "tool_calls": [{"function": {"name": "run", "arguments": "{}"}}]},
    {"role": "tool", "content": "Error: no such file"},
]
OPENING = [{"role": "user", "content": "Build the thing"}]
LATER = [*OPENING, {"role": "assistant", "content": "Built."}]
PLAIN = [*LATER, {"role": "user", "content": "And the next?"}]
CORRECTION = [*LATER, {"role": "user", "content": "No, with tabs"}]
COMPLETION = [*LATER, {"role": "user", "content": "Thanks!"}]
AT_TOOL = [
    *LATER,
    {"role": "assistant", "tool_calls": [{"function": {"name": "run", "arguments": "1"}}]},
    {"role": "tool", "content": "42"},
]


def deep(levels: int) -> Message:
    """An object in an object, and so on."""
    inner: Message = {}
    for _ in range(levels):
        inner = {"a": inner}
    return inner


@pytest.fixture
def stored(services: Services, alice: Caller) -> None:
    """A memory that everybody sees, whose text must be in no nudge."""
    services.memories.save(alice, Draft("sentinel", "SENTINEL text", GLOBAL))


@pytest.fixture
def session(services: Services, alice: Caller, stored: None) -> Session:
    """A session that has had its first turn, as nothing but start may come then; long enough ago."""
    return services.sessions.create(alice)


def kind(services: Services, caller: Caller, session: Session, messages: list[Message]) -> str:
    nudge = services.turns.turn(caller, session, messages).nudge
    assert nudge is None or nudge.text == TEXTS[nudge.kind]
    return nudge.kind if nudge else ""


@pytest.fixture
def running(services: Services, alice: Caller, session: Session, clock: Clock) -> Session:
    """A session in which nothing holds nudges back any more."""
    assert "start" == kind(services, alice, session, OPENING)
    clock.pass_s(3_600)
    return session


def test_a_session_starts_once(services: Services, alice: Caller, session: Session, clock: Clock) -> None:
    """Whatever part of the conversation the host sends later."""
    told = []
    for _ in range(3):
        told.append(kind(services, alice, session, OPENING))
        clock.pass_s(301)

    assert ["start", "", ""] == told


def test_a_host_that_sends_the_last_message_alone_is_understood(services: Services, alice: Caller, running: Session) -> None:
    """The session knows that it is not its first."""
    assert "correction" == kind(services, alice, running, [CORRECTION[-1]])


def test_without_memories_there_is_no_start(services: Services, alice: Caller, clock: Clock) -> None:
    assert "" == kind(services, alice, services.sessions.create(alice), OPENING)


def test_at_its_first_message_a_session_is_not_corrected(services: Services, alice: Caller, session: Session) -> None:
    assert "start" == kind(services, alice, session, [{"role": "user", "content": "No, with tabs"}])


def test_a_turn_before_anything_was_said_opens_nothing(services: Services, alice: Caller, session: Session) -> None:
    assert ("", "start") == (kind(services, alice, session, []), kind(services, alice, session, OPENING))


def test_a_session_that_was_made_resumed_resumes(services: Services, alice: Caller, stored: None) -> None:
    for messages in (OPENING, PLAIN):
        assert "resume" == kind(services, alice, services.sessions.create(alice, resumed=True), messages)


def test_a_session_that_is_taken_up_again_resumes_once(services: Services, alice: Caller, running: Session, clock: Clock) -> None:
    services.sessions.close(alice, running.session_id)
    clock.pass_s(3_600)
    again = services.sessions.resume(alice, running.session_id)
    told = []
    for _ in range(2):
        told.append(kind(services, alice, again, PLAIN))
        clock.pass_s(3_600)

    assert again == services.sessions.get(alice, running.session_id)
    assert ["resume", ""] == told


@pytest.mark.parametrize(
    ("messages", "expected"), [(CORRECTION, "correction"), (COMPLETION, "completion"), ([*OPENING, *ERROR], "tool_error"),
                               ([*OPENING, *ERROR * 3], "repeat"), (PLAIN, ""), (AT_TOOL, "")]
)  # fmt: skip
def test_what_the_messages_tell_is_nudged(
    services: Services, alice: Caller, running: Session, messages: list[Message], expected: str
) -> None:
    assert expected == kind(services, alice, running, messages)


def test_no_nudge_holds_what_is_stored_or_said(services: Services, alice: Caller, running: Session, clock: Clock) -> None:
    for event in KINDS:
        services.nudges.report(alice, running, event, channel="any")
        turn = services.turns.turn(alice, running, [*LATER, {"role": "user", "content": "no, SENTINEL"}])
        assert turn.nudge is None or "SENTINEL" not in turn.nudge.text
        assert turn.nudge is None or turn.nudge.text not in turn.text
        clock.pass_s(3_600)


def test_the_cool_down_lies_between_any_two(services: Services, alice: Caller, running: Session, clock: Clock) -> None:
    """Of kinds that speak of the memory; not before this process wrote it down, and not after."""
    told = [kind(services, alice, running, CORRECTION), kind(services, alice, running, COMPLETION)]
    services.housekeeper.settle()
    told.append(kind(services, alice, running, COMPLETION))
    clock.pass_s(299)
    told.append(kind(services, alice, running, COMPLETION))
    clock.pass_s(2)
    told.append(kind(services, alice, running, COMPLETION))

    assert ["correction", "", "", "", "completion"] == told


def test_each_session_has_a_clock_of_its_own(services: Services, alice: Caller, bob: Caller, running: Session) -> None:
    others = [services.sessions.create(alice), services.sessions.create(bob)]

    assert "correction" == kind(services, alice, running, CORRECTION)
    assert ["correction", "correction"] == [kind(services, who, s, CORRECTION) for who, s in zip((alice, bob), others, strict=True)]


def test_without_a_session_the_clock_is_the_users_and_the_workstreams(services: Services, alice: Caller, bob: Caller, stored: None) -> None:
    conversations = [(alice, Session()), (alice, Session("w1")), (alice, Session("w2")), (bob, Session()), (bob, Session("w1"))]
    for who, where in conversations:
        assert "correction" == kind(services, who, where, CORRECTION)
    for who, where in conversations:
        assert "" == kind(services, who, where, CORRECTION)


def test_the_clock_survives_a_restart(database: Path | str, clock: Clock) -> None:
    """Two opened stores one after the other: as two processes."""
    told, found = [], None
    for seconds in (0, 250, 45, 10):
        clock.pass_s(seconds)
        opened = open_services(database, load(environment={}), clock=clock)
        caller = opened.access.agent(opened.access.ensure_user("alice"), "key:alice")
        found = found or opened.sessions.create(caller)
        told.append(kind(opened, caller, found, CORRECTION))
        opened.close()

    assert ["correction", "", "", "correction"] == told


@pytest.fixture
def two(database: Path | str, clock: Clock) -> Iterator[tuple[Services, Services]]:
    """Two processes on one database."""
    opened = [open_services(database, load(environment={}), clock=clock) for _ in range(2)]
    yield opened[0], opened[1]
    for services in opened:
        services.close()


def test_another_process_knows_once_it_is_written(two: tuple[Services, Services]) -> None:
    """And in the moment between, each process nudges once at most: that is all that is promised."""
    one, other = two
    caller = one.access.agent(one.access.ensure_user("alice"), "key:alice")
    session = one.sessions.create(caller)

    told = [kind(services, caller, session, CORRECTION) for services in (one, other, one, other, one)]
    assert ["correction", "correction", "", "", ""] == told
    written = one.sessions.create(caller)
    assert "correction" == kind(one, caller, written, CORRECTION)
    one.housekeeper.settle()
    assert "" == kind(other, caller, written, CORRECTION)


@pytest.mark.usefixtures("unhurried")
def test_of_turns_at_the_same_moment_one_is_nudged(services: Services, alice: Caller, running: Session) -> None:
    """Many threads, one session, one process."""
    told: list[str] = []
    gate = threading.Barrier(8)

    def ask() -> None:
        gate.wait()
        told.append(kind(services, alice, running, CORRECTION))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["correction"] == [t for t in told if t]


def test_nothing_is_written_before_the_answer(services: Services, alice: Caller, running: Session, statements: Statements) -> None:
    """One statement more than a turn that cannot nudge; the clock is written afterwards."""
    statements.seen.clear()
    assert "correction" == kind(services, alice, running, CORRECTION)

    assert [] == [sql for sql in statements.seen if not sql.strip().startswith(("SELECT", "WITH"))]
    assert 1 == sum("nudge" in sql for sql in statements.seen)


def without(database: Path | str, clock: Clock, **environment: str) -> Services:
    return open_services(database, load(environment=environment), clock=clock)


def test_nudges_that_are_off_are_silent_and_cost_nothing(database: Path | str, clock: Clock, statements: Statements) -> None:
    opened = open_services(database, load(environment={"PEGWORD_MEMORY__NUDGES": "false"}), clock=clock, seen=statements)
    caller = opened.access.agent(opened.access.ensure_user("alice"), "key:alice")
    opened.memories.save(caller, Draft("a", "b", GLOBAL))
    session = opened.sessions.create(caller)
    statements.seen.clear()

    assert ["", "", ""] == [kind(opened, caller, session, m) for m in (OPENING, CORRECTION, [*OPENING, *ERROR * 3])]
    assert not opened.nudges.report(caller, session, "repeat")
    opened.housekeeper.settle()
    assert [] == [sql for sql in statements.seen if "nudge" in sql]
    opened.close()


def test_a_cool_down_of_nothing_is_none(database: Path | str, clock: Clock) -> None:
    opened = without(database, clock, PEGWORD_MEMORY__NUDGE_COOLDOWN="0")
    caller = opened.access.agent(opened.access.ensure_user("alice"), "key:alice")
    session = opened.sessions.create(caller)

    assert ["correction", "completion"] == [kind(opened, caller, session, m) for m in (CORRECTION, COMPLETION)]
    opened.close()


@pytest.mark.parametrize("event", sorted(MEMORY_DIRECTED))
def test_with_the_memory_lever_off_nothing_speaks_of_the_memory(services: Services, alice: Caller, running: Session, event: str) -> None:
    off = replace(running, memory=False)

    assert not services.nudges.report(alice, off, event, channel="any")
    assert "" == kind(services, alice, off, CORRECTION)
    assert "repeat" == kind(services, alice, off, [*OPENING, *ERROR * 3])


def test_with_the_lever_off_what_already_waits_is_dropped(services: Services, alice: Caller, running: Session) -> None:
    services.nudges.report(alice, running, "completion")
    assert "" == kind(services, alice, replace(running, memory=False), PLAIN)

    assert "" == kind(services, alice, running, PLAIN)


def test_who_may_only_read_is_not_told_to_save(services: Services, alice: Caller, running: Session) -> None:
    reader = replace(alice, right="read")

    assert ("", "tool_error") == (kind(services, reader, running, CORRECTION), kind(services, reader, running, [*OPENING, *ERROR]))
    with pytest.raises(Forbidden):
        services.nudges.report(reader, running, "denial")


# What hosts report


@pytest.mark.parametrize(("event", "messages"), [("correction", PLAIN), ("completion", PLAIN), ("resume", PLAIN), ("denial", AT_TOOL),
                                                 ("tool_error", AT_TOOL), ("repeat", AT_TOOL)])  # fmt: skip
def test_what_was_reported_is_nudged_at_the_next_seam_of_its_kind(
    services: Services, alice: Caller, running: Session, clock: Clock, event: str, messages: list[Message]
) -> None:
    """Once; and at the other seam it goes on waiting."""
    other = AT_TOOL if messages is PLAIN else PLAIN
    assert services.nudges.report(alice, running, event)
    told = [kind(services, alice, running, other), kind(services, alice, running, messages)]
    clock.pass_s(301)
    told.append(kind(services, alice, running, messages))

    assert ["", event, ""] == told


def test_a_start_that_was_reported_comes_with_the_first_message_only(
    services: Services, alice: Caller, session: Session, running: Session
) -> None:
    services.nudges.report(alice, running, "start")

    assert "" == kind(services, alice, running, PLAIN)


@pytest.mark.parametrize("messages", [PLAIN, AT_TOOL])
def test_what_may_be_told_anywhere_is_told_at_the_next_seam(
    services: Services, alice: Caller, running: Session, messages: list[Message]
) -> None:
    services.nudges.report(alice, running, "denial", channel="any")

    assert "denial" == kind(services, alice, running, messages)


def test_what_was_taken_is_not_taken_again(services: Services, alice: Caller, running: Session, clock: Clock) -> None:
    """Not before it is written that it was, nor after; a nudge answers for all reports of its kind."""
    for _ in range(2):
        services.nudges.report(alice, running, "repeat", valid_s=86_400)
    told = [kind(services, alice, running, AT_TOOL)]
    clock.pass_s(301)
    told.append(kind(services, alice, running, AT_TOOL))
    services.housekeeper.settle()
    told.append(kind(services, alice, running, AT_TOOL))

    assert ["repeat", "", ""] == told


def test_what_lost_to_a_weightier_one_waits_at_its_place(services: Services, alice: Caller, running: Session) -> None:
    """There is room for one nudge a turn."""
    services.nudges.report(alice, running, "repeat")
    services.nudges.report(alice, running, "denial")

    assert ["denial", "repeat", ""] == [kind(services, alice, running, AT_TOOL) for _ in range(3)]


def test_what_the_cool_down_holds_back_is_dropped(services: Services, alice: Caller, running: Session, clock: Clock) -> None:
    """A nudge that comes late is none."""
    assert "correction" == kind(services, alice, running, CORRECTION)
    services.nudges.report(alice, running, "completion")
    told = [kind(services, alice, running, PLAIN)]
    clock.pass_s(301)
    told.append(kind(services, alice, running, PLAIN))

    assert ["", ""] == told


def test_what_no_turn_took_in_time_is_dropped(services: Services, alice: Caller, running: Session, clock: Clock) -> None:
    services.nudges.report(alice, running, "denial")
    services.nudges.report(alice, running, "repeat", valid_s=VALID_S + 10)
    clock.pass_s(VALID_S + 5)
    services.housekeeper.sweep()

    assert ["repeat", ""] == [kind(services, alice, running, AT_TOOL) for _ in range(2)]


def test_only_so_many_of_a_kind_wait(services: Services, alice: Caller, running: Session) -> None:
    """The oldest go; other kinds stay."""
    services.nudges.report(alice, running, "repeat")
    for _ in range(OF_A_KIND_MAX + 5):
        services.nudges.report(alice, running, "denial")
    with services.engine.read() as tx:
        noted = services.nudges.noted(tx, alice, running)

    assert noted is not None
    assert ["repeat", *["denial"] * OF_A_KIND_MAX] == [event.kind for event in noted.queue]
    with services.engine.read() as tx:
        assert OF_A_KIND_MAX + 1 == tx.rows("SELECT count(*) FROM nudge_events")[0][0]


def test_when_the_user_breaks_off_what_waits_for_that_goes(services: Services, alice: Caller, running: Session) -> None:
    """What was for any seam is told quietly, when the user speaks next."""
    services.nudges.report(alice, running, "denial")
    services.nudges.report(alice, running, "completion")
    services.nudges.report(alice, running, "tool_error", channel="any")
    assert not services.nudges.report(alice, running, "cancel")

    assert ["", "tool_error", ""] == [kind(services, alice, running, m) for m in (AT_TOOL, PLAIN, PLAIN)]


def test_the_third_identical_call_that_was_reported_makes_a_repeat(services: Services, alice: Caller, running: Session) -> None:
    """As a text or as an object, in any order of its keys; another tool or other arguments begin anew; the sixth makes another."""

    def call(tool: str, arguments: Any) -> bool:
        return services.nudges.report(alice, running, "tool_call", tool=tool, arguments=arguments)

    assert [False, False, True] == [call("run", '{"a":1}') for _ in range(3)]
    assert "repeat" == kind(services, alice, running, AT_TOOL)
    assert [False, False, True] == [call("run", '{"a":1}') for _ in range(3)]
    assert [False, False] == [call("run", {"a": 1, "b": 2}), call("run", {"b": 2, "a": 1})]
    assert [False, False, False] == [call("look", {"a": 1, "b": 2}), *(call("run", {"a": 1, "b": 2}) for _ in range(2))]
    assert call("run", {"a": 1, "b": 2})


def test_calls_are_counted_in_the_database(two: tuple[Services, Services]) -> None:
    """Whichever process is told of them."""
    one, other = two
    caller = one.access.agent(one.access.ensure_user("alice"), "key:alice")
    session = one.sessions.create(caller)

    assert [False, False, True] == [s.nudges.report(caller, session, "tool_call", tool="t", arguments="x") for s in (one, other, one)]
    assert "repeat" == kind(other, caller, session, AT_TOOL)


def test_nothing_of_a_call_is_kept(services: Services, alice: Caller, running: Session) -> None:
    services.nudges.report(alice, running, "tool_call", tool="SENTINEL", arguments="SENTINEL")
    with services.engine.read() as tx:
        assert "SENTINEL" not in str(tx.rows("SELECT * FROM nudge_calls"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"kind": "weather"}, r"invalid kind: .*; must be one of"),
        ({"kind": ""}, r"invalid kind: .*; must be one of"),
        ({"kind": "denial", "channel": "loud"}, "invalid channel: loud; must be one of"),
        ({"kind": "denial", "valid_s": 0}, "valid_s must be 1 to 86400: it is 0"),
        ({"kind": "denial", "valid_s": 86_401}, "valid_s must be 1 to 86400"),
        ({"kind": "denial", "tool": "run"}, "tool must name the tool of a tool_call"),
        ({"kind": "tool_call"}, "tool must name the tool of a tool_call"),
        ({"kind": "tool_call", "tool": " "}, "tool must name"),
        ({"kind": "tool_call", "tool": "x" * 257}, "in at most 256 characters"),
        ({"kind": "tool_call", "tool": "x", "arguments": {1: 1, "a": 2}}, "arguments must be a text, or an object"),
        ({"kind": "tool_call", "tool": "x", "arguments": deep(10_000)}, "arguments must be a text, or an object"),
    ],
)
def test_what_cannot_be_an_event_is_refused(
    services: Services, alice: Caller, running: Session, arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(Invalid, match=complaint):
        services.nudges.report(alice, running, **arguments)


@pytest.mark.usefixtures("unhurried")
def test_reports_and_turns_at_once_lose_nothing(services: Services, alice: Caller, running: Session, clock: Clock) -> None:
    """Every kind that is reported while turns go on is told, or waits in the end."""
    told: list[str] = []

    def report(what: str) -> None:
        services.nudges.report(alice, running, what, channel="any")

    def ask() -> None:
        for _ in range(5):
            told.append(kind(services, alice, running, AT_TOOL))

    threads = [threading.Thread(target=report, args=("repeat",)), threading.Thread(target=report, args=("denial",))]
    threads += [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told += [kind(services, alice, running, AT_TOOL) for _ in range(2)]

    assert ["denial", "repeat"] == sorted(t for t in told if t)


def test_what_a_process_remembers_is_bounded() -> None:
    """Sessions and, of a session, events; what is forgotten is written long since."""
    remembered = Remembered()
    for number in range(SESSIONS_REMEMBERED_MAX + 10):
        remembered.add(f"s{number}", [("correction", 1)], [str(n) for n in range(EVENTS_REMEMBERED_MAX + 5)])

    assert SESSIONS_REMEMBERED_MAX == len(remembered._recent)
    assert {EVENTS_REMEMBERED_MAX} == {len(recent.taken) for recent in remembered._recent.values()}


def test_a_clock_that_could_not_be_written_still_counts(services: Services, alice: Caller, running: Session) -> None:
    """The housekeeper holds little, and what it drops first is what waits longest."""
    assert "correction" == kind(services, alice, running, CORRECTION)
    services.housekeeper._waiting.clear()

    assert "" == kind(services, alice, running, CORRECTION)


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 30, 100, 299, 301, 1_000]),
        st.sampled_from(["turn", "report", "restart", "settle"]),
        st.sampled_from(["correction", "completion", "denial", "tool_error", "repeat"]),
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_whatever_comes_no_two_nudges_are_closer_than_the_cool_down(
    fresh: Callable[[], Path | str], steps: list[tuple[int, str, str]]
) -> None:
    """Turns, reports, restarts and the housekeeper in any order."""
    clock, database = Clock(), fresh()
    opened = open_services(database, load(environment={}), clock=clock)
    caller = opened.access.agent(opened.access.ensure_user("alice"), "key:alice")
    opened.memories.save(caller, Draft("a", "b", GLOBAL))
    session = opened.sessions.create(caller)
    told: list[tuple[str, int]] = []
    said = {
        "correction": CORRECTION,
        "completion": COMPLETION,
        "denial": AT_TOOL,
        "tool_error": [*OPENING, *ERROR],
        "repeat": [*OPENING, *ERROR * 3],
    }
    for seconds, step, what in steps:
        clock.pass_s(seconds)
        if step == "turn" and (found := kind(opened, caller, session, said[what])):
            same = MEMORY_DIRECTED if found in MEMORY_DIRECTED else {found}
            assert all(clock.now - at >= 299_999_000 for k, at in told if k in same)
            told.append((found, clock.now))
        elif step == "report":
            opened.nudges.report(caller, session, what)
        elif step == "settle":
            opened.housekeeper.settle()
        elif step == "restart":
            opened.close()
            opened = open_services(database, load(environment={}), clock=clock)
    opened.close()


def check_reports_are_told_once(services: Services, alice: Caller, session: Session) -> None:
    """Turns at the same moment, and no cool-down that would hide it: one report, one nudge."""
    services.nudges.report(alice, session, "repeat")
    told: list[str] = []
    gate = threading.Barrier(6)

    def ask() -> None:
        gate.wait()
        told.append(kind(services, alice, session, AT_TOOL))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["repeat"] == [t for t in told if t]


@pytest.mark.usefixtures("unhurried")
def test_one_report_is_told_once_by_turns_at_the_same_moment(database: Path | str, clock: Clock) -> None:
    opened = without(database, clock, PEGWORD_MEMORY__NUDGE_COOLDOWN="0")
    caller = opened.access.agent(opened.access.ensure_user("alice"), "key:alice")
    for _ in range(5):
        check_reports_are_told_once(opened, caller, opened.sessions.create(caller))
    opened.close()


# Planted faults: each makes a guard above fail


@pytest.mark.parametrize("fault", ["no memory", "nothing written", "no clock"])
def test_a_cool_down_that_is_not_kept_is_noticed(
    fault: str, database: Path | str, fresh: Callable[[], Path | str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that forgets, one that writes nothing, and a rule without the clock."""
    if fault == "no memory":
        monkeypatch.setattr(Remembered, "add", lambda *_: None)
    elif fault == "nothing written":
        monkeypatch.setattr("pegword.services.nudges._written", lambda *_: None)
    else:
        monkeypatch.setattr("pegword.services.nudges.choose", lambda situation, _, now, settings: choose(situation, [], now, settings))
    opened = open_services(database, load(environment={}), clock=clock)
    caller = opened.access.agent(opened.access.ensure_user("alice"), "key:alice")
    session = opened.sessions.create(caller)
    told = [kind(opened, caller, session, CORRECTION), kind(opened, caller, session, CORRECTION)]
    opened.close()
    again = open_services(database, load(environment={}), clock=clock)
    told.append(kind(again, caller, session, CORRECTION))
    again.close()

    assert ["correction", "", ""] != told


def test_a_tool_that_is_named_where_there_is_none_is_noticed(
    services: Services, alice: Caller, running: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegword.services.nudges.choose", lambda s, *rest: choose(replace(s, tool=True, may_save=True), *rest))

    with pytest.raises(AssertionError):
        test_with_the_memory_lever_off_nothing_speaks_of_the_memory(services, alice, running, "denial")
