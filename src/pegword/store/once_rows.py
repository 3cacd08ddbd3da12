"""Kept answers to writes that are done once, however often they are asked for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pegword.core.people import Seen
from pegword.store.engine import Tx, among, padded

DROPPED_AT_ONCE = 1_000

# Whoever asks first inserts the row; whoever asks beside them waits here until that is committed, and is then given no row.
_CLAIM = """
    INSERT INTO once_answers AS o (once_id, fingerprint, at, status, headers, body, access_right, seen) VALUES (?, ?, ?, 0, '', ?, '', '[]')
    ON CONFLICT (once_id) DO UPDATE SET fingerprint = excluded.fingerprint, at = excluded.at, status = 0, headers = '', body = excluded.body
    WHERE o.at < ? RETURNING at
"""
_GET = "SELECT fingerprint, status, headers, body, access_right, seen FROM once_answers WHERE once_id = ?"
_KEEP = "UPDATE once_answers SET status = ?, headers = ?, body = ?, access_right = ?, seen = ? WHERE once_id = ?"
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


@dataclass(frozen=True, slots=True)
class Stored:
    """A kept answer: *status* (0: it told of a memory that was deleted since), *headers*, *body*; the *right* that its credential had, and
    what it tells of that was *seen* of shared scopes."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    right: str
    seen: tuple[Seen, ...] = ()


def claim(tx: Tx, once_id: str, fingerprint: str, now: int, oldest: int) -> bool:
    """Take *once_id* for the request of this *fingerprint*; False when it is taken already, and since *oldest*.

    First in its transaction. Two transactions that want the same one wait for each other here.
    """
    return bool(tx.rows(_CLAIM, (once_id, fingerprint, now, b"", oldest)))


def kept(tx: Tx, once_id: str) -> tuple[str, Stored]:
    """What *once_id* was taken for: the fingerprint of the request, and its answer."""
    fingerprint, status, headers, body, right, seen = tx.rows(_GET, (once_id,))[0]
    pairs = tuple((name, value) for name, value in json.loads(headers or "[]"))
    return fingerprint, Stored(
        status, pairs, bytes(body), right, tuple(Seen(key, user, bool(outside)) for key, user, outside in json.loads(seen))
    )


def keep(tx: Tx, once_id: str, at: int, answer: Stored, memories: Sequence[str]) -> None:
    """Keep an answer under *once_id*, which this transaction has claimed at the time *at*. *memories*: the ids of those it tells of."""
    seen = json.dumps([(one.scope_key, one.user_id, int(one.outside)) for one in answer.seen])
    tx.run(_KEEP, (answer.status, json.dumps(answer.headers), answer.body, answer.right, seen, once_id))
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
