"""Kept answers to writes that are done once, however often they are asked for."""

import json
from collections.abc import Sequence

from pegword.store.engine import Tx, among, padded

DROPPED_AT_ONCE = 1_000

# Whoever asks first inserts the row; whoever asks beside them waits here until that is committed, and is then given no row.
_CLAIM = """
    INSERT INTO once_answers AS o (once_id, fingerprint, at, status, headers, body) VALUES (?, ?, ?, 0, '', ?)
    ON CONFLICT (once_id) DO UPDATE SET fingerprint = excluded.fingerprint, at = excluded.at, status = 0, headers = '', body = excluded.body
    WHERE o.at < ? RETURNING at
"""
_GET = "SELECT fingerprint, status, headers, body FROM once_answers WHERE once_id = ?"
_KEEP = "UPDATE once_answers SET status = ?, headers = ?, body = ? WHERE once_id = ?"
_ADD_MEMORIES = (
    "INSERT INTO once_memories (memory_id, once_id, at) VALUES {rows} ON CONFLICT (memory_id, once_id) DO UPDATE SET at = excluded.at"
)
# An answer that took the place of an old one under the same key has another time: what the old one told of is none of its business.
_BLANK = """
    UPDATE once_answers SET status = 0, headers = '', body = ?
    WHERE (once_id, at) IN (SELECT once_id, at FROM once_memories WHERE {ids})
"""
_FORGET = "DELETE FROM once_memories WHERE {ids}"
_OLD = "SELECT at FROM once_answers WHERE at < ? ORDER BY at LIMIT 1 OFFSET ?"
_DROP = "DELETE FROM once_answers WHERE at < ?"
_DROP_MEMORIES = "DELETE FROM once_memories WHERE at < ?"


def claim(tx: Tx, once_id: str, fingerprint: str, now: int, oldest: int) -> bool:
    """Take *once_id* for the request of this *fingerprint*; False when it is taken already, and since *oldest*.

    First in its transaction. Two transactions that want the same one wait for each other here.
    """
    return bool(tx.rows(_CLAIM, (once_id, fingerprint, now, b"", oldest)))


def kept(tx: Tx, once_id: str) -> tuple[str, int, list[tuple[str, str]], bytes]:
    """What *once_id* was taken for: fingerprint, status (0: the answer told of a memory that was deleted since), headers, body."""
    fingerprint, status, headers, body = tx.rows(_GET, (once_id,))[0]
    return fingerprint, status, [(name, value) for name, value in json.loads(headers or "[]")], bytes(body)


def keep(tx: Tx, once_id: str, at: int, status: int, headers: Sequence[tuple[str, str]], body: bytes, memories: Sequence[str]) -> None:
    """Keep an answer under *once_id*, which this transaction has claimed at the time *at*. *memories*: the ids of those it tells of."""
    tx.run(_KEEP, (status, json.dumps(headers), body, once_id))
    ids = tuple(dict.fromkeys(memories))
    if ids:
        rows = ", ".join(["(?, ?, ?)"] * len(ids))
        tx.run(_ADD_MEMORIES.replace("{rows}", rows), [v for memory_id in ids for v in (memory_id, once_id, at)])


def forget_memories(tx: Tx, memory_ids: Sequence[str]) -> None:
    """Keep no answer any longer that tells of one of these memories, but keep that it was given."""
    ids = among("memory_id", len(memory_ids))
    tx.run(_BLANK.replace("{ids}", ids), (b"", *padded(memory_ids)))
    tx.run(_FORGET.replace("{ids}", ids), padded(memory_ids))


def drop_before(tx: Tx, at: int) -> bool:
    """Forget what is older than *at*, but not all at once: True when more of it is left."""
    more: Sequence[tuple[int]] = tx.rows(_OLD, (at, DROPPED_AT_ONCE))
    bound = more[0][0] + 1 if more else at
    tx.run(_DROP, (bound,))
    tx.run(_DROP_MEMORIES, (bound,))
    return bool(more)
