"""`python -m bench.quality`: how much of what answers a question is found, Pegword and peers in one run.

Each memory of a conversation is saved in one scope, in order; every question is asked of it. See docs/benchmarks.md.
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import apsw
import numpy as np

from bench import silence
from bench.library import Library, shuffled
from bench.locomo import Corpus, turns_and_facts
from bench.measures import DEPTH, MEASURES, Floats, Resampling, measure
from bench.peers import Turnstone, fts5, grep
from bench.reference import api_corpora

SEED = 20_251
CHAT = (
    "good morning! how are you doing today? I slept well and just had a coffee",
    "haha yes, that was really funny! I love it when you say things like that",
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
        if not given.silence:
            _table(kind, corpora, peer, 200 if given.quick else 2_000)
        foreign = silence.life_questions(kinds[0][1], SEED) if corpora is kinds[-1][1] else silence.programming_questions(SEED)
        print(f"\n{kind}: silence (*: the floor in force)", *silence.table(corpora, foreign, SEED), sep="\n")
    if peer:
        peer.close()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("PEGWORD_BENCH_LOCOMO", "../shared/data/locomo-dev.json")
    python = os.environ.get("PEGWORD_BENCH_TURNSTONE_PYTHON")
    parser.add_argument("--data", type=Path, default=Path(data), help="the LoCoMo set's JSON file")
    parser.add_argument("--turnstone-python", type=Path, default=python and Path(python), help="interpreter of the peer")
    parser.add_argument("--silence", action="store_true", help="the curves of silence alone")
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


def _engines(corpora: Sequence[Corpus], peer: Turnstone | None) -> Iterator[tuple[str, Engine]]:
    together = Library(corpora)
    yield "Pegword", together.search
    yield "Pegword, turn", together.turn
    yield "Pegword, turn after two chatty messages", lambda corpus: together.turn(corpus, CHAT)
    together.close()
    alone = Library(corpora, alone=True)
    yield "Pegword, each memory alone", alone.search
    alone.close()
    mixed = {corpus.name: shuffled(corpus, SEED) for corpus in corpora}
    strewn = Library([corpus for corpus, _ in mixed.values()])
    yield "Pegword, saved in shuffled order", lambda corpus: _put_back(strewn.search(mixed[corpus.name][0]), mixed[corpus.name][1])
    strewn.close()
    yield "FTS5 bm25(), porter", lambda corpus: fts5(corpus, "porter unicode61")
    yield "FTS5 bm25(), unicode61", lambda corpus: fts5(corpus, "unicode61")
    yield "count of words (grep)", grep
    if peer:
        yield "Turnstone's scorer, all", lambda corpus: peer.best(corpus, None)
        yield "Turnstone's scorer, newest 50", lambda corpus: peer.best(corpus, 50)


def _put_back(found: Sequence[Sequence[int]], order: Sequence[int]) -> list[list[int]]:
    return [[order[position] for position in positions] for positions in found]


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
    for name, engine in _engines(corpora, peer):
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
