import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegword.core import ranking
from pegword.core.ranking import _SPARSE_FACTOR, Postings, rank
from tests.core.brute_force import Held, brute_force

WORDS = "abcdefghij"


def postings_of(memories: list[Held], terms: list[str], spread: int = 1) -> Postings:
    """The occurrences of *terms* in *memories*; with *spread*, numbers lie that far apart, as in large scopes."""
    rows = [(i, m, m.counts[term]) for i, term in enumerate(terms) for m in memories if term in m.counts]
    return Postings(
        term=np.array([i for i, _, _ in rows], np.int64),
        document=np.array([m.document * spread for _, m, _ in rows], np.int64),
        count=np.array([count for _, _, count in rows], np.float64),
        place=np.array([m.document - m.start for _, m, _ in rows], np.int64),
        length=np.array([m.length for _, m, _ in rows], np.float64),
        documents=(max((m.document for m in memories), default=0) + 1) * spread,
        memories=len(memories),
        words=sum(m.length for m in memories),
    )


def ranked(memories: list[Held], messages: list[list[str]], allowed: set[int] | None = None, spread: int = 1) -> list[tuple[int, float]]:
    """What `rank` answers, as the brute force answers it."""
    terms = list(dict.fromkeys(term for message in messages for term in message))
    postings = postings_of(memories, terms, spread)
    mask = None
    if allowed is not None:
        mask = np.array([d // spread in allowed for d in range(postings.documents)], np.bool_)
    found = rank(postings, len(terms), [[terms.index(term) for term in message] for message in messages], mask)
    return list(zip((found.documents // spread).tolist(), found.scores.tolist(), strict=True))


@st.composite
def stores(draw: st.DrawFn) -> list[Held]:
    """Memories of one scope in runs of one sitting; some have been deleted since."""
    memories, number = [], 0
    for run in draw(st.lists(st.integers(1, 7), max_size=6)):
        start = number
        for number in range(start, start + run):
            counts = draw(st.dictionaries(st.sampled_from(WORDS), st.integers(1, 5), max_size=5))
            if draw(st.integers(0, 5)):
                memories.append(Held(number, start, counts, sum(counts.values())))
        number += 1
    return memories


queries = st.lists(st.lists(st.sampled_from(WORDS), unique=True, max_size=6), max_size=4)


def agree(expected: list[tuple[int, float]], actual: list[tuple[int, float]]) -> None:
    assert [score for _, score in actual] == pytest.approx([score for _, score in expected], abs=1e-6)
    assert dict(actual) == pytest.approx(dict(expected), abs=1e-6)


@given(stores(), queries)
def test_arrays_and_plain_loops_agree(memories: list[Held], messages: list[list[str]]) -> None:
    agree(brute_force(memories, messages), ranked(memories, messages))


@given(stores(), queries, st.sets(st.integers(0, 40)))
def test_what_may_not_be_returned_still_counts_in_the_statistics(
    memories: list[Held], messages: list[list[str]], allowed: set[int]
) -> None:
    agree(brute_force(memories, messages, allowed), ranked(memories, messages, allowed))


@pytest.mark.parametrize("spread", [1, 50_000])
def test_where_nothing_that_is_found_may_be_returned_nothing_is(spread: int) -> None:
    """However far apart the numbers are."""
    memories = [Held(number, number, {"a": 1}, 1) for number in range(5)]

    assert [] == ranked(memories, [["a"]], set(), spread)


@settings(max_examples=30)
@given(stores(), queries)
@example(memories=[Held(0, 0, {"a": 1}, 1)], messages=[[], [], [], ["a"]])
def test_numbers_far_apart_are_closed_up_without_a_change(memories: list[Held], messages: list[list[str]]) -> None:
    """Each memory a sitting of its own, since neighbours are next numbers."""
    alone = [Held(m.document, m.document, m.counts, m.length) for m in memories]

    agree(brute_force(alone, messages), ranked(alone, messages, spread=50_000))


SEARCH_BYTES_MAX = 12 * 8 * _SPARSE_FACTOR * 4_000  # a dozen of the largest tables that are built for two terms of 2,000 memories each


def peak_of(spread: int, messages: int, *, first: bool = False) -> int:
    """How many bytes a search among 2,000 memories takes at most, whose numbers lie so far apart; the *first* or a later one."""
    memories = [Held(d, d, {"a": 1, "b": 1}, 10) for d in range(2_000)]
    postings, said = postings_of(memories, ["a", "b"], spread), [[0, 1]] * messages
    rank(postings, 2, said, None)
    if first:
        ranking._let_memory_be_kept.cache_clear()
    tracemalloc.start()
    try:
        rank(postings, 2, said, None)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("messages", [1, 3])
def test_a_search_takes_no_more_memory_for_numbers_that_have_gone(messages: int) -> None:
    """A scope whose memories change has ever larger numbers, and no more memories."""
    assert max(peak_of(spread, messages) for spread in (1, 8, 16, 17, 100, 1_000)) <= SEARCH_BYTES_MAX


def test_tables_over_all_numbers_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault."""
    monkeypatch.setattr(ranking, "_SPARSE_FACTOR", 1_000)

    assert peak_of(400, 1) > SEARCH_BYTES_MAX


def test_memory_for_large_tables_is_asked_for_once_in_a_process() -> None:
    """At each search, it would stretch the heap."""
    assert peak_of(16, 1, first=True) > 1.3 * peak_of(16, 1)


def test_the_best_are_kept_exactly_when_more_match_than_are_looked_at() -> None:
    random = np.random.default_rng(3)
    memories = [
        Held(d, d - d % 6, {w: int(random.integers(1, 4)) for w in WORDS if random.random() < 0.3}, int(random.integers(5, 60)))
        for d in range(9_600)
    ]

    actual = ranked(memories, [["a", "b", "c"], ["d"]])

    assert len(actual) == ranking.CANDIDATES_MAX
    agree(brute_force(memories[:1_200], [["a", "b", "c"], ["d"]]), ranked(memories[:1_200], [["a", "b", "c"], ["d"]]))


def test_among_equal_memories_the_one_saved_later_comes_first() -> None:
    memories = [Held(d, d, {"a": 1}, 10) for d in range(1_000)]

    actual = [document for document, _ in ranked(memories, [["a"]])]

    assert list(range(999, 999 - ranking.CANDIDATES_MAX, -1)) == actual


def test_a_large_table_is_sampled_without_losing_one_of_the_best() -> None:
    random = np.random.default_rng(4)
    memories = [Held(d, d, {"a": 1 + int(random.integers(0, 50))}, int(random.integers(5, 400))) for d in range(20_000)]
    postings = postings_of(memories, ["a"])
    mean = postings.words / postings.memories
    norm = ranking.K1 * (1 - ranking.B + ranking.B * (postings.length + ranking.LENGTH_ADDED) / (mean + ranking.LENGTH_ADDED))
    own = postings.count / (postings.count + norm)
    best = np.lexsort((-postings.document, -np.round(own / own.max(), 9)))[: ranking.CANDIDATES_MAX]

    assert set(best.tolist()) == set(rank(postings, 1, [[0]], None).documents.tolist())


def test_the_words_of_a_neighbour_lift_a_memory() -> None:
    trip = Held(0, 0, {"trip": 1, "lisbon": 1}, 10)
    price = Held(1, 0, {"price": 1}, 10)
    other = Held(2, 2, {"price": 1}, 10)
    noise = [Held(d, d, {"x": 1}, 10) for d in range(3, 30)]

    order = [document for document, _ in ranked([trip, price, other, *noise], [["price", "lisbon"]])]

    assert order == [0, 1, 2]


def test_older_messages_do_not_drown_the_question() -> None:
    answer = Held(0, 0, {"a": 1}, 10)
    chat = [Held(d, d, {"b": 1, "c": 1}, 10) for d in range(1, 9)]

    order = [document for document, _ in ranked([answer, *chat], [["a"], ["b"], ["c"]])]

    assert order[0] == 0


@pytest.mark.parametrize("messages", [[], [[]], [["nowhere"]], [[], []]])
def test_nothing_said_finds_nothing(messages: list[list[str]]) -> None:
    assert ranked([Held(0, 0, {"a": 1}, 1)], messages) == []


def test_the_parts_explain_the_score() -> None:
    memories = [Held(d, 0, {"a": 1, "b": d + 1}, 10) for d in range(3)]
    found = rank(postings_of(memories, ["a", "b"]), 2, [[0, 1]], None)

    for position in range(3):
        part = found.part(0, position)
        assert part.own == pytest.approx(part.bm25 * part.coverage**0.5)
        assert part.score == pytest.approx(found.scores[position])
    assert found.part(0, 0).score == pytest.approx(1.0)
