"""What long memories are like: told as if each had been read whole, without reading each whole."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.caller import GLOBAL, Caller, Session
from pegword.core.likeness import Likeness
from pegword.core.memory import Draft
from pegword.core.text import Analyser
from pegword.services.bundle import Services
from pegword.services.resembling import CANDIDATES, LOOKED_AT_CHARS, SAME_TERMS_MIN, Resembling
from pegword.tool.calling import MemoryTool

LONG = 32_768  # as much as the tool takes
SHARED = "harbour quokka replica deploy tuesday walrus"


def long_text(seed: int, chars: int = LONG) -> str:
    """A text of words that no other seed has, and a few that all have."""
    chance = random.Random(seed)
    words, size = [SHARED], len(SHARED)
    while size < chars:
        word = "".join(chance.choices("abcdefghijklmnop", k=chance.randint(4, 9))) + str(seed)
        words.append(word)
        size += len(word) + 1
    return " ".join(words)[:chars]


class Reading:
    """How many characters were taken apart into words."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.chars = 0
        distinct, document = Analyser.distinct, Analyser.document

        def counted(analyser: Analyser, text: str) -> list[str]:
            self.chars += len(text)
            return distinct(analyser, text)

        def also(analyser: Analyser, content: str, fields: tuple[str, ...]) -> object:
            self.chars += len(content)
            return document(analyser, content, fields)

        patch.setattr(Analyser, "distinct", counted)
        patch.setattr(Analyser, "document", also)


def check_work(services: Services, alice: Caller, patch: pytest.MonkeyPatch) -> None:
    """The new text twice, to be compared and to be indexed, and of each other one the beginning: in all less than half of what it takes to
    read all of them."""
    for seed in range(CANDIDATES + 2):
        services.memories.save(alice, Draft(f"long_{seed}", long_text(seed), GLOBAL))
    tool = MemoryTool(services, kind_word=lambda kind, *_: kind)
    reading = Reading(patch)
    saved = tool.call(alice, Session(), {"action": "save", "name": "new", "content": long_text(99)})

    assert ("created", ()) == (saved.outcome, saved.beside)
    assert reading.chars < 2 * LONG + CANDIDATES * LOOKED_AT_CHARS + LONG // 8


def test_a_long_save_reads_the_beginnings_of_what_it_is_not_like(
    services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_work(services, alice, monkeypatch)


def test_one_that_reads_each_whole_is_noticed(services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nothing is passed over."""
    monkeypatch.setattr(Likeness, "may_be_like", lambda *_: True)
    with pytest.raises(AssertionError):
        check_work(services, alice, monkeypatch)


def test_what_is_told_is_what_reading_each_whole_would_tell(services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long memories that are alike in all degrees, whatever their names, descriptions and tags say of it."""
    base, mixed = long_text(0, 16_000).split(" "), long_text(1, 16_000).split(" ")
    shares = (0, 20, 40, 60, 80, 95, 100)
    drafts = [
        Draft(
            f"a_b.c-{share}", " ".join([*base[: len(base) * share // 100], *mixed[len(mixed) * share // 100 :]]), GLOBAL,
            description=" ".join(mixed[:20]), tags=("b.c", "harbour"),
        )
        for share in shares
    ]  # fmt: skip
    drafts.append(Draft("short", " ".join(base[:40]), GLOBAL))
    for draft in drafts:
        services.memories.save(alice, draft)
    asked = [
        Draft("x", text, GLOBAL)
        for text in (" ".join(base), " ".join(mixed), " ".join(base[:60]), " ".join(mixed + base)[:LONG], SHARED, "b.c harbour")
    ]
    told = [services.resembling.of(alice, Session(), draft) for draft in asked]
    monkeypatch.setattr(Likeness, "may_be_like", lambda *_: True)

    assert told == [services.resembling.of(alice, Session(), draft) for draft in asked]
    assert any(resemblance.similar for resemblance in told)


@given(st.lists(st.sampled_from(["tea", "the", "quokka", "of", "x" * 500, "1", "b.c", "\n", "漢字"]), max_size=120))
def test_whether_a_text_says_enough_is_told_by_its_beginning_where_that_does(words: list[str]) -> None:
    analyser, text = Analyser(), " ".join(words)
    resembling = Resembling(None, analyser, clock=lambda: 0)  # type: ignore[arg-type]

    assert resembling._says_enough(text) == (len(analyser.distinct(text)) >= SAME_TERMS_MIN)
