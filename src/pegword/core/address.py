"""The address of a database, as it may be shown and logged."""

import re

_PASSWORD = re.compile(r"(://[^:/?@]*):.*@|([?&]password=)[^&]*")


def without_password(url: str) -> str:
    """*url* with stars for its password, wherever that stands."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", url)
