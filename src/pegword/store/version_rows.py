"""The versions of memories as rows: what each said after one change."""

from pegword.core.errors import Damaged
from pegword.core.memory import Memory, Version, is_sound
from pegword.store.engine import Row, Tx
from pegword.store.memory_rows import one_by_one, tags_of, tags_text

_ADD = """
    INSERT INTO memory_versions (scope_key, memory_id, version, action, name, kind, priority, source, author, credential, verified,
        confidence, expires_at, saved, content_hash, tags, description, content)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SELECT = """
    SELECT memory_id, version, action, name, kind, description, content, tags, priority, source, author, credential, verified,
        confidence, expires_at, saved, content_hash
    FROM memory_versions WHERE scope_key = ? AND memory_id = ?
"""
_TEXTS = "SELECT name, description, content, tags FROM memory_versions WHERE scope_key = ? AND memory_id = ?"


def add(tx: Tx, m: Memory, action: str) -> None:
    """Keep *m* as it stands as one version."""
    tx.run(
        _ADD,
        (
            m.scope.key, m.memory_id, m.version, action, m.name, m.kind, m.priority, m.source, m.author, m.credential,
            int(m.verified), m.confidence, m.expires_at, m.updated, m.content_hash, tags_text(m.tags), m.description, m.content,
        ),
    )  # fmt: skip


def page(tx: Tx, memory: Memory, limit: int, offset: int) -> list[Version]:
    """Those of *limit* versions of *memory* that are sound, newest first, after the *offset* newest ones."""
    key = (memory.scope.key, memory.memory_id)
    try:
        rows = tx.rows(_SELECT + " ORDER BY version DESC LIMIT ? OFFSET ?", (*key, limit, offset))
    except Damaged:
        last = max(memory.version - offset, 0)
        rows = one_by_one(tx, _SELECT + " AND version = ?", [(*key, n) for n in range(last, max(last - limit, 0), -1)])
    return [version for version in map(_version, rows) if is_sound(version)]


def one(tx: Tx, scope_key: str, memory_id: str, number: int) -> Version | None:
    """One version of a memory."""
    rows = tx.rows(_SELECT + " AND version = ?", (scope_key, memory_id, number))
    return _version(rows[0]) if rows else None


def texts(tx: Tx, memory: Memory) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Name, description, content and tags of *memory* as it stands and of every version of it."""
    rows = tx.rows(_TEXTS, (memory.scope.key, memory.memory_id))
    then = [(name, description, content, tags_of(tags)) for name, description, content, tags in rows]
    return [(memory.name, memory.description, memory.content, memory.tags), *then]


def _version(row: Row) -> Version:
    told = [*row[:7], tags_of(row[7]), *row[8:12], bool(row[12]), *row[13:]]
    return Version(*told)
