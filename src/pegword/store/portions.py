"""Many whole memories, read some at a time, so that no more of them lie in memory at once than are being looked at.

How long each is, the engine says without reading it; so a portion is as large as it may be, and short memories take one statement.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pegword.core.caller import Visible
from pegword.core.memory import Memory
from pegword.store import memory_rows
from pegword.store.engine import Tx, padded
from pegword.store.memory_rows import PLACED, Filters, filtered

PORTION_BYTES = 1 << 19

K = TypeVar("K")

_BYTES = "octet_length(content) + octet_length(description)"
_SIZES = f"SELECT scope_key, slot, {_BYTES} FROM structured_memories WHERE {PLACED} AND (scope_key, slot) IN (VALUES {{pairs}})"
_UNINDEXED = f"""
    SELECT memory_id, {_BYTES} FROM structured_memories AS m WHERE {{condition}} AND slot < 0 ORDER BY updated DESC, memory_id LIMIT ?
"""


def by_slots(tx: Tx, slots: Sequence[tuple[str, int]], bytes_max: int) -> Iterator[dict[tuple[str, int], Memory]]:
    """The memories at these (scope key, slot) pairs, in portions that keep their order; the first ones that make up *bytes_max* together,
    and at least one. What is damaged is left out."""
    if not slots:
        return
    wanted = padded(slots)
    sql = _SIZES.replace("{pairs}", ", ".join(["(?, ?)"] * len(wanted)))
    sizes = {(key, slot): size for key, slot, size in tx.rows(sql, [v for pair in wanted for v in pair])}
    yield from _read(slots, lambda at: sizes.get(at, 0), bytes_max, lambda some: memory_rows.by_slots(tx, some))


def unindexed(tx: Tx, visible: Visible, filters: Filters, count_max: int, bytes_max: int) -> Iterator[dict[str, Memory]]:
    """The memories that have left the index because they expired, by id, newest first, in portions as those of `by_slots`; at most
    *count_max*."""
    condition, parameters = filtered(visible, filters)
    rows = tx.rows(_UNINDEXED.replace("{condition}", condition), (*parameters, count_max))
    sizes: dict[str, int] = dict((memory_id, size) for memory_id, size in rows)  # noqa: C402
    yield from _read(list(sizes), sizes.__getitem__, bytes_max, lambda some: memory_rows.by_ids(tx, some))


def _read(
    keys: Sequence[K], size_of: Callable[[K], int], bytes_max: int, read: Callable[[Sequence[K]], dict[K, Memory]]
) -> Iterator[dict[K, Memory]]:
    some: list[K] = []
    held = spent = 0
    for key in keys:
        size = size_of(key)
        spent += size
        if spent > bytes_max and spent > size:
            break
        if some and held + size > PORTION_BYTES:
            yield read(some)
            some, held = [], 0
        some.append(key)
        held += size
    if some:
        yield read(some)
