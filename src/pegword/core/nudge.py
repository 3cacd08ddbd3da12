"""Nudges: one sentence that reminds a model, at the right moment, of its memory, or that it goes in circles.

When to nudge is one pure function of what happened, what was nudged before, the time and the settings. The texts are fixed: nothing
that anybody stored or said is ever in one. All kinds but ``repeat`` are *memory-directed*: they speak of the memory tool, so they need
one, and the cool-down is the least time between any two of them. ``repeat`` speaks of no tool and has a clock of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# By weight: when several have happened, the first that may be nudged is.
KINDS = ("resume", "start", "correction", "denial", "repeat", "tool_error", "completion")
MEMORY_DIRECTED = frozenset(KINDS) - {"repeat"}
REPEAT_TIMES = 3  # so many identical calls of a tool in a row are a circle
OPENED = "opened"  # the mark of a session that has had its first turn

TEXTS: Mapping[str, str] = {
    "resume": (
        "This work is being resumed. Notes from earlier sessions exist: before you go on, search them with the memory tool for where it"
        " stood and what was decided."
    ),
    "start": (
        "Notes from earlier sessions exist. Where something about this user, project or task may be known already, search with the memory"
        " tool before you assume or ask."
    ),
    "correction": (
        "The user seems to correct you. If this will hold beyond this moment, save it with the memory tool now, under a name that you would"
        " look for, and say what to do instead."
    ),
    "denial": (
        "The user did not allow a tool call. Do not try the same again another way; if a lasting wish stands behind it, save that with the"
        " memory tool."
    ),
    "repeat": (
        "The same tool was called with the same arguments several times in a row, and will not answer differently. Read what it said, then"
        " change the arguments, take another way, or ask the user."
    ),
    "tool_error": (
        "A tool call failed. Notes from earlier sessions may say how this was solved before: search with the memory tool before you try"
        " again."
    ),
    "completion": (
        "The user seems to be content. If something was decided or learned that later sessions will need, save it with the memory tool"
        " before you finish."
    ),
}  # fmt: skip

_NEEDS_MEMORIES = frozenset({"resume", "start", "tool_error"})
_SAVES = frozenset({"correction", "denial", "completion"})
_AT_FIRST = frozenset({"resume", "start"})


@dataclass(frozen=True, slots=True)
class Nudge:
    """A nudge of one of `KINDS`, with its fixed text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class NudgeSettings:
    """Whether there are nudges at all, and the cool-down in microseconds."""

    enabled: bool = True
    cooldown_us: int = 300_000_000


@dataclass(frozen=True, slots=True)
class Situation:
    """What happened, and to whom it could be said.

    *happened* are kinds; others than `KINDS` are never nudged. *first*: the session begins with this message. *memories* are in scope.
    *tool*: the session has the memory tool, and its memory lever is on. *may_save*: the tool's caller may write.
    """

    happened: frozenset[str]
    first: bool
    memories: int
    tool: bool = True
    may_save: bool = True


def choose(situation: Situation, nudged: Iterable[tuple[str, int]], now: int, settings: NudgeSettings) -> Nudge | None:
    """The nudge that belongs here, or None, which is a good answer.

    *nudged* says what the session was nudged of before, as pairs of kind and time; times and *now* in microseconds since 1970.
    """
    before = tuple(nudged)
    kind = next((k for k in KINDS if k in situation.happened and may(k, situation, before, now, settings)), None)
    return None if kind is None else Nudge(kind, TEXTS[kind])


def may(kind: str, situation: Situation, nudged: Iterable[tuple[str, int]], now: int, settings: NudgeSettings) -> bool:
    """Whether a nudge of *kind* may be given in this situation, had its reason happened. Arguments as for `choose`."""
    if kind not in KINDS or not settings.enabled:
        return False
    if situation.first != (kind == "start") and kind != "resume":
        return False
    if kind in _NEEDS_MEMORIES and not situation.memories:
        return False
    if kind in MEMORY_DIRECTED and not (situation.tool and (situation.may_save or kind not in _SAVES)):
        return False
    same = MEMORY_DIRECTED if kind in MEMORY_DIRECTED else frozenset({kind})
    # A time ahead of now was told by a clock that has been set back since: near, it still counts; far, it must not silence for ever.
    return all(abs(now - at) >= settings.cooldown_us for k, at in nudged if k in same)
