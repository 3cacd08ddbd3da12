"""What a write does in an open transaction: one save, one removal, and which memory an id means for a caller."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegword.core.caller import GLOBAL, Caller, Scope, global_restricted, reach
from pegword.core.errors import Damaged, NotFound
from pegword.core.memory import Draft, Memory, Trust, hashed, is_sound, trust_of
from pegword.core.text import Analyser
from pegword.core.versions import Expected, checked_expected, require_version
from pegword.store import blocks, memory_rows, postings, sharing_rows, version_rows
from pegword.store.engine import Tx, told

IMPORT = "import"  # the action of a version that an import made, a memory's first one too


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save did: the *memory* as stored, its *outcome* (created, updated, unchanged), and *warnings* for the caller."""

    memory: Memory
    outcome: str
    warnings: tuple[str, ...] = ()


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
    expected_version: Expected = None
    claims_verified: bool = False


class Overtaken(Exception):
    """Somebody else changed a memory after it was read: read it again, while nobody else changes anything in its scope."""


class Writing:
    """Writes memories, their versions and the index together. Clock (microseconds since 1970) and ids come in from outside.

    *global_write* gives one of `GLOBAL_WRITES` at each write, so that the setting may change.
    """

    def __init__(self, analyser: Analyser, *, clock: Callable[[], int], new_id: Callable[[], str], global_write: Callable[[], str]) -> None:
        self._analyser = analyser
        self._global_write = global_write
        self._clock = clock
        self._new_id = new_id

    def put(self, tx: Tx, caller: Caller, draft: Draft, action: str, *, trust: Trust | None = None, new_id: str = "") -> tuple[Saved, bool]:
        """One save in an open transaction; also says whether its scope has work to do outside the save.

        *trust* is what the write may say of itself, where that is not what a save may; *new_id* the id of the memory if it is new.
        """
        self.require_right(caller, draft.scope)
        now = self._clock()
        trust = trust_of(caller, draft) if trust is None else trust
        tx.beside(draft.scope.key)
        require_member(tx, caller, draft.scope)
        written = memory_rows.upsert(tx, new_id or self._new_id(), draft, trust, caller, now)
        require_version(draft.name, written.before, draft.expected_version)
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
        memory = hashed(memory)
        if draft.tags is not None:
            memory_rows.set_tags(tx, memory, fresh=written.outcome == "created")
        version_rows.add(tx, memory, "save" if written.outcome == "created" and action != IMPORT else action)
        # Last, since it locks the row that counts the scope, behind which all who save there stand.
        entered = postings.enter(
            tx, memory.scope.key, document, sitting=sitting, named=named, now=now, analyser=self._analyser.name, old=old
        )
        memory = memory_rows.place(tx, memory, entered.slot, entered.place, document.length)
        return Saved(memory, written.outcome, tuple(warnings)), entered.due

    def remove(self, tx: Tx, caller: Caller, memory: Memory, expected: Expected = None) -> Memory:
        """Delete *memory* for good in an open transaction, if it is at the *expected* version. Raises `Overtaken` when it is not as it was
        read: then nothing may be kept of the transaction."""
        self.require_right(caller, memory.scope)
        require_version(memory.name, memory.version, checked_expected(expected))
        blocks.hold(tx, memory.scope.key, told(memory.scope.key))
        require_member(tx, caller, memory.scope)
        terms = self._terms_of(tx, memory)
        if not memory_rows.delete(tx, memory):
            raise Overtaken
        postings.leave(tx, memory.scope.key, memory.slot, memory.length, terms)
        return memory

    def require_right(self, caller: Caller, scope: Scope) -> None:
        """Where the policy restricts it, only who may approve changes what all users read."""
        if scope == GLOBAL and not self.writes_global(caller):
            raise global_restricted()

    def writes_global(self, caller: Caller) -> bool:
        """Whether *caller* may change what all users read, if they may write at all."""
        return self._global_write() != "restricted" or caller.may("approve")

    def _terms_of(self, tx: Tx, memory: Memory) -> Sequence[str]:
        """Every term under which a memory may stand in the index, its earlier versions included."""
        scope_key = memory.scope.key
        try:
            if is_sound(memory) and postings.indexed_by(tx, scope_key, self._analyser.name):
                terms: dict[str, int] = {}
                for name, description, content, tags in version_rows.texts(tx, memory):
                    terms |= self._analyser.document(content, (name, description, *tags)).counts
                return sorted(terms)
        except Damaged:
            pass
        return postings.every_term(tx, scope_key)  # another analyser, or damage, hides which they are


def require_member(tx: Tx, caller: Caller, scope: Scope) -> None:
    """Nobody writes to what several users share but a member who may, as things stand in this transaction; to others it is absent."""
    if scope.has_members and not sharing_rows.may_write(tx, scope, caller.user_id):
        raise NotFound("Memory not found")


def within_reach(tx: Tx, caller: Caller, memory_id: str, *, sound: bool = True) -> Memory:
    """The memory of that id if the caller may know of it; otherwise it is absent, whatever the reason.

    Raises `Damaged` when it must be *sound* and is not; what is damaged can still be deleted, and reverted to a sound version.
    """
    memory = memory_rows.by_id(tx, _plain_id(memory_id), sound=False)
    if memory is None or not reach(caller).holds(memory.scope):
        raise NotFound("Memory not found")
    return memory_rows.checked(memory) if sound else memory


def draft_of(memory: Memory, changes: Changes) -> Draft:
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


def _sitting(caller: Caller, draft: Draft) -> tuple[str, bool]:
    """Whose sitting a save belongs to, and whether the caller named it (then no gap in time ends it)."""
    if draft.sitting:
        return f"{caller.user_id}\n{draft.sitting}", True
    return f"{caller.user_id}\n{caller.credential}\n{draft.session}", bool(draft.session)


def _plain_id(memory_id: str) -> str:
    """A memory's id without the prefix that some faces write before it; what can be no id is that of nothing."""
    if not memory_id.isascii() or "\0" in memory_id:
        return ""
    return memory_id.removeprefix("mem_").removeprefix("m_")
