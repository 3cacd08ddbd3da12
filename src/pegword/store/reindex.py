"""A scope's index made again from its memories, for an analyser that makes other terms than the one before.

The new blocks are worked out beside the old ones, which serve meanwhile, and put in their place term by term, some in a transaction, so
that nobody waits for more than one of these, however many memories the scope holds, and saves for none. What the index is made of then is
one of both for every term, and a question that was asked in between is answered from what stands there.

How it stays exact beside saves, deletes, folds and rebuilds: it begins by folding the whole tail and noting the last slot that was given
out, in `ix_scope` beside the analyser that is at work. From then on every memory up to that slot is in blocks, so that what becomes of one
shows: it is listed as dead, or the version of the scope has moved. What has a later slot was indexed by a save under the same analyser, and
stays as it is; if another analyser saved, the note is gone, and the work begins anew. Whoever finds the note goes on with it.
"""

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np

from pegword.core.errors import Damaged
from pegword.core.text import Document
from pegword.store import blocks, folding
from pegword.store.blocks import BlockKey, BlockRow
from pegword.store.engine import MANY_ROWS, Engine, Row, Tx, among, padded
from pegword.store.memory_rows import tags_of
from pegword.store.packing import POSTING_BYTES, Gathered, are_among, unpack
from pegword.store.postings import BEING_SAVED, IN_THE_MAKING

READ_AT_ONCE = 500
SLOTS_AT_ONCE = 200
BLOCKS_AT_ONCE = 250  # looked at, and written where they differ, in one transaction, for which deletes wait
ATTEMPTS_MAX = 5

# What the analyser makes of name, description, content and tags.
Analyse = Callable[[str, str, str, tuple[str, ...]], Document]
# Called with how many memories have been read since the last call.
Progress = Callable[[int], None]

_STALE = "SELECT scope_key, n FROM ix_scope WHERE analyser <> ? ORDER BY scope_key"
_TEXTS = """
    SELECT slot, place, length, name, description, content, tags FROM structured_memories
    WHERE scope_key = ? AND slot >= -1 AND slot > ? AND slot <= ? ORDER BY slot LIMIT ?
"""
_SLOTS = """
    SELECT slot FROM structured_memories
    WHERE scope_key = ? AND slot >= -1 AND slot > ? AND slot <= ? ORDER BY slot LIMIT ?
"""
_LIVE = "SELECT slot FROM structured_memories WHERE scope_key = ? AND slot >= -1 AND slot >= 0 AND slot <= ?"
_STATE = "SELECT analyser, next_slot, version FROM ix_scope WHERE scope_key = ?"
_LAST = """
    SELECT max(slot) FROM (
        SELECT max(slot) AS slot FROM structured_memories WHERE scope_key = :key AND slot >= -1
        UNION ALL SELECT max(slot) FROM ix_tail WHERE scope_key = :key UNION ALL SELECT max(slot) FROM ix_dead WHERE scope_key = :key
    ) AS given_out
"""
_BEGUN = "UPDATE ix_scope SET analyser = ?, next_slot = ?, version = version + 1 WHERE scope_key = ?"
_NOT_DEAD = """
    DELETE FROM ix_dead WHERE scope_key = ? AND EXISTS (
        SELECT 1 FROM structured_memories AS m WHERE m.scope_key = ix_dead.scope_key AND m.slot = ix_dead.slot AND m.slot >= -1)
"""
_NEXT_BLOCKS = "SELECT term, first_slot, n, postings FROM ix_block WHERE scope_key = ? AND term > ? ORDER BY term, first_slot LIMIT ?"
_BLOCKS_OF = "SELECT term, first_slot, n, postings FROM ix_block WHERE scope_key = ? AND term = ? ORDER BY first_slot"
_LENGTHS = "SELECT memory_id, slot, length FROM structured_memories WHERE scope_key = ? AND slot >= -1 AND {slots}"
_LENGTH = "UPDATE structured_memories SET length = ? WHERE memory_id = ?"
_LONGER = "UPDATE ix_scope SET words = words + ?, version = version + 1 WHERE scope_key = ?"
_TOLD = "SELECT n, words, tail_n, dead_n FROM ix_scope WHERE scope_key = ?"
_COUNTED = """
    SELECT count(*), CAST(coalesce(sum(length), 0) AS BIGINT), (SELECT count(*) FROM ix_tail WHERE scope_key = :key),
        (SELECT count(*) FROM ix_dead WHERE scope_key = :key)
    FROM structured_memories WHERE scope_key = :key AND slot >= -1 AND slot >= 0
"""
_MENDED = "UPDATE ix_scope SET n = ?, words = ?, tail_n = ?, dead_n = ?, version = version + 1 WHERE scope_key = ?"
_DONE = "UPDATE ix_scope SET analyser = ?, version = version + 1 WHERE scope_key = ? AND analyser = ?"
_GIVE_UP = "UPDATE ix_scope SET analyser = '', version = version + 1 WHERE scope_key = ?"
_DROP_TAIL = "DELETE FROM ix_tail WHERE scope_key = ?"
_EMPTY = tuple(f"DELETE FROM {table} WHERE scope_key = ?" for table in ("ix_block", "ix_tail", "ix_dead"))
_FIND_LOST = """
    INSERT INTO ix_scope (scope_key, next_slot, n, words, tail_n, dead_n, version, sitting, sitting_place, sitting_at, analyser)
    SELECT DISTINCT scope_key, 0, 0, 0, 0, 0, 0, '', 0, 0, '' FROM structured_memories WHERE slot >= -2
    ON CONFLICT (scope_key) DO NOTHING
"""
_MARK_ALL = "UPDATE ix_scope SET analyser = '' WHERE analyser <> ''"
_UNPLACED = f"SELECT memory_id FROM structured_memories WHERE scope_key = ? AND slot = {BEING_SAVED} ORDER BY created, memory_id"
_PLACE = "UPDATE structured_memories SET slot = ?, place = 0 WHERE memory_id = ?"

_ACCIDENTS = (TypeError, ValueError, OverflowError, AttributeError)  # what is not of the type that it must be

_log = logging.getLogger("pegword.store")


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
    """Make the index of one scope again. What is kept in memory is eight bytes a posting.

    Where others keep saving under another analyser it is given up after `ATTEMPTS_MAX` times; the scope then counts as stale as before.
    """
    emptied = False
    for attempt in range(ATTEMPTS_MAX):
        try:
            if _Making(engine, scope_key, analyser, analyse).run(progress if not attempt else _nothing):
                return
        except _Overtaken:
            continue
        except _ACCIDENTS as error:
            if emptied:  # a slot or a length that is none
                raise Damaged("the place of a memory is damaged, so that it cannot be indexed: restore a backup") from error
            engine.write(lambda tx: _empty(tx, scope_key))  # blocks of damaged keys, which nothing else finds
            emptied = True
    _log.warning("others save in the scope %s under another analyser: its index is left as it is", scope_key)


class _Overtaken(Exception):
    """Somebody has finished it, removed the scope, or saved under another analyser."""


class _Making:
    """The index of one scope as *analyser* makes it."""

    def __init__(self, engine: Engine, scope_key: str, analyser: str, analyse: Analyse) -> None:
        self._engine = engine
        self._key = scope_key
        self._analyser = analyser
        self._analyse = analyse
        self._up_to = -1  # the last slot that is made again
        self._slots = self._gone = np.zeros(0, np.int64)  # those that were gathered; those of them whose memories are gone
        self._seen = -1  # the version of the scope at which that was so
        self._gathered = Gathered()
        self._terms: list[str] = []
        self._lengths: dict[int, int] = {}  # by slot, where they are not as they were

    def run(self, progress: Progress) -> bool:
        """Do all of it; False when it has to be done once more."""
        with suppress(*_ACCIDENTS):  # a tail that is damaged is dropped below
            while self._engine.write(lambda tx: folding.fold(tx, self._key)):
                pass
        begun = self._engine.write(self._begin)
        if begun is None:
            return True
        self._up_to = begun
        with self._engine.read() as tx:
            dead = [slot for slot in blocks.dead(tx, self._key) if slot <= self._up_to]
        self._gather(progress)
        after: str | None = ""
        while after is not None:
            with self._engine.read() as tx:
                self._look(tx)  # before the scope is held, since it takes the longer the more memories there are
            after, self._seen = self._engine.write(partial(self._write_some, after=after))
        for work, slots in ((self._measure, sorted(self._lengths)), (self._bury, dead)):
            for start in range(0, len(slots), SLOTS_AT_ONCE):
                self._engine.write(partial(work, slots=slots[start : start + SLOTS_AT_ONCE]))
        with self._engine.read() as tx:
            right = tx.rows(_TOLD, (self._key,)) == tx.rows(_COUNTED, {"key": self._key})
        if not right:
            self._engine.write(self._mend_sums)
        return self._engine.write(lambda tx: tx.run(_DONE, (self._analyser, self._key, self._note))) > 0

    @property
    def _note(self) -> str:
        """What stands in the place of the analyser meanwhile."""
        return f"{self._analyser}{IN_THE_MAKING}{self._up_to}"

    def _begin(self, tx: Tx) -> int | None:
        """The last slot that is made again, from now on or since somebody began; None when there is nothing to do."""
        tx.alone(self._key)
        rows = tx.rows(_STATE, (self._key,))
        if not rows or rows[0][0] == self._analyser:
            return None
        noted, next_slot, _ = rows[0]
        before, _, up_to = noted.partition(IN_THE_MAKING)
        if before == self._analyser:
            return int(up_to)
        ((last,),) = tx.rows(_LAST, {"key": self._key})
        next_slot = max(next_slot, 0 if last is None else last + 1)
        unplaced = tx.rows(_UNPLACED, (self._key,))  # no save leaves one so: something was damaged
        if unplaced:
            tx.run_many(_PLACE, [(next_slot + number, memory_id) for number, (memory_id,) in enumerate(unplaced)])
        self._up_to = next_slot + len(unplaced) - 1
        try:
            while folding.fold_some(tx, self._key):
                pass
        except _ACCIDENTS:
            tx.run(_DROP_TAIL, (self._key,))
        tx.run(_NOT_DEAD, (self._key,))
        tx.run(_BEGUN, (self._note, self._up_to + 1, self._key))
        return self._up_to

    def _gather(self, progress: Progress) -> None:
        slots: list[int] = []
        slot = -1
        while True:
            with self._engine.read() as tx:
                rows = self._read(tx, slot)
            for slot, *rest in rows:
                place, length, *texts = rest or (0, None)
                document = _document(self._analyse, texts)
                self._gathered.add(slot, place, document.length, document.counts)
                slots.append(slot)
                if document.length != length:
                    self._lengths[slot] = document.length
            progress(len(rows))
            if len(rows) < READ_AT_ONCE:
                break
        self._slots = np.array(slots, np.int64)
        self._terms = self._gathered.terms()

    def _read(self, tx: Tx, slot: int) -> list[Row]:
        """Slot, place, length and texts of the next memories after *slot*; of one whose texts are damaged, the slot alone."""
        try:
            return tx.rows(_TEXTS, (self._key, slot, self._up_to, READ_AT_ONCE))
        except Damaged:
            rows: list[Row] = []
            for (at,) in tx.rows(_SLOTS, (self._key, slot, self._up_to, READ_AT_ONCE)):
                try:
                    rows += tx.rows(_TEXTS, (self._key, at - 1, at, 1))
                except Damaged:
                    rows.append((at,))
            return rows

    def _look(self, tx: Tx) -> tuple[int, int]:
        """See which memories are gone, if any may be; the next slot of the scope, and its version."""
        rows = tx.rows(_STATE, (self._key,))
        if not rows or rows[0][0] != self._note:
            raise _Overtaken
        _, next_slot, version = rows[0]
        if version != self._seen:
            live = np.array([slot for (slot,) in tx.rows(_LIVE, (self._key, self._up_to))], np.int64)
            self._gone, self._seen = self._slots[~are_among(self._slots, live)], version
        return next_slot, version

    def _write_some(self, tx: Tx, after: str) -> tuple[str | None, int]:
        """Put the blocks of the next terms after *after* in order: the last of these terms, None when there are no more, and the version
        of the scope then."""
        blocks.hold(tx, self._key)
        next_slot, version = self._look(tx)
        dead = np.array(blocks.dead(tx, self._key), np.int64)
        gone = np.concatenate((self._gone, self._slots[are_among(self._slots, dead)]))
        there, terms, last = self._next(tx, after)
        puts: list[BlockRow] = []
        drops: list[BlockKey] = []
        lost = False
        for term in sorted({*there, *terms}):
            old = there.get(term, [])
            late, some_lost = self._late(old, next_slot)
            lost = lost or some_lost
            new = blocks.cut(self._key, term, blocks.without(self._gathered.of(term), gone) + late)
            known = {(first, n, data) for _, first, n, data in old}
            puts += [row for row in new if row[2:] not in known]
            kept = {row[2] for row in new}
            drops += [(self._key, term, first) for _, first, _, _ in old if first not in kept]
        blocks.drop(tx, drops)
        blocks.put(tx, puts)
        if lost:  # what was saved since stood in it too: begin anew, and take that in
            tx.run(_GIVE_UP, (self._key,))
        if puts or drops:
            blocks.written(tx, self._key)
        return last, version + bool(puts or drops)

    def _next(self, tx: Tx, after: str) -> tuple[dict[str, list[Row]], list[str], str | None]:
        """The blocks that stand there by term, all of each term, and the gathered terms, both up to the term that is given too."""
        rows = tx.rows(_NEXT_BLOCKS, (self._key, after, BLOCKS_AT_ONCE))
        start = bisect_right(self._terms, after)
        terms = self._terms[start : start + BLOCKS_AT_ONCE]
        last = None
        if len(rows) == BLOCKS_AT_ONCE:
            last = rows[-1][0]
        if len(terms) == BLOCKS_AT_ONCE:
            last = terms[-1] if last is None else min(last, terms[-1])
        if last is not None:
            rows = [row for row in rows if row[0] < last] + tx.rows(_BLOCKS_OF, (self._key, last))
            terms = terms[: bisect_right(terms, last)]
        return {term: list(some) for term, some in groupby(rows, itemgetter(0))}, terms, last

    def _late(self, rows: Sequence[Row], next_slot: int) -> tuple[bytes, bool]:
        """The postings in the blocks *rows* of what was saved since this began, and whether some may be lost, since a block is none."""
        found, lost = [], False
        for _, first, n, data in rows if next_slot > self._up_to + 1 else ():
            if not isinstance(data, bytes) or not data or len(data) != n * POSTING_BYTES:
                lost = True
                continue
            slots = unpack(data)["slot"].astype(np.int64)
            if slots[-1] <= self._up_to:
                continue
            if slots[0] != first or slots[-1] >= next_slot or (np.diff(slots) <= 0).any():
                lost = True
                continue
            found.append(unpack(data)[slots > self._up_to].tobytes())
        return b"".join(found), lost

    def _measure(self, tx: Tx, slots: Sequence[int]) -> None:
        """Write down how long the memories at *slots* are."""
        tx.alone(self._key)
        self._look(tx)
        rows = tx.rows(_LENGTHS.replace("{slots}", among("slot", len(slots))), (self._key, *padded(slots)))
        changed = [(self._lengths[slot], memory_id) for memory_id, slot, length in rows if length != self._lengths[slot]]
        tx.run_many(_LENGTH, changed)
        tx.run(_LONGER, (sum(self._lengths[slot] - length for _, slot, length in rows), self._key))

    def _bury(self, tx: Tx, slots: Sequence[int]) -> None:
        """Take from the list of the dead *slots* that were dead before this began: they stand in no block any more."""
        blocks.hold(tx, self._key)
        self._look(tx)
        blocks.bury(tx, self._key, slots)

    def _mend_sums(self, tx: Tx) -> None:
        tx.alone(self._key)
        tx.run(_MENDED, (*tx.rows(_COUNTED, {"key": self._key})[0], self._key))


def _document(analyse: Analyse, texts: Sequence[str]) -> Document:
    if not texts:
        return Document({}, 0)
    name, description, content, tags = texts
    return analyse(name, description, content, tags_of(tags))


def _empty(tx: Tx, scope_key: str) -> None:
    """Leave nothing of the index of a scope."""
    tx.alone(scope_key)
    for statement in _EMPTY:
        tx.run(statement, (scope_key,))
    tx.run(_GIVE_UP, (scope_key,))


def _nothing(_: int) -> None:
    """Tell nobody."""
