"""When two memories say nearly the same."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.likeness import LIKE, Likeness
from pegword.core.text import Analyser

ANALYSER = Analyser()
TERMS = st.lists(st.sampled_from("abcdefghij"), max_size=8, unique=True)


def rarity(terms: Iterable[str]) -> list[float]:
    return [(ord(term) % 3) / 2 for term in terms]


def like(one: str, other: str) -> float:
    new = ANALYSER.distinct(one)
    return Likeness(dict.fromkeys(new, 5.0), 1_000, new, ANALYSER.rarity).to(ANALYSER.distinct(other))


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

    assert Likeness(dict.fromkeys(new, 0.1), 1_000, new, ANALYSER.rarity).to(old) >= LIKE


@given(TERMS, TERMS, st.integers(1, 10**6), st.floats(0.01, 20))
def test_it_is_between_nothing_and_all(new: list[str], old: list[str], memories: int, idf: float) -> None:
    """Nothing in common is 0, the same is 1."""
    likeness = Likeness(dict.fromkeys(new, idf), memories, new, rarity)
    told = likeness.to(old)

    assert 0.0 <= told <= 1.0 + 1e-9
    assert (told > 0) == bool(set(new) & set(old))
    assert not new or abs(likeness.to(new) - 1.0) < 1e-9


def check_nothing_is_passed_over(new: list[str], old: list[str], idf: dict[str, float], memories: int, some: list[str]) -> None:
    likeness = Likeness(idf, memories, new, rarity)

    assert likeness.may_be_like({term for term in idf if term in old}, some) or likeness.to(old) < LIKE


@given(TERMS, TERMS, st.integers(1, 1_000), st.data())
def test_what_is_passed_over_unread_is_never_alike(new: list[str], old: list[str], memories: int, data: st.DataObject) -> None:
    """Whichever terms were searched for, and whatever part of the old memory was looked at."""
    searched = data.draw(st.lists(st.sampled_from(new), unique=True)) if new else []
    idf = {term: data.draw(st.floats(0.01, 20)) for term in searched}
    some = data.draw(st.lists(st.sampled_from(old), unique=True)) if old else []
    check_nothing_is_passed_over(new, old, idf, memories, some)


def test_what_a_long_memory_tells_of_a_short_one_is_not_passed_over() -> None:
    """Nearly all that the old one says stands in the new one, of which it is a small part."""
    check_nothing_is_passed_over(list("abcdefghij"), list("abcdx"), {"i": 5.0, "j": 5.0}, 100, list("abcdx"))
    check_nothing_is_passed_over(list("abcdefghij"), list("abcd"), {"i": 5.0, "j": 5.0}, 100, [])


def test_a_bound_that_is_too_low_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what the new one says beside what was searched for counts for nothing."""
    monkeypatch.setattr(Likeness, "_general_whole", 0.0)
    with pytest.raises(AssertionError):
        test_what_a_long_memory_tells_of_a_short_one_is_not_passed_over()
