"""`python -m bench.quality`: how much of what answers a question is found, Pegword and peers in one run.

Each memory of a conversation is saved in one scope, in order; every question is asked of it. See docs/benchmarks.md.
"""

import argparse
import os
import platform
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import apsw
import numpy as np

from bench.locomo import Corpus, turns_and_facts
from bench.measures import DEPTH, MEASURES, Floats, Resampling, measure
from bench.offline import Offline
from bench.peers import Turnstone, fts5, grep
from bench.reference import api_corpora
from pegword.core.text import Analyser

SEED = 20_251
CHAT = (
    "haha yes, that was really funny! I love it when you say things like that",
    "good morning! how are you doing today? I slept well and just had a coffee",
)

Engine = Callable[[Corpus], list[list[int]]]


def main() -> int:
    """Measure, and print the tables."""
    given = _arguments()
    kinds: list[tuple[str, list[Corpus]]] = []
    if given.data.exists():
        turns, facts = turns_and_facts(given.data)
        kinds += [("dialogue turns", turns), ("distilled facts", facts)]
    else:
        print(f"No LoCoMo set at {given.data}: turns and facts are left out.")
    kinds.append(("API reference", api_corpora()))
    if given.quick:
        kinds = [(kind, corpora[:2]) for kind, corpora in kinds]
    peer = Turnstone(given.turnstone_python) if given.turnstone_python else None
    if not peer:
        print("Turnstone's scorer is left out: name an interpreter that has it with --turnstone-python.")
    print(_machine(peer))
    for kind, corpora in kinds:
        _table(kind, corpora, peer, 200 if given.quick else 2_000)
    if peer:
        peer.close()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("PEGWORD_BENCH_LOCOMO", "../shared/data/locomo-dev.json")
    python = os.environ.get("PEGWORD_BENCH_TURNSTONE_PYTHON")
    parser.add_argument("--data", type=Path, default=Path(data), help="the LoCoMo set's JSON file")
    parser.add_argument("--turnstone-python", type=Path, default=python and Path(python), help="interpreter of the peer")
    parser.add_argument("--quick", action="store_true", help="two conversations and 200 resamples")
    return parser.parse_args()


def _machine(peer: Turnstone | None) -> str:
    parts = [
        f"Python {platform.python_version()}", f"numpy {np.__version__}", f"PyStemmer {version('PyStemmer')}",
        f"SQLite {apsw.sqlite_lib_version()}", f"{platform.machine()} with {os.cpu_count()} CPUs", f"seed {SEED}",
    ]  # fmt: skip
    if peer:
        parts.append(f"Turnstone {peer.version}")
    return ", ".join(parts)


def pegword(corpus: Corpus, *, alone: bool = False, chat: Sequence[str] = ()) -> list[list[int]]:
    """Pegword's best for each question; *chat* are older messages that stand before it."""
    index = Offline(corpus.items, alone, Analyser())
    return [index.best([question.text, *chat], DEPTH) for question in corpus.questions]


def shuffled(corpus: Corpus) -> list[list[int]]:
    """Pegword over the same items saved in a random order, their sittings still named: runs break up."""
    order = list(range(len(corpus.items)))
    random.Random(SEED).shuffle(order)
    mixed = replace(corpus, items=tuple(corpus.items[i] for i in order))
    return [[order[i] for i in found] for found in pegword(mixed)]


def _engines(peer: Turnstone | None) -> dict[str, Engine]:
    engines: dict[str, Engine] = {
        "Pegword": pegword,
        "Pegword, each memory alone": lambda corpus: pegword(corpus, alone=True),
        "Pegword, saved in shuffled order": shuffled,
        "Pegword, two chatty messages before": lambda corpus: pegword(corpus, chat=CHAT),
        "FTS5 bm25(), porter": lambda corpus: fts5(corpus, "porter unicode61"),
        "FTS5 bm25(), unicode61": lambda corpus: fts5(corpus, "unicode61"),
        "count of words (grep)": grep,
    }
    if peer:
        engines["Turnstone's scorer, all"] = lambda corpus: peer.best(corpus, None)
        engines["Turnstone's scorer, newest 50"] = lambda corpus: peer.best(corpus, 50)
    return engines


def scores(corpora: Sequence[Corpus], engine: Engine) -> Floats:
    """A row for each question of *corpora*, a column for each measure, in points of 100."""
    rows = []
    for corpus in corpora:
        for question, found in zip(corpus.questions, engine(corpus), strict=True):
            rows.append(measure(corpus.items, question, found))
    return 100 * np.array(rows)


def _table(kind: str, corpora: Sequence[Corpus], peer: Turnstone | None, resamples: int) -> None:
    questions = sum(len(corpus.questions) for corpus in corpora)
    items = sum(len(corpus.items) for corpus in corpora)
    ceiling = scores(corpora, _ideal).mean(axis=0)[1]
    print(f"\n{kind}: {items} memories in {len(corpora)} scopes, {questions} questions; highest recall@10 {ceiling:.1f}")
    print(f"{'':36}" + "".join(f"{name:>20}" for name in MEASURES) + f"{'recall@5 to Pegword':>24}")
    resampling = Resampling(questions, resamples, SEED)
    ours: Floats | None = None
    for name, engine in _engines(peer).items():
        values = scores(corpora, engine)
        ours = values if ours is None else ours
        cells = []
        for column in range(len(MEASURES)):
            low, high = resampling.interval(values[:, column])
            cells.append(f"{values[:, column].mean():6.1f} ({low:4.1f}-{high:5.1f})")
        difference = values[:, 0] - ours[:, 0]
        low, high = resampling.interval(difference)
        print(f"{name:36}" + "".join(f"{c:>20}" for c in cells) + f"{difference.mean():+9.1f} ({low:+.1f} to {high:+.1f})")
        sys.stdout.flush()


def _ideal(corpus: Corpus) -> list[list[int]]:
    found = []
    for question in corpus.questions:
        told: set[str] = set()
        best = []
        for position, item in enumerate(corpus.items):
            new = (item.ids & question.evidence) - told
            if new:
                told |= new
                best.append(position)
        found.append(best[:DEPTH])
    return found


if __name__ == "__main__":
    sys.exit(main())
