"""The newest memories of scopes, as queries search them: read from their rows, and kept for as long as their scope stays as it is.

A query of a few words looks through all that the tails of the visible scopes hold, and to read and take apart their rows took longer than
to rank what was found. So what was read stays with the engine, under the *state* of its scope: every change of a tail changes that in the
same transaction, and a read that sees another state reads the rows again.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pegword.core.errors import Damaged
from pegword.store.engine import Row, Tx, among, padded
from pegword.store.packing import MARK, Ints, Marks, find_marks, sieved

KEPT_BYTES_MAX = 32 << 20
BYTES_OF_ONE = 1_600  # that a tail takes beside its numbers: seven arrays, their key and state. Most tails hold one or two memories
SCOPES_AT_ONCE = 500  # named one by one in a statement
DAMAGED = "the index is damaged; make it again with: pegword reindex --all"

State = tuple[int, ...]
Kind = TypeVar("Kind", bound=np.generic)

_TAILS = "SELECT scope_key, slot, place, length, counts, marks FROM ix_tail WHERE {scopes}"


class Tail(NamedTuple):
    """The tail of one scope. *slots*, *places* and *lengths* have an entry a memory; the rest one an occurrence, by slot: *marks* tell the
    terms, *sieve* is where each stands in the small table that is looked at first, *counts* how often, *rows* of which memory."""

    slots: Ints
    places: Ints
    lengths: Ints
    marks: Marks
    sieve: Ints
    counts: npt.NDArray[np.uint8]
    rows: Ints

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return BYTES_OF_ONE + sum(column.nbytes for column in self)


class KeptTails:
    """Tails by scope, each with the state of its scope when it was read; those not asked for longest go first when they grow too many.

    Threads share it. What is put in must come from a committed state, so from a transaction that only reads.
    """

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._held = 0
        self._tails: OrderedDict[str, tuple[State, Tail]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, scope_key: str, state: State) -> Tail | None:
        """The tail of a scope as it was in *state*, if it is here."""
        with self._lock:
            kept = self._tails.get(scope_key)
            if kept is None or kept[0] != state:
                return None
            self._tails.move_to_end(scope_key)
            return kept[1]

    def put(self, scope_key: str, state: State, tail: Tail) -> None:
        """Keep the tail of a scope in *state*, in the place of the one from before."""
        with self._lock:
            before = self._tails.pop(scope_key, None)
            self._held += tail.bytes - (before[1].bytes if before else 0)
            self._tails[scope_key] = state, tail
            while self._held > self._bytes_max:
                _, (_, gone) = self._tails.popitem(last=False)
                self._held -= gone.bytes

    def clear(self) -> None:
        """Forget everything: the database may be another than it was."""
        with self._lock:
            self._tails.clear()
            self._held = 0


@dataclass(frozen=True, slots=True)
class InTails:
    """Where terms occur in tails, by term and document: index of the *term*, *document* number, *count*, *place* and *length*."""

    term: Ints
    document: Ints
    count: Ints
    place: Ints
    length: Ints


NOWHERE = InTails(*(np.zeros(0, np.int64) for _ in range(5)))


def tails(tx: Tx, states: Mapping[str, State]) -> dict[str, Tail]:
    """The tails of the scopes in *states*, by key, in that order. Raises `Damaged`."""
    kept = tx.kept_tails
    found = {key: None if kept is None else kept.get(key, state) for key, state in states.items()}
    missing = [key for key, tail in found.items() if tail is None]
    if missing:
        rows: dict[str, list[Row]] = {key: [] for key in missing}
        for start in range(0, len(missing), SCOPES_AT_ONCE):
            some = missing[start : start + SCOPES_AT_ONCE]
            for row in tx.rows(_TAILS.replace("{scopes}", among("scope_key", len(some))), padded(some)):
                rows[row[0]].append(row)
        for key in missing:
            found[key] = tail = _tail(rows[key])
            if kept is not None:
                kept.put(key, states[key], tail)
    return {key: tail for key, tail in found.items() if tail is not None}


def search(some: Mapping[str, Tail], bases: Mapping[str, int], terms: Sequence[str]) -> InTails:
    """The postings of *terms* in *some* tails; *bases* gives each scope's key the number that is added to a slot to make a document."""
    if not some or not terms:
        return NOWHERE
    every = list(some.values())
    sieve, marks = _joined([tail.sieve for tail in every]), _joined([tail.marks for tail in every])
    hits, term = find_marks(marks, sieve, terms)
    order = np.argsort(term, kind="stable")
    hits, term = hits[order], term[order]
    counts, rows = _joined([tail.counts for tail in every]), _joined([tail.rows for tail in every])
    documents = _joined([tail.slots + bases[key] for key, tail in some.items()])
    row = rows.take(hits)
    if len(every) > 1:
        sizes = [len(tail.slots) for tail in every]
        first = np.repeat(np.cumsum([0, *sizes[:-1]]), [len(tail.marks) for tail in every])
        row += first.take(hits)
    return InTails(
        term,
        documents.take(row),
        counts.take(hits).astype(np.int64),
        _joined([tail.places for tail in every]).take(row),
        _joined([tail.lengths for tail in every]).take(row),
    )


def _joined(columns: Sequence[npt.NDArray[Kind]]) -> npt.NDArray[Kind]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _tail(rows: list[Row]) -> Tail:
    """The tail that these rows hold."""
    rows.sort(key=lambda row: row[1])  # an engine gives them in whatever order; answers are to be the same on all
    _, slots, places, lengths, counts, marks = zip(*rows, strict=True) if rows else ((),) * 6
    try:
        every_mark, every_count = b"".join(marks), b"".join(counts)
    except TypeError:
        raise Damaged(DAMAGED) from None
    if len(every_mark) != MARK.itemsize * len(every_count):
        raise Damaged(DAMAGED)
    every = np.frombuffer(every_mark, MARK)
    sizes = np.fromiter(map(len, counts), np.int64, len(counts))
    return Tail(
        np.array(slots, np.int64),
        np.array(places, np.int64),
        np.array(lengths, np.int64),
        every,
        sieved(every),
        np.frombuffer(every_count, np.uint8),
        np.repeat(np.arange(len(rows)), sizes),
    )
