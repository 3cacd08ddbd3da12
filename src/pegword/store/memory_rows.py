"""Memories and their versions as rows."""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pegword.core.caller import Caller, Scope, Visible
from pegword.core.errors import Damaged
from pegword.core.memory import (
    CONFIDENCE_OF_AGENT,
    CONFIDENCE_OF_HUMAN,
    KIND_DEFAULT,
    NEVER,
    PRIORITY_DEFAULT,
    Draft,
    Memory,
    Trust,
    Version,
    folded,
    is_sound,
)
from pegword.store import once_rows, session_index_rows
from pegword.store.engine import Row, Tx, among, padded
from pegword.store.postings import BEING_SAVED, NOT_INDEXED, within

Saved = TypeVar("Saved", Memory, Version)

_NO_TAGS = "[]"
PLACED = f"slot >= {NOT_INDEXED}"  # as the index over places says it, or it would not be used

_log = logging.getLogger("pegword.store")

_COLUMNS = """memory_id, scope_key, shelf, name, kind, kind_word, description, content, tags, priority, source, author, author_user,
    credential, verified_by, verified_at, confidence, expires_at, created, updated, version, content_hash, access_count,
    last_accessed, slot, place, length"""

# One statement decides. It returns no row when nothing would change.
_UPSERT = f"""
    INSERT INTO structured_memories AS m (
        memory_id, scope_key, shelf, name_key, slot, place, length, scope, scope_id, name, kind, kind_word, priority, source, author,
        author_user, credential, verified_by, verified_at, confidence, expires_at, created, updated, version, access_count,
        last_accessed, content_hash, tags, description, content)
    VALUES (
        :memory_id, :scope_key, :shelf, :name, {BEING_SAVED}, 0, 0, :scope, :scope_id, :name, coalesce(:kind, '{KIND_DEFAULT}'),
        :kind_word, coalesce(:priority, '{PRIORITY_DEFAULT}'), :source, :author, :author_user, :credential, :verified_by, :verified_at,
        :trusted, nullif(:expires_at, {NEVER}), :now, :now, 1, 0, NULL, '', coalesce(:tags, '[]'), coalesce(:description, ''), :content)
    ON CONFLICT (scope_key, shelf, name_key) DO UPDATE SET
        kind = coalesce(:kind, m.kind),
        kind_word = CASE WHEN CAST(:kind AS TEXT) IS NULL THEN m.kind_word ELSE excluded.kind_word END,
        priority = coalesce(:priority, m.priority),
        source = excluded.source,
        author = excluded.author,
        author_user = excluded.author_user,
        credential = excluded.credential,
        verified_by = CASE
            WHEN excluded.verified_at IS NOT NULL THEN excluded.verified_by
            WHEN m.verified_at IS NOT NULL THEN m.verified_by ELSE '' END,
        verified_at = excluded.verified_at,
        confidence = coalesce(:confidence, CASE
            WHEN m.content <> excluded.content OR m.description <> coalesce(:description, m.description)
                OR (m.verified_at IS NOT NULL AND excluded.verified_at IS NULL)
            THEN excluded.confidence ELSE m.confidence END),
        expires_at = CASE
            WHEN CAST(:expires_at AS BIGINT) IS NOT NULL THEN excluded.expires_at
            WHEN m.expires_at <= :now THEN NULL ELSE m.expires_at END,
        updated = CASE WHEN m.created > :now THEN m.created ELSE :now END,
        version = m.version + 1,
        tags = coalesce(:tags, m.tags),
        description = coalesce(:description, m.description),
        content = excluded.content
    WHERE m.content <> excluded.content
        OR m.description <> coalesce(:description, m.description)
        OR m.kind <> coalesce(:kind, m.kind)
        OR m.priority <> coalesce(:priority, m.priority)
        OR m.tags <> coalesce(:tags, m.tags)
        OR m.confidence <> coalesce(:confidence, m.confidence)
        OR m.expires_at <= :now
        OR (CAST(:expires_at AS BIGINT) IS NOT NULL AND excluded.expires_at IS DISTINCT FROM m.expires_at)
    RETURNING {_COLUMNS}
"""
# The same thing saved again: nothing changes but the time, and which of two words for its kind it was saved with.
_TOUCH = f"""
    UPDATE structured_memories SET
        updated = CASE WHEN created > :now THEN created ELSE :now END,
        kind_word = CASE WHEN CAST(:kind AS TEXT) IS NULL THEN kind_word ELSE :kind_word END
    WHERE scope_key = :scope_key AND shelf = :shelf AND name_key = :name
    RETURNING {_COLUMNS}
"""
_PLACE = "UPDATE structured_memories SET slot = ?, place = ?, length = ?, content_hash = ? WHERE memory_id = ?"
_DROP_TAGS = "DELETE FROM memory_tags WHERE scope_key = ? AND memory_id = ?"
_ADD_TAG = "INSERT INTO memory_tags (scope_key, memory_id, tag_key) VALUES "
_SELECT = f"SELECT {_COLUMNS} FROM structured_memories AS m WHERE "
_NEWEST_IDS = "SELECT memory_id FROM structured_memories AS m WHERE {condition} ORDER BY updated DESC, memory_id LIMIT ?"
_NEWEST = f"SELECT {_COLUMNS} FROM structured_memories WHERE memory_id IN ({_NEWEST_IDS}) ORDER BY updated DESC, memory_id"
_IDS = "SELECT scope_key, slot, memory_id, version FROM structured_memories WHERE "
_SELECT_BARE = _SELECT.replace("description, content, tags", "'', '', '[]'")
_DELETE = "DELETE FROM structured_memories WHERE memory_id = ? AND version = ? AND slot = ? AND length = ?"
_DELETE_VERSIONS = "DELETE FROM memory_versions WHERE scope_key = ? AND memory_id = ?"
_DELETE_RECEIPTS = "DELETE FROM receipts WHERE receipt_id IN (SELECT receipt_id FROM receipts WHERE memory_id = ?)"
_SLOTS = "SELECT scope_key, slot FROM structured_memories AS m WHERE "
_COUNT = "SELECT count(*) FROM structured_memories AS m WHERE "
_ACCESSED = "UPDATE structured_memories SET access_count = access_count + ?, last_accessed = ? WHERE memory_id = ?"


@dataclass(frozen=True, slots=True)
class Filters:
    """What a read leaves in: *kind* and *tag* ("" for any), and whether what has expired by *now* or has confidence 0 stays."""

    now: int
    kind: str = ""
    tag: str = ""
    include_expired: bool = False
    include_doubted: bool = True

    @property
    def narrow(self) -> bool:
        """Whether these leave out more than what has expired."""
        return bool(self.kind or self.tag)


@dataclass(frozen=True, slots=True)
class Written:
    """What one upsert did: the *memory* as it now stands (not yet placed in the index), *outcome*, one of created, updated, unchanged, and
    the version that was there *before* (0: none)."""

    memory: Memory
    outcome: str
    before: int


def upsert(tx: Tx, new_id: str, draft: Draft, trust: Trust, caller: Caller, now: int) -> Written:
    """Create or change the memory of the draft's identity, whatever its version."""
    confidence = CONFIDENCE_OF_HUMAN if caller.human else CONFIDENCE_OF_AGENT
    parameters = {
        "memory_id": new_id, "scope_key": draft.scope.key, "shelf": draft.shelf, "name": draft.name, "scope": draft.scope.kind,
        "scope_id": draft.scope.id, "kind": draft.kind, "kind_word": draft.kind_word, "priority": draft.priority,
        "source": trust.source, "author": caller.user_name, "author_user": caller.user_id, "credential": caller.credential,
        "verified_by": trust.verified_by, "verified_at": now if trust.verified_by else None, "confidence": draft.confidence,
        "trusted": confidence if draft.confidence is None else draft.confidence, "expires_at": draft.expires_at, "now": now,
        "tags": None if draft.tags is None else tags_text(draft.tags), "description": draft.description, "content": draft.content,
    }  # fmt: skip
    rows = tx.rows(_UPSERT, parameters)
    if rows:
        memory = _memory(rows[0])
        return Written(memory, "created" if memory.memory_id == new_id else "updated", memory.version - 1)
    memory = _memory(tx.rows(_TOUCH, parameters)[0])
    return Written(memory, "unchanged", memory.version)


def place(tx: Tx, memory: Memory, slot: int, at: int, length: int) -> Memory:
    """Write down where a changed memory lies in the index, and the hash that it has now; return it so."""
    tx.run(_PLACE, (slot, at, length, memory.content_hash, memory.memory_id))
    return memory._replace(slot=slot, place=at, length=length)


def set_tags(tx: Tx, memory: Memory, *, fresh: bool) -> None:
    """Make the tag rows of *memory* those of its tags. *fresh*: it is new, so it has none yet."""
    if not fresh:
        tx.run(_DROP_TAGS, (memory.scope.key, memory.memory_id))
    if memory.tags:
        values = ", ".join(["(?, ?, ?)"] * len(memory.tags))
        tx.run(_ADD_TAG + values, [v for tag in memory.tags for v in (memory.scope.key, memory.memory_id, folded(tag))])


def by_name(tx: Tx, scope: Scope, name: str, shelf: str = "", *, sound: bool = True) -> Memory | None:
    """The memory of that identity, expired or not. Raises `Damaged` unless *sound* is false."""
    return _one(tx, "scope_key = ? AND shelf = ? AND name_key = ?", (scope.key, shelf, name), sound=sound)


def by_id(tx: Tx, memory_id: str, *, sound: bool = True) -> Memory | None:
    """The memory of that id, expired or not, whoever's it is: the caller must look at its scope. `Damaged` unless *sound* is false."""
    return _one(tx, "memory_id = ?", (memory_id,), sound=sound)


def by_slots(tx: Tx, slots: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Memory]:
    """The memories at these (scope key, slot) pairs. What is damaged is left out: it is reported, not served."""
    if not slots:
        return {}
    wanted = padded(slots)
    pairs = ", ".join(["(?, ?)"] * len(wanted))
    try:
        rows = tx.rows(f"{_SELECT}{PLACED} AND (scope_key, slot) IN (VALUES {pairs})", [v for pair in wanted for v in pair])
    except Damaged:
        rows = one_by_one(tx, _SELECT + "scope_key = ? AND slot = ?", slots)
    return {(m.scope.key, m.slot): m for m in _sound_ones(rows)}


def by_ids(tx: Tx, memory_ids: Sequence[str]) -> dict[str, Memory]:
    """The memories of these ids, whoever's they are. What is damaged is left out."""
    try:
        rows = tx.rows(_SELECT + among("memory_id", len(memory_ids)), padded(memory_ids))
    except Damaged:
        rows = one_by_one(tx, _SELECT + "memory_id = ?", [(memory_id,) for memory_id in memory_ids])
    return {m.memory_id: m for m in _sound_ones(rows)}


def still_there(tx: Tx, slots: Sequence[tuple[str, int]], memory_ids: Sequence[str]) -> list[tuple[str, int, str, int]]:
    """Scope key, slot, id and version of the memories that are at these (scope key, slot) pairs or have these ids; of one that is both,
    twice."""
    if not slots and not memory_ids:
        return []
    parts, parameters = [], []  # two statements in one: joined by OR, the first would keep the second from its index
    if slots:
        wanted = padded(slots)
        parts.append(f"{_IDS}{PLACED} AND (scope_key, slot) IN (VALUES {', '.join(['(?, ?)'] * len(wanted))})")
        parameters += [v for pair in wanted for v in pair]
    if memory_ids:
        parts.append(_IDS + among("memory_id", len(memory_ids)))
        parameters += padded(memory_ids)
    return [(key, slot, memory_id, number) for key, slot, memory_id, number in tx.rows(" UNION ALL ".join(parts), parameters)]


def newest(tx: Tx, visible: Visible, filters: Filters, limit: int) -> list[Memory]:
    """The *limit* memories saved last, newest first."""
    return _newest(tx, *filtered(visible, filters), limit)


def count(tx: Tx, visible: Visible, filters: Filters) -> int:
    """How many memories are visible under *filters*."""
    condition, parameters = filtered(visible, filters)
    return int(tx.rows(_COUNT + condition, parameters)[0][0])


def slots(tx: Tx, visible: Visible, filters: Filters) -> list[tuple[str, int]]:
    """Where in the index the memories lie that *filters* leave in."""
    condition, parameters = filtered(visible, filters)
    return [(row[0], row[1]) for row in tx.rows(f"{_SLOTS}{condition} AND slot >= 0", parameters)]


def delete(tx: Tx, memory: Memory) -> bool:
    """Delete the rows of *memory*: itself, its versions, its tags, and the receipts, kept answers and indexes that tell of it; False, and
    nothing is deleted, when it is not as it was read. Its scope is held by `told`, so that nothing begins to tell of it."""
    if not tx.run(_DELETE, (memory.memory_id, memory.version, memory.slot, memory.length)):
        return False
    tx.run(_DELETE_VERSIONS, (memory.scope.key, memory.memory_id))
    tx.run(_DROP_TAGS, (memory.scope.key, memory.memory_id))
    tx.run(_DELETE_RECEIPTS, (memory.memory_id,))
    once_rows.forget_memories(tx, [memory.memory_id])
    session_index_rows.forget_memories(tx, [memory.memory_id])
    return True


def accessed(tx: Tx, many: Sequence[tuple[Sequence[str], int]]) -> None:
    """Count one access of each memory of each set of ids, at the time that goes with it. Their scopes are held, and `MANY_ROWS`."""
    times: dict[str, list[int]] = {}
    for memory_ids, at in many:
        for memory_id in memory_ids:
            times.setdefault(memory_id, []).append(at)
    if times:
        tx.run_many(_ACCESSED, [(len(ats), max(ats), memory_id) for memory_id, ats in times.items()])


def tags_text(tags: Sequence[str]) -> str:
    """Tags as they are stored."""
    return _NO_TAGS if not tags else json.dumps(list(tags), ensure_ascii=False)


def tags_of(text: str) -> tuple[str, ...]:
    """Tags as they were stored; of what is no list of texts, one that no memory can have, so that no hash fits."""
    if text == _NO_TAGS:
        return ()
    try:
        tags = json.loads(text)
    except (ValueError, TypeError):
        tags = None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return ("\0",)
    return tuple(tags)


def checked(saved: Saved) -> Saved:
    """A memory or a version as it is, or `Damaged`."""
    if not is_sound(saved):
        raise Damaged(f"memory {saved.memory_id} does not match its hash: it was damaged on disk; restore it from a backup")
    return saved


def _one(tx: Tx, condition: str, parameters: Sequence[str], *, sound: bool) -> Memory | None:
    """The memory under *condition*; `Damaged` when it must be *sound* and is not. What cannot be read of it otherwise is left empty."""
    try:
        rows = tx.rows(_SELECT + condition, parameters)
    except Damaged:
        if sound:
            raise
        rows = tx.rows(_SELECT_BARE + condition, parameters)
    if not rows:
        return None
    memory = _memory(rows[0])
    return checked(memory) if sound else memory


def _newest(tx: Tx, condition: str, parameters: Sequence[object], limit: int) -> list[Memory]:
    try:
        rows = tx.rows(_NEWEST.replace("{condition}", condition), (*parameters, limit))
    except Damaged:
        ids = tx.rows(_NEWEST_IDS.replace("{condition}", condition), (*parameters, limit))
        rows = one_by_one(tx, _SELECT + "memory_id = ?", ids)
    return list(_sound_ones(rows))


def _sound_ones(rows: Iterable[Row]) -> Iterator[Memory]:
    """The memories of *rows* but for those that are damaged, which are reported in the log."""
    for row in rows:
        try:
            yield checked(_memory(row))
        except Damaged:
            _log.error("memory %s does not match its hash: it was damaged on disk, and is left out", row[0])


def one_by_one(tx: Tx, sql: str, keys: Iterable[Sequence[object]]) -> list[Row]:
    """The rows of *sql* for each of *keys*, where a row is so damaged that it cannot be read with the others."""
    rows = []
    for key in keys:
        try:
            rows += tx.rows(sql, key)
        except Damaged:
            _log.error("the memory at %s was damaged on disk, and is left out", key)
    return rows


def filtered(visible: Visible, filters: Filters) -> tuple[str, list[object]]:
    """The condition on the memories *m* that *filters* leave in of those *visible*, and its parameters."""
    condition, keys = within(visible)
    parameters: list[object] = list(keys)
    parts = [condition or "1 = 0", PLACED]
    if filters.kind:
        parts.append("kind = ?")
        parameters.append(filters.kind)
    if filters.tag:
        parts.append(
            "EXISTS (SELECT 1 FROM memory_tags AS t WHERE t.scope_key = m.scope_key AND t.memory_id = m.memory_id AND t.tag_key = ?)"
        )
        parameters.append(folded(filters.tag))
    if not filters.include_expired:
        parts.append("(expires_at IS NULL OR expires_at > ?)")
        parameters.append(filters.now)
    if not filters.include_doubted:
        parts.append("confidence > 0")
    return " AND ".join(parts), parameters


def _memory(row: Row) -> Memory:
    try:
        return Memory._make((row[0], Scope.from_key(row[1]), *row[2:8], tags_of(row[8]), *row[9:]))
    except (ValueError, TypeError, AttributeError) as error:  # the key of its scope is none
        raise Damaged(f"memory {row[0]} was damaged on disk: restore it from a backup") from error
