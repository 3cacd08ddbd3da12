"""Nudges of sessions: what hosts report, what a turn's messages tell, and the clock that keeps nudges apart.

The clock lies in the database and is read with the turn, in its one snapshot. It is written after the answer, by the housekeeper; until
then this process remembers it. So of the turns that one process serves, no two nudge a session within the cool-down, and after a restart
neither, but for what a killed process had not written yet. Another process knows of a nudge once it is written, usually some milliseconds
after the answer: turns of one session that two processes serve at the same moment may both be nudged, each process once.
"""

import hashlib
import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pegword.core import nudge_queue
from pegword.core.caller import Caller, Session, acting, user_scope, workstream_scope
from pegword.core.errors import Invalid
from pegword.core.happened import Happened, happened
from pegword.core.memory import SECOND_US, checked_word
from pegword.core.nudge import KINDS, MEMORY_DIRECTED, OPENED, REPEAT_TIMES, Nudge, NudgeSettings, Situation, choose, may
from pegword.core.nudge_queue import CHANNEL_OF, CHANNELS, Event, Queue
from pegword.core.offered import Offered, offered
from pegword.core.signs import Language
from pegword.services.housekeeping import Keeper
from pegword.store import nudge_rows
from pegword.store.engine import Engine, Tx

TOOL_CALL, CANCEL = "tool_call", "cancel"
EVENT_KINDS = (*KINDS, TOOL_CALL, CANCEL)
VALID_S, VALID_S_MAX = 900, 86_400
TOOL_CHARS_MAX = 256
SESSIONS_REMEMBERED_MAX = 4_096  # more than can wait to be written
EVENTS_REMEMBERED_MAX = 64  # of a session


@dataclass(frozen=True, slots=True)
class Noted:
    """What the database says of a session: what it was nudged of (kind and time), and what waits."""

    key: str
    marks: tuple[tuple[str, int], ...]
    queue: Queue


@dataclass(slots=True)
class _Recent:
    """What this process did in a session and may not have written yet: the times by kind, and the events that were taken."""

    marks: dict[str, int] = field(default_factory=dict)
    taken: deque[str] = field(default_factory=lambda: deque(maxlen=EVENTS_REMEMBERED_MAX))


class Remembered:
    """What this process remembers of sessions until it is written, and a little longer. Bounded; its owner holds *lock*."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._recent: OrderedDict[str, _Recent] = OrderedDict()

    def of(self, noted: Noted) -> tuple[tuple[tuple[str, int], ...], frozenset[str]]:
        """What a session was nudged of, by what the database and this process know, and which events this process took."""
        recent = self._recent.get(noted.key)
        return (noted.marks, frozenset()) if recent is None else ((*noted.marks, *recent.marks.items()), frozenset(recent.taken))

    def add(self, key: str, marks: Sequence[tuple[str, int]], taken: Sequence[str]) -> None:
        """Remember also these."""
        if not marks and not taken:
            return
        recent = self._recent.setdefault(key, _Recent())
        recent.marks.update(marks)
        recent.taken.extend(taken)
        self._recent.move_to_end(key)
        if len(self._recent) > SESSIONS_REMEMBERED_MAX:
            self._recent.popitem(last=False)


class Nudges:
    """Nudges over one store. *settings* is asked each time, so that they may change. Safe to share between threads.

    All that one process has of one store share what is *remembered*. *languages* are asked for at a turn, not before.
    """

    def __init__(
        self,
        engine: Engine,
        housekeeper: Keeper,
        languages: Callable[[], Sequence[Language]],
        remembered: Remembered,
        *,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        settings: Callable[[], NudgeSettings],
    ) -> None:
        self._engine = engine
        self._housekeeper = housekeeper
        self._languages = languages
        self._clock = clock
        self._new_id = new_id
        self._settings = settings
        self._remembered = remembered

    def report(
        self,
        caller: Caller,
        session: Session,
        kind: str,
        *,
        channel: str = "",
        valid_s: int = VALID_S,
        tool: str = "",
        arguments: str | Mapping[str, Any] = "",
    ) -> bool:
        """Tell of something that happened in *session*; return whether it now waits for a turn.

        *kind* is one of the kinds of nudges, ``tool_call`` (with *tool* and its *arguments*: the third identical one in a row makes a
        ``repeat``), or ``cancel``: the user broke off. *channel* says which seam may take it ("": the kind's own); it is dropped when no
        turn has come after *valid_s* seconds. Nothing waits where it could never be nudged: nudges are off, or the session's memory is.
        Raises `Conflict` for a session that is closed.
        """
        caller.require("write")
        caller = acting(caller, session)
        checked_word(kind, "kind", EVENT_KINDS)
        channel = checked_word(channel, "channel", CHANNELS) if channel else ""
        if not 1 <= valid_s <= VALID_S_MAX:
            raise Invalid(f"valid_s must be 1 to {VALID_S_MAX}: it is {valid_s}", field="valid_s")
        if (kind == TOOL_CALL) != bool(tool.strip()) or len(tool) > TOOL_CHARS_MAX:
            said = f"tool must name the tool of a {TOOL_CALL}, in at most {TOOL_CHARS_MAX} characters, and of no other kind of event"
            raise Invalid(said, field="tool")
        if not self._settings().enabled or (kind in MEMORY_DIRECTED and not offered(caller, session).memory):
            return False
        key = _key(caller, session)
        fingerprint = _fingerprint(tool, arguments) if kind == TOOL_CALL else ""
        return self._engine.write(lambda tx: self._entered(tx, key, kind, channel, valid_s * SECOND_US, fingerprint))

    def noted(self, tx: Tx, caller: Caller, session: Session) -> Noted | None:
        """What is known of *session* before a turn: one statement; None, and no statement, while nudges are off."""
        if not self._settings().enabled:
            return None
        key = _key(caller, session)
        marks, events = nudge_rows.noted(tx, key)
        return Noted(key, tuple(marks), _queue(events))

    def nudge(
        self,
        session: Session,
        noted: Noted | None,
        messages: Sequence[Mapping[str, Any]],
        offer: Offered,
        *,
        memories: int,
        now: int,
    ) -> Nudge | None:
        """The nudge that belongs into a turn that ends with *messages*, or None. *offer* is what the session has, *memories* are in scope.
        Nothing is written before the answer."""
        if noted is None:
            return None
        settings = self._settings()
        told = happened(messages, self._languages())
        with self._remembered.lock:
            marks, taken = self._remembered.of(noted)
        opened = any(kind == OPENED and at >= session.resumed_at for kind, at in marks)
        kinds = told.kinds | _beginning(session, told, opened=opened)
        situation = Situation(kinds, told.messages <= 1 and not opened, memories, offer.tool, offer.saves)
        drained = nudge_queue.drained(
            tuple(event for event in noted.queue if event.event_id not in taken),
            told.seams,
            lambda event: event.valid_until >= now and may(event.kind, situation, marks, now, settings),
        )
        opens = bool(session.session_id) and told.messages > 0 and not opened
        with self._remembered.lock:  # another turn of this session may have come first
            marks, taken = self._remembered.of(noted)
            events = [event for event in drained.taken if event.event_id not in taken]
            situation = replace(situation, happened=kinds | {event.kind for event in events})
            nudge = choose(situation, marks, now, settings)
            made = ([(nudge.kind, now)] if nudge else []) + ([(OPENED, now)] if opens else [])
            # What had its reason but no room stays in the queue, at its place.
            gone = [e.event_id for e in (*drained.stale, *(e for e in events if nudge and e.kind == nudge.kind))]
            self._remembered.add(noted.key, made, gone)
        if made or gone:
            self._housekeeper.later(lambda tx: _written(tx, noted.key, made, gone))
        return nudge

    def _entered(self, tx: Tx, key: str, kind: str, channel: str, valid_us: int, fingerprint: str) -> bool:
        """Do what `report` says, in a transaction."""
        now = self._clock()
        if kind == TOOL_CALL:
            if nudge_rows.called(tx, key, fingerprint, now) % REPEAT_TIMES:
                return False
            kind = "repeat"
        if kind == CANCEL:
            queue = _queue(nudge_rows.noted(tx, key)[1])
            left = {event.event_id: event for event in nudge_queue.cancelled(queue)}
            nudge_rows.remove(tx, key, [event.event_id for event in queue if event.event_id not in left])
            nudge_rows.move(tx, key, list(left), "quiet")
            return False
        event = Event(kind, channel or CHANNEL_OF[kind], now, self._new_id(), now + valid_us)
        nudge_rows.add(tx, key, event)
        waiting = nudge_rows.noted(tx, key)[1]
        kept = {event.event_id for event in _queue(waiting)}
        nudge_rows.remove(tx, key, [event.event_id for event in waiting if event.event_id not in kept])
        return True


def _key(caller: Caller, session: Session) -> str:
    """Under what the clock of a conversation lies: its session, or, where it has none, its workstream or user."""
    if session.session_id:
        return session.session_id
    return (workstream_scope(caller, session.workstream_id) if session.workstream_id.strip() else user_scope(caller)).key


def _beginning(session: Session, told: Happened, *, opened: bool) -> frozenset[str]:
    """That a session begins, or is taken up again, with the first thing that its user says."""
    if opened or "user" not in told.seams or not told.messages:
        return frozenset()
    return frozenset({"resume"} if session.resumed else {"start"})


def _queue(events: Sequence[Event]) -> Queue:
    return nudge_queue.entered((), *events)


def _written(tx: Tx, key: str, marks: Sequence[tuple[str, int]], gone: Sequence[str]) -> None:
    """Write down what a turn did. `MANY_ROWS` is held alone, as rows of several sessions may be written together."""
    if marks:
        nudge_rows.mark(tx, key, marks)
    if gone:
        nudge_rows.remove(tx, key, gone)


def _fingerprint(tool: str, arguments: str | Mapping[str, Any]) -> str:
    """What tells one call from another; nothing of its text is kept."""
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=repr)
    except (RecursionError, TypeError, ValueError) as error:
        raise Invalid(f"arguments must be a text, or an object that can be written as JSON: {error}", field="arguments") from None
    return hashlib.sha256(f"{tool}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()
