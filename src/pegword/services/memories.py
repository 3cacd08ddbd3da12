"""The use cases of a memory: save, get, search, list, change, revert, delete. Every method takes a caller first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegword.core.caller import Caller, Scope, Visible, reach
from pegword.core.errors import Damaged, Invalid, NotFound, VersionMismatch
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
    trust_of,
)
from pegword.core.text import Analyser, Phrase
from pegword.services.finding import Hit, find, find_expired
from pegword.services.housekeeping import Housekeeper
from pegword.store import memory_rows, postings
from pegword.store.engine import Engine, Tx
from pegword.store.memory_rows import Filters

LIST_DEFAULT, LIST_MAX = 100, 200
SEARCH_DEFAULT, SEARCH_MAX = 20, 50
QUERY_CHARS_MAX = 200_000
PHRASE_CANDIDATES_MAX = 1_000
PHRASE_CHARS_MAX = 2_000_000  # of content searched for phrases at once


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save did: the *memory* as stored, its *outcome* (created, updated, unchanged), and *warnings* for the caller."""

    memory: Memory
    outcome: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """The *memories* asked for, and the *total* of all that match the same filters."""

    memories: tuple[Memory, ...]
    total: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The *hits*, best first, and the *total* of all matches.

    *terms* is what the query was read as, *left_out* the first of the *left_out_n* terms above the cap of a query. *cut* says that phrases
    were looked for in the best candidates only: at most `PHRASE_CANDIDATES_MAX`, and `PHRASE_CHARS_MAX` characters. *total* then counts
    those.
    """

    hits: tuple[Hit, ...]
    total: int
    terms: tuple[str, ...]
    left_out: tuple[str, ...]
    left_out_n: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """A partial update: None keeps a field. "", () and `NEVER` clear description, tags and expiry."""

    content: str | None = None
    description: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] | None = None
    priority: str | None = None
    confidence: float | None = None
    source: str | None = None
    expires_at: int | None = None
    sitting: str = ""
    session: str = ""
    expected_version: int | None = None
    claims_verified: bool = False


class Memories:
    """The memories of one store. Clock (microseconds since 1970) and ids come in from outside."""

    def __init__(
        self, engine: Engine, analyser: Analyser, housekeeper: Housekeeper, *, clock: Callable[[], int], new_id: Callable[[], str]
    ) -> None:
        self._engine = engine
        self._analyser = analyser
        self._housekeeper = housekeeper
        self._clock = clock
        self._new_id = new_id

    def save(self, caller: Caller, draft: Draft) -> Saved:
        """Create the memory of the draft's name and scope, or change it; the same thing again changes nothing.

        Returns when the change is committed and on disk. Raises `Invalid` naming the field, `VersionMismatch` when
        `draft.expected_version` (0: must not exist) is not the stored one.
        """
        caller.require("write")
        draft = checked(draft)
        self._require_own(caller, draft.scope)
        return self._write(caller, draft, "save")

    def get(self, caller: Caller, scope: Scope, name: str, *, counted: bool = True) -> Memory:
        """The memory of that name, expired or not; counts an access unless *counted* is false."""
        caller.require("read")
        name = normal_name(name)
        self._require_own(caller, scope)
        with self._engine.read() as tx:
            memory = memory_rows.by_name(tx, scope, name)
        if memory is None:
            raise NotFound(f"Memory '{name}' not found")
        if counted:
            self._count_access(memory.memory_id)
        return memory

    def get_by_id(self, caller: Caller, memory_id: str) -> Memory:
        """The memory of that id, expired or not; what lies outside the caller's reach is absent. Counts an access."""
        caller.require("read")
        with self._engine.read() as tx:
            memory = self._within_reach(tx, caller, memory_id)
        self._count_access(memory.memory_id)
        return memory

    def list(
        self, caller: Caller, visible: Visible, *, kind: str = "", tag: str = "", limit: int = LIST_DEFAULT, include_expired: bool = False
    ) -> Page:
        """The newest *limit* memories (at most `LIST_MAX`) under the filters, newest first."""
        caller.require("read")
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
        *,
        kind: str = "",
        tag: str = "",
        limit: int = SEARCH_DEFAULT,
        include_expired: bool = False,
    ) -> SearchResult:
        """The *limit* memories (at most `SEARCH_MAX`) that belong most to *query*: words, and "phrases" in double quotes.

        Any string is a legal query; one that says nothing finds nothing. Only a blank one is refused.
        """
        caller.require("read")
        query = checked_text(query, "query", QUERY_CHARS_MAX, blank=False)
        filters = self._filters(kind, tag, include_expired)
        limit = min(_at_least_one(limit), SEARCH_MAX)
        phrases = self._analyser.query(query).phrases
        with self._engine.read() as tx:
            findings = find(
                tx,
                self._analyser,
                visible,
                [query],
                filters=filters,
                limit=PHRASE_CANDIDATES_MAX if phrases else limit,
                phrases=phrases,
            )
            expired = find_expired(tx, self._analyser, visible, findings, filters) if include_expired else []
        hits, total, cut = [*findings.hits, *expired], findings.total + len(expired), False
        if phrases:
            read = _readable(hits)
            cut = len(read) < total
            hits = [hit for hit in read if self._holds(hit.memory, phrases)]
            total = len(hits)
        found = findings.found
        return SearchResult(tuple(hits[:limit]), total, found.terms, found.left_out, found.left_out_n, cut)

    def update(self, caller: Caller, memory_id: str, changes: Changes) -> Saved:
        """Change some fields of a memory; what is not named stays."""
        caller.require("write")
        return self._change(caller, memory_id, "update", lambda _, memory: _draft(memory, changes))

    def versions(self, caller: Caller, memory_id: str) -> tuple[Version, ...]:
        """Every version of a memory, newest first; the first one is how it stands."""
        caller.require("read")
        with self._engine.read() as tx:
            return tuple(memory_rows.versions(tx, self._within_reach(tx, caller, memory_id, sound=False)))

    def revert(self, caller: Caller, memory_id: str, number: int, *, expected_version: int | None = None) -> Saved:
        """Make a memory say again what it said at version *number*, as a new version by this caller."""
        caller.require("write")

        def old(tx: Tx, memory: Memory) -> Draft:
            then = memory_rows.version(tx, memory.scope.key, memory.memory_id, number)
            if then is None:
                raise NotFound(f"Memory '{memory.name}' has no version {number}")
            memory_rows.checked(then)
            changes = Changes(
                content=then.content, description=then.description, kind=then.kind, tags=then.tags, priority=then.priority,
                confidence=then.confidence, expires_at=then.expires_at or NEVER, expected_version=expected_version,
            )  # fmt: skip
            return _draft(memory, changes)

        return self._change(caller, memory_id, "revert", old, sound=False)

    def delete(self, caller: Caller, scope: Scope, name: str) -> Memory:
        """Delete the memory of that name for good: its versions, its index entries and the receipts that name it go with it."""
        caller.require("write")
        name = normal_name(name)
        self._require_own(caller, scope)

        def work(tx: Tx) -> Memory:
            tx.alone(scope.key)
            memory = memory_rows.by_name(tx, scope, name, sound=False)
            if memory is None:
                raise NotFound(f"Memory '{name}' not found")
            return self._remove(tx, memory)

        memory = self._engine.write(work)
        self._housekeeper.deleted()
        return memory

    def delete_by_id(self, caller: Caller, memory_id: str) -> Memory:
        """Delete the memory of that id for good."""
        caller.require("write")
        memory = self._engine.write(lambda tx: self._remove(tx, self._held(tx, caller, memory_id)))
        self._housekeeper.deleted()
        return memory

    def _write(self, caller: Caller, draft: Draft, action: str) -> Saved:
        saved, due = self._engine.write(lambda tx: self._put(tx, caller, draft, action))
        if due:
            self._housekeeper.due(saved.memory.scope.key)
        return saved

    def _change(self, caller: Caller, memory_id: str, action: str, draft_of: Callable[[Tx, Memory], Draft], *, sound: bool = True) -> Saved:
        def work(tx: Tx) -> tuple[Saved, bool]:
            memory = self._held(tx, caller, memory_id)
            if sound:
                memory_rows.checked(memory)
            return self._put(tx, caller, checked(draft_of(tx, memory)), action)

        saved, due = self._engine.write(work)
        if due:
            self._housekeeper.due(saved.memory.scope.key)
        return saved

    def _put(self, tx: Tx, caller: Caller, draft: Draft, action: str) -> tuple[Saved, bool]:
        """One save in an open transaction; also says whether its scope has work to do outside the save."""
        now = self._clock()
        trust = trust_of(caller, draft)
        tx.beside(draft.scope.key)
        written = memory_rows.upsert(tx, self._new_id(), draft, trust, caller, now)
        if written is None:
            stored = memory_rows.by_name(tx, draft.scope, draft.name, draft.shelf)
            raise _mismatch(draft, 0 if stored is None else stored.version)
        if written.outcome == "created" and draft.expected_version:
            raise _mismatch(draft, 0)
        memory = written.memory
        warnings = list(trust.warnings)
        if draft.expires_at and draft.expires_at <= now:
            warnings.append("expires_at lies in the past; the memory is kept but not shown")
        if written.outcome == "unchanged":
            return Saved(memory, "unchanged", tuple(warnings)), False
        if memory.verified_by and not memory.verified:
            warnings.append("verified: cleared, since an agent changed what a human had verified; the old text is kept as a version")
        document = self._analyser.document(memory.content, (memory.name, memory.description, *memory.tags))
        old = (memory.slot, memory.length) if memory.slot > postings.NOT_INDEXED else None
        sitting, named = _sitting(caller, draft)
        entered = postings.enter(
            tx, memory.scope.key, document, sitting=sitting, named=named, now=now, analyser=self._analyser.name, old=old
        )
        if draft.tags is not None:
            memory_rows.set_tags(tx, memory, fresh=written.outcome == "created")
        memory = memory_rows.place(tx, memory, entered.slot, entered.place, document.length)
        memory_rows.add_version(tx, memory, action if written.outcome == "updated" else "save")
        return Saved(memory, written.outcome, tuple(warnings)), entered.due

    def _remove(self, tx: Tx, memory: Memory) -> Memory:
        held = self._terms_of(tx, memory)
        postings.leave(tx, memory.scope.key, memory.slot, memory.length, held)
        memory_rows.delete(tx, memory)
        return memory

    def _terms_of(self, tx: Tx, memory: Memory) -> Sequence[str]:
        """Every term under which a memory may stand in the index, its earlier versions included."""
        scope_key = memory.scope.key
        try:
            if memory_rows.is_sound(memory) and postings.indexed_by(tx, scope_key, self._analyser.name):
                terms: dict[str, int] = {}
                for name, description, content, tags in memory_rows.texts(tx, memory):
                    terms |= self._analyser.document(content, (name, description, *tags)).counts
                return sorted(terms)
        except Damaged:
            pass
        return postings.every_term(tx, scope_key)  # another analyser, or damage, hides which they are

    def _within_reach(self, tx: Tx, caller: Caller, memory_id: str, *, sound: bool = True) -> Memory:
        """The memory of that id if the caller may know of it; otherwise it is absent, whatever the reason.

        Raises `Damaged` when it must be *sound* and is not; what is damaged can still be deleted, and reverted to a sound version.
        """
        memory = memory_rows.by_id(tx, _plain_id(memory_id), sound=False)
        if memory is None or not reach(caller).holds(memory.scope):
            raise NotFound("Memory not found")
        return memory_rows.checked(memory) if sound else memory

    def _held(self, tx: Tx, caller: Caller, memory_id: str) -> Memory:
        """As `_within_reach`, and nobody else changes anything in its scope until this transaction ends."""
        tx.alone(self._within_reach(tx, caller, memory_id, sound=False).scope.key)
        return self._within_reach(tx, caller, memory_id, sound=False)  # it may have been changed or deleted while we waited

    def _require_own(self, caller: Caller, scope: Scope) -> None:
        """Faces make scopes through `core.caller`; this holds whatever a face does."""
        if not reach(caller).holds(scope):
            raise NotFound("Memory not found")

    def _holds(self, memory: Memory, phrases: Sequence[Phrase]) -> bool:
        whole = " \n ".join((memory.name, memory.description, *memory.tags, memory.content))
        return all(self._analyser.holds_phrase(whole, phrase.forms) for phrase in phrases)

    def _filters(self, kind: str, tag: str, include_expired: bool) -> Filters:
        if kind:
            kind, _ = checked_kind(kind)
        checked_text(tag, "tag", TAG_CHARS_MAX)
        return Filters(self._clock(), kind, tag, include_expired)

    def _count_access(self, memory_id: str) -> None:
        now = self._clock()
        self._housekeeper.later(lambda tx: memory_rows.accessed(tx, [memory_id], now))


def _readable(hits: Sequence[Hit]) -> list[Hit]:
    """As many of *hits* as phrases are looked for in."""
    left = PHRASE_CHARS_MAX
    read: list[Hit] = []
    for hit in hits:
        left -= len(hit.memory.content)
        if left < 0 and read:
            break
        read.append(hit)
    return read


def _sitting(caller: Caller, draft: Draft) -> tuple[str, bool]:
    """Whose sitting a save belongs to, and whether the caller named it (then no gap in time ends it)."""
    if draft.sitting:
        return f"{caller.user_id}\n{draft.sitting}", True
    return f"{caller.user_id}\n{caller.credential}\n{draft.session}", bool(draft.session)


def _draft(memory: Memory, changes: Changes) -> Draft:
    """The save that makes *memory* what *changes* ask for."""
    return Draft(
        name=memory.name,
        content=memory.content if changes.content is None else changes.content,
        scope=memory.scope,
        shelf=memory.shelf,
        description=changes.description,
        kind=changes.kind,
        tags=changes.tags,
        priority=changes.priority,
        confidence=changes.confidence,
        source=changes.source,
        expires_at=changes.expires_at,
        sitting=changes.sitting,
        session=changes.session,
        expected_version=changes.expected_version,
        claims_verified=changes.claims_verified,
    )


def _mismatch(draft: Draft, current: int) -> VersionMismatch:
    sentence = f"Memory '{draft.name}' is at version {current}, not at {draft.expected_version}"
    return VersionMismatch(sentence, current=current)


def _at_least_one(limit: int) -> int:
    if limit < 1:
        raise Invalid(f"limit must be at least 1: it is {limit}", field="limit")
    return limit


def _plain_id(memory_id: str) -> str:
    """A memory's id without the prefix that some faces write before it; what can be no id is that of nothing."""
    if not memory_id.isascii():
        return ""
    return memory_id.removeprefix("mem_").removeprefix("m_")
