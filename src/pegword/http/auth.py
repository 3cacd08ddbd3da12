"""From a request's headers to a caller: the one place where a credential is read, and by which names this server may be reached."""

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from pegword.core.caller import Caller
from pegword.core.errors import Forbidden, Invalid, Unauthenticated
from pegword.services.access import Access

REFUSAL = "Unauthorized: missing or invalid token"


def caller_of(access: Access, headers: Headers) -> Caller:
    """Who the request's one Bearer token speaks for; `Unauthenticated`, in the same words, whatever is wrong with it."""
    given = headers.getlist("authorization")
    if len(given) != 1:
        raise Unauthenticated(REFUSAL)
    keyword, _, token = given[0].partition(" ")
    if keyword.lower() != "bearer":
        raise Unauthenticated(REFUSAL)
    return access.caller_of(token.strip(" "))


class Names:
    """The names by which this server may be called: on loopback only loopback's own, which keeps web pages of others from reaching it
    through a name that they make point here."""

    def __init__(self, bound_to: str) -> None:
        self._allowed = {"localhost", "127.0.0.1", "::1", bound_to.lower()} if is_loopback(bound_to) else None

    def check(self, headers: Headers, http_version: str) -> None:
        """Raise `Invalid` for no Host or several, `Forbidden` for a Host or an Origin that is not one of the names."""
        hosts = headers.getlist("host")
        if len(hosts) > 1 or (not hosts and http_version != "1.0"):
            raise Invalid("there must be one Host header", code="bad_header")
        if self._allowed is None:
            return
        for what, url in _named(hosts, headers.getlist("origin")):
            if _host_of(url) not in self._allowed:
                raise Forbidden(f"this server is reached under the names of this machine only, not by that {what}", code="foreign_host")


def is_loopback(host: str) -> bool:
    """Whether *host* is this machine as seen from itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _named(hosts: Iterable[str], origins: Iterable[str]) -> Iterable[tuple[str, str]]:
    yield from (("Host", f"//{host}") for host in hosts)
    yield from (("Origin", origin) for origin in origins)


def _host_of(url: str) -> str:
    """The host of *url* in lower case, "" when it has none or is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    odd = parts.path or parts.query or parts.fragment or "@" in parts.netloc or port == 0
    return "" if odd else (parts.hostname or "")
