"""The address of a database, as it may be shown and logged."""

import re

# In the address itself, as a parameter of it, or where somebody wrote parameters instead of an address.
_PASSWORD = re.compile(
    r"(://[^:/?@]*):.*@|((?:password|oauth_client_secret|scram_client_key|scram_server_key)=)(?:'[^']*'|[^&\s]*)", re.IGNORECASE
)


def without_password(url: str) -> str:
    """*url* with stars for its password, wherever that stands."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", url)
