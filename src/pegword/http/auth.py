"""From a request's headers to a caller: the one place where a credential is read, and by which names this server may be reached."""

import threading
import time
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from pegword.core.caller import Caller
from pegword.core.errors import Forbidden, Invalid, Unauthenticated
from pegword.services.access import Access, token_hash

REFUSAL = "Unauthorized: missing or invalid token"
RECENT_S = 60.0
RECENT_MAX = 1_024


def caller_of(access: Access, headers: Headers) -> Caller:
    """Who the request's one Bearer token speaks for; `Unauthenticated`, in the same words, whatever is wrong with it."""
    return access.caller_of(_token_of(headers))


class Recent:
    """Whose token was looked up within the last `RECENT_S` seconds: they may stand in line before it is looked up again.

    It lets nobody in: that is decided by the database, each time anew, when their turn has come. It keeps those who have no token out of
    the lines of those who have. At most `RECENT_MAX` are remembered, by the hashes of their tokens. From any thread; *monotonic* gives
    seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._callers: dict[str, tuple[float, Caller]] = {}

    def get(self, headers: Headers) -> Caller | None:
        """Who the request's token spoke for when it was looked up last, if that was a short while ago."""
        try:
            until, caller = self._callers[token_hash(_token_of(headers))]
        except (KeyError, Unauthenticated):
            return None
        return caller if self._monotonic() < until else None

    def put(self, headers: Headers, caller: Caller) -> None:
        """The request's token was looked up now, and speaks for *caller*."""
        key = token_hash(_token_of(headers))
        with self._lock:
            self._callers.pop(key, None)
            self._callers[key] = self._monotonic() + RECENT_S, caller
            if len(self._callers) > RECENT_MAX:
                del self._callers[next(iter(self._callers))]

    def drop(self, headers: Headers) -> None:
        """The request's token speaks for nobody any more."""
        with self._lock:
            self._callers.pop(token_hash(_token_of(headers)), None)


def _token_of(headers: Headers) -> str:
    given = headers.getlist("authorization")
    if len(given) != 1:
        raise Unauthenticated(REFUSAL)
    keyword, _, token = given[0].partition(" ")
    if keyword.lower() != "bearer":
        raise Unauthenticated(REFUSAL)
    return token.strip(" ")


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
