"""What the index is packed with."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pegword.store.packing import are_among

numbers = st.lists(st.integers(0, 30), max_size=20)


@given(numbers, numbers)
def test_are_among_says_what_a_plain_reading_says(values: list[int], sought: list[int]) -> None:
    """For any order, with anything twice, and for nothing."""
    expected = [value in sought for value in values]

    assert expected == are_among(np.array(values, np.uint32), np.array(sought, np.int64)).tolist()
