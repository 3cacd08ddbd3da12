"""What is carried of a memory from one store to another, what an import may claim, and which of two that differ stays."""

from dataclasses import dataclass

from pegword.core.caller import Caller
from pegword.core.memory import (
    CONFIDENCE_OF_HUMAN,
    KIND_DEFAULT,
    PRIORITY_DEFAULT,
    Draft,
    Memory,
    Trust,
    trust_of,
)

POLICIES = ("skip", "overwrite", "newer")
SKIP, OVERWRITE, NEWER = POLICIES

CREATED, UPDATED, UNCHANGED, SKIPPED, REFUSED = OUTCOMES = ("created", "updated", "unchanged", "skipped", "refused")


@dataclass(frozen=True, slots=True)
class Line:
    """One memory as a file names it. *number* is its line, from 1. None: the file does not say.

    *scope* and *scope_id* are as a caller names a scope. *updated* (microseconds since 1970), *verified*, *author* and *memory_id* are
    claims. *sitting* numbers the sittings of the scope that it was exported from; a text is a sitting's name. *unknown* are the names
    of fields that mean nothing here.
    """

    number: int
    name: str
    content: str
    scope: str = "global"
    scope_id: str = ""
    description: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] | None = None
    priority: str | None = None
    confidence: float | None = None
    source: str | None = None
    expires_at: int | None = None
    verified: bool | None = None
    author: str = ""
    updated: int | None = None
    memory_id: str = ""
    sitting: int | str = ""
    content_hash: str = ""
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unusable:
    """A line that holds no memory, and why."""

    number: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class State:
    """All that an import can change of a memory but its trust; two memories of the same state are the same to it."""

    content: str
    description: str
    kind: str
    tags: tuple[str, ...]
    priority: str
    confidence: float
    expires_at: int | None

    @classmethod
    def of(cls, memory: Memory) -> "State":
        """The state of a stored memory."""
        return cls(memory.content, memory.description, memory.kind, memory.tags, memory.priority, memory.confidence, memory.expires_at)


def state_after(before: State | None, draft: Draft, trust: Trust) -> State:
    """The state of a memory once *draft*, which was checked, is written over *before* (None: it is new)."""
    base = before or State("", "", KIND_DEFAULT, (), PRIORITY_DEFAULT, trust.confidence, None)
    return State(
        draft.content,
        base.description if draft.description is None else draft.description,
        draft.kind or base.kind,
        base.tags if draft.tags is None else draft.tags,
        draft.priority or base.priority,
        base.confidence if draft.confidence is None else draft.confidence,
        base.expires_at if draft.expires_at is None else draft.expires_at or None,
    )


def judged(before: State | None, after: State, policy: str, stored_at: int, line_at: int | None) -> tuple[str, str]:
    """What happens to a line under *policy*, and why when that is nothing: an outcome and a reason.

    *stored_at* is when the stored memory was saved last, *line_at* when the file says that its own was.
    """
    if before is None:
        return CREATED, ""
    if before == after:
        return UNCHANGED, ""
    if policy == OVERWRITE:
        return UPDATED, ""
    if policy == SKIP:
        return SKIPPED, "there is a memory of that name already, and it differs"
    if line_at is None:
        return SKIPPED, "the line does not say when it was updated, so it is not known to be newer"
    if line_at > stored_at:
        return UPDATED, ""
    return SKIPPED, "the stored one is as new or newer"


def import_trust(caller: Caller, draft: Draft, line: Line) -> Trust:
    """What an imported memory may say of itself: what its importer could say of it, and no more.

    A human's import keeps the file's source, and verifies what the file says is verified; what it says nothing of is the human's own
    word. An agent's is an agent's save, whatever the file claims. The author is the importer in either case.
    """
    if not caller.human:
        return trust_of(caller, draft)
    confidence = CONFIDENCE_OF_HUMAN if draft.confidence is None else draft.confidence
    return Trust(line.source or "user", confidence, "" if line.verified is False else caller.user_id)


def claims_not_taken(caller: Caller, line: Line, trust: Trust) -> tuple[str, ...]:
    """The claims of a line that its importer may not make: names of fields."""
    return tuple(
        name
        for name, lost in (
            ("author", bool(line.author) and line.author != caller.user_name),
            ("source", line.source is not None and line.source != trust.source),
            ("verified", bool(line.verified) and not trust.verified_by),
        )
        if lost
    )
