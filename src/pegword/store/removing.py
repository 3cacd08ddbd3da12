"""A scope's memories deleted for good, some at a time: rows, versions, tags, receipts, kept answers, indexes of sessions, and every
word of them in the index of the scope.

What is to go is written down first: all that has a slot below the next one at that moment. So what is saved meanwhile stays, and a removal
that was broken off is finished by whoever comes next.

The place in the index of a scope that was emptied stays for `SLOTS_KEPT_US`: what is saved there goes on with new slots, so that a receipt
that waits to be written, or a rebuild that was held up, cannot take a new memory for an old one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pegword.store import blocks, folding, once_rows, postings, session_index_rows, sharing_rows
from pegword.store.engine import MANY_ROWS, Engine, Tx, among, padded

REMOVED_AT_ONCE = 200
SLOTS_KEPT_US = 24 * 3_600 * 1_000_000
TERMS_DROPPED_AT_ONCE = 1_000

_GOING = """
    FROM structured_memories WHERE scope_key = :key AND slot >= -1 AND slot < :before AND (slot >= 0 OR updated <= :asked_at)
"""
_COUNT = f"SELECT count(*) {_GOING}"
_SOME = f"SELECT memory_id, slot, length {_GOING} ORDER BY slot, memory_id LIMIT {REMOVED_AT_ONCE}"
_ASK = """
    INSERT INTO removals (scope_key, before_slot, asked_at, done)
    VALUES (?, coalesce((SELECT next_slot FROM ix_scope WHERE scope_key = ?), 0), ?, 0)
    ON CONFLICT (scope_key) DO UPDATE SET before_slot = excluded.before_slot, asked_at = excluded.asked_at, done = 0
"""
_ASKED = "SELECT before_slot, asked_at FROM removals WHERE scope_key = ? AND done = 0"
_PENDING = "SELECT scope_key FROM removals WHERE done = 0 ORDER BY asked_at, scope_key"
_HELD = "SELECT count(*) FROM structured_memories WHERE scope_key = ? AND slot >= -1"
_DROP_BY_ID = tuple(f"DELETE FROM {table} WHERE scope_key = ? AND " for table in ("memory_versions", "memory_tags", "structured_memories"))
_DROP_RECEIPTS = "DELETE FROM receipts WHERE receipt_id IN (SELECT receipt_id FROM receipts WHERE {ids})"
_EMPTY = """
    DELETE FROM ix_scope WHERE scope_key = ? AND n = 0
        AND NOT EXISTS (SELECT 1 FROM structured_memories AS m WHERE m.scope_key = ix_scope.scope_key)
        AND NOT EXISTS (SELECT 1 FROM ix_tail AS t WHERE t.scope_key = ix_scope.scope_key)
        AND NOT EXISTS (SELECT 1 FROM ix_block AS b WHERE b.scope_key = ix_scope.scope_key)
        AND NOT EXISTS (SELECT 1 FROM ix_dead AS d WHERE d.scope_key = ix_scope.scope_key)
"""
_HOLDS = "SELECT 1 FROM structured_memories WHERE scope_key = ? LIMIT 1"
_DROP_BLOCKS = f"""
    DELETE FROM ix_block WHERE scope_key = ? AND term IN (
        SELECT DISTINCT term FROM ix_block WHERE scope_key = ? ORDER BY term LIMIT {TERMS_DROPPED_AT_ONCE})
"""
_DROP_DEAD = "DELETE FROM ix_dead WHERE scope_key = ?"
_NONE_DEAD = "UPDATE ix_scope SET dead_n = 0, version = version + 1 WHERE scope_key = ?"
_DONE = "UPDATE removals SET done = 1 WHERE scope_key = ?"
_NO_SITTING = "UPDATE ix_scope SET sitting = '', sitting_place = 0 WHERE scope_key = ? AND n = 0"  # the next save is in nobody's company
_LONG_DONE = "SELECT scope_key FROM removals WHERE done = 1 AND asked_at < ? ORDER BY asked_at, scope_key"
_FORGET = "DELETE FROM removals WHERE scope_key = ? AND done = 1 AND asked_at < ?"


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one step removed: how many memories. *asked*: the removal still stands."""

    removed: int
    asked: bool


def is_asked(tx: Tx, scope_key: str) -> bool:
    """Whether the removal of a scope was asked for and is not finished."""
    return bool(tx.rows(_ASKED, (scope_key,)))


def ask(tx: Tx, scope_key: str, now: int) -> int:
    """Write down that all that a scope holds now is to go; how many memories that is. The scope is held `alone`."""
    tx.run(_ASK, (scope_key, scope_key, now))
    before, asked_at = tx.rows(_ASKED, (scope_key,))[0]
    return int(tx.rows(_COUNT, {"key": scope_key, "before": before, "asked_at": asked_at})[0][0])


def held(tx: Tx, scope_key: str) -> int:
    """How many memories a scope holds, expired ones too."""
    return int(tx.rows(_HELD, (scope_key,))[0][0])


def pending(tx: Tx) -> list[str]:
    """The keys of the scopes whose removal was asked for and is not finished, the oldest first."""
    return [row[0] for row in tx.rows(_PENDING)]


def run(engine: Engine, scope_key: str, progress: Callable[[int], None]) -> None:
    """Do, or go on with, what `ask` wrote down. *progress* is told after each step how many memories went since the last."""
    finished = False
    while not finished:
        while (batch := engine.write(partial(_remove_some, scope_key=scope_key))).removed:
            progress(batch.removed)
        if not batch.asked:
            return
        while engine.write(partial(_drop_some_blocks, scope_key=scope_key)):
            pass
        folding.rebuild(engine, scope_key)  # where something was saved meanwhile, its postings stay
        finished = engine.write(lambda tx: _finish(tx, scope_key))


def _remove_some(tx: Tx, scope_key: str) -> _Batch:
    tx.alone(scope_key, MANY_ROWS)
    asked = tx.rows(_ASKED, (scope_key,))
    if not asked:  # another process has finished it
        return _Batch(0, False)
    rows = tx.rows(_SOME, {"key": scope_key, "before": asked[0][0], "asked_at": asked[0][1]})
    for _, slot, length in rows:
        if slot != postings.NOT_INDEXED:
            postings.retire(tx, scope_key, slot, length)
    if rows:
        ids = [row[0] for row in rows]
        for statement in _DROP_BY_ID:
            tx.run(statement + among("memory_id", len(ids)), (scope_key, *padded(ids)))
        tx.run(_DROP_RECEIPTS.replace("{ids}", among("memory_id", len(ids))), padded(ids))
        once_rows.forget_memories(tx, ids)
        session_index_rows.forget_memories(tx, ids)
    return _Batch(len(rows), True)


def _drop_some_blocks(tx: Tx, scope_key: str) -> bool:
    """Drop blocks of a scope that holds nothing any more; False when none is left, or it holds something again."""
    tx.alone(scope_key)
    if tx.rows(_HOLDS, (scope_key,)):
        return False
    if tx.run(_DROP_BLOCKS, (scope_key, scope_key)):
        blocks.written(tx, scope_key)
        return True
    tx.run(_DROP_DEAD, (scope_key,))
    tx.run(_NONE_DEAD, (scope_key,))
    return False


def _finish(tx: Tx, scope_key: str) -> bool:
    """Note that it is done; False when something is to go again: since the last look somebody has asked anew, for what was saved
    meanwhile."""
    tx.alone(scope_key)
    for before, asked_at in tx.rows(_ASKED, (scope_key,)):
        if tx.rows(_COUNT, {"key": scope_key, "before": before, "asked_at": asked_at})[0][0]:
            return False
    tx.run(_NO_SITTING, (scope_key,))
    tx.run(_DONE, (scope_key,))
    sharing_rows.forget(tx, scope_key)
    return True


def forget_done(engine: Engine, before: int) -> None:
    """Forget the removals that were asked for *before* and are done, and the scopes that have held nothing since."""
    with engine.read() as tx:
        keys = [row[0] for row in tx.rows(_LONG_DONE, (before,))]
    for key in keys:
        engine.write(partial(_forget, scope_key=key, before=before))


def _forget(tx: Tx, *, scope_key: str, before: int) -> None:
    tx.alone(scope_key)
    if tx.run(_FORGET, (scope_key, before)):
        tx.run(_EMPTY, (scope_key,))
