"""A scope's index made again from its memories, for an analyser that makes other terms than the one before.

The new index is worked out beside the old one, which serves meanwhile, and takes its place in one transaction.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pegword.core.errors import Damaged
from pegword.core.text import Document
from pegword.store import blocks
from pegword.store.engine import MANY_ROWS, Engine, Row, Tx
from pegword.store.memory_rows import tags_of
from pegword.store.packing import Gathered
from pegword.store.postings import BEING_SAVED

READ_AT_ONCE = 500

# What the analyser makes of name, description, content and tags.
Analyse = Callable[[str, str, str, tuple[str, ...]], Document]
# Called with how many memories have been read since the last call.
Progress = Callable[[int], None]

_STALE = "SELECT scope_key, n FROM ix_scope WHERE analyser <> ? ORDER BY scope_key"
_TEXTS = """
    SELECT slot, place, name, description, content, tags FROM structured_memories
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
    UPDATE ix_scope SET n = :n, words = :words, tail_n = 0, dead_n = 0, version = version + 1, analyser = :analyser,
        next_slot = CASE WHEN next_slot < :next_slot THEN :next_slot ELSE next_slot END
    WHERE scope_key = :scope_key
"""
_FIND_LOST = """
    INSERT INTO ix_scope (scope_key, next_slot, n, words, tail_n, dead_n, version, sitting, sitting_place, sitting_at, analyser)
    SELECT DISTINCT scope_key, 0, 0, 0, 0, 0, 0, '', 0, 0, '' FROM structured_memories WHERE slot >= -2
    ON CONFLICT (scope_key) DO NOTHING
"""
_MARK_ALL = "UPDATE ix_scope SET analyser = '' WHERE analyser <> ''"
_UNPLACED = f"SELECT memory_id FROM structured_memories WHERE scope_key = ? AND slot = {BEING_SAVED} ORDER BY created, memory_id"
_LAST = "SELECT coalesce(max(slot), -1) FROM structured_memories WHERE scope_key = ? AND slot >= -1"
_PLACE = "UPDATE structured_memories SET slot = ?, place = 0 WHERE memory_id = ?"


def stale(tx: Tx, analyser: str) -> list[tuple[str, int]]:
    """The scopes whose index another analyser made, with how many memories each holds."""
    return [(key, n) for key, n in tx.rows(_STALE, (analyser,))]


def mark_all(tx: Tx) -> None:
    """Let every scope that holds memories count as indexed by nobody, one that the index has lost included: so a re-index of all of them
    that is broken off goes on with those that are left."""
    tx.alone(MANY_ROWS)
    tx.run(_FIND_LOST)
    tx.run(_MARK_ALL)


def reindex_scope(engine: Engine, scope_key: str, analyser: str, analyse: Analyse, progress: Progress) -> None:
    """Make the index of one scope again. What is kept in memory is eight bytes a posting."""
    try:
        _reindex_scope(engine, scope_key, analyser, analyse, progress)
    except (TypeError, ValueError, OverflowError) as error:  # a slot or a length that is none
        raise Damaged("the place of a memory is damaged, so that it cannot be indexed: restore a backup") from error


def _reindex_scope(engine: Engine, scope_key: str, analyser: str, analyse: Analyse, progress: Progress) -> None:
    gathered = Gathered()
    lengths: dict[int, int] = {}
    slot = -1
    while True:
        with engine.read() as tx:
            rows = _read(tx, scope_key, slot, READ_AT_ONCE)
        for slot, *rest in rows:
            if rest:  # one that is damaged is looked at again at the end
                place, *texts = rest
                document = _document(analyse, texts)
                gathered.add(slot, place, document.length, document.counts)
                lengths[slot] = document.length
        progress(len(rows))
        if len(rows) < READ_AT_ONCE:
            break
    engine.write(lambda tx: _replace(tx, scope_key, analyser, analyse, gathered, lengths))


def _read(tx: Tx, scope_key: str, slot: int, count: int) -> list[Row]:
    """Slot, place and texts of the next memories after *slot*; of one whose texts are damaged, the slot alone."""
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


def _replace(tx: Tx, scope_key: str, analyser: str, analyse: Analyse, gathered: Gathered, known: Mapping[int, int]) -> None:
    """Put the new index of a scope in the place of the old: what was *gathered* of memories whose lengths are *known*, without those that
    are gone, and with what was saved meanwhile."""
    tx.alone(MANY_ROWS)
    tx.alone(scope_key)
    _place_the_unplaced(tx, scope_key)
    live = tx.rows(_LIVE, (scope_key,))
    late = Gathered()
    lengths, words = [], 0
    for slot, place, memory_id, length in live:
        new_length = known.get(slot)
        if new_length is None:
            document = _document(analyse, _read(tx, scope_key, slot - 1, 1)[0][2:])
            late.add(slot, place, document.length, document.counts)
            new_length = document.length
        words += new_length
        if new_length != length:
            lengths.append((new_length, memory_id))
    for statement in _EMPTY:
        tx.run(statement, (scope_key,))
    gone = np.array(sorted(known.keys() - {row[0] for row in live}), np.int64)
    for term in sorted({*gathered.terms(), *late.terms()}):
        blocks.put(tx, list(blocks.cut(scope_key, term, blocks.without(gathered.of(term), gone) + late.of(term))))
    if lengths:
        tx.run_many(_LENGTH, lengths)
    next_slot = live[-1][0] + 1 if live else 0
    tx.run(_DONE, {"n": len(live), "words": words, "analyser": analyser, "next_slot": next_slot, "scope_key": scope_key})


def _place_the_unplaced(tx: Tx, scope_key: str) -> None:
    """Give a slot to each memory that has none, which no save leaves so: something was damaged."""
    rows = tx.rows(_UNPLACED, (scope_key,))
    if rows:
        ((last,),) = tx.rows(_LAST, (scope_key,))
        tx.run_many(_PLACE, [(last + number, memory_id) for number, (memory_id,) in enumerate(rows, 1)])
