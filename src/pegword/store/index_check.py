"""The index held against the memories that it is made from: the sums of every scope, the postings of a scope or of a part of it.

It only reads. Postings are compared by one number a slot, which all postings of that slot make together: a few bytes a memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from pegword.core.errors import Damaged
from pegword.core.memory import hash_of
from pegword.store.engine import Row, Tx, among, padded
from pegword.store.memory_rows import tags_of
from pegword.store.packing import POSTING_BYTES, packed, unpack, unpack_tail
from pegword.store.reindex import Analyse

SCOPES_AT_ONCE = 500
MEMORIES_AT_ONCE = 200
BLOCKS_AT_ONCE = 2_000
TERMS_AT_ONCE = 500
_SLOTS_MAX = 1 << 32
_WHOLE = (1 << 64) - 1

Sums = npt.NDArray[np.uint64]
Slots = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint64]

_FACTOR, _FACTOR_2, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(31)

_STATISTICS = """
    SELECT scope_key, n, words, tail_n, dead_n, next_slot, analyser FROM ix_scope WHERE scope_key > ? ORDER BY scope_key LIMIT ?
"""
_LIVE = """
    SELECT scope_key, count(*), CAST(sum(length) AS BIGINT), max(slot) FROM structured_memories
    WHERE slot >= -1 AND slot >= 0 AND scope_key >= ? AND scope_key <= ? GROUP BY scope_key
"""
_TAIL_COUNTS = "SELECT scope_key, count(*) FROM ix_tail WHERE scope_key >= ? AND scope_key <= ? GROUP BY scope_key"
_DEAD_COUNTS = "SELECT scope_key, count(*) FROM ix_dead WHERE scope_key >= ? AND scope_key <= ? GROUP BY scope_key"
_TOTALS = """
    SELECT (SELECT count(*) FROM structured_memories WHERE slot >= 0), (SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM ix_scope),
        (SELECT count(*) FROM structured_memories WHERE slot < -1)
"""
_PLACED = """
    FROM structured_memories WHERE scope_key = ? AND slot >= -1 AND slot >= ? AND slot < ? ORDER BY slot LIMIT ?
"""
_TEXTS = "SELECT slot, place, name, kind, description, content, tags, content_hash" + _PLACED
_PLACES = "SELECT slot" + _PLACED
_TAIL = "SELECT slot, place, length, counts, marks, unspelt FROM ix_tail WHERE scope_key = ? AND slot >= ? AND slot < ? ORDER BY slot"
_DEAD = "SELECT slot FROM ix_dead WHERE scope_key = ? AND slot >= ? AND slot < ?"
_BLOCKS = """
    SELECT term, first_slot, n, postings FROM ix_block
    WHERE scope_key = ? AND (term, first_slot) > (?, ?) ORDER BY term, first_slot LIMIT ?
"""
_BLOCKS_AROUND = """
    SELECT b.term, b.first_slot, b.n, b.postings FROM ix_block AS b
    LEFT JOIN (SELECT term, max(first_slot) AS first_slot FROM ix_block
        WHERE scope_key = ? AND first_slot <= ? AND {terms} GROUP BY term) AS last ON last.term = b.term
    WHERE b.scope_key = ? AND b.first_slot < ? AND b.first_slot >= coalesce(last.first_slot, 0) AND {b_terms}
"""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A scope as the index sees it: its key, how many memories it holds, how many slots it has given out, who made it."""

    key: str
    n: int
    next_slot: int
    analyser: str


def sums(tx: Tx, wrong: Callable[[str], None]) -> list[Indexed]:
    """Hold the sums of every scope against its rows, and tell *wrong* of each that differs; return all scopes."""
    scopes: list[Indexed] = []
    after = ""
    while rows := tx.rows(_STATISTICS, (after, SCOPES_AT_ONCE)):
        span = (rows[0][0], rows[-1][0])
        live = {key: (n, words, last) for key, n, words, last in tx.rows(_LIVE, span)}
        tails = {key: n for key, n in tx.rows(_TAIL_COUNTS, span)}  # noqa: C416
        dead = {key: n for key, n in tx.rows(_DEAD_COUNTS, span)}  # noqa: C416
        for key, n, words, tail_n, dead_n, next_slot, analyser in rows:
            real_n, real_words, last = live.get(key, (0, 0, -1))
            told, real = (n, words, tail_n, dead_n), (real_n, real_words, tails.get(key, 0), dead.get(key, 0))
            if told != real:
                wrong(f"scope {key}: the index says {_said(told)}; there are {_said(real)}")
            if not last < next_slot <= _SLOTS_MAX:
                wrong(f"scope {key}: slot {last} is in use, and {next_slot} would be the next")
            else:
                scopes.append(Indexed(key, n, next_slot, analyser))
        after = rows[-1][0]
    placed, counted, unplaced = tx.rows(_TOTALS)[0]
    if placed != counted:
        wrong(f"{placed} memories have a place in the index, which counts {counted}")
    if unplaced:
        wrong(f"{unplaced} memories never got a place in the index")
    return scopes


def postings(
    tx: Tx,
    scope: Indexed,
    analyse: Analyse,
    wrong: Callable[[str], None],
    *,
    low: int = 0,
    high: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Hold the postings of *scope* against its memories, of all slots or of those from *low* up to but not *high*; how many memories
    those are. *progress* is told of each. A memory that does not match its hash is left out: what the index knows of it is from its old
    text."""
    part = _Part(low, high or scope.next_slot, whole=not high)
    count = part.expect(tx, scope.key, analyse, progress)
    part.read_tail(tx, scope.key)
    try:
        part.read_blocks(tx, scope.key)
    except _Malformed as error:
        wrong(f"scope {scope.key}: {error}")
        return count
    differs = part.differences(tx, scope.key)
    if len(differs):
        wrong(
            f"scope {scope.key}: the postings of {len(differs)} slots are not those of the memories there, the first is slot {differs[0]}"
        )
    return count


class _Malformed(Exception):
    """A block is none."""


class _Part:
    """The slots from *low* up to but not *high* of one scope: what their postings should make, and what they do make."""

    def __init__(self, low: int, high: int, *, whole: bool) -> None:
        self._low, self._high, self._whole = low, high, whole
        self._expected = np.zeros(high - low, np.uint64)
        self._found = np.zeros(high - low, np.uint64)
        self._unknown: list[int] = []
        self._numbers: dict[str, int] = {}

    def expect(self, tx: Tx, key: str, analyse: Analyse, progress: Callable[[int], None]) -> int:
        """Read the memories; how many there are."""
        count = 0
        for slot, *row in self._memories(tx, key):
            count += 1
            progress(1)
            if not row:
                self._unknown.append(slot)
                continue
            place, name, kind, description, content, tags, content_hash = row
            told = tags_of(tags)
            if content_hash != hash_of(name, kind, description, content, told):
                self._unknown.append(slot)
                continue
            document = analyse(name, description, content, told)
            self._expected[slot - self._low] = self._sum(slot, place, document.length, document.counts)
        return count

    def read_tail(self, tx: Tx, key: str) -> None:
        """Take in what the tail says."""
        for slot, place, length, counts, marks, unspelt in tx.rows(_TAIL, (key, self._low, self._high)):
            try:
                terms = unpack_tail(counts, marks, unspelt)
            except (ValueError, TypeError, AttributeError, StopIteration, RuntimeError):
                continue  # what cannot be read says nothing, and so differs
            self._found[slot - self._low : slot - self._low + 1] += self._sum(slot, place, length, terms)

    def read_blocks(self, tx: Tx, key: str) -> None:
        """Take in what the blocks say."""
        for rows in self._all_blocks(tx, key) if self._whole else self._blocks_around(tx, key):
            for term, first, n, data in rows:
                if not isinstance(data, bytes) or not n or len(data) != POSTING_BYTES * n:
                    raise _Malformed(f"the block of {term!r} at slot {first} is cut")
            data = b"".join([row[3] for row in rows])
            sizes = np.array([row[2] for row in rows], np.int64)
            slots = unpack(data)["slot"].astype(np.int64)
            starts = np.cumsum(sizes) - sizes
            rises = np.diff(slots, prepend=-1) > 0
            rises[starts] = slots[starts] == [row[1] for row in rows]
            if not rises.all() or (self._whole and slots.max(initial=0) >= self._high):
                at = int(np.searchsorted(starts, np.argmin(rises), side="right")) - 1
                raise _Malformed(f"the block of {rows[at][0]!r} at slot {rows[at][1]} holds slots that it cannot")
            terms = np.repeat(np.array([self._number(row[0]) for row in rows], np.uint64), sizes)
            inside = np.flatnonzero((slots >= self._low) & (slots < self._high))
            mixed = _mixed(np.frombuffer(data, "<u8")[inside], terms[inside])
            np.add.at(self._found, slots[inside] - self._low, mixed)

    def differences(self, tx: Tx, key: str) -> Slots:
        """The slots whose postings are not as they should be."""
        dead = [row[0] for row in tx.rows(_DEAD, (key, self._low, self._high))]
        self._found[np.array(dead, np.int64) - self._low] = 0
        unknown = np.array(self._unknown, np.int64) - self._low
        self._found[unknown] = self._expected[unknown]
        return np.flatnonzero(self._found != self._expected) + self._low

    def _memories(self, tx: Tx, key: str) -> Iterator[Row]:
        """Slot, place, texts and hash of each memory, the slot alone where the texts cannot be read."""
        slot = self._low - 1
        while True:
            span = (key, slot + 1, self._high, MEMORIES_AT_ONCE)
            try:
                rows = tx.rows(_TEXTS, span)
            except Damaged:
                rows = [row for (at,) in tx.rows(_PLACES, span) for row in _one(tx, key, at)]
            yield from rows
            if len(rows) < MEMORIES_AT_ONCE:
                return
            slot = rows[-1][0]

    def _all_blocks(self, tx: Tx, key: str) -> Iterator[list[Row]]:
        after: tuple[str, int] = ("", -1)
        while rows := tx.rows(_BLOCKS, (key, *after, BLOCKS_AT_ONCE)):
            yield rows
            after = (rows[-1][0], rows[-1][1])

    def _blocks_around(self, tx: Tx, key: str) -> Iterator[list[Row]]:
        """The blocks that can hold one of the slots, of the terms that stand there or should."""
        terms = sorted(self._numbers)
        for start in range(0, len(terms), TERMS_AT_ONCE):
            some = terms[start : start + TERMS_AT_ONCE]
            sql = _BLOCKS_AROUND.replace("{terms}", among("term", len(some))).replace("{b_terms}", among("b.term", len(some)))
            rows = tx.rows(sql, (key, self._low, *padded(some), key, self._high, *padded(some)))
            if rows:
                yield rows

    def _sum(self, slot: int, place: int, length: int, counts: Mapping[str, int]) -> np.uint64:
        """What the postings of one slot make together."""
        terms = np.array([self._number(term) for term in counts], np.uint64)
        numbers = np.array([packed(slot, count, place, length) & _WHOLE for count in counts.values()], np.uint64)
        return np.uint64(_mixed(numbers, terms).sum())

    def _number(self, term: str) -> int:
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")
        return number


def _mixed(numbers: Numbers, terms: Numbers | np.uint64) -> Numbers:
    """One number for each posting, in which a change of any bit of it or of its term shows."""
    mixed = numbers * _FACTOR ^ terms
    mixed ^= mixed >> _SHIFT
    mixed *= _FACTOR_2
    mixed ^= mixed >> _SHIFT
    return mixed


def _one(tx: Tx, key: str, slot: int) -> Sequence[Row]:
    try:
        return tx.rows(_TEXTS, (key, slot, slot + 1, 1))
    except Damaged:
        return [(slot,)]


def _said(numbers: tuple[int, int, int, int]) -> str:
    n, words, tail_n, dead_n = numbers
    return f"{n} memories of {words} words, {tail_n} in the tail, {dead_n} dead"
