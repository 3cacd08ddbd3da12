"""What an analyser remembers: bounded in bytes whatever the words are, and what comes often stays."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.memo import MADE_MAX, Made, Memo
from pegword.core.text import TERM_CHARS_MAX, Analyser

SMALL = 1 << 17
BESIDE = 1 << 14  # that an analyser and what it calls may keep of the last texts, beside what it remembers
WORDS: dict[str, Callable[[int], str]] = {
    "short": lambda n: f"{n:x}",
    "long": lambda n: f"{n:x}".rjust(TERM_CHARS_MAX, "a"),
    "of wide letters": lambda n: f"{n:x}".rjust(TERM_CHARS_MAX, "\U00010400"),
}


class Hoarding(Memo):
    """The planted fault: it forgets nothing."""

    def keep(self, word: str, made: Made) -> Made:
        self.young[word] = made
        return made


@contextmanager
def taken() -> Iterator[list[int]]:
    """How many bytes were taken meanwhile and are still held at the end."""
    out: list[int] = []
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield out
        gc.collect()  # Python keeps some tuples that nobody has, for the next ones
        out.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()


def fill(memo: Memo, word: Callable[[int], str], pieces: int, count: int) -> None:
    for number in range(count):
        text = word(number)
        memo.keep(text, tuple(f"{text}{piece}" for piece in range(pieces)))


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("pieces", [0, 1, MADE_MAX])
def test_it_takes_no_more_memory_than_it_may_and_uses_much_of_it(kind: str, pieces: int) -> None:
    """However large the words are, and however many pieces were made of each."""
    with taken() as bytes_:
        memo = Memo(SMALL)
        fill(memo, WORDS[kind], pieces, 5_000)

    assert SMALL // 4 < bytes_[0] <= SMALL


def test_one_that_forgets_nothing_is_seen() -> None:
    with taken() as bytes_:
        memo = Hoarding(SMALL)
        fill(memo, WORDS["short"], 1, 5_000)

    assert bytes_[0] > SMALL


def test_what_is_asked_for_again_stays_and_what_came_once_goes() -> None:
    memo = Memo(SMALL)
    for word in ("often", "once"):
        memo.keep(word, (word,))
    asked = []
    for number in range(5_000):
        memo.keep(f"{number:x}", ())
        asked.append(memo.young.get("often") or memo.get("often"))

    assert {("often",)} == set(asked)
    assert memo.young.get("once") is None
    assert memo.get("once") is None


def test_what_falls_into_many_pieces_is_not_remembered() -> None:
    """It would push out what comes again: a clause of a script without blanks has twice as many pieces as letters."""
    memo = Memo(SMALL)
    made = tuple("x" * (MADE_MAX + 1))

    assert made == memo.keep("x", made)
    assert memo.get("x") is None
    assert not memo.young


@given(st.lists(st.text(st.sampled_from("aAs'-_1é漢 \N{WAVING HAND SIGN}"), max_size=12), max_size=40))
def test_terms_do_not_depend_on_what_is_remembered(texts: list[str]) -> None:
    """One that forgets all the time, one that remembers all, and one that has seen nothing yet say the same."""
    forgetful, long = Analyser(), Analyser()
    forgetful._memo, forgetful._memo_of_forms = Memo(600), Memo(600)
    for text in texts:
        fresh = Analyser()

        assert fresh.terms(text) == forgetful.terms(text) == long.terms(text)
        assert fresh.forms(text) == forgetful.forms(text) == long.forms(text)


@pytest.mark.parametrize("kind", [*WORDS, "clauses"])
def test_an_analyser_under_ever_new_words_stays_as_large(kind: str) -> None:
    """Clauses are of ten letters in a script without blanks, each of which makes nineteen terms."""
    assert after_new_words(kind, Memo(SMALL)) <= SMALL + BESIDE


def test_an_analyser_that_forgets_no_word_is_seen() -> None:
    assert after_new_words("short", Hoarding(SMALL)) > SMALL + BESIDE


def after_new_words(kind: str, memo: Memo) -> int:
    """How many bytes an analyser that remembers in *memo* takes for texts of ever new words."""
    word = WORDS.get(kind, lambda n: "".join(chr(0x4E00 + int(digit)) for digit in f"{n:010}"))
    analyser = Analyser()
    analyser._memo = memo
    analyser.document("warm", ())
    with taken() as bytes_:
        for number in range(40):
            analyser.document(" ".join(word(50 * number + n) for n in range(50)), ())
    return bytes_[0]
