"""Whether stored rows are sound: memories and versions against their hashes, memories against their newest version and their tags.

It only reads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pegword.core.errors import Damaged
from pegword.core.memory import folded, hash_of
from pegword.store.engine import Row, Tx
from pegword.store.memory_rows import tags_of

ROWS_AT_ONCE = 200
NAMED_MAX = 20  # of what is wrong, so many are told one by one

# Called with how many rows were looked at since the last call.
Progress = Callable[[int], None]

_FIELDS = "scope_key, memory_id, version, name, kind, description, content, tags, content_hash"
_COUNT = "SELECT count(*) FROM structured_memories"
_MEMORIES = "SELECT {fields} FROM structured_memories WHERE memory_id > ? ORDER BY memory_id LIMIT ?"
_MEMORY = f"SELECT {_FIELDS} FROM structured_memories WHERE scope_key = ? AND memory_id = ? AND version = ?"
_VERSIONS = """
    SELECT {fields} FROM memory_versions WHERE (scope_key, memory_id, version) > (?, ?, ?)
    ORDER BY scope_key, memory_id, version LIMIT ?
"""
_VERSION = f"SELECT {_FIELDS} FROM memory_versions WHERE scope_key = ? AND memory_id = ? AND version = ?"
_KEYS = "scope_key, memory_id, version"
_TAGS = "SELECT memory_id, tag_key FROM memory_tags WHERE (scope_key, memory_id) IN (VALUES {marks})"
_KEPT = "SELECT memory_id, content_hash FROM memory_versions WHERE (scope_key, memory_id, version) IN (VALUES {marks})"


@dataclass(slots=True)
class Found:
    """How many rows were *looked_at*, how many are at *fault*, and the first of those, each in a few words."""

    looked_at: int = 0
    faulty: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, words: str) -> None:
        """Note one row that is at fault."""
        self.faulty += 1
        if len(self.named) < NAMED_MAX:
            self.named.append(words)


def count(tx: Tx) -> int:
    """How many memories there are."""
    return int(tx.rows(_COUNT)[0][0])


def memories(tx: Tx, found: Found, progress: Progress, *, after: str = "", limit: int = 0) -> None:
    """Look at the memories after the id *after*: all of them, or *limit*."""
    while True:
        count = min(ROWS_AT_ONCE, limit - found.looked_at) if limit else ROWS_AT_ONCE
        rows, unread = _read(tx, _MEMORIES, _MEMORY, (after,), count)
        for _, memory_id, _ in unread:
            found.add(f"memory {memory_id} holds a text that is no UTF-8")
        kept, tags = _kept(tx, rows), _tags(tx, rows)
        for row in rows:
            memory_id, wrong = row[1], _wrong(row)
            if not wrong and kept.get(memory_id) != row[8]:
                wrong = "is not the same as its newest version"
            if not wrong and tags.get(memory_id, set()) != {folded(tag) for tag in tags_of(row[7])}:
                wrong = "is not found by its tags"
            if wrong:
                found.add(f"memory {memory_id} ({row[3]}) {wrong}")
        seen = len(rows) + len(unread)
        found.looked_at += seen
        progress(seen)
        if seen < count or (limit and found.looked_at >= limit):
            return
        after = max(row[1] for row in [*rows, *unread])


def versions(tx: Tx, found: Found, progress: Progress) -> None:
    """Look at every version."""
    after: tuple[str, str, int] = ("", "", -1)
    while True:
        rows, unread = _read(tx, _VERSIONS, _VERSION, after, ROWS_AT_ONCE)
        for _, memory_id, number in unread:
            found.add(f"version {number} of memory {memory_id} holds a text that is no UTF-8")
        for row in rows:
            wrong = _wrong(row)
            if wrong:
                found.add(f"version {row[2]} of memory {row[1]} ({row[3]}) {wrong}")
        seen = len(rows) + len(unread)
        found.looked_at += seen
        progress(seen)
        if seen < ROWS_AT_ONCE:
            return
        after = max((row[0], row[1], row[2]) for row in [*rows, *unread])


def _wrong(row: Row) -> str:
    _, _, _, name, kind, description, content, tags, content_hash = row
    return "" if content_hash == hash_of(name, kind, description, content, tags_of(tags)) else "does not match its hash"


def _read(tx: Tx, some: str, one: str, after: Sequence[object], count: int) -> tuple[list[Row], list[Row]]:
    """The next rows, and the keys of those among them whose texts cannot be read."""
    try:
        return tx.rows(some.format(fields=_FIELDS), (*after, count)), []
    except Damaged:
        rows: list[Row] = []
        unread: list[Row] = []
        for key in tx.rows(some.format(fields=_KEYS), (*after, count)):
            try:
                rows += tx.rows(one, key)
            except Damaged:
                unread.append(key)
        return rows, unread


def _kept(tx: Tx, rows: Sequence[Row]) -> dict[str, str]:
    """The hash of the newest version of each memory among *rows*."""
    return dict(tx.rows(*_values(_KEPT, [row[:3] for row in rows]))) if rows else {}


def _tags(tx: Tx, rows: Sequence[Row]) -> dict[str, set[str]]:
    """The tags under which each memory among *rows* is found."""
    found: dict[str, set[str]] = {}
    for memory_id, tag in tx.rows(*_values(_TAGS, [row[:2] for row in rows])) if rows else ():
        found.setdefault(memory_id, set()).add(tag)
    return found


def _values(sql: str, keys: Sequence[Row]) -> tuple[str, list[object]]:
    mark = f"({', '.join('?' * len(keys[0]))})"
    return sql.format(marks=", ".join([mark] * len(keys))), [value for key in keys for value in key]
