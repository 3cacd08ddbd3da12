"""How often a turn stays silent when it should, and what that costs: the floor of `pegword.core.floor` at several heights.

A false injection is a message that calls for no memory and yet gets one. Measured on the analyser, ranking and floor alone, which
are what a turn uses, so that many floors can be tried on one search.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.locomo import Corpus
from bench.measures import Floats
from bench.negatives import everyday, programming, small_talk
from bench.offline import Offline
from pegword.core.floor import FLOOR, SHARE, evidence
from pegword.core.text import Analyser

FLOORS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
MESSAGES = 200
# The named sets of messages that call for no memory. Off-topic chat is half small talk and half everyday requests, told apart beside it.
CHAT, DOMAIN, CONVERSATIONS = "off-topic chat", "another domain", "other conversations"
SMALL_TALK, EVERYDAY = "small talk", "everyday"
KEPT_LEAST, TIMES_LEAST = 95.0, 3.0  # what the floor in force promises: of recall, in per cent; and how much less often it injects falsely
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


@dataclass(frozen=True, slots=True)
class Row:
    """What one floor does: the share of recall@5 that it keeps, how many it shows of five, and how often it injects falsely in each set;
    all but *shown* in per cent."""

    floor: float
    kept: float
    shown: float
    false: Mapping[str, float]


def curve(corpora: Sequence[Corpus], foreign: Sequence[str], seed: int) -> list[Row]:
    """A row for each floor; *foreign* are questions of another domain."""
    analyser = Analyser()
    asked: list[tuple[Found, Corpus, frozenset[str]]] = []
    negatives: dict[str, list[Found]] = {}
    for corpus in corpora:
        index = Offline(corpus.items, False, analyser)
        others = [question.text for other in corpora if other is not corpus for question in other.questions]
        talk, requests = small_talk(MESSAGES, seed), everyday(MESSAGES, seed)
        half = MESSAGES // 2
        sets = {
            CHAT: [*talk[:half], *requests[:half]], DOMAIN: foreign[:MESSAGES], CONVERSATIONS: _some(others, seed), SMALL_TALK: talk,
            EVERYDAY: requests,
        }  # fmt: skip
        for name, texts in sets.items():
            negatives.setdefault(name, []).extend(_find(index, text, analyser) for text in texts)
        asked += [(_find(index, question.text, analyser), corpus, question.evidence) for question in corpus.questions]
    whole = _told(asked, 0.0)
    return [
        Row(
            floor,
            100 * _told(asked, floor) / whole,
            float(np.mean([len(found.shown(floor)) for found, _, _ in asked])),
            {name: 100 * float(np.mean([bool(found.shown(floor)) for found in founds] or [0])) for name, founds in negatives.items()},
        )
        for floor in FLOORS
    ]


def table(corpora: Sequence[Corpus], foreign: Sequence[str], seed: int) -> list[str]:
    """Lines of a table: false injections against recall for each floor, and whether the one in force does what it promises."""
    rows = curve(corpora, foreign, seed)
    sizes = f"{len(corpora)} x {MESSAGES} messages in each set; share that gets any memory"
    lines = [f"{'floor':>8}{'recall@5 kept':>16}{'shown of 5':>12}" + "".join(f"{name:>21}" for name in rows[0].false), f"({sizes})"]
    for row in rows:
        mark = " *" if row.floor == FLOOR else "  "
        false = "".join(f"{share:19.1f} %" for share in row.false.values())
        lines.append(f"{row.floor:6.2f}{mark}{row.kept:14.1f} %{row.shown:12.1f}{false}")
    return [*lines, verdict(rows)]


def verdict(rows: Sequence[Row]) -> str:
    """Whether the floor in force keeps enough of the recall, and injects falsely often enough less than none in the first two sets."""
    none, ours = rows[0], next(row for row in rows if row.floor == FLOOR)
    times = {name: none.false[name] / ours.false[name] if ours.false[name] else np.inf for name in (CHAT, DOMAIN)}
    good = ours.kept >= KEPT_LEAST and all(factor >= TIMES_LEAST for factor in times.values())
    told = ", ".join(f"{name} {factor:.1f} times less often" for name, factor in times.items())
    return (
        f"floor {FLOOR}: keeps {ours.kept:.1f} % of the recall; {told} than without a floor: {'as promised' if good else 'NOT AS PROMISED'}"
    )


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
