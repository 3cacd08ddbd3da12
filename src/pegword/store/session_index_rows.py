"""The indexes of sessions as rows: the text that a model was given, and which memories it names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegword.core.caller import Visible
from pegword.store.engine import Tx, among, padded
from pegword.store.postings import within

KEPT_US = 30 * 24 * 3_600 * 1_000_000
DROPPED_AT_ONCE = 1_000
_ROWS_AT_ONCE = 500

_GET = "SELECT index_id, basis, made_at, body FROM session_indexes WHERE index_key = ?"
# The memories that it names, and of each whether it may no longer be shown unasked.
_NAMED = """
    SELECT e.memory_id, e.version, CASE WHEN m.memory_id IS NULL OR m.confidence = 0 OR m.expires_at <= ? THEN 1 ELSE 0 END
    FROM session_index_memories AS e LEFT JOIN structured_memories AS m ON m.memory_id = e.memory_id
    WHERE e.index_id = ?
"""
# Whoever comes first keeps it; whoever comes beside them waits here, and finds it kept.
_ADD = """
    INSERT INTO session_indexes (index_key, index_id, basis, made_at, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (index_key) DO NOTHING
"""
_ADD_NAMED = "INSERT INTO session_index_memories (index_id, memory_id, version) VALUES "
_DROP = "DELETE FROM session_indexes WHERE "
_DROP_NAMED = "DELETE FROM session_index_memories WHERE "
_NAMING = "SELECT DISTINCT index_id FROM session_index_memories WHERE "
_OF_KEYS = "SELECT index_id FROM session_indexes WHERE "
_OLD = "SELECT index_id FROM session_indexes WHERE made_at < ? ORDER BY made_at LIMIT ?"
# Those that matter most first: by priority, then the newest.
_CANDIDATES = """
    SELECT scope_key, slot FROM structured_memories
    WHERE {visible} AND slot >= 0 AND confidence > 0 AND (expires_at IS NULL OR expires_at > ?)
    ORDER BY CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'low' THEN 3 ELSE 2 END, updated DESC, slot DESC, memory_id
    LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept index: its *index_id*, the *basis* that it was made on and when, its text, the version of each memory that it names, and
    whether all of those may still be shown."""

    index_id: str
    basis: str
    made_at: int
    body: str
    versions: Mapping[str, int]
    sound: bool


def get(tx: Tx, index_key: str, now: int) -> Kept | None:
    """The index that is kept under *index_key*."""
    rows = tx.rows(_GET, (index_key,))
    if not rows:
        return None
    index_id, basis, made_at, body = rows[0]
    named = tx.rows(_NAMED, (now, index_id))
    return Kept(index_id, basis, made_at, body, {row[0]: row[1] for row in named}, not any(row[2] for row in named))


def keep(tx: Tx, index_key: str, kept: Kept, instead_of: str) -> None:
    """Keep an index under *index_key* if none is kept there but the one of the id *instead_of* ("" for none)."""
    if instead_of:
        drop(tx, [instead_of])
    if not tx.run(_ADD, (index_key, kept.index_id, kept.basis, kept.made_at, kept.body)):
        return
    versions = list(kept.versions.items())
    for start in range(0, len(versions), _ROWS_AT_ONCE):
        some = versions[start : start + _ROWS_AT_ONCE]
        rows = ", ".join(["(?, ?, ?)"] * len(some))
        tx.run(_ADD_NAMED + rows, [v for memory_id, version in some for v in (kept.index_id, memory_id, version)])


def candidates(tx: Tx, visible: Visible, now: int, limit: int) -> list[tuple[str, int]]:
    """Scope key and slot of the *limit* memories that an index over *visible* should name, those that matter most first."""
    condition, keys = within(visible)
    return [(row[0], row[1]) for row in tx.rows(_CANDIDATES.replace("{visible}", condition or "1 = 0"), (*keys, now, limit))]


def forget_memories(tx: Tx, memory_ids: Sequence[str]) -> None:
    """Keep no index any longer that names one of these memories."""
    drop(tx, [row[0] for row in tx.rows(_NAMING + among("memory_id", len(memory_ids)), padded(memory_ids))])


def drop(tx: Tx, index_ids: Sequence[str]) -> None:
    """Forget these indexes."""
    for start in range(0, len(index_ids), _ROWS_AT_ONCE):
        some = index_ids[start : start + _ROWS_AT_ONCE]
        for statement in (_DROP, _DROP_NAMED):
            tx.run(statement + among("index_id", len(some)), padded(some))


def key_of(session_id: str) -> str:
    """What the index of a session is kept under."""
    return f"session:{session_id}"


def forget_sessions(tx: Tx, session_ids: Sequence[str]) -> None:
    """Keep the index of none of these sessions."""
    keys = [key_of(session_id) for session_id in session_ids]
    drop(tx, [row[0] for row in tx.rows(_OF_KEYS + among("index_key", len(keys)), padded(keys))])


def drop_before(tx: Tx, at: int) -> bool:
    """Forget what was made before *at*, but not all at once: True when more of it is left."""
    old = [row[0] for row in tx.rows(_OLD, (at, DROPPED_AT_ONCE))]
    drop(tx, old)
    return len(old) == DROPPED_AT_ONCE
