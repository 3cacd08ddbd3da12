from dataclasses import replace

import pytest

from bench.locomo import Item
from bench.negatives import everyday, programming, small_talk
from bench.offline import Offline
from bench.reference import api_corpora
from bench.silence import curve, life_questions, verdict
from pegword.core.floor import FLOOR, relevant
from pegword.core.text import Analyser

ANALYSER = Analyser()
TEAM = ["User prefers tabs over spaces and a dark theme", "We deploy on Tuesdays, never on Fridays", "The cat Miso is afraid of thunder"]
WORK = ["Postgres statement_timeout is 30s in production", "REST endpoints use snake_case and plural nouns", "Priya is on call, then Jonas"]
LIFE = ["Allergic to peanuts and shellfish", "Goes to the gym on Monday and Wednesday mornings", "My sister Anna lives in Lisbon"]


def shown(memories: list[str], *messages: str) -> list[int]:
    """The memories that a turn would show, best first; *messages* newest first."""
    items = [Item(text, "one", frozenset()) for text in memories]
    ranked, postings, said, terms = Offline(items, False, ANALYSER).ranked(messages)
    enough = relevant(ranked, postings, said, ANALYSER.rarity(terms))
    return [int(document) for document, is_enough in zip(ranked.documents, enough, strict=False) if is_enough]


@pytest.mark.parametrize(
    ("memories", "message", "expected"),
    [
        (TEAM, "When do we deploy?", 1),
        (TEAM, "Can you deploy this now?", 1),
        (TEAM, "tabs or spaces?", 0),
        (TEAM, "There is a thunderstorm coming, what about the cat?", 2),
        (WORK, "the migration fails with a statement timeout", 0),
        (WORK, "add an endpoint for orders", 1),
        (WORK, "Where is Priya?", 2),
        (LIFE, "Suggest a dinner without peanuts", 0),
        (LIFE, "Am I free on Wednesday morning?", 1),
        (LIFE, "Book a flight to Lisbon", 2),
        (LIFE[:1], "what am I allergic to?", 0),
    ],
)
def test_a_store_of_three_memories_is_heard(memories: list[str], message: str, expected: int) -> None:
    """A floor that knows only large stores would silence small ones."""
    assert shown(memories, message)[:1] == [expected]


@pytest.mark.parametrize("memories", [TEAM, WORK, LIFE])
def test_what_has_nothing_to_do_with_them_calls_no_memory(memories: list[str]) -> None:
    messages = small_talk(100, 1) + everyday(100, 1) + programming(100, 1)

    false = [message for message in messages if shown(memories, message)]

    assert len(false) <= len(messages) * 0.04


def test_a_question_is_still_answered_after_thanks() -> None:
    assert shown(TEAM, "thanks, that was helpful", "When do we deploy?") == [1]


def test_words_in_every_talk_call_no_memory() -> None:
    assert shown(["It was a good day", "What a time"], "good time, have a nice day") == []


def test_company_is_shown_with_what_it_stands_beside() -> None:
    memories = ["We went to Lisbon in spring", "The hotel there cost 90 euros", *["Unrelated: a note on gardens"] * 30]

    assert shown(memories, "what did the hotel in Lisbon cost?")[:2] in ([0, 1], [1, 0])


def test_nothing_ranked_is_nothing_relevant() -> None:
    assert shown(TEAM, "") == []
    assert shown([], "deploy") == []


def test_the_floor_in_force_does_what_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """On memories made from the standard library: 95 % of the recall stays, and off-topic chat and another domain get a memory at least
    three times less often than without a floor. On dialogues `bench.quality` prints the same, from data that is not ours to ship."""
    corpora = api_corpora()[:1]
    monkeypatch.setattr("bench.silence.FLOORS", (0.0, FLOOR, 3.0))
    rows = curve(corpora, life_questions([], 1), 1)

    assert verdict(rows).endswith("than without a floor: as promised")
    # Planted faults: none at all, and one that silences everything
    assert verdict([rows[0], replace(rows[0], floor=FLOOR)]).endswith("NOT AS PROMISED")
    assert verdict([rows[0], replace(rows[2], floor=FLOOR)]).endswith("NOT AS PROMISED")
