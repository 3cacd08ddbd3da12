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
from functools import cached_property
from itertools import compress

LIKE = 0.5  # of ten pairs of notes in other words nine are above it both ways; what shares a word or two is far below
NEARLY_ALL = 0.9
SHARED_MIN = 3

_COMMON_WEIGHT = 0.25
_ROUNDING = 1e-9

Rarity = Callable[[Iterable[str]], list[float]]


class Likeness:
    """How alike a memory of the terms *new* and others are, among so many *memories*: what is the same for all of them, worked out once.

    *idf* holds those of the new memory's terms that were searched for.
    """

    def __init__(self, idf: Mapping[str, float], memories: int, new: Iterable[str], rarity: Rarity) -> None:
        self._new = frozenset(new)
        self._rarity = rarity
        cap = math.log1p((memories - 0.5) / 1.5)
        general = _general(idf, rarity) if cap > 0 else []
        self._weights = {term: (weight + min(idf[term], cap) / cap) / 2 for term, weight in zip(idf, general, strict=False)}
        self._whole = sum(self._weights.values())
        self._nothing = cap <= 0

    def may_be_like(self, held: Collection[str], some: Iterable[str]) -> bool:
        """Whether a memory can be like this one that holds, of the terms that were searched for, none but those *held*, and *some* terms
        beside others. What is not need not be read whole."""
        told_new = _share(self._weights, self._weights.values(), self._whole, held)
        if 2 * told_new >= (LIKE - _ROUNDING) * (told_new + 1):  # where all of the old one were told in the new one
            return True
        shared = self._general_whole - sum(_general([term for term in self._weights if term not in held], self._rarity))  # at most
        others = sum(_general([term for term in some if term not in self._new], self._rarity))
        return shared >= (NEARLY_ALL - _ROUNDING) * (shared + others)

    @cached_property
    def _general_whole(self) -> float:
        return sum(_general(self._new, self._rarity))

    def to(self, old: Collection[str]) -> float:
        """From 0.0 to 1.0: how alike a memory of the terms *old* is."""
        shared = self._new.intersection(old)
        if not shared or self._nothing:
            return 0.0
        told_new = _share(self._weights, self._weights.values(), self._whole, shared)
        general = _general(old, self._rarity)
        told_old = _share(old, general, sum(general), shared)
        most = max(told_new, told_old)
        if len(shared) >= SHARED_MIN and most >= NEARLY_ALL:
            return most
        return 2 * told_new * told_old / (told_new + told_old) if told_new and told_old else 0.0


def _general(terms: Iterable[str], rarity: Rarity) -> list[float]:
    """What each of *terms* weighs in general."""
    return [_COMMON_WEIGHT + (1 - _COMMON_WEIGHT) * rare for rare in rarity(terms)]


def _share(terms: Iterable[str], weights: Iterable[float], whole: float, held: Collection[str]) -> float:
    """The share that those of *terms* which are *held* have of the *weights*, which are the *whole* together."""
    return sum(compress(weights, map(held.__contains__, terms))) / whole if whole else 0.0
