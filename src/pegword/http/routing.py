"""What a route is, what a handler gets and gives, and how a path finds its route.

A face is a table of routes that fits one screen. A handler takes a `Call`, then the body and the query if the route has them, and gives
an `Answer`; everything around it (who calls, parsing, limits, errors, documentation) comes from the route.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from pegword.core.caller import Caller
from pegword.core.errors import NotFound
from pegword.core.people import Seen
from pegword.core.versions import Expected
from pegword.http.failures import WrongMethod
from pegword.http.reading import BODY_BYTES_MAX
from pegword.http.spooling import Spool
from pegword.http.wire import Body
from pegword.services.bundle import Services
from pegword.settings import Settings

_PARAMETER = re.compile(r"\{(\w+)(:path)?\}")


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as a handler sees it.

    *path* holds the path's parameters. *expected_version* is what If-Match or If-None-Match says, *once_key* what an Idempotency-Key header
    says (None: there is none). *warnings* are what the answer must tell.
    """

    services: Services
    settings: Settings
    caller: Caller
    path: Mapping[str, str]
    expected_version: Expected = None
    once_key: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler gives: a struct to be sent as JSON, or bytes of the type that *headers* name, at once or as a
    spool.

    *memories* are the ids of those whose text is in it, so that no answer that is kept outlives them; *seen* is what it tells of shared
    scopes, so that none is given to who has them no longer. One that is not *lasting*, since nothing was changed for it, is not kept.
    """

    body: msgspec.Struct | bytes | Spool
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    memories: tuple[str, ...] = ()
    lasting: bool = True
    seen: tuple[Seen, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    *right* is the one that the caller's credential needs ("": none, and no credential either). *answer* is the struct of a success,
    None for what is no JSON of ours; *statuses* are those of a success, *media* its type. A *conditional* route honours If-Match. A
    *quick* handler neither reads nor writes the store, and runs without a thread of its own. One that *settles* does what was put off
    before it answers; one that *writes* may do so although the right to read admits to it. One whose body is JSON Lines says what stands
    in one of its *lines*, and gets a spool in the place of a body. Of *long* ones, few are worked on at once;
    *brief* ones change one memory, and those that wait for an engine's one writer are done in one transaction.
    """

    method: str
    path: str
    handler: Callable[..., Answer]
    right: str
    answer: type[msgspec.Struct] | None
    body: type[Body] | None = None
    query: type[msgspec.Struct] | None = None
    statuses: tuple[int, ...] = (200,)
    conditional: bool = False
    quick: bool = False
    settles: bool = False
    writes: bool = False
    lines: type[msgspec.Struct] | None = None
    media: str = "application/json"
    long: bool = False
    brief: bool = False
    body_bytes_max: int = BODY_BYTES_MAX

    @property
    def may_write(self) -> bool:
        """Whether the handler may change what is stored: it is then done once under an Idempotency-Key."""
        return self.writes or self.right not in ("", "read")

    @property
    def may_wait(self) -> bool:
        """Whether the handler may have to wait for the database's one writer, and so stands in a line."""
        return self.settles or self.may_write

    @property
    def summary(self) -> str:
        """What the route does, in the first sentence of its handler."""
        return (self.handler.__doc__ or "").partition(".")[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the path's parameters."""
        return tuple(name for name, _ in _PARAMETER.findall(self.path))


class Table:
    """All routes of a server. Paths are matched as they are: nothing is joined, cut or redirected."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        by_path: dict[str, dict[str, Route]] = {}
        for route in self.routes:
            methods = by_path.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"two routes for {route.method} {route.path}")
            methods[route.method] = route
        self._paths = [(_pattern(path), methods) for path, methods in by_path.items()]

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """The route for *method* at *path*, and the path's parameters; HEAD is served by GET.

        Where two paths match, the one that takes the method serves it: a memory may be called ``search``. Raises `NotFound` for a path
        that is none, `WrongMethod` for one that does not take the method.
        """
        method = "GET" if method == "HEAD" else method
        allowed: list[str] = []
        for pattern, methods in self._paths:
            match = pattern.fullmatch(path)
            if match and method in methods:
                return methods[method], match.groupdict()
            if match:
                allowed += methods
        if not allowed:
            raise NotFound("there is nothing at this path", code="no_such_path")
        allowed += ["HEAD"] if "GET" in allowed else []
        names = tuple(sorted(set(allowed)))
        raise WrongMethod(f"{method[:32]} is not possible here; {' and '.join(names)} are", allowed=names)


def _pattern(path: str) -> re.Pattern[str]:
    """A path with ``{name}`` (one segment) and ``{name:path}`` (any rest) as a pattern."""
    parts: list[str] = []
    at = 0
    for found in _PARAMETER.finditer(path):
        parts += [re.escape(path[at : found.start()]), f"(?P<{found[1]}>{'.*' if found[2] else '[^/]+'})"]
        at = found.end()
    return re.compile("".join([*parts, re.escape(path[at:])]), re.DOTALL)
