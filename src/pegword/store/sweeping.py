"""What has expired leaves the index, some at a time. The memories themselves stay until they are deleted."""

from pegword.store.engine import Engine, Tx
from pegword.store.postings import NOT_INDEXED, retire

SWEPT_AT_ONCE = 500

_EXPIRED = """
    SELECT memory_id, scope_key, slot, length FROM structured_memories
    WHERE expires_at IS NOT NULL AND expires_at <= ? AND slot >= 0 LIMIT ?
"""
_UNPLACE = f"UPDATE structured_memories SET slot = {NOT_INDEXED} WHERE memory_id = ?"


def sweep(engine: Engine, now: int) -> set[str]:
    """Take every memory that has expired by *now* out of the index; the keys of the scopes that changed."""
    changed: set[str] = set()
    while True:
        with engine.read() as tx:
            if not tx.rows(_EXPIRED, (now, 1)):
                return changed
        changed |= engine.write(lambda tx: _sweep_some(tx, now))


def _sweep_some(tx: Tx, now: int) -> set[str]:
    rows = tx.rows(_EXPIRED, (now, SWEPT_AT_ONCE))
    for memory_id, scope_key, slot, length in rows:
        retire(tx, scope_key, slot, length)
        tx.run(_UNPLACE, (memory_id,))
    return {row[1] for row in rows}
