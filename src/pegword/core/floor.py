"""Silence is a good answer: which of the ranked memories are relevant enough to be shown unasked.

Ranking always has a first; a turn must also know when there is none worth showing. A memory is heard under each message by

    words(d)    = how many of the message's words it holds, each as far as it is rare in general English (1, one half, or 0)
    coverage(d) = the share of the message's idf that these words and all others it holds have; a word that no memory holds
                  counts as if one did, or a store of three memories would never be heard
    evidence(d) = words(d) * coverage(d)

and is relevant when its evidence under any message reaches `FLOOR`, or when it scores at least `SHARE` of the best that does:
company is relevant with those it stands beside. `python -m bench.quality` prints what other floors would do. A floor holds for
turns, never for explicit searches.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pegword.core.ranking import Postings, Ranked

FLOOR = 0.25
SHARE = 0.4


def relevant(
    ranked: Ranked, postings: Postings, messages: Sequence[Sequence[int]], rarity: Sequence[float], floor: float = FLOOR
) -> npt.NDArray[np.bool_]:
    """Whether each candidate of *ranked* is relevant enough.

    *postings* and *messages* are those that were ranked; *rarity* is that of each term (`Analyser.rarity`).
    """
    reached = evidence(ranked, postings, messages, rarity) >= floor
    best = ranked.scores[reached].max(initial=0.0)
    enough: npt.NDArray[np.bool_] = reached | ((ranked.scores >= SHARE * best) & (best > 0))
    return enough


def evidence(ranked: Ranked, postings: Postings, messages: Sequence[Sequence[int]], rarity: Sequence[float]) -> npt.NDArray[np.float64]:
    """The evidence for each candidate, under the message where it is strongest."""
    held = _held(ranked.documents, postings, len(ranked.idf))
    seen_once = np.log1p((postings.memories - 0.5) / 1.5)
    idf = np.minimum(ranked.idf, seen_once)
    strongest = np.zeros(len(held))
    for message in messages:
        terms = np.array(message, np.int64)
        whole = idf[terms].sum()
        if whole > 0:
            holds = held[:, terms]
            words = (holds * np.array(rarity)[terms]).sum(axis=1)
            np.maximum(strongest, words * (holds * idf[terms]).sum(axis=1) / whole, out=strongest)
    return strongest


def _held(documents: npt.NDArray[np.int64], postings: Postings, terms: int) -> npt.NDArray[np.bool_]:
    """A row for each of *documents*, a column for each term: whether the one holds the other."""
    held = np.zeros((len(documents), terms), np.bool_)
    among = np.zeros(postings.documents, np.bool_)
    among[documents] = True
    here = np.flatnonzero(among.take(postings.document))
    order = np.argsort(documents)
    rows = order[np.searchsorted(documents, postings.document[here], sorter=order)] if len(here) else here
    held[rows, postings.term[here]] = True
    return held
