"""One search for everybody: the same terms, postings and ranking under searches and turns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pegword.core.caller import Visible
from pegword.core.floor import relevant
from pegword.core.memory import Memory
from pegword.core.prior import PRIOR_MAX, prior
from pegword.core.ranking import CANDIDATES_MAX, Ranked, rank, term_scores
from pegword.core.text import Analyser, Phrase
from pegword.store import memory_rows, portions
from pegword.store.engine import Tx
from pegword.store.memory_rows import Filters
from pegword.store.packing import are_among
from pegword.store.postings import Found, Marked, fetch

NEAR_TIES_MAX = 64  # rows read beyond the limit, so that priors and ties are settled on whole memories
PHRASE_CANDIDATES_MAX = 1_000
PHRASE_BYTES_MAX = 2_000_000  # of text searched for phrases
EXPIRED_READ_MAX = 1_000
EXPIRED_BYTES_MAX = 2_000_000
NOT_RANKED = -1  # the position of what stands there for another reason than its rank


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found: its *score*, 1.0 for a best match of the newest message, and its *position* among the ranked."""

    memory: Memory
    score: float
    position: int


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found: *hits*, best first, and what they were chosen from.

    *messages* holds the indices of each message's terms in `found.terms`. *eligible* are the positions that the floor let through (all,
    without a floor). *critical* are the memories that always show, newest first. *total* is how many memories matched at all, and held the
    phrases; *cut*, that phrases were not looked for in all that matched.
    """

    hits: tuple[Hit, ...]
    found: Found
    ranked: Ranked
    messages: tuple[tuple[int, ...], ...]
    eligible: frozenset[int]
    critical: tuple[Memory, ...]
    total: int
    cut: bool = False

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each term."""
        return dict(zip(self.found.terms, self.ranked.idf.tolist(), strict=True))

    def term_scores(self, positions: Sequence[int]) -> list[dict[str, float]]:
        """What each term gave to the ranked documents at *positions*."""
        documents = self.ranked.documents[list(positions)]
        scores = term_scores(self.found.postings, self.ranked, documents)
        return [{self.found.terms[i]: score for i, score in scores[document]} for document in documents.tolist()]


def find(
    tx: Tx,
    analyser: Analyser,
    visible: Visible,
    texts: Sequence[str | Sequence[str]],
    *,
    filters: Filters,
    limit: int,
    phrases: Sequence[Phrase] = (),
    critical_k: int = 0,
    floor: bool = False,
) -> Findings:
    """Find the *limit* memories that belong most to *texts* (newest message first) among those *visible*; one may be given as its terms.

    *filters* act before the cut at *limit*, and so does the *floor*, which leaves out what is not relevant enough to be shown unasked.
    So do *phrases*, which are looked for in the best `PHRASE_CANDIDATES_MAX` and in at most `PHRASE_BYTES_MAX` of text. The newest
    *critical_k* memories of that priority are read as well, and stand apart from the hits.
    """
    by_message = [analyser.distinct(text) if isinstance(text, str) else text for text in texts]
    distinct = list(dict.fromkeys(term for terms in by_message for term in terms))
    found = fetch(tx, visible, distinct)
    index = {term: i for i, term in enumerate(found.terms)}
    messages = tuple(tuple(index[term] for term in terms if term in index) for terms in by_message)
    apart = _newest_critical(found, filters, critical_k)
    allowed = _allowed(tx, visible, found, filters, apart)
    for phrase in phrases:
        allowed = _both(allowed, _holding(found, [index[term] for term in phrase.terms if term in index]))
    ranked = rank(found.postings, len(found.terms), messages, allowed, max(limit, PHRASE_CANDIDATES_MAX if phrases else CANDIDATES_MAX))
    positions = np.arange(len(ranked.documents))
    if floor:
        rarity = analyser.rarity(found.terms)
        positions = np.flatnonzero(relevant(ranked, found.postings, messages, rarity))
    critical = dict.fromkeys(found.places_of(apart))
    if phrases:
        near = positions[:PHRASE_CANDIDATES_MAX].tolist()
        read = memory_rows.by_slots(tx, list(critical))
        best = _Best(analyser, phrases, limit)
        at = dict(zip(found.places_of(ranked.documents[near]), near, strict=True))
        for some in portions.by_slots(tx, list(at), PHRASE_BYTES_MAX):
            best.look_at(_hit(ranked, at[place], memory) for place, memory in some.items())
        hits, total, cut = best.hits, best.total, best.looked < ranked.matched
    else:
        near = positions[: _near(ranked.scores[positions], limit)].tolist()
        at = dict(zip(found.places_of(ranked.documents[near]), near, strict=True))
        read = memory_rows.by_slots(tx, [*at, *critical])
        hits = sorted((_hit(ranked, at[place], memory) for place, memory in read.items() if place in at), key=_best_first)[:limit]
        total, cut = ranked.matched, False
    shown = sorted((memory for place, memory in read.items() if place in critical), key=_newest_first)
    return Findings(tuple(hits), found, ranked, messages, frozenset(positions.tolist()), tuple(shown), total, cut)


def with_expired(
    tx: Tx, analyser: Analyser, visible: Visible, findings: Findings, filters: Filters, *, limit: int, phrases: Sequence[Phrase] = ()
) -> Findings:
    """*findings* and what matches among the memories that have expired out of the index: read one by one, and put after all that is in it.

    Scored by the share of the query that each covers, below the worst of *findings*. At most `EXPIRED_READ_MAX` are read, the newest, and
    at most `EXPIRED_BYTES_MAX` of text.
    """
    weights = findings.weights
    whole = sum(weights.values()) or 1.0
    least = min((hit.score for hit in findings.hits), default=1.0)
    best = _Best(analyser, phrases, limit)
    for some in portions.unindexed(tx, visible, filters, EXPIRED_READ_MAX, EXPIRED_BYTES_MAX):
        for memory in some.values():
            document = analyser.document(memory.content, (memory.name, memory.description, *memory.tags))
            share = sum(weight for term, weight in weights.items() if term in document.counts) / whole
            if share:
                best.look_at([Hit(memory, least * share, NOT_RANKED)])
    return replace(findings, hits=(*findings.hits, *best.hits)[:limit], total=findings.total + best.total)


class _Best:
    """The best *limit* of the hits that hold every one of *phrases*; how many do in *total*, of how many that were *looked* at."""

    def __init__(self, analyser: Analyser, phrases: Sequence[Phrase], limit: int) -> None:
        self.hits: list[Hit] = []
        self.total = self.looked = 0
        self._analyser = analyser
        self._phrases = phrases
        self._limit = limit

    def look_at(self, hits: Iterable[Hit]) -> None:
        """Take *hits* in that hold the phrases; let go of those that are not among the best any more."""
        for hit in hits:
            self.looked += 1
            if self._holds(hit.memory):
                self.total += 1
                self.hits.append(hit)
        self.hits.sort(key=_best_first)
        del self.hits[self._limit :]

    def _holds(self, memory: Memory) -> bool:
        if not self._phrases:
            return True
        whole = " \n ".join((memory.name, memory.description, *memory.tags, memory.content))
        return all(self._analyser.holds_phrase(whole, phrase.forms) for phrase in self._phrases)


def _hit(ranked: Ranked, position: int, memory: Memory) -> Hit:
    return Hit(memory, float(ranked.scores[position]) * prior(memory), position)


def _near(scores: npt.NDArray[np.float64], limit: int) -> int:
    """How many of these scores, best first, could be among the best *limit* once priors and ties are settled."""
    if not len(scores) or limit < 1:
        return 0
    reach = scores[min(limit, len(scores)) - 1] * (1 - PRIOR_MAX) / (1 + PRIOR_MAX)
    return min(int(np.count_nonzero(scores >= reach)), limit + NEAR_TIES_MAX)


def _newest_critical(found: Found, filters: Filters, count: int) -> list[int]:
    """The documents of the newest *count* critical memories that may be shown."""
    critical = [m for m in found.marked if m.critical and not _banned(m, filters)] if count else []
    critical.sort(key=lambda m: (-m.updated, -m.document))
    return [m.document for m in critical[:count]]


def _best_first(hit: Hit) -> tuple[float, int, int, str]:
    return (-hit.score, *_newest_first(hit.memory))


def _newest_first(memory: Memory) -> tuple[int, int, str]:
    return -memory.updated, -memory.slot, memory.memory_id


def _banned(marked: Marked, filters: Filters) -> bool:
    """Whether a marked memory has run out or is doubted where that matters."""
    expired = 0 < marked.expires_at <= filters.now and not filters.include_expired
    return expired or (marked.doubted and not filters.include_doubted)


def _allowed(tx: Tx, visible: Visible, found: Found, filters: Filters, apart: Sequence[int]) -> npt.NDArray[np.bool_] | None:
    """Of each document whether it may be a hit; None when all may. *apart* are shown anyway."""
    banned = [m.document for m in found.marked if _banned(m, filters)] + list(apart)
    if not banned and not filters.narrow:
        return None
    allowed = np.ones(found.postings.documents, np.bool_)
    if filters.narrow:
        allowed[:] = False
        slots = memory_rows.slots(tx, visible, filters)
        allowed[[found.bases[key] + slot for key, slot in slots if key in found.bases]] = True
    allowed[banned] = False
    return allowed


def _holding(found: Found, terms: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Of each document whether it holds every one of *terms*."""
    postings = found.postings
    here = are_among(postings.term, np.array(terms, np.int64))
    held = np.bincount(postings.document[here], minlength=postings.documents)
    return np.equal(held, len(terms))


def _both(one: npt.NDArray[np.bool_] | None, other: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return other if one is None else one & other
