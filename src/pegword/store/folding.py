"""What the index has done outside a save: full tails folded into blocks, scopes with many dead slots written anew, and the
whole of a scope indexed again for a newer analyser.

Each piece of work is one short transaction that looks at the state it finds, so that several processes may try the same, and one
that is broken off is begun again by whoever comes next. None of it changes an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pegword.store import blocks
from pegword.store.engine import Engine, Row, Tx, among, padded
from pegword.store.packing import BLOCK_POSTINGS_MAX, gathered_tail
from pegword.store.postings import TAIL_MAX, TERMS_AT_ONCE, needs_rebuild

REBUILD_BLOCKS_MAX = 2_000  # blocks written anew in one transaction

_DUE = "SELECT scope_key, tail_n, dead_n, n FROM ix_scope WHERE tail_n >= ? OR dead_n > ? ORDER BY scope_key"
_COUNTS = "SELECT tail_n, dead_n, n, version FROM ix_scope WHERE scope_key = ?"
_OLDEST = "SELECT slot, place, length, counts, marks, unspelt FROM ix_tail WHERE scope_key = ? ORDER BY slot LIMIT ?"
# A save that changes one of these memories waits for its row here, or was first, and then it is not among them.
_TAKE_TAIL = """
    DELETE FROM ix_tail WHERE scope_key = ? AND slot IN (SELECT slot FROM ix_tail WHERE scope_key = ? ORDER BY slot LIMIT ?)
    RETURNING slot, place, length, counts, marks, unspelt
"""
_LAST_BLOCKS = """
    SELECT b.term, b.postings FROM ix_block AS b
    WHERE b.scope_key = ? AND {terms} AND b.n < ? AND NOT EXISTS (
        SELECT 1 FROM ix_block AS later
        WHERE later.scope_key = b.scope_key AND later.term = b.term AND later.first_slot > b.first_slot)
"""
_FOLDED = "UPDATE ix_scope SET tail_n = tail_n - ?, version = version + 1 WHERE scope_key = ?"
_NEXT_BLOCKS = "SELECT term, first_slot, postings FROM ix_block WHERE scope_key = ? AND term > ? ORDER BY term, first_slot LIMIT ?"
_BLOCKS_OF = "SELECT term, first_slot, postings FROM ix_block WHERE scope_key = ? AND term = ? ORDER BY first_slot"


def due(tx: Tx) -> list[str]:
    """The keys of the scopes whose tail is full or whose dead are many."""
    return [key for key, tail_n, dead_n, n in tx.rows(_DUE, (TAIL_MAX, TAIL_MAX)) if tail_n >= TAIL_MAX or needs_rebuild(dead_n, n)]


@dataclass(frozen=True, slots=True)
class Ready:
    """A fold that was worked out before anybody waits for it: which *tail* rows go and what it *puts* into blocks, right for as long as
    those rows are the oldest and the scope is at this *version*, which moves whenever blocks are written."""

    tail: list[Row]
    puts: list[blocks.BlockRow]
    version: int


def tidy(engine: Engine, scope_key: str) -> None:
    """Fold the tail of a scope if it is full, and write its blocks anew if many of its slots are dead."""
    while (ready := _ready(engine, scope_key)) and engine.write(partial(fold, scope_key=scope_key, ready=ready)):
        pass
    with engine.read() as tx:
        counts = tx.rows(_COUNTS, (scope_key,))
    if counts and needs_rebuild(counts[0][1], counts[0][2]):
        rebuild(engine, scope_key)


def fold(tx: Tx, scope_key: str, ready: Ready | None = None) -> bool:
    """Move the oldest `TAIL_MAX` tail rows of a scope into blocks, as was made *ready* if that is right still; False when there are not so
    many."""
    blocks.hold(tx, scope_key)
    counts = tx.rows(_COUNTS, (scope_key,))
    if not counts or counts[0][0] < TAIL_MAX:
        return False
    return fold_some(tx, scope_key, ready if ready and ready.version == counts[0][3] else None)


def fold_some(tx: Tx, scope_key: str, ready: Ready | None = None) -> bool:
    """Move the oldest tail rows of a scope whose blocks are held into them, at most `TAIL_MAX`; False when there are none. What was made
    *ready* is right but for the rows, which are looked at."""
    tail = sorted(tx.rows(_TAKE_TAIL, (scope_key, scope_key, TAIL_MAX)))
    if not tail:
        return False
    blocks.put(tx, ready.puts if ready and ready.tail == tail else _with(tx, scope_key, tail))
    tx.run(_FOLDED, (len(tail), scope_key))
    return True


def _ready(engine: Engine, scope_key: str) -> Ready | None:
    """The next fold of a scope, None when there is none to do."""
    with engine.read() as tx:
        counts = tx.rows(_COUNTS, (scope_key,))
        if not counts or counts[0][0] < TAIL_MAX:
            return None
        tail = tx.rows(_OLDEST, (scope_key, TAIL_MAX))
        return Ready(tail, _with(tx, scope_key, tail), counts[0][3]) if tail else None


def _with(tx: Tx, scope_key: str, tail: Sequence[Row]) -> list[blocks.BlockRow]:
    """The blocks of a scope that change when *tail* goes into them, as they are then."""
    fresh = gathered_tail(tail)
    terms = sorted(fresh)
    last = _last_blocks(tx, scope_key, terms)
    return [row for term in terms for row in blocks.cut(scope_key, term, last.get(term, b"") + fresh[term])]


def rebuild(engine: Engine, scope_key: str) -> None:
    """Write the blocks of a scope anew without its dead slots, some at a time; the tombstones go last."""
    with engine.read() as tx:
        dead = blocks.dead(tx, scope_key)
    if not dead:
        return
    gone = np.array(dead, np.int64)
    after: str | None = ""
    while after is not None:
        after = engine.write(partial(_rewrite_some, scope_key=scope_key, after=after, gone=gone))
    for start in range(0, len(dead), blocks.BURIED_AT_ONCE):
        engine.write(partial(_bury, scope_key=scope_key, slots=dead[start : start + blocks.BURIED_AT_ONCE]))


def _last_blocks(tx: Tx, scope_key: str, terms: Sequence[str]) -> dict[str, bytes]:
    """The postings of the last block of each of *terms*, by term, where it still has room."""
    found: dict[str, bytes] = {}
    for start in range(0, len(terms), TERMS_AT_ONCE):
        some = terms[start : start + TERMS_AT_ONCE]
        sql = _LAST_BLOCKS.replace("{terms}", among("b.term", len(some)))
        found.update(tx.rows(sql, (scope_key, *padded(some), BLOCK_POSTINGS_MAX)))
    return found


def _rewrite_some(tx: Tx, scope_key: str, after: str, gone: blocks.Ints) -> str | None:
    """Write the blocks of the next terms after *after* anew; the last of these terms, or None when there are no more.

    All blocks of a term at once: in between, somebody else who closes them up could move what is to go into one that was done already.
    """
    blocks.hold(tx, scope_key)
    rows = tx.rows(_NEXT_BLOCKS, (scope_key, after, REBUILD_BLOCKS_MAX))
    last = rows[-1][0] if len(rows) == REBUILD_BLOCKS_MAX else None
    if last is not None:
        rows = [row for row in rows if row[0] < last] + tx.rows(_BLOCKS_OF, (scope_key, last))
    if blocks.rewrite(tx, scope_key, rows, gone, closed_up=True):
        blocks.written(tx, scope_key)
    return last


def _bury(tx: Tx, scope_key: str, slots: Sequence[int]) -> None:
    blocks.hold(tx, scope_key)
    blocks.bury(tx, scope_key, slots)
