"""The address of a database, as it may be shown and logged."""

import re

_SECRETS = ("password", "oauth_client_secret", "scram_client_key", "scram_server_key")  # at the end of a name, as in sslpassword


def _spelt(name: str) -> str:
    """A pattern for *name* with each of its characters as it is or percent-encoded, as addresses may have them."""
    return "".join(f"(?:{c}|%{ord(c):02x}|%{ord(c.upper()):02x})" for c in name)


_NAMES = "|".join(map(_spelt, _SECRETS))
_NAMED = rf"(?:{_NAMES})\s*(?:=|%3d)"
# What ends at the last @ may end amid a value that is named as a secret: the rest of that is one too.
_IN_ADDRESS = re.compile(rf"(://[^:/?@]*):(?:.*{_NAMED}[^&]*@[^&]*|.*@)|({_NAMED})[^&]*", re.IGNORECASE | re.DOTALL)
# Where somebody wrote parameters instead of an address: values in quotes or up to a blank, each with backslashes.
_IN_PARAMETERS = re.compile(rf"((?:{_NAMES})\s*=\s*)(?:'(?:[^'\\]|\\.)*(?:'|\\?\Z)|(?:[^\s\\]|\\.)*\\?)", re.IGNORECASE | re.DOTALL)


def without_password(url: str) -> str:
    """*url* with stars for its password, wherever that stands and however its name is spelt."""
    if "://" in url:
        return _IN_ADDRESS.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", url)
    return _IN_PARAMETERS.sub(lambda found: f"{found[1]}***", url)
