"""Everything that a database holds, carried to another one: table by table, some rows at a time, from one snapshot.

Where the copy stands is written down in the target in the transaction that brings the rows, so a copy that was broken off goes on where
it was. Until it is finished the target says so of itself, and nobody opens it as a store.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pegword.core.errors import Conflict, Damaged
from pegword.store import fact_rows
from pegword.store.engine import Engine, Row, Tx

ROWS_AT_ONCE = 200
_DIGEST_BYTES = 16
_MASK = (1 << 8 * _DIGEST_BYTES) - 1

COPYING = "copying"
# What a database says of itself alone: it is not carried to another one.
BACKUP = "backup"
_ALL = "all"  # the position after the last table
OWN_FACTS = ("probe", COPYING, BACKUP)

# Called with how many rows were copied or compared since the last call.
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Table:
    """One table: the columns that tell its rows apart and by which it is read in order, and all others."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many rows there are, and one number that all of them make together, in whatever order they come."""

    rows: int = 0
    digest: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """How far a copy has come: the table that is being filled and the key of its last row; every table before it is full."""

    table: int
    key: tuple[Any, ...]
    source: str

    def text(self) -> str:
        """The position as it is written down."""
        name = TABLES[self.table].name if self.table < len(TABLES) else _ALL
        return json.dumps([self.source, name, list(self.key)])

    @classmethod
    def of(cls, text: str) -> "Position":
        """The position that was written down."""
        source, name, key = json.loads(text)
        names = [*(table.name for table in TABLES), _ALL]  # by name, since a newer program may have more tables
        return cls(names.index(name), tuple(key), source)


def _table(name: str, key: str, rest: str = "") -> Table:
    return Table(name, tuple(key.split()), (*key.split(), *rest.split()))


# Every table of the migrations but the list of the migrations themselves; a test compares the two.
TABLES = (
    _table("users", "user_id", "name name_key email created"),
    _table(
        "access_keys", "key_id", "user_id label token_hash access_right project_word created expires_at revoked_at"
    ),
    _table("facts", "name", "value"),
    _table(
        "structured_memories",
        "scope_key shelf name_key",
        """memory_id slot place length scope scope_id name kind kind_word priority source author author_user credential verified_by
        verified_at confidence expires_at created updated version access_count last_accessed content_hash tags description content""",
    ),
    _table(
        "memory_versions",
        "scope_key memory_id version",
        """action name kind priority source author credential verified confidence expires_at saved content_hash tags description
        content""",
    ),
    _table("memory_tags", "scope_key memory_id tag_key"),
    _table("ix_scope", "scope_key", "next_slot n words tail_n dead_n version sitting sitting_place sitting_at analyser"),
    _table("ix_tail", "scope_key slot", "place length counts marks unspelt"),
    _table("ix_block", "scope_key term first_slot", "n postings"),
    _table("ix_dead", "scope_key slot"),
    _table("shared_scopes", "scope_key", "owner title created archived_at deleted_at"),
    _table("scope_members", "scope_key user_id", "may_write"),
    _table(
        "sessions",
        "session_id",
        """kind user_id anonymous made_by credential workstream_id workstream_key project_key persona memory parent_id created
        resumed_at closed_at""",
    ),
    _table("nudge_marks", "session_key kind", "at"),
    _table("nudge_events", "session_key event_id", "kind channel at valid_until"),
    _table("nudge_calls", "session_key", "fingerprint times at"),
    _table("once_answers", "once_id", "fingerprint at status headers body access_right seen"),
    _table("once_memories", "memory_id once_id", "at"),
    _table("removals", "scope_key", "before_slot asked_at done"),
    _table("receipts", "receipt_id memory_id", "user_id at version body"),
    _table("session_indexes", "index_key", "index_id basis made_at body"),
    _table("session_index_memories", "index_id memory_id", "version"),
)  # fmt: skip
# The tables that move with every save, delete, user, key and session, and are small: by them it is seen whether a database was written to.
MOVING = ("users", "access_keys", "shared_scopes", "scope_members", "sessions", "ix_scope")

_LAST_WRITTEN = "SELECT coalesce(max(sitting_at), 0) FROM ix_scope"
_COUNT = "SELECT count(*) FROM {table}"
_EMPTY = "DELETE FROM {table}"
_READ = "SELECT {columns} FROM {table}{after} ORDER BY {key} LIMIT ?"
_AFTER = " WHERE ({key}) > ({marks})"
# What is there already came from an older snapshot of a copy that was broken off; the comparison finds it.
_PUT = "INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"
_ADVANCE = f"UPDATE facts SET value = ? WHERE name = '{COPYING}' AND value = ?"
_DROP = f"DELETE FROM facts WHERE name = '{COPYING}'"
_DROP_CARRIED = f"DELETE FROM facts WHERE name NOT IN ({', '.join('?' * len(OWN_FACTS))})"
_COUNT_CARRIED = f"SELECT count(*) FROM facts WHERE name NOT IN ({', '.join('?' * len(OWN_FACTS))})"


def unfinished(tx: Tx) -> str:
    """Where the copy comes from that this database is the target of, if it is not finished; else ""."""
    text = fact_rows.get(tx, COPYING)
    return "" if text is None else Position.of(text).source


def require_whole(engine: Engine) -> None:
    """Raise `Conflict` when a copy into this database is not finished: half of a store is none."""
    with engine.read() as tx:
        source = unfinished(tx)
    if source:
        raise Conflict(f"this database holds an unfinished copy of {source}; run the same command again to finish it", code="unfinished")


def last_written(tx: Tx) -> int:
    """When a memory was saved last, in microseconds since 1970; 0 for a store that holds none."""
    return int(tx.rows(_LAST_WRITTEN)[0][0])


def count(tx: Tx, table: Table) -> int:
    """How many rows of *table* are carried."""
    if table.name == "facts":
        return int(tx.rows(_COUNT_CARRIED, OWN_FACTS)[0][0])
    return int(tx.rows(_COUNT.format(table=table.name))[0][0])


def held(tx: Tx) -> dict[str, int]:
    """How many rows each table holds, without those that hold none."""
    counts = {table.name: count(tx, table) for table in TABLES}
    return {name: n for name, n in counts.items() if n}


def said(counts: Mapping[str, int]) -> str:
    """How many rows there are, for a reader."""
    memories, rows = counts.get("structured_memories", 0), sum(counts.values())
    return f"{memories} {'memory' if memories == 1 else 'memories'} ({rows} {'row' if rows == 1 else 'rows'} in all)"


def begin(target: Engine, source: str) -> Position:
    """Where a copy from *source* (as it may be shown) begins or goes on; raise `Conflict` when the target holds anything else."""

    def work(tx: Tx) -> Position:
        text = fact_rows.get(tx, COPYING)
        if text is not None:
            position = Position.of(text)
            if position.source != source:
                raise Conflict(f"the target holds an unfinished copy of {position.source}: finish that one, or name an empty target")
            return position
        holds = held(tx)
        if holds:
            raise Conflict(f"the target is not empty: it holds {said(holds)}; name an empty one", code="not_empty")
        position = Position(0, (), source)
        fact_rows.put(tx, COPYING, position.text())
        return position

    return target.write(work)


def copy(source: Tx, target: Engine, position: Position, progress: Progress) -> None:
    """Copy what is left after *position*. Raises `Conflict` when somebody else copies into the target too."""
    for number in range(position.table, len(TABLES)):
        table = TABLES[number]
        for rows, key in _pages(source, table, position.key):
            here = Position(number, key, position.source)
            target.write(lambda tx, table=table, rows=rows, old=position, new=here: _bring(tx, table, rows, old, new))  # type: ignore[misc]
            position = here
            progress(len(rows))
        after = Position(number + 1, (), position.source)
        target.write(lambda tx, old=position, new=after: _advance(tx, old, new))  # type: ignore[misc]
        position = after


def copy_again(source: Tx, target: Engine, table: Table, name: str, progress: Progress) -> None:
    """Empty one table of the target and fill it anew, in one transaction: it came from another snapshot than the rest."""
    done = Position(len(TABLES), (), name)

    def work(tx: Tx) -> None:
        _advance(tx, done, done)
        bring_all(source, tx, (table,), progress)

    target.write(work)


def bring_all(source: Tx, target: Tx, tables: Sequence[Table], progress: Progress) -> None:
    """Put what *source* holds in *tables* in the place of what *target* holds there, in the transaction of *target*."""
    for table in tables:
        if table.name == "facts":
            target.run(_DROP_CARRIED, OWN_FACTS)
        else:
            target.run(_EMPTY.format(table=table.name))
        for rows, _ in _pages(source, table, ()):
            _put(target, table, rows)
            progress(len(rows))


def finish(target: Engine) -> None:
    """Say that the copy is whole: from now on the target is a store like any other."""
    target.write(lambda tx: tx.run(_DROP))


def fingerprint(tx: Tx, table: Table, progress: Progress = lambda _: None) -> Fingerprint:
    """The fingerprint of *table*: equal on every engine for equal rows."""
    rows, digest = 0, 0
    for page, _ in _pages(tx, table, ()):
        for row in page:
            digest += int.from_bytes(blake2b(_spelled(row), digest_size=_DIGEST_BYTES).digest(), "big")
        rows += len(page)
        progress(len(page))
    return Fingerprint(rows, digest & _MASK)


def _bring(tx: Tx, table: Table, rows: Sequence[Row], old: Position, new: Position) -> None:
    _advance(tx, old, new)
    _put(tx, table, rows)


def _put(tx: Tx, table: Table, rows: Sequence[Row]) -> None:
    if rows:
        sql = _PUT.format(table=table.name, columns=", ".join(table.columns), marks=", ".join("?" * len(table.columns)))
        tx.run_many(sql, rows)


def _advance(tx: Tx, old: Position, new: Position) -> None:
    """Write down how far the copy is; nobody else may have moved it since."""
    if not tx.run(_ADVANCE, (new.text(), old.text())):
        raise Conflict("somebody else copies into the same target; nothing of this step was kept")


def _pages(tx: Tx, table: Table, after: tuple[Any, ...]) -> Iterator[tuple[list[Row], tuple[Any, ...]]]:
    """The rows of *table* after the key *after* (() for all), some at a time, each time with the key of the last."""
    key, columns = ", ".join(table.key), ", ".join(table.columns)
    beyond = _AFTER.format(key=key, marks=", ".join("?" * len(table.key)))
    while True:
        sql = _READ.format(columns=columns, table=table.name, after=beyond if after else "", key=key)
        try:
            rows = tx.rows(sql, (*after, ROWS_AT_ONCE))
        except Damaged as error:
            raise Damaged(f"the table {table.name} cannot be read beyond {_shown(after)}: {error}") from error
        if not rows:
            return
        after = tuple(rows[-1][: len(table.key)])
        carried = [row for row in rows if row[0] not in OWN_FACTS] if table.name == "facts" else rows
        yield carried, after
        if len(rows) < ROWS_AT_ONCE:
            return


def _shown(key: tuple[Any, ...]) -> str:
    """Where in a table a key is, for a reader."""
    return f"the row {', '.join(map(str, key))}" if key else "its beginning"


def _spelled(row: Row) -> bytes:
    """A row as bytes, so that no two rows read alike and every engine's values of one meaning read the same."""
    parts: list[bytes] = []
    for value in row:
        match value:
            case None:
                data = b"-"
            case str():
                data = b"t" + value.encode()
            case int():
                data = b"i%d" % value
            case float():
                data = b"f" + repr(value).encode()
            case _:
                data = b"b" + bytes(value)
        parts.append(b"%d:" % len(data))
        parts.append(data)
    return b"".join(parts)
