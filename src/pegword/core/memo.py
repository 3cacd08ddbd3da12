"""What an analyser remembers of words: what it made of each, until the memory that it may take for that is full."""

import threading
from sys import getsizeof

BYTES_MAX = 16 << 20  # some 60,000 English words; a server under ever new words comes to it within minutes, and stays there
MADE_MAX = 12  # what falls into more pieces is a clause in a script without blanks, or a long path: it hardly comes again
_BYTES_OF_A_PLACE = 40  # that a word takes in a table, beside itself and what was made of it

Made = tuple[str, ...]


class Memo:
    """Words with what was made of them, in at most *bytes_max*. Threads share it.

    Words lie in two tables. When the `young` one has half of the bytes, it becomes the old one, whose words are forgotten but for those
    that are asked for meanwhile: these go over into the new young one. So what comes often stays, whatever else comes once.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.young: dict[str, Made] = {}
        self._old: dict[str, Made] = {}
        self._half = bytes_max // 2
        self._bytes = 0  # of the young table
        self._lock = threading.Lock()

    def get(self, word: str) -> Made | None:
        """What was made of a *word* that is not in `young`, if it is remembered all the same."""
        made = self._old.get(word)
        return None if made is None else self.keep(word, made)

    def keep(self, word: str, made: Made) -> Made:
        """Remember what was *made* of *word*, and return it."""
        if len(made) > MADE_MAX:
            return made
        size = _BYTES_OF_A_PLACE + getsizeof(word) + getsizeof(made)
        for text in made:
            size += getsizeof(text)
        with self._lock:
            if self._bytes + size > self._half:
                self._old, self.young, self._bytes = self.young, {}, 0
            self._bytes += size
            self.young[word] = made
        return made
