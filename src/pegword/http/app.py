"""The server as one ASGI application: every face's routes in one table, one way in and one way out.

A request goes: name check, route, credential, rate, right, body, handler on a thread, answer. What only reads and has no body takes one
thread, and so does what reads with a body that is here already; anything else is admitted before its body is read and before it stands in a
line, unless its token was looked up a short while ago: then it is admitted when its turn has come. What may wait for the database's one
writer has threads of its own, and so have explanations, so that reads go on beside them.
"""

import asyncio
import errno
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec
from starlette.datastructures import Headers

from pegword import __version__
from pegword.core.caller import Caller
from pegword.core.errors import Invalid, PegwordError, Unauthenticated, Unavailable
from pegword.http import docs_page, events, health, native, sessions, sharing, tooling, transfer, turnstone
from pegword.http.auth import Names, Recent, caller_of
from pegword.http.conditions import CONDITIONS, expected_of
from pegword.http.failures import Overloaded, Reply, accident, failure
from pegword.http.openapi import document
from pegword.http.protocol import WHOLE
from pegword.http.rates import Rates
from pegword.http.reading import Bodies, ClientGone, Receive, leaves_much_unread
from pegword.http.routing import Answer, Call, Route, Table
from pegword.http.spooling import Spool, spooled
from pegword.http.threads import Line, Threads, Together
from pegword.http.wire import body_of, one_header, query_of
from pegword.services.access import Access
from pegword.services.bundle import Services
from pegword.services.once import Asked, Kept, asked, once
from pegword.services.together import together
from pegword.settings import Settings

IN_WORK_MAX = 512
PROBES_AT_ONCE_MAX = 8
READERS_AT_ONCE_MAX = 8
WRITERS_AT_ONCE_MAX = 24
TOGETHER_MAX = 64  # writes in one transaction
LONG_IN_WORK_MAX = 4
EXPLAINERS_AT_ONCE_MAX = 4
EXPLANATIONS_IN_WORK_MAX = 64
WRITE_WAIT_S = 10.0  # in the line; then it is refused before it begins
LOOKED_UP_S = 0.02  # so long a token that was looked up is good for a write; one that took longer is looked up again when it is done
WRITES_IN_WORK_MAX = 256  # of `IN_WORK_MAX`, so that a line of writers never fills the server

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_NOBODY = Caller("", "", "", right="read")
_CLOSED = "/v1/"

_ENDING = Unavailable("the server is ending, and it is not known whether this was done: look, then try again", code="ending")

_log = logging.getLogger("pegword.http")


def create_app(services: Services, settings: Settings, live: Callable[[], Settings] | None = None, *, rates: Rates | None = None) -> "App":
    """The application that serves *services* under *settings*: every face of the server. It closes nothing when it ends.

    *live* gives the settings that are in force, where those may change. *rates* counts what each credential sends.
    """
    routes = [*turnstone.ROUTES, *native.ROUTES, *tooling.ROUTES, *sessions.ROUTES, *events.ROUTES, *sharing.ROUTES]
    routes += [*transfer.ROUTES, *health.ROUTES]
    described = document(routes, __version__)
    as_json, as_html = msgspec.json.encode(described), docs_page.page(described)
    routes += [
        Route("GET", "/openapi.json", lambda _: Answer(as_json), "", None, quick=True),
        Route("GET", "/docs", lambda _: Answer(as_html, headers=docs_page.HEADERS), "", None, quick=True),
    ]
    return App(services, settings, Table(routes), live or (lambda: settings), rates or Rates())


@dataclass(slots=True)
class _Request:
    """One request on its way through. *left_unread* says that its body, if any, still comes in; *is_long* that it holds one of the few
    places for what is long. *spools* are closed when it is done. *admitted_at* is when its token was looked up, of the monotonic clock."""

    scope: Scope
    receive: Receive
    headers: Headers
    left_unread: bool = True
    is_long: bool = False
    spools: list[Spool] = field(default_factory=list)
    admitted_at: float = 0.0


class App:
    """The ASGI application. It keeps nothing of one request for another."""

    def __init__(self, services: Services, settings: Settings, table: Table, live: Callable[[], Settings], rates: Rates) -> None:
        self.table = table
        self._services = services
        self._settings = settings
        self._live = live
        self._names = Names(settings.server_host)
        self._bodies = Bodies()
        self._in_work = 0
        self._long_in_work = 0
        self._rates = rates
        self._recent = Recent()
        self._readers = Threads("pegword-reader", READERS_AT_ONCE_MAX, at_once=1 if services.engine.in_process else None)
        writers, explainers = Threads("pegword-writer", WRITERS_AT_ONCE_MAX), Threads("pegword-explainer", EXPLAINERS_AT_ONCE_MAX)
        self._writes = Line(writers, WRITES_IN_WORK_MAX, WRITE_WAIT_S, "writes", "nothing was changed; ")
        self._explanations = Line(explainers, EXPLANATIONS_IN_WORK_MAX, WRITE_WAIT_S, "explanations")
        self._together = Together("pegword-together", partial(together, services), TOGETHER_MAX)
        self._probes = Threads("pegword-probe", PROBES_AT_ONCE_MAX)
        self._long_ones = Threads("pegword-long", LONG_IN_WORK_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = _Request(scope, receive, Headers(scope=scope))
        try:
            await self._answer(request, send)
        finally:
            self._long_in_work -= request.is_long
            for spool in request.spools:
                spool.close()

    async def _answer(self, request: _Request, send: Send) -> None:
        """Work out the answer, whatever becomes of the request, and send it."""
        scope = request.scope
        self._in_work += 1
        try:
            reply = await self._reply(request)
        except ClientGone:
            return
        except asyncio.CancelledError:  # the server ends, and has waited as long as it does
            await _send(send, failure(_ENDING), self._long_ones, close=True)
            raise
        except PegwordError as error:
            reply = failure(error)
        except Exception as error:
            reply = _unforeseen(error, scope)
        finally:
            self._in_work -= 1
        await _send(send, reply, self._long_ones, close=request.left_unread and leaves_much_unread(request.headers))

    async def _reply(self, request: _Request) -> Reply:
        """Find the route, admit the caller, read the body, and let the handler answer."""
        self._names.check(request.headers, request.scope["http_version"])
        try:
            route, path = self.table.find(request.scope["method"], request.scope["path"])
        except PegwordError:
            if f"{request.scope['path']}/".startswith(_CLOSED):  # who has no token does not learn what is there
                await self._readers.run(lambda: caller_of(self._services.access, request.headers))
            raise
        if route.quick:
            return self._run(request, route, self._public(path))
        if not route.right:
            return await self._probes.run(lambda: self._run(request, route, self._public(path)))
        if self._in_work > IN_WORK_MAX:
            raise Overloaded("the server works on as many requests as it can; try again", retry_after_s=1)
        if route.long:
            return await self._long(request, route, path)
        if route.body is None and not route.may_wait:
            return await self._readers.run(lambda: self._run(request, route, self._admitted(request, route, path)))
        if request.scope.get(WHOLE) and not route.may_wait:
            return await self._at_once(request, route, path)
        if (known := self._recent.get(request.headers)) and known.may(route.right):
            return await self._in_line(request, route, path, known)
        call = await self._readers.run(lambda: self._admitted(request, route, path))
        if route.body is None:
            return await self._on_thread(route, lambda on: self._run(request, route, replace(call, services=on)))
        body = await self._bodies.read(request.headers, request.receive, route.body_bytes_max)
        request.left_unread = False
        try:
            return await self._on_thread(route, lambda on: self._run(request, route, replace(call, services=on), body))
        finally:
            self._bodies.release(len(body))

    async def _at_once(self, request: _Request, route: Route, path: dict[str, str]) -> Reply:
        """Admit and answer in one go what only reads and whose body is here."""
        body = await self._body_of(request, route, path)
        try:
            return await self._readers.run(lambda: self._run(request, route, self._admitted(request, route, path), body))
        finally:
            self._bodies.release(len(body or b""))

    async def _in_line(self, request: _Request, route: Route, path: dict[str, str], known: Caller) -> Reply:
        """Read the body, stand in line, then admit and answer in one go: for somebody *known*, who was let in a short while ago."""
        self._rates.take(known.credential, self._live().server_requests_per_minute)
        body = await self._body_of(request, route, path, self._services)

        def work(on: Services) -> Reply:
            return self._run(request, route, self._admitted(request, route, path, on), body)

        try:
            return await self._on_thread(route, work)
        finally:
            self._bodies.release(len(body or b""))

    async def _body_of(self, request: _Request, route: Route, path: dict[str, str], on: Services | None = None) -> bytearray | None:
        """The body of a request that is here, or somebody's who was let in a short while ago; None where the route takes none. *on* as in
        `_admitted`."""
        if route.body is None:
            return None
        try:
            body = await self._bodies.read(request.headers, request.receive, route.body_bytes_max)
        except PegwordError:  # who may not ask does not learn what is wrong with what they sent
            await self._readers.run(lambda: self._admitted(request, route, path, on))
            raise
        request.left_unread = False
        return body

    async def _long(self, request: _Request, route: Route, path: dict[str, str]) -> Reply:
        """Answer what may take long and hold much, if there is a place for it, on threads of its own."""
        call = await self._readers.run(lambda: self._admitted(request, route, path))
        query_of(route.query, request.scope["query_string"])  # what is wrong there is said before anything long is read
        if self._long_in_work >= LONG_IN_WORK_MAX:
            raise Overloaded("as many exports and imports are being done as may be at once; try again", retry_after_s=5)
        self._long_in_work += 1
        request.is_long = True
        if route.lines is None:
            return await self._long_ones.run(lambda: self._run(request, route, call))
        spool = await spooled(request.headers, request.receive, self._long_ones)
        request.spools.append(spool)
        request.left_unread = False
        return await self._long_ones.run(lambda: self._run(request, route, call, spool))

    async def _on_thread(self, route: Route, work: Callable[[Services], Reply]) -> Reply:
        """Do *work* on one of the threads that are there for such a route, with the services that it is to use."""
        if route.brief and self._services.engine.one_writer:
            return await self._writes.run(work, by=self._together)
        threads = self._explanations if route.settles else self._writes if route.may_write else self._readers
        return await threads.run(lambda: work(self._services))

    def _admitted(self, request: _Request, route: Route, path: dict[str, str], on: Services | None = None) -> Call:
        """The call of a caller who has the right that the route asks for. *on* are the services of those who stood in line for them, and
        were counted when they came."""
        settings, headers = self._live(), request.headers
        request.admitted_at = time.monotonic()
        caller = self._caller_of(request, (on or self._services).access)
        if route.may_wait:
            self._recent.put(headers, caller)
        if on is None:
            self._rates.take(caller.credential, settings.server_requests_per_minute)
        caller.require(route.right)
        call = Call(on or self._services, settings, caller, path)
        if not route.may_write:
            return call
        expected = expected_of(headers)
        if expected is not None and not route.conditional:
            raise Invalid("If-Match and If-None-Match are not honoured here; leave them out", field="If-Match")
        return replace(call, expected_version=expected, once_key=one_header(headers, "Idempotency-Key"))

    def _caller_of(self, request: _Request, access: Access) -> Caller:
        try:
            return caller_of(access, request.headers)
        except Unauthenticated:
            self._recent.drop(request.headers)
            raise

    def _still_admitted(self, request: _Request, access: Access) -> None:
        """Raise `Unauthenticated` for a request whose token was revoked, or expired, while it waited."""
        if time.monotonic() - request.admitted_at > LOOKED_UP_S:
            self._caller_of(request, access)

    def _public(self, path: dict[str, str]) -> Call:
        return Call(self._services, self._settings, _NOBODY, path)

    def _run(self, request: _Request, route: Route, call: Call, body: bytearray | Spool | None = None) -> Reply:
        """Parse what the route takes, and let its handler answer."""
        if route.may_write:
            call = replace(call, services=call.services.while_allowed(partial(self._still_admitted, request)))
        arguments: list[object] = []
        spools: list[Spool] = []
        if isinstance(body, Spool):
            arguments.append(body)
        elif route.body is not None and body is not None:
            parsed, warnings = body_of(route.body, body)
            call = replace(call, warnings=warnings)
            arguments.append(parsed)
        if route.right:
            query = query_of(route.query, request.scope["query_string"])
            arguments += [] if query is None else [query]

        def answered(services: Services) -> Kept:
            answer = route.handler(replace(call, services=services), *arguments)
            if isinstance(answer.body, Spool):
                spools.append(answer.body)
                return Kept(answer.status, answer.headers, b"")
            encoded = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
            return Kept(answer.status, answer.headers, encoded, answer.memories, answer.lasting, answer.seen)

        if call.once_key is None:
            answer = answered(call.services)
        else:
            answer = once(call.services, _asked(request, route, call.caller, call.once_key, body), answered)
        request.spools += spools
        return Reply(answer.status, answer.body, answer.headers, *spools)


def _asked(request: _Request, route: Route, caller: Caller, key: str, body: bytearray | Spool | None) -> Asked:
    """A request as it is told from every other one under the same key."""
    told = (request.scope["method"].encode(), request.scope["path"].encode(), request.scope["query_string"])
    conditions = (f"{name}:{value}".encode("latin-1") for name, value in request.headers.items() if name in CONDITIONS)
    sent = body.digest() if isinstance(body, Spool) else bytes(body or b"")
    return asked(caller, f"{route.method} {route.path}", key, (*told, sent, *conditions))


def _unforeseen(error: Exception, scope: Scope) -> Reply:
    """The answer to what nobody raised on purpose: the process may open no more files, or it is an accident."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        _log.warning("%s %r was refused: %s", scope["method"], scope["path"], error)
        return failure(Overloaded("the process may open no more files; try again", retry_after_s=1))
    request_id = secrets.token_hex(8)
    _log.error("request %s: %s %r failed", request_id, scope["method"], scope["path"], exc_info=error)
    return accident(request_id)


async def _send(send: Send, reply: Reply, threads: Threads, *, close: bool) -> None:
    length = reply.spool.size if reply.spool else len(reply.body)
    headers = {"Content-Type": "application/json", "Content-Length": str(length), **_ALWAYS, **dict(reply.headers)}
    if close:
        headers["Connection"] = "close"
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    while reply.spool and (piece := await threads.run(reply.spool.piece)):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": reply.body})
