"""Times as they are written from outside and for a model. Inside, a time is whole microseconds since 1970."""

import re
from datetime import UTC, datetime

from pegword.core.errors import Invalid
from pegword.core.memory import NEVER, SECOND_US, TIME_US_MAX, parse_time

NEVER_WORD = "never"
_DURATION = re.compile(r"([0-9]{1,9})([dhms])")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parse_expiry(text: str | None, now: int, field: str = "expires_at") -> int | None:
    """When *text* says that something ends: an ISO 8601 time, or a duration from *now* (90d, 12h, 30m, 45s).

    ``never`` is `NEVER`: no end. None stays None. Raises `Invalid` for anything else, a bare number too: it could be either.
    """
    if text is None:
        return None
    text = text.strip()
    if text == NEVER_WORD:
        return NEVER
    duration = _DURATION.fullmatch(text)
    if duration:
        moment = now + int(duration[1]) * _SECONDS[duration[2]] * SECOND_US
        if moment > TIME_US_MAX:
            raise Invalid(f"{field} lies beyond the year 9999", field=field)
        return moment
    if text.isdecimal():
        raise Invalid(f"{field} must be a time such as 2027-01-31 or a duration such as 90d, 12h or 30m: it is {text[:64]}", field=field)
    return parse_time(text, field)


def second_text(at: int) -> str:
    """A time as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(at // SECOND_US, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
