"""How the index lies in bytes: postings of eight bytes each, and the marks by which a tail row is searched."""

import sys
from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK_POSTINGS_MAX = 512
POSTING_BYTES = 8
PLACE_MAX = 255

# One occurrence of a term: little-endian on every machine, so a file can be carried from one to another.
POSTING = np.dtype([("slot", "<u4"), ("count", "u1"), ("place", "u1"), ("length", "<u2")])
MARK = np.dtype("<u8")
_MARK_BYTES = 8
_LONG = b"\xff"  # begins the mark of a term above eight bytes: no UTF-8 text begins so

_SIEVE_BITS = 14
_SIEVE_SHIFT = np.uint64(64 - _SIEVE_BITS)
_SIEVE_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # an odd number that spreads neighbours over the whole table

Ints = npt.NDArray[np.int64]
Packed = npt.NDArray[np.void]
Marks = npt.NDArray[np.uint64]


def mark(term: str) -> bytes:
    """Eight bytes for *term*: its own text when that is no longer, else a hash that no short term can equal."""
    data = term.encode()
    return data.ljust(_MARK_BYTES, b"\0") if len(data) <= _MARK_BYTES else _LONG + blake2b(data, digest_size=_MARK_BYTES - 1).digest()


def pack_tail(counts: Mapping[str, int]) -> tuple[bytes, bytes, str]:
    """The counts and the marks of one memory's terms, and the terms that their marks do not spell, in one order, for its tail row."""
    marks = [mark(term) for term in counts]
    unspelt = [term for term, sign in zip(counts, marks, strict=True) if sign[:1] == _LONG]
    return bytes(counts.values()), b"".join(marks), "\n".join(unspelt)


def unpack_tail(counts: bytes, marks: bytes, unspelt: str) -> dict[str, int]:
    """The terms of a tail row with their counts."""
    rest = iter(unspelt.split("\n"))
    signs = (marks[at : at + _MARK_BYTES] for at in range(0, len(marks), _MARK_BYTES))
    terms = (next(rest) if sign[:1] == _LONG else sign.rstrip(b"\0").decode() for sign in signs)
    return dict(zip(terms, counts, strict=True))


def gathered_tail(rows: Sequence[tuple[int, int, int, bytes, bytes, str]]) -> dict[str, bytes]:
    """The packed postings by term of tail rows (slot, place, length, counts, marks, unspelt), which must come in rising order of slots.

    All of them are sorted at once: to take them in one by one took longer than to look up where they belong.
    """
    slots, places, lengths, counts, marks, unspelt = zip(*rows, strict=True)
    every = np.frombuffer(b"".join(marks), MARK)
    sizes = np.fromiter(map(len, counts), np.int64, len(counts))
    postings = np.empty(len(every), POSTING)
    postings["count"] = np.frombuffer(b"".join(counts), np.uint8)
    for name, values in (("slot", slots), ("place", places), ("length", lengths)):
        postings[name] = np.repeat(np.array(values), sizes)
    order = np.argsort(every, kind="stable")
    data, signs = postings[order].tobytes(), every[order]
    starts = np.flatnonzero(np.append(True, signs[1:] != signs[:-1])) if len(signs) else order
    bounds = [*(starts * POSTING_BYTES).tolist(), len(data)]
    spelt = signs[starts].tobytes()
    gathered: dict[str, bytes] = {}
    for at, (begin, end) in enumerate(pairwise(bounds)):
        sign = spelt[at * _MARK_BYTES : (at + 1) * _MARK_BYTES]
        if sign[:1] != _LONG:
            gathered[sign.rstrip(b"\0").decode()] = data[begin:end]
    long_ones = postings[every.view(np.uint8)[::_MARK_BYTES] == _LONG[0]]
    texts = [text for some in unspelt if some for text in some.split("\n")]
    for text, posting in zip(texts, long_ones, strict=True):
        gathered[text] = gathered.get(text, b"") + posting.tobytes()
    return gathered


def sieved(marks: Marks) -> Ints:
    """Where each of *marks* stands in the small table that `find_marks` looks at first."""
    spread = marks * _SIEVE_FACTOR
    spread >>= _SIEVE_SHIFT
    return spread.view(np.int64)  # as it is: unsigned numbers would be converted before they index


def find_marks(marks: Marks, sieve: Ints, terms: Sequence[str]) -> tuple[Ints, Ints]:
    """Where in *marks* one of *terms* stands, and the index of the term for each such place; *sieve* is `sieved` of *marks*."""
    wanted = np.frombuffer(b"".join(map(mark, terms)), MARK)
    order = wanted.argsort()
    wanted = wanted[order]
    # Most marks are of no term of the query: a small table leaves few to look up.
    maybe = np.zeros(1 << _SIEVE_BITS, np.bool_)
    maybe[sieved(wanted)] = True
    places = maybe.take(sieve).nonzero()[0]
    candidates = marks.take(places)
    at = wanted.searchsorted(candidates)
    at[at == len(wanted)] = 0
    sure = (wanted.take(at) == candidates).nonzero()[0]
    return places.take(sure), order.take(at.take(sure))


def packed(slot: int, count: int, place: int, length: int) -> int:
    """One posting as a number whose little-endian bytes are those of `POSTING`."""
    return slot | count << 32 | place << 40 | length << 48


def unpack(data: bytes) -> Packed:
    """The postings of one block, or of several joined; what is left over of a damaged one is not read."""
    return np.frombuffer(data, POSTING, len(data) // POSTING_BYTES)


def first_slot(data: bytes) -> int:
    """The slot of the first of some postings."""
    return int.from_bytes(data[:4], "little")


def are_among(values: npt.NDArray[Any], sought: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Of each of *values* whether it is one of *sought*. Unlike numpy's, it loads no module, so it works when no file can be opened."""
    if not len(sought):
        return np.zeros(len(values), np.bool_)
    ordered = np.sort(sought)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    equal: npt.NDArray[np.bool_] = np.equal(ordered[at], values)
    return equal


class Gathered:
    """The postings of many memories by term, eight bytes each, as they are put together for blocks."""

    def __init__(self) -> None:
        self._by_term: dict[str, array[int]] = {}

    def add(self, slot: int, place: int, length: int, counts: Mapping[str, int]) -> None:
        """Take in one memory; slots must come in rising order. A *place* that cannot be was altered on disk, and is not known any more."""
        place = place if 0 <= place <= PLACE_MAX else 0
        common = packed(slot, 0, place, length)
        for term, count in counts.items():
            postings = self._by_term.get(term)
            if postings is None:
                postings = self._by_term[term] = array("Q")
            postings.append(common | count << 32)

    def terms(self) -> list[str]:
        """The terms that were taken in, in order."""
        return sorted(self._by_term)

    def of(self, term: str) -> bytes:
        """The postings of *term*, packed; none for one that was not taken in."""
        postings = self._by_term.get(term)
        if postings is None:
            return b""
        if sys.byteorder == "big":
            postings = array("Q", postings)
            postings.byteswap()
        return postings.tobytes()
