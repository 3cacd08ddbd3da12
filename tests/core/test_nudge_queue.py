"""Events that wait to be nudged: in order, in channels, valid until a time, and never many."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.nudge import KINDS
from pegword.core.nudge_queue import AT_SEAM, CHANNEL_OF, CHANNELS, OF_A_KIND_MAX, Event, cancelled, drained, entered

COUNTER = itertools.count(1)


def event(kind: str = "denial", channel: str = "tool", at: int | None = None) -> Event:
    number = next(COUNTER)
    return Event(kind, channel, number if at is None else at, f"e{number:06d}", 10**9)


def always(_: Event) -> bool:
    return True


def test_what_came_first_is_taken_first() -> None:
    events = [event("denial"), event("repeat"), event("tool_error"), event("denial")]

    assert tuple(events) == drained(entered((), *events), ["tool"], always).taken


@pytest.mark.parametrize(("channel", "seams"), [("user", {"user"}), ("tool", {"tool"}), ("any", {"user", "tool"}), ("quiet", {"user"})])
def test_each_channel_is_taken_at_its_seams(channel: str, seams: "set[str]") -> None:
    """``any`` at either, ``quiet`` when the user speaks next."""
    queue = entered((), event(channel=channel))

    assert seams == {seam for seam in AT_SEAM if drained(queue, [seam], always).taken}


def test_what_waits_for_another_seam_stays_in_its_place() -> None:
    first, second, third = event(channel="user"), event(channel="tool"), event(channel="user")
    out = drained(entered((), first, second, third), ["tool"], always)

    assert ((second,), (), (first, third)) == (out.taken, out.stale, out.left)


def test_what_is_stale_is_dropped() -> None:
    fresh, old = event(), event()
    out = drained(entered((), fresh, old), ["tool"], lambda e: e is fresh)

    assert ((fresh,), (old,), ()) == (out.taken, out.stale, out.left)


def test_a_test_of_validity_that_fails_makes_stale() -> None:
    def fails(_: Event) -> bool:
        raise RuntimeError("no")

    assert 1 == len(drained(entered((), event()), ["tool"], fails).stale)


def test_a_test_of_validity_may_look_at_the_queue_itself() -> None:
    """Nothing is held while it is asked: a queue is a value, and no lock."""
    queue = entered((), event("denial"), event("repeat"))
    out = drained(queue, ["tool"], lambda e: e == drained(queue, ["tool"], always).taken[0])

    assert ((queue[0],), (queue[1],)) == (out.taken, out.stale)


def test_what_waits_elsewhere_is_not_asked_whether_it_is_valid() -> None:
    asked: list[Event] = []
    drained(entered((), event(channel="user")), ["tool"], lambda e: bool(asked.append(e)) or True)

    assert [] == asked


def test_put_back_it_stands_where_it_stood() -> None:
    events = [event() for _ in range(2)] + [event("repeat")]
    out = drained(entered((), *events), ["tool"], always)
    later = event("tool_error")

    assert (*events, later) == entered(entered(out.left, later), *reversed(out.taken))


def test_entered_twice_it_waits_once() -> None:
    one = event()

    assert (one,) == entered(entered((), one), one)


def test_of_a_kind_that_is_full_the_oldest_go() -> None:
    others = [event("repeat")]
    many = [event() for _ in range(OF_A_KIND_MAX + 2)]

    assert (*others, *many[2:]) == entered((), *others, *many)


def test_when_the_user_breaks_off_only_what_is_for_any_seam_stays_and_is_quiet() -> None:
    queue = entered((), event(channel="user"), event("repeat", "tool"), event("tool_error", "any"), event("start", "quiet"))

    assert [("tool_error", "quiet"), ("start", "quiet")] == [(e.kind, e.channel) for e in cancelled(queue)]


def test_every_kind_has_a_channel() -> None:
    assert set(KINDS) == set(CHANNEL_OF)
    assert {"user", "tool"} == set(CHANNEL_OF.values())


MADE = st.builds(
    Event, st.sampled_from(KINDS), st.sampled_from(CHANNELS), st.integers(0, 50), st.text("abc", min_size=1, max_size=4), st.integers(0, 60)
)


@given(
    st.lists(MADE, max_size=60, unique_by=lambda e: (e.at, e.event_id)),
    st.lists(st.sampled_from(["user", "tool"]), max_size=2),
    st.integers(0, 60),
)
def test_nothing_is_lost_but_by_a_rule(events: "list[Event]", seams: "list[str]", now: int) -> None:
    """Every event that was entered is taken, stale, left, or gave way to newer ones of its kind; order is by time; the bound holds."""
    queue = entered((), *events)
    out = drained(queue, seams, lambda e: e.valid_until >= now)

    assert sorted(queue, key=lambda e: (e.at, e.event_id)) == list(queue)
    assert set(queue) == set(out.taken) | set(out.stale) | set(out.left)
    assert len(queue) == len(out.taken) + len(out.stale) + len(out.left)
    for kind in KINDS:
        of_kind = sorted({e for e in events if e.kind == kind}, key=lambda e: (e.at, e.event_id))
        kept = [e for e in queue if e.kind == kind]
        assert len(kept) == min(len(of_kind), OF_A_KIND_MAX)
        assert not kept or (kept[0].at, kept[0].event_id) >= (of_kind[-len(kept)].at, of_kind[-len(kept)].event_id)
    assert queue == entered(out.left, *out.taken, *out.stale)
