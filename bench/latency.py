"""`python -m bench.latency`: how long a search, a turn and a save take, Pegword and peers over the same notes in one run.

Medians in milliseconds, one client, warm. Pegword's index and each peer take turns, some queries each, and the ratio is the median over
those rounds with the least and the most. Searches and turns in CPU time, which other work on the machine disturbs least, that of PostgreSQL
included; saves in wall time, since they wait for the disk. See docs/benchmarks.md.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from bench.generator import Asked, Note, World
from bench.latency_peers import Bm25s, Fts5, Tantivy, visible_texts
from bench.latency_postgres import FullText, analyse, cpu_clock
from bench.peers import Turnstone
from bench.servers import Cluster
from bench.store import K, Store, copy
from bench.writing import saves

SEED = 7
TERMS = 60
TURN_SIZE = 10_000
SCORER_QUERIES = 20
ROUNDS = 5

Search = Callable[[Asked], Any]
Clock = Callable[[], float]


def main() -> int:
    """Measure, and print the tables."""
    given = _arguments()
    peer = Turnstone(given.turnstone_python) if given.turnstone_python else None
    with tempfile.TemporaryDirectory(prefix="pegword-bench-") as folder:
        cluster = None if given.no_postgresql else Cluster(Path(folder) / "postgresql")
        print(_machine(peer, cluster))
        for scopes in given.scopes:
            table = _Table(given, scopes, Path(folder) / f"searches-{scopes}")
            if not given.only_postgresql:
                table.searches(peer)
            if cluster:
                table.searches_in_postgresql(cluster)
            table.close()
        if not given.only_postgresql:
            _turns(given.terms, given.queries, Path(folder) / "turns")
            print("\n" + "\n".join(saves(Path(folder) / "saves", given.saves, SEED)))
        if cluster:
            cluster.close()
    if peer:
        peer.close()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    python = os.environ.get("PEGWORD_BENCH_TURNSTONE_PYTHON")
    parser.add_argument("--size", type=int, default=100_000, help="memories in all")
    parser.add_argument("--scopes", type=int, nargs="+", default=[1_000, 1], help="scopes that they lie in; several for several tables")
    parser.add_argument("--terms", type=int, default=TERMS, help="words of a query, none of them a stop word")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--saves", type=int, default=500)
    engines = parser.add_mutually_exclusive_group()
    engines.add_argument("--no-postgresql", action="store_true", help="leave PostgreSQL out")
    engines.add_argument("--only-postgresql", action="store_true", help="leave out all but PostgreSQL and, to compare with, SQLite")
    parser.add_argument("--turnstone-python", type=Path, default=python and Path(python), help="interpreter of the peer")
    return parser.parse_args()


def _machine(peer: Turnstone | None, cluster: Cluster | None) -> str:
    parts = [
        f"Python {platform.python_version()}", f"numpy {np.__version__}", f"SQLite {apsw.sqlite_lib_version()}",
        f"{platform.machine()} with {os.cpu_count()} CPUs", f"seed {SEED}", f"tantivy {version('tantivy')}", f"bm25s {version('bm25s')}",
    ]  # fmt: skip
    if cluster:
        parts.append(f"PostgreSQL {cluster.version}")
    if peer:
        parts.append(f"Turnstone {peer.version}")
    else:
        parts.append("Turnstone's scorer is left out: name an interpreter that has it with --turnstone-python")
    return ", ".join(parts)


class _Table:
    """One table: the same notes and queries for everybody, and Pegword's index on SQLite to compare with."""

    def __init__(self, given: argparse.Namespace, scopes: int, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._scopes = scopes
        self._only: bool = given.only_postgresql
        world = World(given.size, scopes, SEED)
        self._queries = world.queries(given.queries, given.terms)
        self._notes: list[Note] = list(world.notes())
        self._store = Store(folder / "pegword.db")
        self._store.fill(self._notes)
        held = statistics.mean(self._store.postings(asked) for asked in self._queries)
        lie = f"{given.size:,} memories in {scopes:,} scope{'s' * (scopes > 1)}"
        print(f"\n{lie}; {given.terms} words, k = {K}; a query touches {held:,.0f} postings on average")

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def searches(self, peer: Turnstone | None) -> None:
        """The engines that work in this process, and Turnstone's scorer, in CPU time."""
        print(_line("Pegword: index (terms in, ids out)", median_ms(self._store.index, self._queries)))
        self._against("Pegword: search (text in, memories out)", self._store.search)
        arrangements = {"token": "scope as a token", "prefix": "scope before every word", "join": "joined with the scope"}
        for by, name in arrangements.items():
            engine = Fts5(self._folder / f"fts5-{by}", self._notes, by=by)
            self._against(f"FTS5, {name}", engine.best)
            engine.optimise()
            self._against(f"FTS5, {name}, optimised", engine.best)
        self._against("tantivy, on disk", Tantivy(self._folder / "tantivy", self._notes).best)
        self._against("bm25s, in memory", Bm25s(self._notes).best)
        if peer:
            few = self._queries[:SCORER_QUERIES] if self._scopes > 1 else self._queries[:3]
            texts = visible_texts(self._notes, few)
            said = [" ".join(asked.words) for asked in few]
            mine = median_ms(self._store.index, few)
            for name, seen in (("newest 50", [seen[:50] for seen in texts]), ("all visible", texts)):
                theirs = statistics.median(peer.milliseconds(seen, said, K))
                print(_line(f"Turnstone's scorer, {name}", theirs, [theirs / mine]))

    def searches_in_postgresql(self, cluster: Cluster) -> None:
        """Pegword on PostgreSQL between itself on SQLite and PostgreSQL's own search: the CPU time of both processes."""
        url, other = cluster.url(f"pegword_{self._scopes}"), cluster.url(f"fulltext_{self._scopes}")
        copy(self._folder / "pegword.db", url)
        store, theirs = Store(url), FullText(other, self._notes)
        analyse(url)
        store.index(self._queries[0])
        ours, both = cpu_clock(url), _sum(cpu_clock(url), cpu_clock(other))
        if self._only:
            print(_line("Pegword: index (terms in, ids out)", median_ms(self._store.index, self._queries)))
        self._against("Pegword on PostgreSQL, index", store.index, ours)
        self._against("Pegword on PostgreSQL, search", store.search, ours)
        few = self._queries if self._scopes > 1 else self._queries[:ROUNDS]
        print(_line("  to that index: GIN and ts_rank_cd", *compared(store.index, theirs.best, few, both)))
        store.close()
        theirs.close()

    def _against(self, name: str, search: Search, clock: Clock = time.process_time) -> None:
        times, ratios = compared(self._store.index, search, self._queries, clock)
        print(_line(name, times, ratios))


def _sum(one: Clock, other: Clock) -> Clock:
    """Both clocks read this process; it counts once."""
    return lambda: one() + other() - time.process_time()


def _turns(terms: int, count: int, folder: Path) -> None:
    folder.mkdir()
    world = World(TURN_SIZE, 1, SEED)
    queries = world.queries(count, terms)
    store = Store(folder / "pegword.db")
    store.fill(world.notes())

    def index(asked: Asked) -> Any:
        return store.index(asked, messages=3)

    print(f"\n{TURN_SIZE:,} memories in one scope; {terms} words in three messages, k = {K}")
    print(_line("Pegword: index", median_ms(index, queries)))
    print(_line("Pegword: whole turn (messages in, block out)", *compared(index, store.turn, queries)))
    store.close()


def compared(mine: Search, other: Search, queries: Sequence[Asked], clock: Clock = time.process_time) -> tuple[float, list[float]]:
    """The median time of *other*, and how many times the time of *mine* it took in each of `ROUNDS` rounds, in which the two take turns."""
    for search in (mine, other):
        _times(search, queries[: len(queries) // 5 + 1], clock)
    every: list[float] = []
    ratios = []
    for at in range(ROUNDS):
        some = queries[at::ROUNDS]
        halves = {search: _times(search, some, clock) for search in ((mine, other) if at % 2 else (other, mine))}
        every += halves[other]
        ratios.append(statistics.median(halves[other]) / statistics.median(halves[mine]))
    return statistics.median(every), ratios


def median_ms(search: Search, queries: Sequence[Asked], clock: Clock = time.process_time) -> float:
    """The median time of *search* over *queries*, after a fifth of them to warm up."""
    _times(search, queries[: len(queries) // 5 + 1], clock)
    return statistics.median(_times(search, queries, clock))


def _times(search: Search, queries: Sequence[Asked], clock: Clock) -> list[float]:
    times = []
    for asked in queries:
        start = clock()
        search(asked)
        times.append((clock() - start) * 1_000)
    return times


def _line(name: str, milliseconds: float, ratios: Sequence[float] = (1.0,)) -> str:
    spread = f" ({min(ratios):.2f}-{max(ratios):.2f})" if len(ratios) > 1 else ""
    sys.stdout.flush()
    return f"{name:46}{milliseconds:12.3f} ms{statistics.median(ratios):10.2f} x{spread}"


if __name__ == "__main__":
    sys.exit(main())
