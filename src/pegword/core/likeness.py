"""How much two memories say the same: for a save to tell what is there already.

    general(t) = .25 + .75 * how rare t is in general English
    here(t)    = idf(t), capped at that of a term which one memory holds, as a share of that cap
    told(new)  = the share of the new memory's terms that stand in the old one too, each by the mean of general and here
    told(old)  = the share of the old memory's terms that stand in the new one, each by general
    likeness   = their harmonic mean, or the larger where that is nearly all and three terms or more are shared

Either alone would mislead: where many memories say the same, what they say is common there; and where all are about one person, her name
is not rare though English knows it not. Company does not count, unlike in the ranking: what was saved together is not alike for that.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping

LIKE = 0.5  # of ten pairs of notes in other words nine are above it both ways; what shares a word or two is far below
NEARLY_ALL = 0.9
SHARED_MIN = 3

_COMMON_WEIGHT = 0.25

Rarity = Callable[[Iterable[str]], list[float]]


def likeness(idf: Mapping[str, float], memories: int, new: Collection[str], old: Collection[str], rarity: Rarity) -> float:
    """From 0.0 to 1.0: how alike a memory of the terms *new* and one of the terms *old* are, among so many *memories*.

    *idf* holds those of the new memory's terms that were searched for.
    """
    cap = math.log1p((memories - 0.5) / 1.5)
    shared = set(new).intersection(old)
    if not shared or cap <= 0:
        return 0.0
    general = _general(idf, rarity)
    weights = {term: (general[term] + min(idf[term], cap) / cap) / 2 for term in idf}
    told_new = _share(weights, shared)
    told_old = _share(_general(old, rarity), shared)
    most = max(told_new, told_old)
    if len(shared) >= SHARED_MIN and most >= NEARLY_ALL:
        return most
    return 2 * told_new * told_old / (told_new + told_old) if told_new and told_old else 0.0


def _general(terms: Collection[str], rarity: Rarity) -> dict[str, float]:
    return {term: _COMMON_WEIGHT + (1 - _COMMON_WEIGHT) * rare for term, rare in zip(terms, rarity(terms), strict=True)}


def _share(weights: Mapping[str, float], held: Collection[str]) -> float:
    """The share of *weights* that the terms *held* have."""
    whole = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / whole if whole else 0.0
