"""When to nudge: one pure function of what happened, what was nudged before, the time and the settings."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.nudge import KINDS, MEMORY_DIRECTED, TEXTS, Nudge, NudgeSettings, Situation, choose, may

S = 1_000_000
NOW = 1_800_000_000 * S
DEFAULTS = NudgeSettings()
LATER = Situation(frozenset(), first=False, memories=3)
FIRST = Situation(frozenset(), first=True, memories=3)


def kind_of(nudge: Nudge | None) -> str:
    return nudge.kind if nudge else ""


def after(
    *kinds: str, situation: Situation = LATER, nudged: "list[tuple[str, int]] | None" = None, settings: NudgeSettings = DEFAULTS
) -> str:
    return kind_of(choose(replace(situation, happened=frozenset(kinds)), nudged or [], NOW, settings))


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"start"}))
def test_each_kind_is_nudged_when_it_happened(kind: str) -> None:
    assert Nudge(kind, TEXTS[kind]) == choose(replace(LATER, happened=frozenset({kind})), [], NOW, DEFAULTS)


def test_nothing_happened_nothing_is_said() -> None:
    assert "" == after()


@pytest.mark.parametrize("kind", ["unknown", "", "START", "opened", "compaction_pending"])
def test_an_unknown_kind_is_never_nudged(kind: str) -> None:
    assert ("", False) == (after(kind), may(kind, LATER, [], NOW, DEFAULTS))


@pytest.mark.parametrize("kind", KINDS)
def test_at_the_first_message_only_start_and_resume(kind: str) -> None:
    assert (kind if kind in ("start", "resume") else "") == after(kind, situation=FIRST)


def test_start_is_for_the_first_message_alone() -> None:
    assert ("start", "") == (after("start", situation=FIRST), after("start", situation=LATER))


@pytest.mark.parametrize("kind", KINDS)
def test_start_resume_and_tool_error_need_memories(kind: str) -> None:
    """There is nothing to look for otherwise."""
    situation = replace(FIRST if kind == "start" else LATER, memories=0)

    assert ("" if kind in ("start", "resume", "tool_error") else kind) == after(kind, situation=situation)


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_tool_only_what_does_not_speak_of_it_is_said(kind: str) -> None:
    """The session has no tool, or its memory lever is off."""
    situation = replace(FIRST if kind == "start" else LATER, tool=False)
    nudge = choose(replace(situation, happened=frozenset({kind})), [], NOW, DEFAULTS)

    assert ("repeat" if kind == "repeat" else "") == kind_of(nudge)
    assert nudge is None or ("memory" not in nudge.text and "save" not in nudge.text)


@pytest.mark.parametrize("kind", KINDS)
def test_who_may_not_save_is_not_told_to(kind: str) -> None:
    situation = replace(FIRST if kind == "start" else LATER, may_save=False)
    said = after(kind, situation=situation)

    assert ("" if kind in ("correction", "denial", "completion") else kind) == said
    assert "save" not in TEXTS.get(said, "")


def test_only_what_is_memory_directed_speaks_of_the_memory() -> None:
    assert set(MEMORY_DIRECTED) == {kind for kind, text in TEXTS.items() if "memory" in text}


def test_there_is_one_fixed_text_a_kind_and_each_is_short() -> None:
    assert set(KINDS) == set(TEXTS)
    assert all(len(text) < 300 and text.isprintable() and "{" not in text and "%" not in text for text in TEXTS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_off_is_off(kind: str) -> None:
    assert "" == after(kind, situation=FIRST if kind == "start" else LATER, settings=NudgeSettings(enabled=False))


@pytest.mark.parametrize("before", sorted(MEMORY_DIRECTED))
@pytest.mark.parametrize("kind", sorted(MEMORY_DIRECTED - {"start"}))
def test_the_cool_down_lies_between_any_two_that_speak_of_the_memory(before: str, kind: str) -> None:
    """Not, as in the reference, between two of the same kind."""
    assert ("", kind) == (after(kind, nudged=[(before, NOW - 300 * S + 1)]), after(kind, nudged=[(before, NOW - 300 * S)]))


def test_repeat_has_a_clock_of_its_own() -> None:
    recently = NOW - S

    assert "repeat" == after("repeat", nudged=[("correction", recently)])
    assert "correction" == after("correction", nudged=[("repeat", recently)])
    assert "" == after("repeat", nudged=[("repeat", recently)])


def test_no_cool_down_is_none() -> None:
    assert "correction" == after("correction", nudged=[("correction", NOW)], settings=NudgeSettings(cooldown_us=0))


def test_the_latest_of_several_times_counts() -> None:
    """What the database knows and what the process remembers may differ."""
    assert "" == after("correction", nudged=[("correction", NOW - 900 * S), ("denial", NOW - 2 * S), ("correction", NOW - 500 * S)])


def test_a_clock_that_was_set_back_far_does_not_silence_for_ever() -> None:
    """Near, a time ahead of now still counts."""
    assert ("", "correction") == tuple(after("correction", nudged=[("denial", NOW + ahead * S)]) for ahead in (200, 86_400))


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        (("start", "correction", "completion"), "correction"),
        (("resume", "correction"), "resume"),
        (("correction", "completion"), "correction"),
        (("correction", "denial", "tool_error"), "correction"),
        (("denial", "repeat", "tool_error"), "denial"),
        (("repeat", "tool_error"), "repeat"),
        (("tool_error", "completion"), "tool_error"),
    ],
)
def test_of_several_the_weightiest_that_may_be_said_is(happened: "tuple[str, ...]", said: str) -> None:
    assert said == after(*happened)


def test_one_that_may_not_be_said_gives_way() -> None:
    assert "repeat" == after("denial", "repeat", nudged=[("denial", NOW - S)])


EVENTS = st.lists(
    st.tuples(st.integers(0, 400), st.frozensets(st.sampled_from([*KINDS, "unknown"])), st.booleans(), st.integers(0, 2), st.booleans()),
    max_size=40,
)


@given(EVENTS, st.integers(0, 1_000), st.booleans())
def test_whatever_happens_the_rules_hold(
    events: "list[tuple[int, frozenset[str], bool, int, bool]]", cooldown_s: int, enabled: bool
) -> None:
    """Over any course of a session: the cool-down lies between any two memory-directed nudges and between two of a kind; what is said has
    happened; and silence is only kept for a reason."""
    settings = NudgeSettings(enabled, cooldown_s * S)
    now, nudged = NOW, []
    for seconds, happened, first, memories, tool in events:
        now += seconds * S
        situation = Situation(happened, first, memories, tool)
        nudge = choose(situation, nudged, now, settings)
        possible = [kind for kind in KINDS if kind in happened and may(kind, situation, nudged, now, settings)]
        assert (possible or [""])[0] == kind_of(nudge)
        if nudge:
            assert enabled
            assert nudge.kind in happened
            same = MEMORY_DIRECTED if nudge.kind in MEMORY_DIRECTED else {nudge.kind}
            assert all(now - at >= cooldown_s * S for kind, at in nudged if kind in same)
            nudged.append((nudge.kind, now))
        elif enabled and tool and memories and not first:
            silenced = {k for k in happened & set(KINDS) if k not in ("start",)}
            assert all(any(abs(now - at) < cooldown_s * S for _, at in nudged) for _ in silenced)
