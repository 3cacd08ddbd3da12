"""Memories in the order in which an export gives them: by scope, and in each scope as they were saved."""

from collections.abc import Iterator, Sequence

from pegword.core.caller import Visible
from pegword.core.memory import Memory, is_sound
from pegword.store import memory_rows
from pegword.store.engine import Tx
from pegword.store.postings import NOT_INDEXED, within

READ_AT_ONCE = 200

_SCOPES = "SELECT scope_key FROM ix_scope WHERE {condition} AND scope_key > ? ORDER BY scope_key LIMIT ?"
_SLOTS = """
    SELECT slot FROM structured_memories
    WHERE scope_key = ? AND slot >= -1 AND slot >= 0 AND slot > ? ORDER BY slot LIMIT ?
"""
_UNINDEXED = f"""
    SELECT memory_id, shelf, name_key FROM structured_memories
    WHERE scope_key = ? AND slot >= -1 AND slot = {NOT_INDEXED} AND (shelf, name_key) > (?, ?) ORDER BY shelf, name_key LIMIT ?
"""


def scopes(tx: Tx, visible: Visible) -> Iterator[str]:
    """The keys of the *visible* scopes that ever held a memory, in order."""
    condition, parameters = within(visible)
    after = ""
    while condition:
        keys = [key for (key,) in tx.rows(_SCOPES.format(condition=condition), (*parameters, after, READ_AT_ONCE))]
        yield from keys
        if len(keys) < READ_AT_ONCE:
            return
        after = keys[-1]


def memories(tx: Tx, scope_key: str, left_out: list[int]) -> Iterator[Memory]:
    """The memories of a scope that are in the index, in the order in which they were saved last; how many of each page are damaged, and
    so *left_out*, is added to that list."""
    slot = -1
    while True:
        slots = [at for (at,) in tx.rows(_SLOTS, (scope_key, slot, READ_AT_ONCE))]
        found = memory_rows.by_slots(tx, [(scope_key, at) for at in slots])
        left_out.append(len(slots) - len(found))
        yield from (found[scope_key, at] for at in slots if (scope_key, at) in found)
        if len(slots) < READ_AT_ONCE:
            return
        slot = slots[-1]


def expired(tx: Tx, scope_key: str, left_out: list[int]) -> Iterator[Memory]:
    """The memories of a scope that have left the index because they expired, by name."""
    after: Sequence[str] = ("", "")
    while True:
        rows = tx.rows(_UNINDEXED, (scope_key, *after, READ_AT_ONCE))
        for memory_id, *_ in rows:
            memory = memory_rows.by_id(tx, memory_id, sound=False)
            if memory is not None and is_sound(memory):
                yield memory
            else:
                left_out.append(1)
        if len(rows) < READ_AT_ONCE:
            return
        after = rows[-1][1:]
