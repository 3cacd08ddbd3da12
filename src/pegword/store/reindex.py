"""A scope's index made again from its memories, for an analyser that makes other terms than the one before.

The new index is worked out beside the old one, which serves meanwhile, and takes its place in one transaction.
"""

from collections.abc import Callable, Sequence

from pegword.core.errors import Damaged
from pegword.core.text import Document
from pegword.store import blocks
from pegword.store.engine import MANY_ROWS, Engine, Row, Tx
from pegword.store.memory_rows import tags_of
from pegword.store.packing import Gathered

READ_AT_ONCE = 500

# What the analyser makes of name, description, content and tags.
Analyse = Callable[[str, str, str, tuple[str, ...]], Document]
# Called with how many memories have been read since the last call.
Progress = Callable[[int], None]

_STALE = "SELECT scope_key, n FROM ix_scope WHERE analyser <> ? ORDER BY scope_key"
_TEXTS = """
    SELECT slot, name, description, content, tags FROM structured_memories
    WHERE scope_key = ? AND slot >= -1 AND slot > ? ORDER BY slot LIMIT ?
"""
_SLOTS = """
    SELECT slot FROM structured_memories
    WHERE scope_key = ? AND slot >= -1 AND slot > ? ORDER BY slot LIMIT ?
"""
_LIVE = "SELECT slot, place, memory_id, length FROM structured_memories WHERE scope_key = ? AND slot >= -1 AND slot >= 0 ORDER BY slot"
_EMPTY = tuple(f"DELETE FROM {table} WHERE scope_key = ?" for table in ("ix_block", "ix_tail", "ix_dead"))
_LENGTH = "UPDATE structured_memories SET length = ? WHERE memory_id = ?"
_DONE = """
    UPDATE ix_scope SET n = ?, words = ?, tail_n = 0, dead_n = 0, version = version + 1, analyser = ? WHERE scope_key = ?
"""


def stale(tx: Tx, analyser: str) -> list[tuple[str, int]]:
    """The scopes whose index another analyser made, with how many memories each holds."""
    return [(key, n) for key, n in tx.rows(_STALE, (analyser,))]


def reindex_scope(engine: Engine, scope_key: str, analyser: str, analyse: Analyse, progress: Progress) -> None:
    """Make the index of one scope again."""
    documents: dict[int, Document] = {}
    slot = -1
    while True:
        with engine.read() as tx:
            rows = _read(tx, scope_key, slot, READ_AT_ONCE)
        for slot, *texts in rows:
            documents[slot] = _document(analyse, texts)
        progress(len(rows))
        if len(rows) < READ_AT_ONCE:
            break
    engine.write(lambda tx: _replace(tx, scope_key, analyser, analyse, documents))


def _read(tx: Tx, scope_key: str, slot: int, count: int) -> list[Row]:
    """Slot and texts of the next memories after *slot*; of one whose texts are damaged, the slot alone."""
    try:
        return tx.rows(_TEXTS, (scope_key, slot, count))
    except Damaged:
        rows: list[Row] = []
        for (next_slot,) in tx.rows(_SLOTS, (scope_key, slot, count)):
            try:
                rows += tx.rows(_TEXTS, (scope_key, next_slot - 1, 1))
            except Damaged:
                rows.append((next_slot,))
        return rows


def _document(analyse: Analyse, texts: Sequence[str]) -> Document:
    if not texts:
        return Document({}, 0)
    name, description, content, tags = texts
    return analyse(name, description, content, tags_of(tags))


def _replace(tx: Tx, scope_key: str, analyser: str, analyse: Analyse, documents: dict[int, Document]) -> None:
    """Put the new index of a scope in the place of the old, with what was saved meanwhile."""
    tx.alone(MANY_ROWS)
    tx.alone(scope_key)
    live = tx.rows(_LIVE, (scope_key,))
    gathered = Gathered()
    lengths, words = [], 0
    for slot, place, memory_id, length in live:
        document = documents.get(slot)
        if document is None:
            document = _document(analyse, _read(tx, scope_key, slot - 1, 1)[0][1:])
        gathered.add(slot, place, document.length, document.counts)
        words += document.length
        if document.length != length:
            lengths.append((document.length, memory_id))
    for statement in _EMPTY:
        tx.run(statement, (scope_key,))
    for term in gathered.terms():
        blocks.put(tx, list(blocks.cut(scope_key, term, gathered.of(term))))
    if lengths:
        tx.run_many(_LENGTH, lengths)
    tx.run(_DONE, (len(live), words, analyser, scope_key))
