"""Texts, scopes and queries with the statistics of real notes, made by a seed.

- A text has 20 to 400 words, 83 on average, log-normal; nearly half of them are stop words of English.
- Of the other words, most belong to the topics of the text's owner and the rest to the language, both by Zipf's law (flattened at
  the top, since the commonest words of a language are its stop words).
- Owners and their texts: log-normal, 300 texts on average, in three groups each. A scope is one group, or many, or all: the texts
  are the same.
- A query takes its words from a memory and its neighbours, a common word more likely than a rare one, so it lands where the
  memories are; it sees the three scopes of that memory's owner: at 100,000 memories in 1,000 scopes they hold some 600.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product

from pegword.core.words import STOP_WORDS_ENGLISH

WORDS_MEAN, WORDS_MIN, WORDS_MAX, WORDS_SIGMA = 83, 20, 400, 0.6
VOCABULARY, VOCABULARY_FLAT = 30_000, 18
TOPIC, TOPIC_FLAT, TOPIC_SHARE = 150, 10, 0.65
NEIGHBOURS = 20
STOP_SHARE = 0.45
GROUP_MEAN, GROUPS, OWNER_SIGMA = 100, 3, 0.8
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
    """*size* notes in *scopes* scopes. Notes of one group come in order; *notes* yields them anew each time, the same."""

    def __init__(self, size: int, scopes: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        chosen = random.Random(seed)
        owners = max(size // (GROUP_MEAN * GROUPS), 1)
        weights = [chosen.lognormvariate(0, OWNER_SIGMA) for _ in range(owners)]
        self.group_of = sorted(chosen.choices(range(owners * GROUPS), [weights[i // GROUPS] for i in range(owners * GROUPS)], k=size))
        self.scope_of = [group % scopes for group in self.group_of]
        self._scopes = scopes

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words of the language, commonest first."""
        chosen = random.Random(self.seed + 1)
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(chosen.choices(_SYLLABLES, k=chosen.choice((2, 3, 3, 4))))] = None
        return list(words)

    @cached_property
    def _weights(self) -> list[float]:
        return list(accumulate(1 / (rank + VOCABULARY_FLAT) for rank in range(VOCABULARY)))

    @cached_property
    def _topic_weights(self) -> list[float]:
        return list(accumulate(1 / (rank + TOPIC_FLAT) for rank in range(TOPIC)))

    def notes(self) -> Iterator[Note]:
        """All notes, scope by scope."""
        chosen = random.Random(self.seed + 2)
        stops = sorted(word for word in STOP_WORDS_ENGLISH if len(word) < 6)
        stop_weights = list(accumulate(1 / (rank + 1) for rank in range(len(stops))))
        mean = WORDS_SIGMA**2 / 2
        topic: list[str] = []
        of = -1
        for group, scope in zip(self.group_of, self.scope_of, strict=True):
            if group // GROUPS != of:
                of = group // GROUPS
                topic = random.Random(self.seed * 1_000_003 + of).sample(self.vocabulary, TOPIC)
            count = int(WORDS_MEAN * chosen.lognormvariate(-mean, WORDS_SIGMA))
            count = min(max(count, WORDS_MIN), WORDS_MAX)
            stopped = sum(chosen.random() < STOP_SHARE for _ in range(count))
            local = int((count - stopped) * TOPIC_SHARE)
            words = chosen.choices(stops, cum_weights=stop_weights, k=stopped)
            words += chosen.choices(topic, cum_weights=self._topic_weights, k=local)
            words += chosen.choices(self.vocabulary, cum_weights=self._weights, k=count - stopped - local)
            chosen.shuffle(words)
            yield Note(scope, " ".join(words))

    def queries(self, count: int, terms: int) -> list[Asked]:
        """*count* queries of *terms* words each, none of them a stop word."""
        chosen = random.Random(self.seed + 3 + terms)
        starts = [chosen.randrange(max(self.size - NEIGHBOURS, 1)) for _ in range(count)]
        near = {position for start in starts for position in range(start, start + NEIGHBOURS)}
        texts = {position: note.text for position, note in enumerate(self.notes()) if position in near}
        asked = []
        for start in starts:
            said = " ".join(texts[position] for position in range(start, start + NEIGHBOURS) if position in texts).split()
            chosen.shuffle(said)
            words = list(dict.fromkeys(word for word in said if word not in STOP_WORDS_ENGLISH))
            owner = self.group_of[start] // GROUPS
            scopes = {(owner * GROUPS + i) % self._scopes for i in range(GROUPS)}
            asked.append(Asked(tuple(words[:terms]), tuple(sorted(scopes))))
        return asked
