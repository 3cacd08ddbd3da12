"""What has expired leaves the index, some at a time. The memories themselves stay until they are deleted.

A clock that ran ahead and was set back had too many of them swept: those are taken into the index again.
"""

from collections.abc import Sequence
from functools import partial

from pegword.core.errors import Damaged
from pegword.store.engine import Engine, Tx
from pegword.store.memory_rows import tags_of
from pegword.store.postings import NOT_INDEXED, enter, retire
from pegword.store.reindex import Analyse

SWEPT_AT_ONCE = 500

_EXPIRED = "FROM structured_memories WHERE expires_at IS NOT NULL AND expires_at <= ? AND slot >= 0"
_SCOPES = f"SELECT DISTINCT scope_key {_EXPIRED}"
_SOME = f"SELECT memory_id, slot, length {_EXPIRED} AND scope_key = ? LIMIT ?"
_NOT_YET = f"FROM structured_memories WHERE expires_at IS NOT NULL AND expires_at > ? AND slot = {NOT_INDEXED}"
_SCOPES_OF_THEM = f"SELECT DISTINCT scope_key {_NOT_YET}"
_IDS_OF_THEM = f"SELECT memory_id {_NOT_YET} AND scope_key = ? ORDER BY memory_id"
_ONE_OF_THEM = f"SELECT name, description, content, tags {_NOT_YET} AND memory_id = ?"
_PLACE = "UPDATE structured_memories SET slot = ?, place = ?, length = ? WHERE memory_id = ?"
_UNPLACE = f"UPDATE structured_memories SET slot = {NOT_INDEXED} WHERE memory_id = ?"


def sweep(engine: Engine, now: int) -> set[str]:
    """Take every memory that has expired by *now* out of the index; the keys of the scopes that changed."""
    with engine.read() as tx:
        keys = {row[0] for row in tx.rows(_SCOPES, (now,))}
    for key in keys:
        while engine.write(partial(_sweep_some, scope_key=key, now=now)) == SWEPT_AT_ONCE:
            pass
    return keys


def restore(engine: Engine, now: int, analyser: str, analyse: Analyse) -> set[str]:
    """Take into the index what was swept from it and has not expired by *now*; the keys of the scopes that changed."""
    changed: set[str] = set()
    with engine.read() as tx:
        keys = [row[0] for row in tx.rows(_SCOPES_OF_THEM, (now,))]
    for key in keys:
        with engine.read() as tx:
            ids = [row[0] for row in tx.rows(_IDS_OF_THEM, (now, key))]
        for start in range(0, len(ids), SWEPT_AT_ONCE):
            some = ids[start : start + SWEPT_AT_ONCE]
            if engine.write(partial(_restore_some, scope_key=key, ids=some, now=now, analyser=analyser, analyse=analyse)):
                changed.add(key)
    return changed


def _restore_some(tx: Tx, *, scope_key: str, ids: Sequence[str], now: int, analyser: str, analyse: Analyse) -> int:
    tx.alone(scope_key)
    restored = 0
    for memory_id in ids:
        try:
            texts = tx.rows(_ONE_OF_THEM, (now, memory_id))
            if not texts:  # somebody was first
                continue
            name, description, content, tags = texts[0]
            document = analyse(name, description, content, tags_of(tags))
        except Damaged:
            continue
        # A sitting of its own: nothing tells any more which one it was saved in.
        entered = enter(tx, scope_key, document, sitting=memory_id, named=True, now=now, analyser=analyser, old=None)
        tx.run(_PLACE, (entered.slot, entered.place, document.length, memory_id))
        restored += 1
    return restored


def _sweep_some(tx: Tx, *, scope_key: str, now: int) -> int:
    tx.alone(scope_key)
    rows = tx.rows(_SOME, (now, scope_key, SWEPT_AT_ONCE))
    for memory_id, slot, length in rows:
        retire(tx, scope_key, slot, length)
        tx.run(_UNPLACE, (memory_id,))
    return len(rows)
