"""Times as people read them. Inside, a time is whole microseconds since 1970."""

from datetime import UTC, datetime

from pegword.core.memory import SECOND_US


def time_text(at: int | None) -> str | None:
    """A time as ISO 8601 in UTC, to the microsecond; None stays None."""
    return None if at is None else _moment(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def minute_text(at: int | None) -> str:
    """A time for a table: to the minute, in UTC; "" for none."""
    return "" if at is None else _moment(at).strftime("%Y-%m-%d %H:%M")


def _moment(at: int) -> datetime:
    # whole seconds first: a float of seconds would not keep every microsecond
    return datetime.fromtimestamp(at // SECOND_US, UTC).replace(microsecond=at % SECOND_US)
