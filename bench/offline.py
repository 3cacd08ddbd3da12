"""The analyser and the ranking alone, without a database: for tuning, where a thousand questions take a second."""

from collections.abc import Sequence

import numpy as np

from bench.locomo import Item
from pegword.core.ranking import Postings, Ranked, rank
from pegword.core.text import Analyser

_PLACE_MAX = 255


class Offline:
    """An index in memory over *items*; with *alone*, each is a sitting of its own."""

    def __init__(self, items: Sequence[Item], alone: bool, analyser: Analyser) -> None:
        self._analyser = analyser
        self._postings: dict[str, list[tuple[int, int, int, int]]] = {}
        self._memories = len(items)
        self._words = 0
        sitting, place = None, 0
        for number, item in enumerate(items):
            document = analyser.document(item.text, ())
            follows = item.sitting == sitting and place < _PLACE_MAX and not alone
            sitting, place = item.sitting, place + 1 if follows else 0
            self._words += document.length
            for term, count in document.counts.items():
                self._postings.setdefault(term, []).append((number, count, place, document.length))

    def ranked(self, messages: Sequence[str]) -> tuple[Ranked, Postings, list[list[int]], list[str]]:
        """The ranking under *messages*, newest first, and what it was made from."""
        terms: dict[str, int] = {}
        said = [[terms.setdefault(term, len(terms)) for term in self._analyser.distinct(message)] for message in messages]
        rows: list[tuple[int, int, int, int]] = []
        numbers: list[int] = []
        for term, index in terms.items():
            found = self._postings.get(term, [])
            rows += found
            numbers += [index] * len(found)
        table = np.array(rows, np.int64).reshape(-1, 4)
        document, count, place, length = table.T.copy()
        postings = Postings(
            np.array(numbers, np.int64), document, count.astype(float), place, length.astype(float),
            self._memories, self._memories, self._words,
        )  # fmt: skip
        return rank(postings, len(terms), said, None), postings, said, list(terms)

    def best(self, messages: Sequence[str], k: int) -> list[int]:
        """The positions of the best *k* items."""
        return [int(number) for number in self.ranked(messages)[0].documents[:k]]
