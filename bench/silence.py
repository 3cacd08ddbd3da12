"""How often a turn stays silent when it should, and what that costs: the floor of `pegword.core.floor` at several heights.

A false injection is a message that calls for no memory and yet gets one. Measured on the analyser, ranking and floor alone, which
are what a turn uses, so that many floors can be tried on one search.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.locomo import Corpus
from bench.measures import Floats
from bench.negatives import everyday, programming, small_talk
from bench.offline import Offline
from pegword.core.floor import FLOOR, SHARE, evidence
from pegword.core.text import Analyser

FLOORS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
MESSAGES = 200
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Found:
    """The first few of one search: *positions*, *scores* and *evidence*."""

    positions: tuple[int, ...]
    scores: Floats
    evidence: Floats

    def shown(self, floor: float) -> list[int]:
        """The positions that a turn shows under this *floor*: the same rule as `pegword.core.floor.relevant`."""
        reached = self.evidence >= floor
        best = self.scores[reached].max(initial=0.0)
        enough = reached | ((self.scores >= SHARE * best) & (best > 0))
        return [position for position, is_enough in zip(self.positions, enough, strict=True) if is_enough]


def table(corpora: Sequence[Corpus], foreign: Sequence[str], seed: int) -> list[str]:
    """Lines of a table: a row for each floor; *foreign* are questions of another domain."""
    analyser = Analyser()
    kinds: dict[str, list[Found]] = {"small talk": [], "everyday": [], "another domain": [], "other scopes": []}
    asked: list[tuple[Found, Corpus, frozenset[str]]] = []
    for corpus in corpora:
        index = Offline(corpus.items, False, analyser)
        others = [question.text for other in corpora if other is not corpus for question in other.questions]
        messages = (small_talk, everyday)
        for (_, found), texts in zip(
            kinds.items(), [*(make(MESSAGES, seed) for make in messages), foreign[:MESSAGES], _some(others, seed)], strict=True
        ):
            found += [_find(index, text, analyser) for text in texts]
        asked += [(_find(index, question.text, analyser), corpus, question.evidence) for question in corpus.questions]
    lines = [f"{'floor':>8}{'recall@5 kept':>16}{'shown of 5':>12}" + "".join(f"{name + ', false':>24}" for name in kinds)]
    whole = _told(asked, 0.0)
    for floor in FLOORS:
        shown = np.mean([len(found.shown(floor)) for found, _, _ in asked])
        false = [100 * float(np.mean([bool(found.shown(floor)) for found in founds])) for founds in kinds.values()]
        mark = " *" if floor == FLOOR else "  "
        kept = 100 * _told(asked, floor) / whole
        lines.append(f"{floor:6.2f}{mark}{kept:14.1f} %{shown:12.1f}" + "".join(f"{share:22.1f} %" for share in false))
    return lines


def programming_questions(seed: int) -> list[str]:
    """Questions of another domain for memories of a life."""
    return programming(MESSAGES, seed)


def life_questions(corpora: Sequence[Corpus], seed: int) -> list[str]:
    """Questions of another domain for memories of an API: about the lives in *corpora*, or everyday ones where there are none."""
    return _some([question.text for corpus in corpora for question in corpus.questions], seed) or everyday(MESSAGES, seed + 1)


def _some(texts: Sequence[str], seed: int) -> list[str]:
    return random.Random(seed).sample(texts, min(len(texts), MESSAGES))


def _find(index: Offline, text: str, analyser: Analyser) -> Found:
    ranked, postings, messages, terms = index.ranked([text])
    told = evidence(ranked, postings, messages, analyser.rarity(terms))[:_SHOWN]
    return Found(tuple(ranked.documents[:_SHOWN].tolist()), ranked.scores[:_SHOWN], told)


def _told(asked: Sequence[tuple[Found, Corpus, frozenset[str]]], floor: float) -> float:
    shares = []
    for found, corpus, wanted in asked:
        told = frozenset[str]().union(*(corpus.items[position].ids for position in found.shown(floor)))
        shares.append(len(told & wanted) / len(wanted))
    return float(np.mean(shares))
