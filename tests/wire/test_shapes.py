"""How times are written in answers."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pegword.core.memory import TIME_US_MAX, parse_time
from pegword.http.shapes import _second, moment

TIMES = st.integers(1, TIME_US_MAX)


@given(TIMES)
def test_a_time_that_was_written_is_read_as_the_same(at: int) -> None:
    """ISO 8601 with ``Z``, to the microsecond, up to the year 9999."""
    assert at == parse_time(moment(at), "expires_at")


@given(TIMES)
def test_a_time_for_the_clients_of_the_reference_has_seconds_and_no_zone(at: int) -> None:
    """They read `YYYY-MM-DDTHH:MM:SS`; what is below a second is cut, not rounded."""
    assert datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") == _second(at)
