"""The use cases of a memory: save, get, search, list, change, revert, delete. Every method takes a caller first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pegword.core.caller import Caller, Scope, Session, Visible, acting, reach, session_reach, session_writes
from pegword.core.errors import Invalid, NotFound, VersionMismatch
from pegword.core.memory import (
    NEVER,
    TAG_CHARS_MAX,
    Draft,
    Memory,
    Version,
    checked,
    checked_kind,
    checked_text,
    normal_name,
)
from pegword.core.text import Analyser
from pegword.core.versions import Expected, require_version
from pegword.services.finding import Hit, find, with_expired
from pegword.services.housekeeping import Keeper, Together
from pegword.services.writing import Changes, Overtaken, Saved, Writing, draft_of, require_member, within_reach
from pegword.store import memory_rows, version_rows
from pegword.store.engine import Engine, Tx
from pegword.store.memory_rows import Filters

LIST_DEFAULT, LIST_MAX = 100, 200
SEARCH_DEFAULT, SEARCH_MAX = 20, 50
QUERY_CHARS_MAX = 200_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page:
    """The *memories* asked for, and the *total* of all that match the same filters."""

    memories: tuple[Memory, ...]
    total: int


@dataclass(frozen=True, slots=True)
class History:
    """Some *versions* of a *memory*, newest first, and the *total* of all. What is damaged is counted and not shown."""

    memory: Memory
    versions: tuple[Version, ...]

    @property
    def total(self) -> int:
        """How many there are: every change makes one, and none is dropped before the memory."""
        return self.memory.version


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The *hits*, best first, and the *total* of all matches.

    *terms* is what the query was read as, *left_out* the first of the *left_out_n* terms above the cap of a query. *cut* says that phrases
    were looked for in the best candidates only, as `finding.find` bounds them. *total* then counts those that hold them.
    """

    hits: tuple[Hit, ...]
    total: int
    terms: tuple[str, ...]
    left_out: tuple[str, ...]
    left_out_n: int
    cut: bool


class Memories:
    """The memories of one store. The clock (microseconds since 1970) comes in from outside."""

    def __init__(self, engine: Engine, analyser: Analyser, writing: Writing, housekeeper: Keeper, *, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._analyser = analyser
        self._housekeeper = housekeeper
        self._clock = clock
        self.writing = writing

    def save(self, caller: Caller, draft: Draft, session: Session | None = None) -> Saved:
        """Create the memory of the draft's name and scope, or change it; the same thing again changes nothing.

        In a *session* it must be one of the scopes that the session writes, and the session's user is the author. Outside one, none
        that belongs to sessions alone can be written. Returns when the change is committed and on disk. Raises `Invalid` naming the
        field, `VersionMismatch` when the memory is not at `draft.expected_version` (0: must not exist).
        """
        caller.require("write")
        draft = checked(draft)
        caller = self._admitted(caller, session, Visible((draft.scope,)), write=True)
        return self._write(caller, draft, "save")

    def get(self, caller: Caller, scope: Scope, name: str, session: Session | None = None, *, counted: bool = True) -> Memory:
        """The memory of that name, expired or not; counts an access unless *counted* is false."""
        caller.require("read")
        name = normal_name(name)
        self._admitted(caller, session, Visible((scope,)))
        with self._engine.read() as tx:
            memory = memory_rows.by_name(tx, scope, name)
        if memory is None:
            raise NotFound(f"Memory '{name}' not found")
        if counted:
            self._count_accesses([memory])
        return memory

    def get_by_id(self, caller: Caller, memory_id: str) -> Memory:
        """The memory of that id, expired or not; what lies outside the caller's reach is absent. Counts an access."""
        caller.require("read")
        with self._engine.read() as tx:
            memory = within_reach(tx, caller, memory_id)
        self._count_accesses([memory])
        return memory

    def list(
        self,
        caller: Caller,
        visible: Visible,
        session: Session | None = None,
        *,
        kind: str = "",
        tag: str = "",
        limit: int = LIST_DEFAULT,
        include_expired: bool = False,
    ) -> Page:
        """The newest *limit* memories (at most `LIST_MAX`) under the filters, newest first."""
        caller.require("read")
        self._admitted(caller, session, visible)
        filters = self._filters(kind, tag, include_expired)
        with self._engine.read() as tx:
            found = memory_rows.newest(tx, visible, filters, min(_at_least_one(limit), LIST_MAX))
            total = memory_rows.count(tx, visible, filters)
        return Page(tuple(found), total)

    def search(
        self,
        caller: Caller,
        visible: Visible,
        query: str,
        session: Session | None = None,
        *,
        kind: str = "",
        tag: str = "",
        limit: int = SEARCH_DEFAULT,
        include_expired: bool = False,
        counted: bool = False,
    ) -> SearchResult:
        """The *limit* memories (at most `SEARCH_MAX`) that belong most to *query*: words, and "phrases" in double quotes.

        Any string is a legal query; one that says nothing finds nothing. Only a blank one is refused. *counted*: each hit counts as
        an access.
        """
        caller.require("read")
        self._admitted(caller, session, visible)
        query = checked_text(query, "query", QUERY_CHARS_MAX, blank=False)
        filters = self._filters(kind, tag, include_expired)
        limit = min(_at_least_one(limit), SEARCH_MAX)
        phrases = self._analyser.query(query).phrases
        with self._engine.read() as tx:
            findings = find(tx, self._analyser, visible, [query], filters=filters, limit=limit, phrases=phrases)
            if include_expired:
                findings = with_expired(tx, self._analyser, visible, findings, filters, limit=limit, phrases=phrases)
        if counted and findings.hits:
            self._count_accesses([hit.memory for hit in findings.hits])
        found = findings.found
        return SearchResult(findings.hits, findings.total, found.terms, found.left_out, found.left_out_n, findings.cut)

    def update(self, caller: Caller, memory_id: str, changes: Changes) -> Saved:
        """Change some fields of a memory; what is not named stays."""
        caller.require("write")
        return self._change(caller, memory_id, "update", lambda _, memory: draft_of(memory, changes))

    def versions(self, caller: Caller, memory_id: str, *, limit: int = LIST_DEFAULT, offset: int = 0) -> History:
        """The *limit* versions of a memory (at most `LIST_MAX`) that come after its *offset* newest ones, newest first; without an *offset*
        the first one is how it stands."""
        caller.require("read")
        limit = min(_at_least_one(limit), LIST_MAX)
        if offset < 0:
            raise Invalid(f"offset must be at least 0: it is {offset}", field="offset")
        with self._engine.read() as tx:
            memory = within_reach(tx, caller, memory_id, sound=False)
            return History(memory, tuple(version_rows.page(tx, memory, limit, min(offset, memory.version))))

    def revert(self, caller: Caller, memory_id: str, number: int, *, expected_version: Expected = None) -> Saved:
        """Make a memory say again what it said at version *number*, as a new version by this caller."""
        caller.require("write")

        def old(tx: Tx, memory: Memory) -> Draft:
            then = version_rows.one(tx, memory.scope.key, memory.memory_id, number)
            if then is None:
                raise NotFound(f"Memory '{memory.name}' has no version {number}")
            memory_rows.checked(then)
            changes = Changes(
                content=then.content, description=then.description, kind=then.kind, tags=then.tags, priority=then.priority,
                confidence=then.confidence, expires_at=then.expires_at or NEVER, expected_version=expected_version,
            )  # fmt: skip
            return draft_of(memory, changes)

        return self._change(caller, memory_id, "revert", old, sound=False)

    def delete(
        self, caller: Caller, scope: Scope, name: str, session: Session | None = None, *, expected_version: Expected = None
    ) -> Memory:
        """Delete the memory of that name for good: its versions, its index entries and the receipts that name it go with it.

        Raises `VersionMismatch` when it is not at the expected version.
        """
        caller.require("write")
        name = normal_name(name)
        who = self._admitted(caller, session, Visible((scope,)), write=True)

        def found(tx: Tx) -> Memory:
            require_member(tx, who, scope)
            memory = memory_rows.by_name(tx, scope, name, sound=False)
            if memory is None:
                raise NotFound(f"Memory '{name}' not found")
            return memory

        return self._remove(who, found, expected_version)

    def delete_by_id(self, caller: Caller, memory_id: str, *, expected_version: Expected = None) -> Memory:
        """Delete the memory of that id for good. Raises as `delete`."""
        caller.require("write")
        return self._remove(caller, lambda tx: within_reach(tx, caller, memory_id, sound=False), expected_version)

    def _remove(self, caller: Caller, found: Callable[[Tx], Memory], expected: Expected) -> Memory:
        memory = self._as_it_stands(found, lambda tx, memory: self.writing.remove(tx, caller, memory, expected))
        self._housekeeper.deleted()
        return memory

    def _write(self, caller: Caller, draft: Draft, action: str) -> Saved:
        saved, due = self._engine.write(lambda tx: self.writing.put(tx, caller, draft, action))
        if due:
            self._housekeeper.due(saved.memory.scope.key)
        return saved

    def _change(self, caller: Caller, memory_id: str, action: str, wanted: Callable[[Tx, Memory], Draft], *, sound: bool = True) -> Saved:
        """A save of what is *wanted* of a memory as it stands."""

        def changed(tx: Tx, memory: Memory) -> tuple[Saved, bool]:
            if sound:
                memory_rows.checked(memory)
            draft = checked(wanted(tx, memory))
            require_version(memory.name, memory.version, draft.expected_version)
            try:
                saved, due = self.writing.put(tx, caller, replace(draft, expected_version=memory.version), action)
            except VersionMismatch as error:
                raise Overtaken from error
            if saved.memory.memory_id != memory.memory_id:  # deleted, and there is another of its name
                raise Overtaken
            return saved, due

        saved, due = self._as_it_stands(lambda tx: within_reach(tx, caller, memory_id, sound=False), changed)
        if due:
            self._housekeeper.due(saved.memory.scope.key)
        return saved

    def _as_it_stands(self, found: Callable[[Tx], Memory], work: Callable[[Tx, Memory], T]) -> T:
        """Do *work* with the memory that is *found*. Where it raises `Overtaken`, do it once more while nobody else changes anything in the
        scope of that memory."""

        def alone(tx: Tx) -> T:
            tx.alone(found(tx).scope.key)
            return work(tx, found(tx))

        try:
            return self._engine.write(lambda tx: work(tx, found(tx)))
        except Overtaken:
            return self._engine.write(alone)

    def _admitted(self, caller: Caller, session: Session | None, asked: Visible, *, write: bool = False) -> Caller:
        """*caller*, as the user of *session* in one, if all that is *asked* for is theirs; otherwise it is absent.

        Faces make scopes through `core.caller`; this holds whatever a face does.
        """
        allowed = reach(caller) if session is None else session_writes(caller, session) if write else session_reach(caller, session)
        if not allowed.covers(asked):
            raise NotFound("Memory not found")
        return caller if session is None else acting(caller, session)

    def _filters(self, kind: str, tag: str, include_expired: bool) -> Filters:
        if kind:
            kind, _ = checked_kind(kind)
        checked_text(tag, "tag", TAG_CHARS_MAX)
        return Filters(self._clock(), kind, tag, include_expired)

    def _count_accesses(self, memories: Sequence[Memory]) -> None:
        seen = [memory.memory_id for memory in memories], self._clock()
        scopes = tuple({memory.scope.key for memory in memories})
        self._housekeeper.later(Together(memory_rows.accessed, seen, scopes))


def _at_least_one(limit: int) -> int:
    if limit < 1:
        raise Invalid(f"limit must be at least 1: it is {limit}", field="limit")
    return limit
