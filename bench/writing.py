"""How long a save takes, flushed to disk: in Pegword (row, version, index) and the same row in a table with an FTS5 index."""

import statistics
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from bench.generator import Note, World
from bench.latency_peers import connect
from bench.store import Store
from pegword.store.migrate import migrations

BEFORE = 2_000  # notes that lie there already
T = TypeVar("T")


def _table() -> str:
    """The statement that makes Pegword's table of memories."""
    statement = migrations()[0][2].partition("CREATE TABLE structured_memories")[2].partition(");")[0]
    return "CREATE TABLE structured_memories" + statement.replace("{bytewise}", "") + ")"


class Table:
    """Pegword's own table of memories with its keys, and an FTS5 index over it instead of Pegword's: the same row, in one transaction."""

    def __init__(self, path: Path) -> None:
        self._database = connect(path)
        self._database.execute(_table() + "; CREATE VIRTUAL TABLE words USING fts5(scope_key, name, description, content, tags,"
            " content='structured_memories', tokenize='porter unicode61')")  # fmt: skip
        columns = [row[1] for row in self._database.execute("PRAGMA table_info(structured_memories)")]
        self._insert = f"INSERT INTO structured_memories ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"
        self._count = 0

    def save(self, note: Note) -> None:
        """One row and its words, flushed."""
        self._count += 1
        now, scope_id, name = time.time_ns() // 1_000, f"s{note.scope}", f"note_{self._count}"
        row = {
            "memory_id": str(uuid4()), "scope_key": f"w:u:{scope_id}", "shelf": "", "name_key": name, "slot": self._count, "place": 0,
            "length": 0, "scope": "workstream", "scope_id": scope_id, "name": name, "kind": "project", "kind_word": "",
            "priority": "normal", "source": "agent", "author": "bench", "author_user": "u", "credential": "bench", "verified_by": "",
            "verified_at": None, "confidence": 0.7, "expires_at": None, "created": now, "updated": now, "version": 1,
            "access_count": 0, "last_accessed": None, "content_hash": sha256(note.text.encode()).hexdigest(), "tags": "[]",
            "description": "", "content": note.text,
        }  # fmt: skip
        with self._database:
            self._database.execute(self._insert, row)
            words = (self._count, row["scope_key"], name, "", note.text, "")
            self._database.execute("INSERT INTO words(rowid, scope_key, name, description, content, tags) VALUES (?, ?, ?, ?, ?, ?)", words)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def saves(folder: Path, count: int, seed: int) -> list[str]:
    """Lines of a table: median and mean of *count* saves each, taken in turns of 50 so that a busy moment hits both."""
    folder.mkdir()
    notes = list(World(BEFORE + count, 20, seed).notes())
    before, fresh = notes[:BEFORE], notes[BEFORE:]
    store, table = Store(folder / "pegword.db"), Table(folder / "fts5.db")
    store.fill(before)
    for note in before:
        table.save(note)
    drafts = list(store.drafts(fresh))
    ours: list[float] = []
    theirs: list[float] = []
    folding = 0.0
    for start in range(0, count, 50):
        ours += _timed(store.save, drafts[start : start + 50])
        folding += sum(_timed(lambda _: store.settle(), [None]))
        theirs += _timed(table.save, fresh[start : start + 50])
    store.close()
    table.close()
    lines = [f"saves, one by one, each flushed to disk, {BEFORE:,} memories there before"]
    first = statistics.median(ours)
    for name, times in (("Pegword: row, version, index", ours), ("the same row and an FTS5 index", theirs)):
        lines.append(
            f"{name:46}{statistics.median(times):12.3f} ms{statistics.median(times) / first:10.2f} x   mean {statistics.mean(times):.3f} ms"
        )
    lines.append(f"{'Pegword: folding, outside the save':46}{folding / count:12.3f} ms a save")
    return lines


def _timed(work: Callable[[T], object], given: list[T]) -> list[float]:
    times = []
    for one in given:
        start = time.perf_counter()
        work(one)
        times.append((time.perf_counter() - start) * 1_000)
    return times
