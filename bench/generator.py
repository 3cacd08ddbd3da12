"""Texts, scopes and queries with the statistics of real notes, made by a seed.

- A text has 20 to 400 words, 83 on average, log-normal; nearly half of them are stop words of English.
- The other words follow Zipf's law without its first ranks, which in English are stop words.
- Scopes have log-normal sizes. A query is drawn where the memories are: it sees the scope of a memory drawn from all and two more
  scopes drawn by size (at 100,000 memories in 1,000 scopes the three hold some 600), and takes its words from that scope's texts.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product

from pegword.core.words import STOP_WORDS_ENGLISH

WORDS_MEAN, WORDS_MIN, WORDS_MAX, WORDS_SIGMA = 83, 20, 400, 0.6
VOCABULARY, VOCABULARY_SKIPPED = 30_000, 200
STOP_SHARE = 0.45
SCOPE_SIGMA = 0.8
SCOPES_SEEN = 3
TEXTS_READ = 20
_SYLLABLES = ["".join(pair) for pair in product("bdfgklmnprtvz", "aeiou")]


@dataclass(frozen=True, slots=True)
class Note:
    """One memory: the number of its *scope* and its *text*."""

    scope: int
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One query: its *words*, and the *scopes* that it sees."""

    words: tuple[str, ...]
    scopes: tuple[int, ...]


class World:
    """*size* notes in *scopes* scopes; *notes* yields them anew each time, the same."""

    def __init__(self, size: int, scopes: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        chosen = random.Random(seed)
        self._weights_of_scopes = [chosen.lognormvariate(0, SCOPE_SIGMA) for _ in range(scopes)]
        self.scope_of = chosen.choices(range(scopes), self._weights_of_scopes, k=size)

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words of the language that are no stop words, commonest first."""
        chosen = random.Random(self.seed + 1)
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(chosen.choices(_SYLLABLES, k=chosen.choice((2, 3, 3, 4))))] = None
        return list(words)

    def notes(self) -> Iterator[Note]:
        """All notes, in the order in which they are saved."""
        chosen = random.Random(self.seed + 2)
        weights = list(accumulate(1 / (rank + VOCABULARY_SKIPPED) for rank in range(VOCABULARY)))
        stops = sorted(word for word in STOP_WORDS_ENGLISH if len(word) < 6)
        stop_weights = list(accumulate(1 / (rank + 1) for rank in range(len(stops))))
        mean = WORDS_SIGMA**2 / 2
        for scope in self.scope_of:
            count = int(WORDS_MEAN * chosen.lognormvariate(-mean, WORDS_SIGMA))
            count = min(max(count, WORDS_MIN), WORDS_MAX)
            stopped = sum(chosen.random() < STOP_SHARE for _ in range(count))
            words = chosen.choices(stops, cum_weights=stop_weights, k=stopped)
            words += chosen.choices(self.vocabulary, cum_weights=weights, k=count - stopped)
            chosen.shuffle(words)
            yield Note(scope, " ".join(words))

    def queries(self, count: int, terms: int) -> list[Asked]:
        """*count* queries of *terms* words each, none of them a stop word."""
        chosen = random.Random(self.seed + 3 + terms)
        scopes = range(len(self._weights_of_scopes))
        seen = []
        for _ in range(count):
            first = self.scope_of[chosen.randrange(self.size)]
            others = chosen.choices(scopes, self._weights_of_scopes, k=SCOPES_SEEN - 1)
            seen.append((first, tuple(sorted({first, *others}))))
        wanted = {first for first, _ in seen}
        texts: dict[int, list[str]] = {}
        for note in self.notes():
            if note.scope in wanted and len(texts.setdefault(note.scope, [])) < TEXTS_READ * count:
                texts[note.scope].append(note.text)
        asked = []
        for first, visible in seen:
            said = " ".join(chosen.sample(texts[first], min(TEXTS_READ, len(texts[first])))).split()
            chosen.shuffle(said)
            words = list(dict.fromkeys(word for word in said if word not in STOP_WORDS_ENGLISH))
            asked.append(Asked(tuple(words[:terms]), visible))
        return asked
