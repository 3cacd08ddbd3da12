"""How good a ranking is: recall, reciprocal rank, nDCG; and how sure a mean and a difference of means are."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bench.locomo import Item, Question

MEASURES = ("recall@5", "recall@10", "MRR", "nDCG@10")
DEPTH = 10

Floats = npt.NDArray[np.float64]


def measure(items: Sequence[Item], question: Question, found: Sequence[int]) -> tuple[float, ...]:
    """One ranking under each of `MEASURES`: *found* are the positions of items, best first.

    Recall is the share of the question's evidence that the first items tell; the other two ask of each item whether it
    tells any of it.
    """
    evidence = question.evidence
    told: set[str] = set()
    recall = {}
    first = gain = 0.0
    for rank, position in enumerate(found[:DEPTH], 1):
        tells = items[position].ids & evidence
        told |= tells
        recall[rank] = len(told) / len(evidence)
        if tells:
            first = first or 1 / rank
            gain += float(1 / np.log2(rank + 1))
    relevant = sum(1 for item in items if item.ids & evidence)
    ideal = float(sum(1 / np.log2(rank + 1) for rank in range(1, min(DEPTH, relevant) + 1)))
    at = [recall.get(min(k, len(found)), 0.0) for k in (5, DEPTH)]
    return (*at, first, gain / ideal if ideal else 0.0)


class Resampling:
    """The same resamples of the questions for every engine, so that differences are paired."""

    def __init__(self, questions: int, resamples: int, seed: int) -> None:
        self._chosen = np.random.default_rng(seed).integers(0, questions, (resamples, questions), dtype=np.int32)

    def interval(self, values: Floats) -> tuple[float, float]:
        """The middle 95 % of the resampled means of *values*."""
        means = values[self._chosen].mean(axis=1)
        low, high = np.percentile(means, (2.5, 97.5))
        return float(low), float(high)
