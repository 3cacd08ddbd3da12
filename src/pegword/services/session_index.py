"""The index of a session: made at its first turn, kept, and answered to the last byte the same until something that it names is gone.

It is made anew when a memory that it names is deleted, has expired or is doubted, when the session is taken up again, and when its scopes,
its tool or the size of an index change. What is saved meanwhile is not in it, and shows in turns with its text.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from pegword.core.caller import Caller, Session, Visible, session_scope
from pegword.core.errors import Invalid
from pegword.core.memory import Memory
from pegword.core.session_index import ENTRY_CHARS_MIN, Entry, listing
from pegword.services.housekeeping import InScopes, Keeper
from pegword.store import memory_rows, session_index_rows
from pegword.store.engine import Engine, Tx
from pegword.store.session_index_rows import KEPT_US, Kept

INDEX_CHARS_MIN, INDEX_CHARS_MAX = 500, 100_000
WORKSTREAM_KEPT_US = 24 * 3_600 * 1_000_000  # where no session was made, nothing says that one has begun
WAIT_S = 1.0
_READ_AT_ONCE = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionIndex:
    """The *text* of an index ("" when nothing is in scope), and the version that each memory it names had."""

    text: str
    versions: Mapping[str, int]

    def names(self, memory: Memory) -> bool:
        """Whether the index names *memory* as it stands."""
        return self.versions.get(memory.memory_id) == memory.version


@dataclass(frozen=True, slots=True)
class Asked:
    """An index as it is asked for: under which *key* it is kept and for how long, and all that it follows from beside the memories."""

    key: str
    kept_us: int
    caller: Caller
    visible: Visible
    resumed_at: int
    tool: bool
    index_chars: int

    @property
    def basis(self) -> str:
        """One text for what must be the same for a kept index to be right."""
        parts = (self.caller.user_id, sorted(self.visible.keys), self.resumed_at, self.tool, self.index_chars)
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Made:
    """An index that was just made, in the place of the one of the id *instead_of* ("" for none)."""

    asked: Asked
    kept: Kept
    instead_of: str


def asked(caller: Caller, session: Session, visible: Visible, *, tool: bool, index_chars: int) -> Asked:
    """The index of *session*, which is kept for that; where no session was made, for its workstream.

    Raises `Invalid` where there is neither.
    """
    if session.session_id:
        return Asked(session_index_rows.key_of(session.session_id), KEPT_US, caller, visible, session.resumed_at, tool, index_chars)
    if not session.workstream_id.strip():
        raise Invalid("mode index needs a session, or at least a workstream: its index is kept for that one", field="session")
    scope = session_scope(caller, session, "workstream")
    return Asked(f"workstream:{scope.key}", WORKSTREAM_KEPT_US, caller, visible, 0, tool, index_chars)


class SessionIndexes:
    """The kept indexes of one store. Clock in microseconds since 1970."""

    def __init__(self, engine: Engine, housekeeper: Keeper, *, clock: Callable[[], int], new_id: Callable[[], str]) -> None:
        self._engine = engine
        self._housekeeper = housekeeper
        self._clock = clock
        self._new_id = new_id

    def read(self, tx: Tx, asked: Asked, in_scope: int) -> SessionIndex | Made:
        """The kept index, or one that is made now, of the memories in *tx*, *in_scope* in number."""
        now = self._clock()
        kept = session_index_rows.get(tx, asked.key, now)
        if kept is not None and _still_right(kept, asked, now):
            return SessionIndex(kept.body, kept.versions)
        limit = min(asked.index_chars // ENTRY_CHARS_MIN, in_scope)
        memories = {m.memory_id: m for m in _memories(tx, session_index_rows.candidates(tx, asked.visible, now, limit))}
        entries = [_entry(memory, asked.caller) for memory in memories.values()]
        made = listing(entries, in_scope=in_scope, index_chars=asked.index_chars, tool=asked.tool)
        versions = {memory_id: memories[memory_id].version for memory_id in sorted(made.named)}
        instead_of = "" if kept is None else kept.index_id
        return Made(asked, Kept(self._new_id(), asked.basis, now, made.text, versions, True), instead_of)

    def settled(self, index: SessionIndex | Made) -> SessionIndex:
        """*index*, kept if it was just made; where somebody else has made it at the same moment, theirs. Waits at most `WAIT_S`: what the
        database does not take until then is answered all the same, and kept later."""
        if isinstance(index, SessionIndex):
            return index
        self._housekeeper.done_within(InScopes(partial(_keep, made=index), index.asked.visible.keys), WAIT_S)
        now = self._clock()
        with self._engine.read() as tx:
            kept = session_index_rows.get(tx, index.asked.key, now)
        right = kept if kept is not None and _still_right(kept, index.asked, now) else index.kept
        return SessionIndex(right.body, right.versions)


def _still_right(kept: Kept, asked: Asked, now: int) -> bool:
    return kept.sound and kept.basis == asked.basis and abs(now - kept.made_at) < asked.kept_us


def _keep(tx: Tx, made: Made) -> None:
    """Keep what was made, unless a memory that it names is gone by now. Its scopes are held `beside`."""
    ids = list(made.kept.versions)
    there = sum(len(memory_rows.still_there(tx, [], some)) for some in _parts(ids))
    if there == len(ids):
        session_index_rows.keep(tx, made.asked.key, made.kept, made.instead_of)


def _memories(tx: Tx, places: list[tuple[str, int]]) -> Iterator[Memory]:
    """The memories at *places*, in that order; what is damaged is left out."""
    for some in _parts(places):
        memories = memory_rows.by_slots(tx, some)
        yield from (memories[place] for place in some if place in memories)


def _entry(memory: Memory, caller: Caller) -> Entry:
    author = "" if memory.author_user == caller.user_id else memory.author
    return Entry(memory.memory_id, memory.name, memory.kind, memory.scope.kind, memory.description, memory.tags, author)


def _parts(values: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(values)
    while part := list(islice(rest, _READ_AT_ONCE)):
        yield part
