"""How long a save takes, flushed to disk: in Pegword (row, version, index) and as a row with an FTS5 index kept by triggers' work."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.generator import Note, World
from bench.latency_peers import connect
from bench.store import Store

BEFORE = 2_000  # notes that lie there already
T = TypeVar("T")


class Table:
    """A table of notes and an FTS5 index over it, written in one transaction."""

    def __init__(self, path: Path) -> None:
        self._database = connect(path)
        self._database.execute(
            """
            CREATE TABLE note (id INTEGER PRIMARY KEY, scope TEXT, name TEXT, text TEXT, saved INTEGER, UNIQUE (scope, name));
            CREATE VIRTUAL TABLE words USING fts5(text, scope, content='note', content_rowid='id', tokenize='porter unicode61');
            """
        )
        self._count = 0

    def save(self, note: Note) -> None:
        """One row and its words, flushed."""
        self._count += 1
        with self._database:
            values = (self._count, f"s{note.scope}", f"note_{self._count}", note.text, time.time_ns())
            self._database.execute("INSERT INTO note VALUES (?, ?, ?, ?, ?)", values)
            self._database.execute("INSERT INTO words(rowid, text, scope) VALUES (?, ?, ?)", (self._count, note.text, values[1]))

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
    for name, times in (("Pegword: row, version, index", ours), ("a row and its FTS5 index", theirs)):
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
