"""Pegword as its users have it: memories saved into a store on disk, searches and turns through the embedded library."""

import random
from collections.abc import Sequence
from dataclasses import replace

from bench.locomo import Corpus
from bench.measures import DEPTH
from pegword import OpenMemories
from pegword.testing import memories_in_memory

BUDGET_CHARS = 1_000_000  # a turn is measured by what it chooses, not by what has room


class Library:
    """*corpora* in one new store, a workstream each; with *alone*, every memory is a sitting of its own."""

    def __init__(self, corpora: Sequence[Corpus], *, alone: bool = False) -> None:
        self._opened = memories_in_memory("bench")
        self._memories: OpenMemories = self._opened.__enter__()
        self._positions: dict[tuple[str, str], int] = {}
        for corpus in corpora:
            for position, item in enumerate(corpus.items):
                # A name that is taken apart by case alone would be an update.
                name = f"{item.name}.{position}" if item.name else f"m{position}"
                sitting = str(position) if alone else item.sitting
                saved = self._memories.save(name, item.text, scope="workstream", scope_id=corpus.name, sitting=sitting)
                self._positions[corpus.name, saved.memory.name] = position

    def close(self) -> None:
        """Take the store away."""
        self._opened.__exit__(None, None, None)

    def search(self, corpus: Corpus) -> list[list[int]]:
        """The best of an explicit search for each question. Quotes would ask for phrases, so they are left out."""
        found = []
        for question in corpus.questions:
            query = question.text.replace('"', " ")
            hits = self._memories.search(query, scope="workstream", scope_id=corpus.name, limit=DEPTH).hits
            found.append([self._positions[corpus.name, hit.memory.name] for hit in hits])
        return found

    def turn(self, corpus: Corpus, before: Sequence[str] = ()) -> list[list[int]]:
        """What a turn shows for each question, asked after the messages *before* (oldest first)."""
        found = []
        for question in corpus.questions:
            messages = [{"role": "user", "content": text} for text in (*before, question.text)]
            turn = self._memories.turn(messages, workstream_id=corpus.name, k=DEPTH, budget_chars=BUDGET_CHARS)
            found.append([self._positions[corpus.name, shown.memory.name] for shown in turn.shown])
        return found

    def speaks(self, corpus: Corpus, message: str) -> bool:
        """Whether a turn shows anything of *corpus* for *message*."""
        return bool(self._memories.turn(message, workstream_id=corpus.name).shown)


def shuffled(corpus: Corpus, seed: int) -> tuple[Corpus, list[int]]:
    """*corpus* in a random order of saving, and where each item was before."""
    order = list(range(len(corpus.items)))
    random.Random(seed).shuffle(order)
    return replace(corpus, items=tuple(corpus.items[i] for i in order)), order
