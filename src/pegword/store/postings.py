"""The index in the database: what a save adds, what a change takes out, and what a query fetches.

Blocks and tail are ordinary rows, in the transaction of the memory they index. A save writes one tail row; `folding` moves
full tails into blocks, outside the save.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from pegword.core.caller import Visible
from pegword.core.errors import Damaged
from pegword.core.ranking import QUERY_TERMS_MAX, Postings
from pegword.core.text import Document
from pegword.store import blocks, tails
from pegword.store.engine import Row, Tx, among, padded
from pegword.store.packing import PLACE_MAX, pack_tail, unpack

TAIL_MAX = 128
NOT_INDEXED = -1  # the slot of a memory that is not, or no longer, in the index
BEING_SAVED = -2  # the slot of a new memory until its save has found its place
IN_THE_MAKING = ">"  # stands after the name of an analyser that makes a scope's index again, and before the last slot that it does
SITTING_GAP_US = 30 * 60 * 1_000_000
# A query is read up to this many distinct terms; of those the rarest QUERY_TERMS_MAX are kept.
QUERY_TERMS_READ_MAX = 4_096
LEFT_OUT_NAMED_MAX = 200
TERMS_AT_ONCE = 500  # terms named one by one in a statement
SCOPES_NAMED_MAX = 500  # scopes named one by one in a statement

_STATISTICS, _DEAD, _MARKED, _FREQUENCY = range(4)

_ENTER = f"""
    INSERT INTO ix_scope AS s (scope_key, next_slot, n, words, tail_n, dead_n, version, sitting, sitting_place, sitting_at, analyser)
    VALUES (:scope_key, 1, 1, :length, 1, 0, 0, :sitting, 0, :now, :analyser)
    ON CONFLICT (scope_key) DO UPDATE SET
        next_slot = s.next_slot + 1,
        n = s.n + 1 - :was_in,
        words = s.words + excluded.words - :was_length,
        tail_n = s.tail_n + 1 - :was_in_tail,
        dead_n = s.dead_n + :was_in - :was_in_tail,
        sitting = excluded.sitting,
        sitting_at = excluded.sitting_at,
        analyser = CASE
            WHEN s.analyser = excluded.analyser
                OR substr(s.analyser, 1, length(excluded.analyser) + 1) = excluded.analyser || '{IN_THE_MAKING}'
            THEN s.analyser ELSE '' END,
        sitting_place = CASE
            WHEN s.sitting = excluded.sitting AND s.sitting_place < :place_max
                AND (:named = 1 OR excluded.sitting_at - s.sitting_at <= :gap)
            THEN s.sitting_place + 1 ELSE 0 END
    RETURNING next_slot - 1, sitting_place, tail_n, dead_n, n
"""
_ADD_TAIL = "INSERT INTO ix_tail (scope_key, slot, place, length, counts, marks, unspelt) VALUES (?, ?, ?, ?, ?, ?, ?)"
_DROP_TAIL = "DELETE FROM ix_tail WHERE scope_key = ? AND slot = ?"
_ADD_DEAD = "INSERT INTO ix_dead (scope_key, slot) VALUES (?, ?)"
_LEAVE = """
    UPDATE ix_scope SET n = n - 1, words = words - ?, tail_n = tail_n - ?, dead_n = dead_n + ?, version = version + 1
    WHERE scope_key = ?
"""
_BLOCKS_OF = "SELECT term, first_slot, postings FROM ix_block WHERE scope_key = ? AND {terms} ORDER BY term, first_slot"
_ANALYSER = "SELECT analyser FROM ix_scope WHERE scope_key = ?"
_TERMS = "SELECT DISTINCT term FROM ix_block WHERE scope_key = ?"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entered:
    """Where a memory came to lie in the index, and whether its scope now has work to do outside the save."""

    slot: int
    place: int
    due: bool


@dataclass(frozen=True, slots=True)
class Marked:
    """A memory that a read looks at one by one: *document* number, when it runs out (0: never), whether it is doubted or critical,
    when it was saved."""

    document: int
    expires_at: int
    doubted: bool
    critical: bool
    updated: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the index knows of a query in the visible scopes.

    *terms* are those that were kept, *left_out* the first of the *left_out_n* above the cap. *bases* gives each scope's key the number
    that is added to a slot to make a document number.
    """

    terms: tuple[str, ...]
    left_out: tuple[str, ...]
    left_out_n: int
    postings: Postings
    bases: dict[str, int]
    marked: tuple[Marked, ...]

    def places_of(self, documents: Iterable[int]) -> list[tuple[str, int]]:
        """The scope key and the slot of each document number."""
        keys, bases = list(self.bases), list(self.bases.values())
        found = []
        for document in documents:
            at = bisect_right(bases, document) - 1
            found.append((keys[at], int(document) - bases[at]))
        return found


def enter(
    tx: Tx, scope_key: str, document: Document, *, sitting: str, named: bool, now: int, analyser: str, old: tuple[int, int] | None
) -> Entered:
    """Take a saved memory into the index; *old* is the slot and the length that it had before, if it was in.

    *sitting* says whose sitting the save belongs to, *named* that the caller named it, so that no gap in time ends it.
    """
    in_tail = tx.run(_DROP_TAIL, (scope_key, old[0])) if old else 0
    if old and not in_tail:
        tx.run(_ADD_DEAD, (scope_key, old[0]))
    slot, place, tail_n, dead_n, n = tx.rows(
        _ENTER,
        {
            "scope_key": scope_key, "length": document.length, "sitting": sitting, "now": now, "analyser": analyser,
            "was_in": 1 if old else 0, "was_length": old[1] if old else 0, "was_in_tail": in_tail,
            "place_max": PLACE_MAX, "named": 1 if named else 0, "gap": SITTING_GAP_US,
        },
    )[0]  # fmt: skip
    tx.run(_ADD_TAIL, (scope_key, slot, place, document.length, *pack_tail(document.counts)))
    return Entered(slot, place, tail_n >= TAIL_MAX or needs_rebuild(dead_n, n))


def needs_rebuild(dead_n: int, n: int) -> bool:
    """Whether so many of a scope's slots are dead that its blocks are worth writing anew."""
    return dead_n > max(TAIL_MAX, n // 8)


def retire(tx: Tx, scope_key: str, slot: int, length: int) -> None:
    """Take a memory out of the index that lives on outside it, as what has expired does."""
    in_tail = tx.run(_DROP_TAIL, (scope_key, slot))
    if not in_tail:
        tx.run(_ADD_DEAD, (scope_key, slot))
    tx.run(_LEAVE, (length, in_tail, 1 - in_tail, scope_key))


def indexed_by(tx: Tx, scope_key: str, analyser: str) -> bool:
    """Whether *analyser* alone made the index of a scope."""
    return tx.rows(_ANALYSER, (scope_key,)) in ([], [(analyser,)])


def every_term(tx: Tx, scope_key: str) -> list[str]:
    """Every term that stands in a block of a scope."""
    return [row[0] for row in tx.rows(_TERMS, (scope_key,))]


def leave(tx: Tx, scope_key: str, slot: int, length: int, terms: Sequence[str]) -> None:
    """Take a memory out of the index for good: no block, tail or tombstone keeps a word of *terms* for its sake. The blocks are held.

    *slot* is `NOT_INDEXED` when it had expired out of it already; its words may still stand at dead slots. *terms* are all that
    the memory or an earlier version of it was indexed under.
    """
    dead = np.array([slot, *blocks.dead(tx, scope_key)], np.int64)
    changed = False
    for start in range(0, len(terms), TERMS_AT_ONCE):
        some = terms[start : start + TERMS_AT_ONCE]
        sql = _BLOCKS_OF.replace("{terms}", among("term", len(some)))
        changed |= blocks.rewrite(tx, scope_key, tx.rows(sql, (scope_key, *padded(some))), dead, closed_up=False)
    if slot != NOT_INDEXED:
        in_tail = tx.run(_DROP_TAIL, (scope_key, slot))
        tx.run(_LEAVE, (length, in_tail, 0, scope_key))
    elif changed:
        blocks.written(tx, scope_key)


def fetch(tx: Tx, visible: Visible, terms: Sequence[str]) -> Found:
    """Everything that the index knows of *terms* in the *visible* scopes, in two statements, or three where a tail is not kept.

    Raises `Damaged` where it is none.
    """
    try:
        return _fetch(tx, visible, terms)
    except (TypeError, ValueError, LookupError, OverflowError) as error:  # a number that is none, a scope that there is not
        raise Damaged(tails.DAMAGED) from error


def _fetch(tx: Tx, visible: Visible, terms: Sequence[str]) -> Found:
    condition, parameters = within(visible)
    sql, values = _SCOPES.replace("{visible}", condition), parameters * 3
    asked, terms = terms, terms[:QUERY_TERMS_READ_MAX]
    above_cap = len(terms) > QUERY_TERMS_MAX
    if above_cap:
        sql += _FREQUENCIES.replace("{visible}", condition).replace("{terms}", among("term", len(terms)))
        values = [*values, *parameters, *padded(terms)]
    rows: tuple[list[Row], ...] = ([], [], [], [])
    for row in tx.rows(sql, values) if condition else ():
        rows[row[0]].append(row)
    rows[_STATISTICS].sort(key=itemgetter(1))  # an engine gives them in whatever order; answers are to be the same on all
    bases, states, folded = {}, {}, []
    documents = memories = words = 0
    for _, key, *state in rows[_STATISTICS]:
        next_slot, n, length, tail_n, dead_n, _, _ = state
        bases[key] = documents
        documents, memories, words = documents + next_slot, memories + n, words + length
        if tail_n:
            states[key] = tuple(state)
        if n + dead_n > tail_n:
            folded.append(key)
    newest = tails.tails(tx, states)
    in_tails = tails.search(newest, bases, terms)
    if above_cap:
        kept = _rarest(terms, in_tails.term, {row[1]: int(row[2]) for row in rows[_FREQUENCY]})
        terms = [term for i, term in enumerate(terms) if i in kept]
        in_tails = tails.search(newest, bases, terms)
    taken = frozenset(terms)
    left_out = tuple(islice((term for term in asked if term not in taken), LEFT_OUT_NAMED_MAX))
    in_blocks = _fetch_blocks(tx, folded, condition, parameters, terms)
    dead = np.array([bases[row[1]] + row[2] for row in rows[_DEAD]], np.int64)
    postings = _joined(in_blocks, bases, {term: i for i, term in enumerate(terms)}, in_tails, dead, (documents, memories, words))
    marked = tuple(
        Marked(bases[key] + slot, expires_at, bool(packed & 1), bool(packed & 2), packed >> 2)
        for _, key, slot, expires_at, packed, *_ in rows[_MARKED]
        if slot >= 0
    )
    return Found(tuple(terms), left_out, len(asked) - len(terms), postings, bases, marked)


def within(visible: Visible) -> tuple[str, list[str]]:
    """The condition on scope_key for *visible* and its parameters; "" when nothing is visible."""
    keys, (low, high) = visible.keys, visible.key_range
    parts, parameters = [], []
    if keys:
        parts.append(among("scope_key", len(keys)))
        parameters += padded(keys)
    if low:
        parts.append("scope_key >= ? AND scope_key < ?")
        parameters += [low, high]
    return (f"({' OR '.join(parts)})" if parts else ""), parameters


_SCOPES = """
    SELECT 0, scope_key, next_slot, n, words, tail_n, dead_n, version, sitting_at FROM ix_scope WHERE {visible}
    UNION ALL SELECT 1, scope_key, slot, 0, 0, 0, 0, 0, 0 FROM ix_dead WHERE {visible}
    UNION ALL SELECT 2, scope_key, slot, coalesce(expires_at, 0),
        4 * updated + CASE WHEN confidence = 0 THEN 1 ELSE 0 END + CASE WHEN priority = 'critical' THEN 2 ELSE 0 END, 0, 0, 0, 0
        FROM structured_memories
        WHERE {visible} AND (expires_at IS NOT NULL OR confidence = 0 OR priority = 'critical')
"""
_BLOCKS = "SELECT scope_key, term, first_slot, n, postings FROM ix_block WHERE "
_FREQUENCIES = " UNION ALL SELECT 3, term, CAST(sum(n) AS BIGINT), 0, 0, 0, 0, 0, 0 FROM ix_block WHERE {visible} AND {terms} GROUP BY term"


def _fetch_blocks(tx: Tx, folded: Sequence[str], condition: str, parameters: Sequence[str], terms: Sequence[str]) -> list[Row]:
    """The blocks of *terms* (scope key, term, first slot, how many, postings), in one order on every engine.

    Only the scopes that have any, the *folded* ones, are looked at: most are so small that their tail is all of them.
    """
    if not folded or not terms:
        return []
    if len(folded) <= SCOPES_NAMED_MAX:
        condition, parameters = among("scope_key", len(folded)), padded(folded)
    rows = tx.rows(f"{_BLOCKS}{condition} AND {among('term', len(terms))}", (*parameters, *padded(terms)))
    rows.sort(key=lambda row: row[:3])
    return rows


def _joined(
    in_blocks: Sequence[Row],
    bases: Mapping[str, int],
    index: Mapping[str, int],
    in_tails: tails.InTails,
    dead: Ints,
    totals: tuple[int, int, int],
) -> Postings:
    """Blocks and tails as one set of columns without the *dead*; *totals* are documents, memories and words.

    Each column is filled in place: to convert and join them one by one took longer than to rank them.
    """
    packed = unpack(b"".join([row[4] for row in in_blocks]))
    sizes = [row[3] for row in in_blocks]
    if len(packed) != sum(sizes):
        raise Damaged(tails.DAMAGED)
    fixed = len(packed)
    size = fixed + len(in_tails.term)
    term, document = np.empty(size, np.int64), np.empty(size, np.int64)
    count, length, place = np.empty(size), np.empty(size), np.empty(size, np.int64)
    term[:fixed] = np.repeat(np.array([index[row[1]] for row in in_blocks], np.int64), sizes)
    document[:fixed] = packed["slot"]
    if len(bases) > 1:
        document[:fixed] += np.repeat(np.array([bases[row[0]] for row in in_blocks], np.int64), sizes)
    if fixed and document[:fixed].max() >= totals[0]:
        raise Damaged(tails.DAMAGED)
    for column, name in ((count, "count"), (length, "length"), (place, "place")):
        column[:fixed] = packed[name]
        column[fixed:] = getattr(in_tails, name)
    term[fixed:], document[fixed:] = in_tails.term, in_tails.document
    if len(dead) and fixed:
        lives = np.ones(totals[0], np.bool_)
        lives[dead[(dead >= 0) & (dead < totals[0])]] = False  # what lies beyond was altered on disk
        alive = lives.take(document).nonzero()[0]
        term, document, place = term.take(alive), document.take(alive), place.take(alive)
        count, length = count.take(alive), length.take(alive)
    return Postings(term, document, count, place, length, *totals)


def _rarest(terms: Sequence[str], tail_term: Ints, in_blocks: Mapping[str, int]) -> set[int]:
    """The indices of the `QUERY_TERMS_MAX` terms to keep: absent ones are left out first, then the commonest."""
    in_tails = np.bincount(tail_term, minlength=len(terms)).tolist()
    frequency = [in_tails[i] + in_blocks.get(term, 0) for i, term in enumerate(terms)]
    order = sorted(range(len(terms)), key=lambda i: (frequency[i] == 0, frequency[i], i))
    return set(order[:QUERY_TERMS_MAX])
