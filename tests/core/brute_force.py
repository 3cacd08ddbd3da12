"""The ranking of `pegword.core.ranking` said again in plain loops, to check the arrays against."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log1p

from pegword.core import ranking


@dataclass(frozen=True, slots=True)
class Held:
    """A memory in the index: its number, the number at which its sitting starts, its weighted counts, its length."""

    document: int
    start: int
    counts: Mapping[str, int]
    length: int


def brute_force(
    memories: Sequence[Held], messages: Sequence[Sequence[str]], allowed: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """The number and score of each candidate, best first. *messages* are lists of distinct terms, newest first."""
    weights = ranking.MESSAGE_WEIGHTS[: len(messages)]
    idf = _idf(memories, {term for message in messages for term in message})
    owns = [{m.document: _own(m, memories, message, idf) for m in memories} for message in messages]
    together = {m.document: 0.0 for m in memories}
    for own, weight in zip(owns, weights, strict=False):
        best = max(own.values(), default=0.0)
        for document, score in own.items():
            together[document] += weight * (score / best if best else 0.0)
    found = [d for d, score in together.items() if score > 0 and (allowed is None or d in allowed)]
    most = max((together[d] for d in found), default=1.0)
    found.sort(key=lambda d: (-round(together[d] / most, 9), -d))
    found = found[: ranking.CANDIDATES_MAX]
    scores = dict.fromkeys(found, 0.0)
    for message, own, weight in zip(messages, owns, weights, strict=False):
        for document, score in _with_company(memories, found, message, own, idf).items():
            scores[document] += weight * score
    return sorted(((d, round(score, 9)) for d, score in scores.items()), key=lambda pair: (-pair[1], -pair[0]))


def _idf(memories: Sequence[Held], terms: Collection[str]) -> dict[str, float]:
    idf = {}
    for term in terms:
        frequency = sum(1 for m in memories if term in m.counts)
        idf[term] = log1p((len(memories) - frequency + 0.5) / (frequency + 0.5))
    return idf


def _own(memory: Held, memories: Sequence[Held], message: Sequence[str], idf: Mapping[str, float]) -> float:
    mean = sum(m.length for m in memories) / len(memories)
    relative = (memory.length + ranking.LENGTH_ADDED) / (mean + ranking.LENGTH_ADDED)
    bm25 = share = 0.0
    for term in message:
        count = memory.counts.get(term, 0)
        if count:
            norm = ranking.K1 * (1 - ranking.B + ranking.B * relative)
            bm25 += idf[term] * count * (ranking.K1 + 1) / (count + norm)
            share += idf[term]
    return float(bm25 * (share / (sum(idf[term] for term in message) or 1)) ** 0.5)


def _with_company(
    memories: Sequence[Held], found: Sequence[int], message: Sequence[str], own: Mapping[int, float], idf: Mapping[str, float]
) -> dict[int, float]:
    starts = {m.document: m.start for m in memories}
    kept, cover = {}, {}
    for document in found:
        kept[document] = cover[document] = 0.0
        if own[document] <= 0:
            continue
        kept[document] = own[document]
        for distance in range(1, ranking.COMPANY_REACH + 1):
            for beside, weight in ((document - distance, ranking.COMPANY_BEFORE), (document + distance, ranking.COMPANY_AFTER)):
                if starts.get(beside) == starts[document]:
                    kept[document] += weight / distance * own[beside]
        together = [m.counts for m in memories if m.start == starts[document]]
        cover[document] = sum(idf[term] for term in message if any(term in counts for counts in together))
    kept_best = max(kept.values(), default=0.0) or 1.0
    cover_best = max(cover.values(), default=0.0) or 1.0
    scores = {d: kept[d] / kept_best + ranking.SITTING_WEIGHT * cover[d] / cover_best for d in found}
    best = max(scores.values(), default=0.0) or 1.0
    return {d: score / best for d, score in scores.items()}
