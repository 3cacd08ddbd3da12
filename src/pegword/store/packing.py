"""How the index lies in bytes: postings of eight bytes each, and the marks by which a tail row is searched."""

import sys
from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

BLOCK_POSTINGS_MAX = 512

# One occurrence of a term: little-endian on every machine, so a file can be carried from one to another.
POSTING = np.dtype([("slot", "<u4"), ("count", "u1"), ("place", "u1"), ("length", "<u2")])
MARK = np.dtype("<u8")
_MARK_BYTES = 8
_LONG = b"\xff"  # begins the mark of a term above eight bytes: no UTF-8 text begins so

Packed = npt.NDArray[np.void]
Marks = npt.NDArray[np.uint64]


def mark(term: str) -> bytes:
    """Eight bytes for *term*: its own text when that is no longer, else a hash that no short term can equal."""
    data = term.encode()
    if len(data) <= _MARK_BYTES:
        return data.ljust(_MARK_BYTES, b"\0")
    return _LONG + blake2b(data, digest_size=_MARK_BYTES - 1).digest()


def pack_tail(counts: Mapping[str, int]) -> tuple[bytes, bytes, str]:
    """The counts, the marks and the terms of one memory, in one order, for its tail row."""
    return bytes(counts.values()), b"".join(map(mark, counts)), "\n".join(counts)


def unpack_tail(counts: bytes, terms: str) -> dict[str, int]:
    """The terms of a tail row with their counts."""
    return dict(zip(terms.split("\n"), counts, strict=True)) if terms else {}


def query_marks(terms: Sequence[str]) -> tuple[Marks, npt.NDArray[np.int64]]:
    """The marks of *terms*, sorted, and for each the index of its term."""
    marks = np.frombuffer(b"".join(map(mark, terms)), MARK)
    order = np.argsort(marks)
    return marks[order], order


def packed(slot: int, count: int, place: int, length: int) -> int:
    """One posting as a number whose little-endian bytes are those of `POSTING`."""
    return slot | count << 32 | place << 40 | length << 48


def unpack(data: bytes) -> Packed:
    """The postings of one block, or of several joined."""
    return np.frombuffer(data, POSTING)


class Gathered:
    """The postings of many memories by term, eight bytes each, as they are put together for blocks."""

    def __init__(self) -> None:
        self._by_term: dict[str, array[int]] = {}

    def add(self, slot: int, place: int, length: int, counts: Mapping[str, int]) -> None:
        """Take in one memory; slots must come in rising order."""
        for term, count in counts.items():
            postings = self._by_term.get(term)
            if postings is None:
                postings = self._by_term[term] = array("Q")
            postings.append(packed(slot, count, place, length))

    def terms(self) -> list[str]:
        """The terms that were taken in, in order."""
        return sorted(self._by_term)

    def of(self, term: str) -> Packed:
        """The postings of *term*."""
        postings = self._by_term[term]
        if sys.byteorder == "big":
            postings = array("Q", postings)
            postings.byteswap()
        return unpack(postings.tobytes())
