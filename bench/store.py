"""Pegword's own store and services, filled in bulk, and asked at three depths: index, search, turn."""

import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bench.generator import Asked, Note
from pegword.assembly import open_services, opened_bare
from pegword.core.caller import Caller, Session, Visible, workstream_scope
from pegword.core.memory import Draft
from pegword.core.ranking import rank
from pegword.core.text import Analyser
from pegword.settings import load
from pegword.store import copying
from pegword.store.engine import Tx
from pegword.store.postings import Found, fetch

K = 5
_AT_ONCE = 500
_TOLD_EACH = 20_000


class Store:
    """A new store in *database*, a file or the address of an empty PostgreSQL database, whose scopes are workstreams of one user."""

    def __init__(self, database: Path | str) -> None:
        self._services = open_services(database, load(Path(os.devnull), {}))
        access = self._services.access
        self._caller: Caller = access.agent(access.ensure_user("bench"), "bench")
        self._analyser = Analyser()
        self._saved = 0

    def close(self) -> None:
        """Close the store."""
        self._services.close()

    def fill(self, notes: Iterable[Note]) -> None:
        """Save *notes*, many in one transaction, and fold what is due: as if they had been saved one by one long ago."""
        drafts = self.drafts(notes)
        due: dict[str, None] = {}
        step = Told("memories saved")
        while some := list(islice(drafts, _AT_ONCE)):
            due |= dict.fromkeys(self._services.engine.write(partial(self._put, some=some)))
            step(len(some))
        for key in due:
            self._services.housekeeper.due(key)
        self._services.housekeeper.settle()

    def _put(self, tx: Tx, some: list[Draft]) -> list[str]:
        """Save *some* in an open transaction; the keys of the scopes that then have work to do."""
        put = [self._services.memories.writing.put(tx, self._caller, draft, "save") for draft in some]
        return [saved.memory.scope.key for saved, is_due in put if is_due]

    def drafts(self, notes: Iterable[Note]) -> Iterator[Draft]:
        """What an agent sends to save *notes*."""
        for note in notes:
            self._saved += 1
            yield Draft(f"note_{self._saved}", note.text, workstream_scope(self._caller, f"s{note.scope}"))

    def save(self, draft: Draft) -> None:
        """One save, as any face asks for it."""
        self._services.memories.save(self._caller, draft)

    def settle(self) -> None:
        """Do what saves have left for later."""
        self._services.housekeeper.settle()

    def postings(self, asked: Asked) -> int:
        """How many postings a query touches."""
        return len(self._fetch(asked).postings.term)

    def index(self, asked: Asked, messages: int = 1) -> Any:
        """The index alone: words in, places of the best out; the words in so many *messages*."""
        found = self._fetch(asked)
        index = {term: i for i, term in enumerate(found.terms)}
        said = [[index[t] for t in self._analyser.distinct(text) if t in index] for text in _messages(asked, messages)]
        return found.places_of(rank(found.postings, len(found.terms), said, None).documents[:K])

    def search(self, asked: Asked) -> Any:
        """A search as any face asks for it: text in, memories out."""
        return self._services.memories.search(self._caller, self._visible(asked), " ".join(asked.words), limit=K)

    def turn(self, asked: Asked) -> Any:
        """A whole turn of a session in the first scope: three messages in, block out."""
        messages = [{"role": "user", "content": text} for text in _messages(asked, 3)]
        return self._services.turns.turn(self._caller, Session("s0"), messages)

    def _fetch(self, asked: Asked) -> Found:
        terms = self._analyser.distinct(" ".join(asked.words))
        with self._services.engine.read() as tx:
            return fetch(tx, self._visible(asked), terms)

    def _visible(self, asked: Asked) -> Visible:
        return Visible(tuple(workstream_scope(self._caller, f"s{scope}") for scope in asked.scopes))


def copy(source: Path, target: str) -> None:
    """Carry the store in the file *source* into the empty database *target* as `pegword migrate` does, without holding the two against each
    other: the same memories under the same index as if they had been saved there."""
    with opened_bare(source) as old, opened_bare(target, create=True) as new:
        position = copying.begin(new, old.url)
        with old.read() as tx:
            copying.copy(tx, new, position, Told("rows copied"))
        copying.finish(new)


class Told:
    """Says on stderr how much of *what* is done, at every `_TOLD_EACH`."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = 0

    def __call__(self, count: int) -> None:
        """So many more."""
        before, self._done = self._done, self._done + count
        if before // _TOLD_EACH != self._done // _TOLD_EACH:
            print(f"{self._what}: {self._done:,}", file=sys.stderr, flush=True)


def _messages(asked: Asked, count: int) -> list[str]:
    return [" ".join(asked.words[i::count]) for i in range(count)]
