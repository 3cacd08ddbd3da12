"""Phrases are looked for in whole texts: read some at a time, and no more than a search may read."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pegword.core.caller import GLOBAL, Caller, reach
from pegword.core.memory import Draft, Memory
from pegword.services.bundle import Services
from pegword.services.finding import EXPIRED_BYTES_MAX, PHRASE_BYTES_MAX
from pegword.store import memory_rows, portions
from pegword.store.portions import PORTION_BYTES
from tests.conftest import Clock

PHRASE = "the copper kettle sings"
LONG = 60_000  # characters of one content, nearly as many as there may be


class Reads:
    """What was read of contents and descriptions: bytes, one number for each time that whole memories were."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def seen(self, read: Callable[..., dict[Any, Memory]]) -> Callable[..., dict[Any, Memory]]:
        def counting(*arguments: Any) -> dict[Any, Memory]:
            memories = read(*arguments)
            if memories:
                self.sizes.append(sum(size(memory.content) + size(memory.description) for memory in memories.values()))
            return memories

        return counting


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counted = Reads()
    for name in ("by_slots", "by_ids"):
        monkeypatch.setattr(memory_rows, name, counted.seen(getattr(memory_rows, name)))
    return counted


def size(text: str) -> int:
    return len(text.encode())


def content(number: int, letters: str = "lorem ") -> str:
    """A long text that says the phrase when *number* is odd, and only its words when it is even."""
    said = PHRASE if number % 2 else " ".join(reversed(PHRASE.split()))
    return f"{said} {number} " + letters * (LONG // len(letters))


def save(services: Services, caller: Caller, contents: Sequence[str], **more: Any) -> None:
    for number, text in enumerate(contents):
        services.memories.save(caller, Draft(f"note_{number}", text, GLOBAL, **more))


def names(services: Services, caller: Caller, **more: Any) -> list[str]:
    return [hit.memory.name for hit in services.memories.search(caller, reach(caller), f'"{PHRASE}"', **more).hits]


@pytest.mark.parametrize("letters", ["lorem ", "кошка "], ids=["one byte a letter", "two bytes a letter"])
def test_long_texts_are_read_a_portion_at_a_time_up_to_a_limit(services: Services, alice: Caller, reads: Reads, letters: str) -> None:
    """What lies in memory at once is bounded in bytes, whatever the number of candidates; and so is what is read at all."""
    save(services, alice, [content(n, letters) for n in range(60)])
    found = services.memories.search(alice, reach(alice), f'"{PHRASE}"')

    assert len(reads.sizes) >= 4
    assert max(reads.sizes) <= PORTION_BYTES
    assert PHRASE_BYTES_MAX / 2 < sum(reads.sizes) <= PHRASE_BYTES_MAX
    assert found.cut
    assert 0 < found.total < sum(reads.sizes) // LONG
    assert {1} == {int(hit.memory.name.removeprefix("note_")) % 2 for hit in found.hits}


def test_a_read_of_everything_at_once_is_noticed(services: Services, alice: Caller, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail."""
    monkeypatch.setattr(portions, "PORTION_BYTES", 1 << 40)
    save(services, alice, [content(n) for n in range(20)])
    names(services, alice)

    assert max(reads.sizes) > PORTION_BYTES


def test_short_texts_are_read_at_once(services: Services, alice: Caller, reads: Reads) -> None:
    """A portion is as large as it may be."""
    save(services, alice, [f"{PHRASE} {n}" for n in range(300)])
    found = services.memories.search(alice, reach(alice), f'"{PHRASE}"')

    assert 1 == len(reads.sizes)
    assert (300, 20, False) == (found.total, len(found.hits), found.cut)


@pytest.mark.parametrize("portion", [1, 200, 1_000])
def test_the_size_of_a_portion_changes_no_answer(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    """The same hits in the same order, the same number in all; among what has expired too."""
    for number in range(40):
        words = PHRASE if number % 3 else " ".join(reversed(PHRASE.split()))
        ends = clock.now + 10**9 if number % 4 == 0 else None
        priority = ("low", "normal", "high")[number % 3]
        services.memories.save(alice, Draft(f"n{number}", f"{words} " * (number % 5 + 1), GLOBAL, priority=priority, expires_at=ends))
    clock.pass_s(2_000)
    services.housekeeper.sweep()

    def answers() -> list[Any]:
        asked = [services.memories.search(alice, reach(alice), f'"{PHRASE}" sings', limit=7, include_expired=odd) for odd in (False, True)]
        return [([(hit.memory.name, hit.score) for hit in result.hits], result.total, result.cut) for result in asked]

    whole = answers()
    monkeypatch.setattr(portions, "PORTION_BYTES", portion)

    assert whole == answers()
    assert [20, 26] == [total for _, total, _ in whole]


def test_what_has_expired_is_read_a_portion_at_a_time_too(services: Services, alice: Caller, clock: Clock, reads: Reads) -> None:
    """With and without phrases."""
    save(services, alice, [content(n) for n in range(60)], expires_at=clock.now + 10**9)
    clock.pass_s(2_000)
    services.housekeeper.sweep()
    for query in (PHRASE, f'"{PHRASE}"'):
        reads.sizes.clear()
        found = services.memories.search(alice, reach(alice), query, include_expired=True)

        assert max(reads.sizes) <= PORTION_BYTES
        assert EXPIRED_BYTES_MAX / 2 < sum(reads.sizes) <= EXPIRED_BYTES_MAX
        assert found.hits


def test_one_text_that_is_longer_than_a_portion_is_read_alone(
    services: Services, alice: Caller, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left out for its length."""
    monkeypatch.setattr(portions, "PORTION_BYTES", 1_000)
    save(services, alice, [content(1), f"{PHRASE} short", content(3)])

    assert {"note_0", "note_1", "note_2"} == set(names(services, alice))
    assert 2 <= len(reads.sizes) <= 3
