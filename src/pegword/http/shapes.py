"""What the answers look like: the structs that every face of ours sends, and how a memory becomes one.

`created` and `updated` are written as the clients of the reference read them, without a zone; every other time is ISO 8601 with ``Z``.
"""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import msgspec

from pegword.core.memory import SECOND_US, Memory
from pegword.http.routing import Answer, Call
from pegword.services.memories import History, Page, SearchResult
from pegword.services.writing import Saved

SCORE_DIGITS = 6
_BEGINNING = datetime(1970, 1, 1)
_SECONDS_KEPT = 4_096


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A memory, whole. Times are UTC."""

    memory_id: str
    name: str
    description: str
    type: str
    scope: str
    scope_id: str
    content: str
    created: str
    updated: str
    tags: list[str]
    priority: str
    source: Annotated[str, msgspec.Meta(description="who says so: user, agent, tool or system")]
    author: Annotated[str, msgspec.Meta(description="the user whose credential wrote it")]
    verified: Annotated[bool, msgspec.Meta(description="whether a human confirmed it as it stands")]
    confidence: float
    expires_at: str | None
    version: int
    hash: str
    last_accessed: Annotated[str, msgspec.Meta(description='"" when it never was')]
    access_count: int
    expired: Annotated[bool, msgspec.Meta(description="only there when it is")] = False


RecordT = TypeVar("RecordT", bound=Record)


class SavedRecord(Record, omit_defaults=True, kw_only=True):
    """A memory as a write left it."""

    outcome: Annotated[str, msgspec.Meta(description="created, updated or unchanged")]
    warnings: list[str] = []


class FoundRecord(Record, omit_defaults=True, kw_only=True):
    """A memory that a search found; a score compares within one search only."""

    score: float


class RecordPage(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A list: `total` counts all matches, `truncated` says that there are more than are here."""

    memories: list[Record]
    total: int
    truncated: bool
    warnings: list[str] = []


class FoundPage(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a search found, best first. `left_out` are the first of the `left_out_n` terms above the cap of a query; `cut` says that its
    phrases were looked for in the best candidates only."""

    memories: list[FoundRecord]
    total: int
    truncated: bool
    left_out: list[str] = []
    left_out_n: int = 0
    cut: bool = False
    warnings: list[str] = []


class Deleted(msgspec.Struct, kw_only=True):
    """What was deleted, for good."""

    status: str
    name: str


class VersionRecord(msgspec.Struct, kw_only=True):
    """A memory as it stood after one change; `action` is what made it."""

    version: int
    action: str
    name: str
    description: str
    type: str
    content: str
    tags: list[str]
    priority: str
    source: str
    author: str
    verified: bool
    confidence: float
    expires_at: str | None
    saved: str
    hash: str


class VersionPage(msgspec.Struct, kw_only=True):
    """Versions of a memory, newest first; *total* counts all, and *truncated* says that there are older ones."""

    versions: list[VersionRecord]
    total: int
    truncated: bool


def record(call: Call, memory: Memory, *, tells_expired: bool = False) -> Record:
    """*memory* as *call*'s client reads it; with *tells_expired* it says when it has run out."""
    return _record(Record, call, memory, expired=tells_expired and memory.expired(call.services.clock()))


def record_answer(call: Call, memory: Memory) -> Answer:
    """*memory* alone, with its version as the ETag."""
    return Answer(record(call, memory, tells_expired=True), headers=_etag(memory))


def saved_answer(call: Call, saved: Saved) -> Answer:
    """What a write left: 201 when that is new."""
    warnings = [*saved.warnings, *call.warnings]
    body = _record(SavedRecord, call, saved.memory, outcome=saved.outcome, warnings=warnings)
    return Answer(body, 201 if saved.outcome == "created" else 200, _etag(saved.memory), (saved.memory.memory_id,))


def page_answer(call: Call, page: Page) -> Answer:
    """A list."""
    memories = [record(call, memory) for memory in page.memories]
    return Answer(RecordPage(memories=memories, total=page.total, truncated=page.total > len(memories), warnings=list(call.warnings)))


def found_answer(call: Call, result: SearchResult) -> Answer:
    """What a search found."""
    memories = [_record(FoundRecord, call, hit.memory, score=round(hit.score, SCORE_DIGITS)) for hit in result.hits]
    body = FoundPage(
        memories=memories,
        total=result.total,
        truncated=result.total > len(memories),
        left_out=list(result.left_out),
        left_out_n=result.left_out_n,
        cut=result.cut,
        warnings=list(call.warnings),
    )
    return Answer(body)


def deleted_answer(memory: Memory) -> Answer:
    """What was deleted."""
    return Answer(Deleted(status="ok", name=memory.name))


def versions_answer(call: Call, history: History, *, truncated: bool) -> Answer:
    """The history of one memory, or a part of it."""
    records = [
        VersionRecord(
            version=v.version, action=v.action, name=v.name, description=v.description, type=type_word(call, v.kind), content=v.content,
            tags=list(v.tags), priority=v.priority, source=v.source, author=v.author, verified=v.verified, confidence=v.confidence,
            expires_at=moment_or_none(v.expires_at), saved=moment(v.saved), hash=v.content_hash,
        )
        for v in history.versions
    ]  # fmt: skip
    return Answer(VersionPage(versions=records, total=history.total, truncated=truncated))


def type_word(call: Call, kind: str, saved_as: str = "") -> str:
    """How *call*'s client spells *kind*."""
    return call.settings.kind_word(kind, saved_as, call.caller.project_word)


def moment(at: int) -> str:
    """Microseconds since 1970 as ISO 8601 with ``Z``."""
    return (_BEGINNING + timedelta(microseconds=at)).isoformat() + "Z"


def moment_or_none(at: int | None) -> str | None:
    """As `moment`; None stays None."""
    return None if at is None else moment(at)


def _record(kind: type[RecordT], call: Call, m: Memory, **more: Any) -> RecordT:
    return kind(
        memory_id=m.memory_id, name=m.name, description=m.description, type=type_word(call, m.kind, m.kind_word), scope=m.scope.kind,
        scope_id=m.scope.id, content=m.content, created=_second(m.created), updated=_second(m.updated), tags=list(m.tags),
        priority=m.priority, source=m.source, author=m.author, verified=m.verified, confidence=m.confidence,
        expires_at=moment_or_none(m.expires_at), version=m.version, hash=m.content_hash,
        last_accessed="" if m.last_accessed is None else moment(m.last_accessed), access_count=m.access_count, **more,
    )  # fmt: skip


def _etag(memory: Memory) -> tuple[tuple[str, str], ...]:
    return (("ETag", f'"{memory.version}"'),)


def _second(at: int) -> str:
    """Microseconds since 1970 as the clients of the reference read them: what is below a second is cut."""
    return _written(at // SECOND_US)


@lru_cache(_SECONDS_KEPT)
def _written(second: int) -> str:
    """Kept, since it took a twentieth of a search: most memories changed in the second in which they were made, or are read again soon."""
    return (_BEGINNING + timedelta(0, second)).isoformat()
