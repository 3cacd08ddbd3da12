"""Which memories belong to these words: BM25, coverage and company over decoded postings.

This module knows numbers, not memories. A *document* is the number of a memory in one query: the base of its scope plus
its slot, so that numbers of one scope lie in the order of saving. See ARCHITECTURE.md, "Relevance".

For one message with terms T over N visible memories:

    idf(t)   = ln(1 + (N - df + .5) / (df + .5))
    bm25(d)  = sum over t of idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * (length + 50) / (mean length + 50)))
    own(d)   = bm25(d) * (sum of idf of the terms that d holds / sum of idf of T) ** .5
    kept(d)  = own(d) + sum over o = 1..4 of .4 / o * own(o-th before) + .24 / o * own(o-th after), of the same sitting
    score(d) = kept(d) / max kept + .4 * cover(sitting of d) / max cover

where cover is the summed idf of the message's terms that occur anywhere in the sitting. Company is worked out for the
`CANDIDATES_MAX` best by own score. Several messages are scored one by one, each divided by its best, and added with `MESSAGE_WEIGHTS`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

K1 = 1.2
B = 0.9
LENGTH_ADDED = 50.0
COVERAGE_POWER = 0.5
COMPANY_REACH = 4
COMPANY_BEFORE = 0.4
COMPANY_AFTER = 0.24
SITTING_WEIGHT = 0.4
MESSAGE_WEIGHTS = (1.0, 0.3, 0.15)
CANDIDATES_MAX = 512
QUERY_TERMS_MAX = 96

# A table over all documents is built up to this many times the postings; beyond, numbers are closed up first.
_SPARSE_FACTOR = 16
_SPARSE_MIN = 65_536

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Postings:
    """The occurrences of a query's terms in the visible scopes, dead memories already taken out.

    Arrays of one length, one entry an occurrence: *term* (index into the query's terms), *document*, *count* (weighted),
    *place* in its sitting, *length* in words. *documents* is one more than the largest possible number. *memories*
    and *words* are the visible memories and the sum of their lengths.
    """

    term: Ints
    document: Ints
    count: Floats
    place: Ints
    length: Floats
    documents: int
    memories: int
    words: int


@dataclass(frozen=True, slots=True)
class Part:
    """How one message found one document: what each part gave, before messages are weighed and added."""

    bm25: float
    coverage: float
    own: float
    before: float
    after: float
    sitting: float
    score: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates, best first: *documents*, their *scores*, and how many documents matched at all.

    *parts* has a row a message and a column a candidate: bm25, coverage, own, before, after, sitting, score. *idf* and
    *frequency* are per term.
    """

    documents: Ints
    scores: Floats
    matched: int
    parts: Floats
    idf: Floats
    frequency: Ints

    def part(self, message: int, position: int) -> Part:
        """The part of *message* in the score of the candidate at *position*."""
        return Part(*(float(value) for value in self.parts[:, message, position]))


def rank(postings: Postings, terms: int, messages: Sequence[Sequence[int]], allowed: npt.NDArray[np.bool_] | None) -> Ranked:
    """Score every document that holds a term, and return the best `CANDIDATES_MAX` of each message, best first.

    *terms* is the number of query terms; *messages* gives, newest first, the indices of each message's terms. *allowed*
    says of each document whether it may be returned (None: all may); what may not still speaks for its company's statistics,
    since statistics count what is in the index.
    """
    frequency = np.bincount(postings.term, minlength=terms)
    idf = np.log1p((postings.memories - frequency + 0.5) / (frequency + 0.5))
    if not len(postings.term) or not messages:
        return Ranked(np.zeros(0, np.int64), np.zeros(0), 0, np.zeros((7, len(messages), 0)), idf, frequency)
    numbers, document = _closed_up(postings)
    table = _Table(postings, document, numbers, idf)
    rows = [table.own(message) for message in messages]
    candidates, matched = _candidates([own for own, _, _ in rows], numbers, allowed)
    parts = np.zeros((7, len(messages), len(candidates)))
    total = np.zeros(len(candidates))
    company = table.company(candidates)
    for position, (message, (own, bm25, share), weight) in enumerate(
        zip(messages, rows, MESSAGE_WEIGHTS, strict=False)
    ):
        part = company.heard(own, idf, message)
        parts[:, position] = (bm25[candidates], share[candidates], *part)
        total += weight * part[-1]
    order = np.lexsort((-candidates, -total))
    documents = candidates if numbers is None else numbers[candidates]
    return Ranked(documents[order], total[order], matched, parts[:, :, order], idf, frequency)


class _Table:
    """The postings with what is worked out once for all messages."""

    def __init__(self, postings: Postings, document: Ints, numbers: Ints | None, idf: Floats) -> None:
        self.postings = postings
        self.document = document
        self.numbers = numbers
        self.size = postings.documents if numbers is None else len(numbers)
        self.idf = idf
        mean = postings.words / max(postings.memories, 1)
        norm = K1 * (1 - B + B * (postings.length + LENGTH_ADDED) / (mean + LENGTH_ADDED))
        self.weight = idf[postings.term] * postings.count * (K1 + 1) / (postings.count + norm)

    def own(self, message: Sequence[int]) -> tuple[Floats, Floats, Floats]:
        """For each document its own score, BM25 and coverage under the terms of *message*."""
        idf = self.idf
        document, weight, term = self.document, self.weight, self.postings.term
        if len(message) < len(idf):
            meant = np.zeros(len(idf), np.bool_)
            meant[list(message)] = True
            here = meant[term]
            document, weight, term = document[here], weight[here], term[here]
        bm25 = np.bincount(document, weight, self.size)
        share = np.bincount(document, idf[term], self.size) / (idf[list(message)].sum() or 1.0)
        return bm25 * share**COVERAGE_POWER, bm25, share

    def company(self, candidates: Ints) -> "_Company":
        """The neighbours and sittings of *candidates*."""
        return _Company(self, candidates)


class _Company:
    """Who sits beside each candidate: neighbours by order of saving, and the terms that its sitting holds."""

    def __init__(self, table: _Table, candidates: Ints) -> None:
        self.candidates = candidates
        numbers, size = table.numbers, table.size
        starts = np.full(size, -1, np.int64)
        starts[table.document] = table.postings.document - table.postings.place
        start = starts[candidates]
        number = candidates if numbers is None else numbers[candidates]
        self.neighbours = []
        for distance in range(1, COMPANY_REACH + 1):
            for side, weight in ((-distance, COMPANY_BEFORE), (distance, COMPANY_AFTER)):
                beside = number + side
                if numbers is None:
                    at = np.clip(beside, 0, size - 1)
                    known = at == beside
                else:
                    at = np.minimum(np.searchsorted(numbers, beside), size - 1)
                    known = numbers[at] == beside
                together = known & (starts[at] == start)
                self.neighbours.append((side < 0, at, np.where(together, weight / distance, 0.0)))
        sittings, self.sitting = np.unique(start, return_inverse=True)
        of = table.postings.document - table.postings.place
        at = np.minimum(np.searchsorted(sittings, of), len(sittings) - 1) if len(sittings) else of
        heard = sittings[at] == of if len(sittings) else np.zeros(len(of), np.bool_)
        self.holds = np.zeros((len(sittings), len(table.idf)), np.bool_)
        self.holds[at[heard], table.postings.term[heard]] = True

    def heard(self, own: Floats, idf: Floats, message: Sequence[int]) -> tuple[Floats, ...]:
        """Own, before, after, sitting and score of each candidate for one message; zero where the own score is."""
        mine = own[self.candidates]
        speaks = mine > 0
        before = np.zeros(len(mine))
        after = np.zeros(len(mine))
        for earlier, at, weight in self.neighbours:
            if earlier:
                before += weight * own[at]
            else:
                after += weight * own[at]
        weights = np.zeros(len(idf))
        weights[list(message)] = idf[list(message)]
        cover = (self.holds @ weights)[self.sitting]
        kept = np.where(speaks, mine + before + after, 0.0)
        cover = np.where(speaks, cover, 0.0)
        best_kept, best_cover = kept.max(initial=0.0), cover.max(initial=0.0)
        if not best_kept:
            return mine, before * 0, after * 0, cover, kept
        sitting = SITTING_WEIGHT * cover / best_cover
        score = kept / best_kept + sitting
        return mine, before * speaks, after * speaks, sitting, score / score.max()


def _closed_up(postings: Postings) -> tuple[Ints | None, Ints]:
    """The documents as indices of a table: as they are, or closed up when they lie too far apart for one."""
    if postings.documents <= max(_SPARSE_MIN, _SPARSE_FACTOR * len(postings.document)):
        return None, postings.document
    numbers, document = np.unique(postings.document, return_inverse=True)
    return numbers, document


def _candidates(owns: list[Floats], numbers: Ints | None, allowed: npt.NDArray[np.bool_] | None) -> tuple[Ints, int]:
    """The best of each message by own score, each once, and how many documents matched at all."""
    chosen = []
    seen = np.zeros(len(owns[0]), np.bool_)
    for own in owns:
        found = np.flatnonzero(own)
        if allowed is not None:
            found = found[allowed[found if numbers is None else numbers[found]]]
        seen[found] = True
        if len(found) > CANDIDATES_MAX:
            found = _best(found, own[found], CANDIDATES_MAX)
        chosen.append(found)
    candidates = chosen[0] if len(chosen) == 1 else np.unique(np.concatenate(chosen))
    return candidates, int(np.count_nonzero(seen))


def _best(found: Ints, own: Floats, count: int) -> Ints:
    """The *count* best of *found*; among equals at the cut, those saved last."""
    cut = np.partition(own, len(own) - count)[len(own) - count]
    above = found[own > cut]
    equal = found[own == cut]
    return np.sort(np.concatenate((above, equal[len(equal) - (count - len(above)) :])))
