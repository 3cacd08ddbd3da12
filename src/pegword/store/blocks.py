"""Blocks of postings as rows: how they are cut, put, and written anew without the dead."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from pegword.store.engine import Row, Tx, among, padded
from pegword.store.packing import BLOCK_POSTINGS_MAX, POSTING_BYTES, are_among, first_slot, unpack

Ints = npt.NDArray[np.int64]
BlockKey = tuple[str, str, int]
BlockRow = tuple[str, str, int, int, bytes]

_BLOCK_BYTES = BLOCK_POSTINGS_MAX * POSTING_BYTES

_PUT = """
    INSERT INTO ix_block (scope_key, term, first_slot, n, postings) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (scope_key, term, first_slot) DO UPDATE SET n = excluded.n, postings = excluded.postings
"""
_DROP = "DELETE FROM ix_block WHERE scope_key = ? AND term = ? AND first_slot = ?"
_DEAD = "SELECT slot FROM ix_dead WHERE scope_key = ?"
_BURY = "DELETE FROM ix_dead WHERE scope_key = ? AND {slots}"
_WRITTEN = "UPDATE ix_scope SET version = version + 1 WHERE scope_key = ?"
_BURIED = "UPDATE ix_scope SET dead_n = dead_n - ?, version = version + 1 WHERE scope_key = ?"

BURIED_AT_ONCE = 500


def hold(tx: Tx, scope_key: str, *more: str) -> None:
    """Keep off all others who write blocks of a scope, but not saves, which write none; hold *more* names `alone` after that. What ends
    here touches the row that counts the scope last, since saves wait for that."""
    tx.beside(scope_key)
    tx.alone(f"blocks of {scope_key}", *more)


def cut(scope_key: str, term: str, postings: bytes) -> list[BlockRow]:
    """The rows of ix_block that hold packed *postings*."""
    if 0 < len(postings) <= _BLOCK_BYTES:  # as nearly all are
        return [(scope_key, term, first_slot(postings), len(postings) // POSTING_BYTES, postings)]
    parts = (postings[start : start + _BLOCK_BYTES] for start in range(0, len(postings), _BLOCK_BYTES))
    return [(scope_key, term, first_slot(some), len(some) // POSTING_BYTES, some) for some in parts]


def without(postings: bytes, gone: Ints) -> bytes:
    """Packed *postings* without those of the slots that are *gone*."""
    if not len(gone):
        return postings
    unpacked = unpack(postings)
    return unpacked[~are_among(unpacked["slot"], gone)].tobytes()


def put(tx: Tx, rows: Sequence[BlockRow]) -> None:
    """Write *rows*, each new or in the place of the one that begins with the same slot."""
    if rows:
        tx.run_many(_PUT, rows)


def written(tx: Tx, scope_key: str) -> None:
    """Say that blocks of a scope were written, to who worked something out from them before. Saves wait for this until it is committed."""
    tx.run(_WRITTEN, (scope_key,))


def drop(tx: Tx, keys: Sequence[BlockKey]) -> None:
    """Delete the blocks of these keys."""
    if keys:
        tx.run_many(_DROP, keys)


def dead(tx: Tx, scope_key: str) -> list[int]:
    """The slots of a scope that stand in blocks but are no memory's any more."""
    return [int(row[0]) for row in tx.rows(_DEAD, (scope_key,))]


def bury(tx: Tx, scope_key: str, slots: Sequence[int]) -> None:
    """Take *slots*, which stand in no block any more, from the list of the dead."""
    buried = 0
    for start in range(0, len(slots), BURIED_AT_ONCE):
        some = slots[start : start + BURIED_AT_ONCE]
        buried += tx.run(_BURY.replace("{slots}", among("slot", len(some))), (scope_key, *padded(some)))
    tx.run(_BURIED, (buried, scope_key))


def rewrite(tx: Tx, scope_key: str, rows: Sequence[Row], gone: Ints, *, closed_up: bool) -> bool:
    """Write blocks anew without the postings of the slots that are *gone*; what is left empty goes. Whether there were any.

    *rows* are (term, first slot, postings), those of a term together and in order. With *closed_up*, the blocks of a term that lost a
    posting are filled up from each other; without, only those that lost one are touched.
    """
    together = itemgetter(0) if closed_up else itemgetter(0, 1)
    drops: list[BlockKey] = []
    puts: list[BlockRow] = []
    for _, group in groupby(rows, key=together):
        (term, *_), firsts, data = zip(*group, strict=True)
        postings = unpack(b"".join(data))
        kept = postings[~are_among(postings["slot"], gone)]
        if len(kept) < len(postings):
            drops += [(scope_key, term, first) for first in firsts]
            puts += cut(scope_key, term, kept.tobytes())
    drop(tx, drops)
    put(tx, puts)
    return bool(drops)
