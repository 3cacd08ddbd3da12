"""`python -m bench.latency`: how long a search, a turn and a save take, Pegword and peers over the same notes in one run.

Medians in milliseconds, one client, warm. Searches and turns in CPU time, which other work on the machine disturbs least, and of
which their ratios mean most; saves in wall time, since they wait for the disk. See docs/benchmarks.md.
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
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from bench.generator import Asked, World
from bench.latency_peers import Fts5, Tantivy, visible_texts
from bench.peers import Turnstone
from bench.store import K, Store
from bench.writing import saves

SEED = 7
TERMS = 60
TURN_SIZE = 10_000
SCORER_QUERIES = 20

Search = Callable[[Asked], Any]


def main() -> int:
    """Measure, and print the tables."""
    given = _arguments()
    peer = Turnstone(given.turnstone_python) if given.turnstone_python else None
    print(_machine(peer))
    with tempfile.TemporaryDirectory(prefix="pegword-bench-") as folder:
        for scopes in given.scopes:
            _searches(given.size, scopes, given.terms, given.queries, peer, Path(folder) / f"searches-{scopes}")
        _turns(given.terms, given.queries, Path(folder) / "turns")
        print("\n" + "\n".join(saves(Path(folder) / "saves", given.saves, SEED)))
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
    parser.add_argument("--turnstone-python", type=Path, default=python and Path(python), help="interpreter of the peer")
    return parser.parse_args()


def _machine(peer: Turnstone | None) -> str:
    parts = [
        f"Python {platform.python_version()}", f"numpy {np.__version__}", f"SQLite {apsw.sqlite_lib_version()}",
        f"{platform.machine()} with {os.cpu_count()} CPUs", f"seed {SEED}",
    ]  # fmt: skip
    try:
        parts.append(f"tantivy {version('tantivy')}")
    except ImportError:
        parts.append("tantivy is left out: it is not installed")
    if peer:
        parts.append(f"Turnstone {peer.version}")
    else:
        parts.append("Turnstone's scorer is left out: name an interpreter that has it with --turnstone-python")
    return ", ".join(parts)


def _searches(size: int, scopes: int, terms: int, count: int, peer: Turnstone | None, folder: Path) -> None:
    folder.mkdir()
    world = World(size, scopes, SEED)
    queries = world.queries(count, terms)
    notes = list(world.notes())
    store = Store(folder / "pegword.db")
    store.fill(notes)
    held = statistics.mean(store.postings(asked) for asked in queries)
    lie = f"{size:,} memories in {scopes:,} scope{'s' * (scopes > 1)}"
    print(f"\n{lie}; {terms} words, k = {K}; a query touches {held:,.0f} postings on average")
    times = {"Pegword: index (terms in, ids out)": median_ms(store.index, queries)}
    times["Pegword: search (text in, memories out)"] = median_ms(store.search, queries)
    store.close()
    peers: dict[str, Callable[[Path], Any]] = {
        "FTS5, scope as a token": lambda path: Fts5(path, notes, token=True),
        "FTS5, joined with the scope": lambda path: Fts5(path, notes, token=False),
        "tantivy, on disk": lambda path: Tantivy(path, notes),
    }
    for number, (name, make) in enumerate(peers.items()):
        try:
            engine = make(folder / str(number))
        except ImportError:
            continue
        times[name] = median_ms(engine.best, queries)
        if isinstance(engine, Fts5):
            engine.optimise()
            times[f"{name}, optimised"] = median_ms(engine.best, queries)
    if peer:
        few = queries[:SCORER_QUERIES] if scopes > 1 else queries[:3]
        texts = visible_texts(notes, few)
        said = [" ".join(asked.words) for asked in few]
        times["Turnstone's scorer, newest 50"] = statistics.median(peer.milliseconds([seen[:50] for seen in texts], said, K))
        times["Turnstone's scorer, all visible"] = statistics.median(peer.milliseconds(texts, said, K))
    _print(times)


def _turns(terms: int, count: int, folder: Path) -> None:
    folder.mkdir()
    world = World(TURN_SIZE, 1, SEED)
    queries = world.queries(count, terms)
    store = Store(folder / "pegword.db")
    store.fill(world.notes())
    print(f"\n{TURN_SIZE:,} memories in one scope; {terms} words in three messages, k = {K}")
    times = {"Pegword: index": median_ms(lambda asked: store.index(asked, messages=3), queries)}
    times["Pegword: whole turn (messages in, block out)"] = median_ms(store.turn, queries)
    store.close()
    _print(times)


def median_ms(search: Search, queries: Sequence[Asked]) -> float:
    """The median time of *search* over *queries*, after a fifth of them to warm up."""
    for asked in islice(queries, len(queries) // 5 + 1):
        search(asked)
    times = []
    for asked in queries:
        start = time.process_time()
        search(asked)
        times.append(time.process_time() - start)
    return statistics.median(times) * 1_000


def _print(times: dict[str, float]) -> None:
    first = next(iter(times.values()))
    for name, milliseconds in times.items():
        print(f"{name:46}{milliseconds:12.3f} ms{milliseconds / first:10.2f} x")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
