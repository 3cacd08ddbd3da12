"""When two memories say nearly the same."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.likeness import LIKE, likeness
from pegword.core.text import Analyser

ANALYSER = Analyser()
TERMS = st.lists(st.sampled_from("abcdefghij"), max_size=8, unique=True)


def like(one: str, other: str) -> float:
    new, old = ANALYSER.distinct(one), ANALYSER.distinct(other)
    return likeness(dict.fromkeys(new, 5.0), 1_000, new, old, ANALYSER.rarity)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("She drinks green tea and never coffee.", "Alice prefers green tea over coffee."),
        ("We deploy on Tuesdays, never on Fridays.", "Deployments happen on Tuesdays only."),
        ("The postgres replica in staging listens on port 5433.", "The staging postgres replica uses port 5434."),
        ("Use pnpm instead of npm in this repository.", "This repo uses pnpm, do not run npm install."),
        ("The CI pipeline runs on GitHub Actions and takes 12 minutes.", "CI: GitHub Actions, about 12 minutes per run."),
        ("npm must be pinned to 9; 10 breaks the lockfile.", "npm 10 broke the lockfile, pin npm 9"),
        ("Her cat is called Luna.", "The user's cat's name is Luna."),
        ("Meetings with the design team are on Mondays at 10.", "Design team meeting: Monday 10:00"),
    ],
)
def test_the_same_in_other_words_is_alike_both_ways(one: str, other: str) -> None:
    assert like(one, other) >= LIKE
    assert like(other, one) >= LIKE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("She drinks green tea and never coffee.", "We deploy on Tuesdays, never on Fridays."),
        ("The postgres replica in staging listens on port 5433.", "The design team meets on Mondays in the small room by the port."),
        ("Her cat is called Luna.", "His dog is called Rex."),
        ("Use pnpm instead of npm in this repository.", "The repository lies on the internal server."),
        ("it is", "the same as that"),
        ("", "tea"),
    ],
)
def test_what_has_a_word_in_common_is_not_alike_for_that(one: str, other: str) -> None:
    assert like(one, other) < LIKE


def test_what_is_nearly_all_told_in_a_long_memory_is_alike() -> None:
    long = (
        "Notes on staging. "
        + " ".join(f"Machine number{n} has disk{n}." for n in range(60))
        + " The postgres replica listens on port 5433."
    )

    assert like("The postgres replica listens on port 5433.", long) >= LIKE
    assert like("port 5433", long) < LIKE


def test_what_many_memories_say_is_still_alike() -> None:
    """A store full of doubles is where it matters most: there their words are common."""
    new, old = ANALYSER.distinct("The replica listens on port 5433."), ANALYSER.distinct("The replica uses port 5433 now.")

    assert likeness(dict.fromkeys(new, 0.1), 1_000, new, old, ANALYSER.rarity) >= LIKE


@given(TERMS, TERMS, st.integers(1, 10**6), st.floats(0.01, 20))
def test_it_is_between_nothing_and_all(new: list[str], old: list[str], memories: int, idf: float) -> None:
    """Nothing in common is 0, the same is 1."""

    def rarity(terms: Iterable[str]) -> list[float]:
        return [(ord(term) % 3) / 2 for term in terms]

    told = likeness(dict.fromkeys(new, idf), memories, new, old, rarity)

    assert 0.0 <= told <= 1.0 + 1e-9
    assert (told > 0) == bool(set(new) & set(old))
    assert not new or abs(likeness(dict.fromkeys(new, idf), memories, new, new, rarity) - 1.0) < 1e-9
