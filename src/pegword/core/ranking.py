"""Which memories belong to these words: BM25, coverage and company over decoded postings.

This module knows numbers, not memories. A *document* is the number of a memory in one query: the base of its scope plus
its slot, so that numbers of one scope lie in the order of saving. See ARCHITECTURE.md, "Relevance".

For one message with terms T over N visible memories:

    idf(t)   = ln(1 + (N - df + .5) / (df + .5))
    bm25(d)  = sum over t of idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * (length + 50) / (mean length + 50)))
    own(d)   = bm25(d) * (sum of idf of the terms that d holds / sum of idf of T) ** .5
    kept(d)  = own(d) + sum over o = 1..4 of .4 / o * own(o-th before) + .24 / o * own(o-th after), of the same sitting
    score(d) = kept(d) / max kept + .4 * cover(sitting of d) / max cover

where cover is the summed idf of the message's terms that occur anywhere in the sitting. Several messages are scored one
by one, each divided by its best, and added with `MESSAGE_WEIGHTS`: with equal weights, older talk would drown the question.
Company is worked out for the `CANDIDATES_MAX` best by own scores, added the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

K1 = 1.2
B = 0.9
LENGTH_ADDED = 50.0
COMPANY_REACH = 4
COMPANY_BEFORE = 0.4
COMPANY_AFTER = 0.24
SITTING_WEIGHT = 0.4
MESSAGE_WEIGHTS = (1.0, 0.3, 0.15)
CANDIDATES_MAX = 512
QUERY_TERMS_MAX = 96

_DECIMALS = 9
# Tables over all documents, some a message, are built up to this many times the postings; beyond, numbers are closed up first. No number is
# given twice, so those of a scope whose memories change grow without end, and so would the tables.
_SPARSE_FACTOR = 8
_SPARSE_MIN = 16_384
# Above so many scores, a sample of every so manieth one tells where to look for the best.
_SAMPLED_MIN = 8_192
_STRIDE = 16
_KEPT_MAX = 3_500_000

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


class Part(NamedTuple):
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
        return Part(*self.parts[:, message, position].tolist())


def rank(
    postings: Postings,
    terms: int,
    messages: Sequence[Sequence[int]],
    allowed: npt.NDArray[np.bool_] | None,
    candidates_max: int = CANDIDATES_MAX,
) -> Ranked:
    """Score every document that holds a term, and return the best *candidates_max*, best first.

    *terms* is the number of query terms; *messages* gives, newest first, the indices of each message's terms, at most as
    many messages as there are `MESSAGE_WEIGHTS`. *allowed* says of each document whether it may be returned (None: all
    may); what may not still counts in statistics and speaks for its company, since it is in the index.
    """
    said = [np.array(message, np.int64) for message in messages[: len(MESSAGE_WEIGHTS)]]
    frequency = np.bincount(postings.term, minlength=terms)
    idf = np.log1p((postings.memories - frequency + 0.5) / (frequency + 0.5))
    nothing = Ranked(np.zeros(0, np.int64), np.zeros(0), 0, np.zeros((7, len(said), 0)), idf, frequency)
    if not len(postings.term) or not said:
        return nothing
    table = _Table(postings, idf, len(said))
    rows = [table.own(message) for message in said]
    owns = _together([own for own, _, _ in rows])
    if allowed is not None:
        owns = owns * table.allowed(allowed)
    candidates = _best(owns, candidates_max)
    if not len(candidates):
        return nothing
    company = _Company(table, candidates)
    parts = np.stack([company.heard(*row, message) for row, message in zip(rows, said, strict=True)], axis=1)
    # Rounded, so that equal memories tie whatever the order in which their postings were read and added.
    total = np.round(np.array(MESSAGE_WEIGHTS[: len(said)]) @ parts[-1], _DECIMALS)
    order = len(total) - 1 - np.argsort(-total[::-1], kind="stable")  # among equals, the one saved later
    return Ranked(
        table.numbers_of(candidates[order]),
        total[order],
        int(np.count_nonzero(owns)),
        parts[:, :, order],
        idf,
        frequency,
    )


def term_scores(postings: Postings, ranked: Ranked, documents: Ints) -> dict[int, list[tuple[int, float]]]:
    """What each term gives to the BM25 of each of *documents*: the index of the term, and its part of the sum."""
    wanted = np.zeros(postings.documents, np.bool_)
    wanted[documents] = True
    here = wanted.take(postings.document).nonzero()[0]
    terms = postings.term[here]
    weights = _weights(postings, postings.count[here], postings.length[here], ranked.idf[terms])
    scores: dict[int, list[tuple[int, float]]] = {document: [] for document in documents.tolist()}
    for document, term, weight in zip(postings.document[here].tolist(), terms.tolist(), weights.tolist(), strict=True):
        scores[document].append((term, weight))
    return scores


def _weights(postings: Postings, count: Floats, length: Floats, idf: Floats) -> Floats:
    """The BM25 of single occurrences with these counts, lengths and idf; worked out in place, for there may be many."""
    mean = postings.words / max(postings.memories, 1)
    weight = length * (K1 * B / (mean + LENGTH_ADDED))
    weight += K1 * (1 - B) + K1 * B * LENGTH_ADDED / (mean + LENGTH_ADDED)
    weight += count
    np.divide(count, weight, out=weight)
    weight *= idf
    weight *= K1 + 1
    return weight


class _Table:
    """The postings with what is worked out once for all messages.

    A *row* is the place of a document in arrays that have one entry a document: its number, or, where the numbers lie too
    far apart for that, its rank among the documents that hold a term.
    """

    def __init__(self, postings: Postings, idf: Floats, messages: int) -> None:
        self.postings = postings
        self.idf = idf
        self.size = postings.documents
        self.row = postings.document
        self._numbers: Ints | None = None
        if self.size > _SPARSE_MIN and messages * self.size > _SPARSE_FACTOR * len(postings.document):
            self._numbers, self.row = np.unique(postings.document, return_inverse=True)
            self.size = len(self._numbers)
        _let_memory_be_kept((8 * self.size).bit_length())
        self._idf_of = idf.take(postings.term)
        self._weight = _weights(postings, postings.count, postings.length, self._idf_of)

    def own(self, message: Ints) -> tuple[Floats, Floats, Floats]:
        """For each row its own score, BM25 and coverage under the terms of *message*."""
        row, weight, idf_of = self.row, self._weight, self._idf_of
        if len(message) < len(self.idf):
            meant = np.zeros(len(self.idf), np.bool_)
            meant[message] = True
            here = np.flatnonzero(meant.take(self.postings.term))
            row, weight, idf_of = row.take(here), weight.take(here), idf_of.take(here)
        bm25 = np.bincount(row, weight, self.size).astype(np.float64, copy=False)
        share = np.bincount(row, idf_of, self.size).astype(np.float64, copy=False)
        share *= 1 / (self.idf[message].sum() or 1.0)
        own = np.sqrt(share)
        own *= bm25
        return own, bm25, share

    def allowed(self, allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Of each row whether it may be returned."""
        return allowed if self._numbers is None else allowed[self._numbers]

    def numbers_of(self, rows: Ints) -> Ints:
        """The numbers of the documents at *rows*."""
        return rows if self._numbers is None else self._numbers[rows]

    def rows_of(self, numbers: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """The rows of the documents with *numbers*, and whether there is such a row: without one, the row is any."""
        if self._numbers is None:
            rows = np.minimum(np.maximum(numbers, 0), self.size - 1)
            return rows, rows == numbers
        rows = np.minimum(np.searchsorted(self._numbers, numbers), self.size - 1)
        return rows, self._numbers[rows] == numbers

    def starts(self) -> tuple[Ints, Ints]:
        """The number at which its sitting starts, of each posting and of each row; of a row without a posting, any."""
        of_posting = self.postings.document - self.postings.place
        of_row = np.empty(self.size, np.int64)
        of_row[self.row] = of_posting
        return of_posting, of_row

    def index_of(self, sorted_numbers: Ints, numbers: Ints) -> npt.NDArray[np.signedinteger[Any]]:
        """The index of each of *numbers* in *sorted_numbers*, or -1."""
        if self._numbers is None:
            index = np.full(self.size, -1, np.int32)
            index[sorted_numbers] = np.arange(len(sorted_numbers))
            return index.take(numbers)
        at = np.minimum(np.searchsorted(sorted_numbers, numbers), len(sorted_numbers) - 1)
        return np.where(sorted_numbers[at] == numbers, at, -1)


# How far to either side, and how much each of these neighbours counts: first those before, then those after.
_DISTANCES = np.arange(1, COMPANY_REACH + 1)
_SIDES = np.concatenate((-_DISTANCES, _DISTANCES))[:, None]
_SHARES = np.concatenate((COMPANY_BEFORE / _DISTANCES, COMPANY_AFTER / _DISTANCES))[:, None]


class _Company:
    """Who sits beside each candidate: neighbours by order of saving, and the terms that its sitting holds."""

    def __init__(self, table: _Table, candidates: Ints) -> None:
        self._candidates = candidates
        self._idf = table.idf
        of_posting, of_row = table.starts()
        start = of_row[candidates]
        self._beside, known = table.rows_of(table.numbers_of(candidates) + _SIDES)
        # A neighbour without a posting has an own score of zero, so it does not matter what stands for its sitting.
        self._shares = _SHARES * (known & (of_row.take(self._beside) == start))
        # Candidates come in the order of saving, so those of one sitting stand together.
        first = np.ones(len(start), np.bool_)
        np.not_equal(start[1:], start[:-1], out=first[1:])
        self._sitting = np.cumsum(first) - 1
        sittings = start[first]
        sitting = table.index_of(sittings, of_posting)
        here = np.flatnonzero(sitting >= 0)
        held = np.zeros(len(sittings) * len(table.idf), np.bool_)
        held[sitting.take(here) * len(table.idf) + table.postings.term.take(here)] = True
        self._held = held.reshape(len(sittings), len(table.idf))

    def heard(self, own: Floats, bm25: Floats, share: Floats, message: Ints) -> Floats:
        """The seven parts of each candidate's score for one message; all but the first three zero where its own score is."""
        mine = own[self._candidates]
        beside = own.take(self._beside)
        beside *= self._shares
        beside *= mine > 0
        before = beside[:COMPANY_REACH].sum(axis=0)
        after = beside[COMPANY_REACH:].sum(axis=0)
        # Added row by row, never by a matrix product: equal sittings must come out equal to the last bit.
        cover = (self._held[:, message] * self._idf[message]).sum(axis=1)[self._sitting] * (mine > 0)
        kept = mine + before + after
        kept_best = kept.max(initial=0.0) or 1.0
        sitting = cover * (SITTING_WEIGHT / (cover.max(initial=0.0) or 1.0))
        score = kept / kept_best + sitting
        score /= score.max(initial=0.0) or 1.0
        return np.stack((bm25[self._candidates], share[self._candidates], mine, before, after, sitting, score))


@lru_cache(64)
def _let_memory_be_kept(bits: int) -> None:
    """Make the C library keep memory for as many numbers as so many bits can count, which otherwise goes back to the system with each large
    array.

    To get it back page by page took more than half the time of a search among 100,000 memories. glibc keeps as much as it has
    seen freed at once; so one array is asked for and freed, and never touched, once in a process: it would stretch the heap each time that
    something small lies in its place by then. Elsewhere this does nothing.
    """
    np.empty(min(1 << bits, _KEPT_MAX))


def _together(owns: Sequence[Floats]) -> Floats:
    """The own scores of all messages, each divided by its best, weighed and added."""
    if len(owns) == 1:
        return owns[0]
    total = np.zeros(len(owns[0]))
    for own, weight in zip(owns, MESSAGE_WEIGHTS, strict=False):
        total += own * (weight / (own.max() or 1.0))
    return total


def _best(own: Floats, count: int) -> Ints:
    """The rows of the best *count* own scores above zero, in order; among equals at the cut, those saved last."""
    floor = 0.0
    if len(own) > _SAMPLED_MIN:
        # Most scores lie far below the cut: every 16th of them says where it cannot lie, and the rest is not sorted.
        sample = own[::_STRIDE]
        sample = sample[sample > 0]
        kept = 2 * count // _STRIDE
        if len(sample) > kept:
            guess = float(np.partition(sample, len(sample) - kept)[len(sample) - kept])
            if np.count_nonzero(own > guess) >= count:
                floor = guess
    found = np.flatnonzero(own > floor)
    if len(found) <= count:
        return found
    scores = np.round(own[found] / own.max(), _DECIMALS)
    cut = np.partition(scores, len(scores) - count)[len(scores) - count]
    above = found[scores > cut]
    equal = found[scores == cut]
    return np.sort(np.concatenate((above, equal[len(equal) - (count - len(above)) :])))
