"""What has expired leaves the index, some at a time. The memories themselves stay until they are deleted."""

from functools import partial

from pegword.store.engine import MANY_ROWS, Engine, Tx
from pegword.store.postings import NOT_INDEXED, retire

SWEPT_AT_ONCE = 500

_EXPIRED = "FROM structured_memories WHERE expires_at IS NOT NULL AND expires_at <= ? AND slot >= 0"
_SCOPES = f"SELECT DISTINCT scope_key {_EXPIRED}"
_SOME = f"SELECT memory_id, slot, length {_EXPIRED} AND scope_key = ? LIMIT ?"
_UNPLACE = f"UPDATE structured_memories SET slot = {NOT_INDEXED} WHERE memory_id = ?"


def sweep(engine: Engine, now: int) -> set[str]:
    """Take every memory that has expired by *now* out of the index; the keys of the scopes that changed."""
    with engine.read() as tx:
        keys = {row[0] for row in tx.rows(_SCOPES, (now,))}
    for key in keys:
        while engine.write(partial(_sweep_some, scope_key=key, now=now)) == SWEPT_AT_ONCE:
            pass
    return keys


def _sweep_some(tx: Tx, *, scope_key: str, now: int) -> int:
    tx.alone(MANY_ROWS)
    tx.alone(scope_key)
    rows = tx.rows(_SOME, (now, scope_key, SWEPT_AT_ONCE))
    for memory_id, slot, length in rows:
        retire(tx, scope_key, slot, length)
        tx.run(_UNPLACE, (memory_id,))
    return len(rows)
