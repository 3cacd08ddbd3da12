"""Events that wait to be nudged: a short queue a session, as values.

An event waits in a channel for a seam of the conversation: the one after a user's message, or the one after the results of tools. ``any``
is taken at either, ``quiet`` at the next user's message. Events keep the order in which they were reported, whoever takes or leaves them in
between; each is valid until a time; and of a kind only the newest `OF_A_KIND_MAX` wait.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

CHANNELS = ("user", "tool", "any", "quiet")
OF_A_KIND_MAX = 3
# Which channels are taken at a seam.
AT_SEAM: Mapping[str, frozenset[str]] = {"user": frozenset({"user", "any", "quiet"}), "tool": frozenset({"tool", "any"})}
# Where an event of a kind waits when it is not said.
CHANNEL_OF: Mapping[str, str] = {
    "start": "user", "resume": "user", "correction": "user", "completion": "user", "denial": "tool", "tool_error": "tool", "repeat": "tool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a host reported. *at* and *valid_until* in microseconds since 1970; with *event_id* it has one place in the order."""

    kind: str
    channel: str
    at: int
    event_id: str
    valid_until: int


Queue = tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Drained:
    """What a seam took out of a queue, in order; what had become *stale* and is gone; and what stays."""

    taken: Queue
    stale: Queue
    left: Queue


def entered(queue: Queue, *events: Event) -> Queue:
    """*queue* with *events* in their places, whether new or put back; of a kind that is full, the oldest are dropped."""
    ordered = sorted({*queue, *events}, key=lambda event: (event.at, event.event_id))
    kept: list[Event] = []
    waiting: dict[str, int] = {}
    for event in reversed(ordered):
        waiting[event.kind] = waiting.get(event.kind, 0) + 1
        if waiting[event.kind] <= OF_A_KIND_MAX:
            kept.append(event)
    return tuple(reversed(kept))


def drained(queue: Queue, seams: Iterable[str], valid: Callable[[Event], bool]) -> Drained:
    """Take out of *queue* what waits for any of *seams*, and is *valid*; what is not, or about which *valid* raises, is stale.

    What waits for another seam is not looked at, and stays.
    """
    channels = frozenset[str]().union(*(AT_SEAM[seam] for seam in seams))
    taken, stale, left = [], [], []
    for event in queue:
        if event.channel not in channels:
            left.append(event)
        elif _holds(valid, event):
            taken.append(event)
        else:
            stale.append(event)
    return Drained(tuple(taken), tuple(stale), tuple(left))


def cancelled(queue: Queue) -> Queue:
    """*queue* after the user broke off: what waits for a seam of what was broken off goes, and ``any`` may be told later, quietly."""
    return tuple(
        replace(event, channel="quiet") if event.channel == "any" else event for event in queue if event.channel in ("any", "quiet")
    )


def _holds(valid: Callable[[Event], bool], event: Event) -> bool:
    try:
        return valid(event)
    except Exception:
        return False
