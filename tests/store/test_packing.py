"""What the index is packed with."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pegword.store.packing import Gathered, are_among, gathered_tail, pack_tail, unpack_tail

numbers = st.lists(st.integers(0, 30), max_size=20)
# Short terms are their own marks, longer ones are told apart by their text; both sides of the border, and beyond ASCII.
TERMS = st.one_of(
    st.sampled_from(["a", "b", "deploys", "eight_ch", "nine_char", "nine_chbr", "a much longer term than that", "café", "猫猫猫"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12),
)
COUNTS = st.dictionaries(TERMS, st.integers(1, 255), max_size=12)
ROWS = st.lists(st.tuples(COUNTS, st.integers(0, 255), st.integers(0, 65_535)), min_size=1, max_size=8)


@given(numbers, numbers)
def test_are_among_says_what_a_plain_reading_says(values: list[int], sought: list[int]) -> None:
    """For any order, with anything twice, and for nothing."""
    expected = [value in sought for value in values]

    assert expected == are_among(np.array(values, np.uint32), np.array(sought, np.int64)).tolist()


@given(ROWS, st.integers(0, 2**32 - 9))
def test_tail_rows_taken_together_give_what_they_give_one_by_one(rows: list[tuple[dict[str, int], int, int]], first: int) -> None:
    """The same terms with the same bytes, in the order of their slots."""
    packed = [(first + at, place, length, *pack_tail(counts)) for at, (counts, place, length) in enumerate(rows)]
    one_by_one = Gathered()
    for slot, place, length, counts, marks, unspelt in packed:
        one_by_one.add(slot, place, length, unpack_tail(counts, marks, unspelt))

    assert {term: one_by_one.of(term) for term in one_by_one.terms()} == gathered_tail(packed)
