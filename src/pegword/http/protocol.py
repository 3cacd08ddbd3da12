"""One HTTP/1.1 connection: uvicorn's, with limits on its head, on time, and with its refusals in JSON.

uvicorn itself bounds neither the size of a head nor how long one may take, and answers what is no HTTP in plain text.
"""

import asyncio
import contextlib
import os
import re
import socket
from asyncio import TimerHandle
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from pegword.core.errors import Invalid, PegwordError
from pegword.http.failures import HeadersTooLarge, Overloaded, PathTooLong, TooSlow, failure

HEAD_BYTES_MAX = 64 << 10
PATH_BYTES_MAX = 32 << 10
HEAD_S = 10.0
BODY_S = 30.0
LONG_BODY_S = 900.0  # for what is sent in many lines
LONG_PATHS = (b"/v1/api/import",)
WRITE_S = 30.0
LINGER_S = 5.0
WHOLE = "pegword.whole"  # in the scope of a request: its body has come in, so that to read it waits for nobody
LINGER_BYTES_MAX = 256 << 20

_NOT_ASCII = re.compile(rb"[\x80-\xff]")


class Protocol(HttpToolsProtocol):
    """A connection. Whoever is slow or sends too much is told so in JSON, and the connection is closed; so is who comes when there are
    *connections_max* others."""

    def __init__(self, *args: Any, connections_max: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self._connections_max = connections_max
        self._turned_away = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self._connections_max:
            self._turned_away = True
            with contextlib.suppress(OSError):
                turn_away(socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())))
            transport.abort()
            return
        self._timer: TimerHandle | None = None
        self._write_timer: TimerHandle | None = None
        self._in_head = True
        self._in_first_line = True
        self._body_s = BODY_S
        self._head_bytes = 0
        self._refusal: PegwordError | None = None
        super().connection_made(_Lingering(transport, self))  # type: ignore[arg-type]
        self._within(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._turned_away:
            return
        self._within(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            self.transport.discard(len(data))  # type: ignore[attr-defined]
            return
        self._unset_keepalive_if_required()
        if self._in_head:
            if not self._head_bytes:
                self._within(HEAD_S)
            self._head_bytes += len(data)
            data = self._with_plain_first_line(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._stay_with_http(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(self._refusal or Invalid("this is no valid HTTP/1.1 request", code="bad_request"))
        else:
            if self._in_head and self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(_head_too_large())

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more. A body that is not whole is refused; a request that is, gets its answer."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        if self.cycle.more_body:
            self._refuse(Invalid("the body ends before its Content-Length", code="bad_request"))
            return False
        self.cycle.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > PATH_BYTES_MAX:
            self._refusal = PathTooLong(f"the path and query exceed the limit of {PATH_BYTES_MAX} bytes")
            raise self._refusal

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > HEAD_BYTES_MAX:
            self._refusal = _head_too_large()
            raise self._refusal
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # `_stay_with_http` reads it again, as the plain request that it also is
        self._in_head = False
        self._body_s = LONG_BODY_S if self.url.startswith(LONG_PATHS) else BODY_S
        self._within(self._body_s)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._in_head = self._in_first_line = True
        self._head_bytes = 0
        self._within(None)
        cast("dict[str, Any]", self.scope)[WHOLE] = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_S, self.transport.abort)

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _within(self, seconds: float | None) -> None:
        """What is being received must be whole in *seconds* from now; None: nothing is."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        if self._in_head and not self._head_bytes:
            self.transport.close()  # nothing was asked, so nothing is answered
            return
        what, seconds = ("head", HEAD_S) if self._in_head else ("body", self._body_s)
        self._refuse(TooSlow(f"the request's {what} did not arrive within {seconds:.0f} seconds"))

    def _with_plain_first_line(self, data: bytes) -> bytes:
        """*data* with the bytes beyond ASCII of a request's first line percent-encoded, as some clients leave to the server."""
        if not self._in_first_line:
            return data
        line, end, rest = data.partition(b"\n")
        self._in_first_line = not end
        return _NOT_ASCII.sub(lambda byte: b"%%%02X" % byte[0][0], line) + end + rest

    def _stay_with_http(self, rest: bytes) -> None:
        """Read a request that offers another protocol once more without the offer, then *rest*, which holds its body if it has one."""
        if self.parser.get_method() == b"CONNECT":
            self._refuse(Invalid("CONNECT is not possible here", code="bad_request"))
            return
        headers = [b"%s: %s" % pair for pair in self.headers if pair[0] not in (b"upgrade", b"http2-settings")]
        first = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        self.parser = httptools.HttpRequestParser(self)
        self._head_bytes = 0
        self.data_received(b"\r\n".join([first, *headers, b"", b""]) + rest)

    def _refuse(self, error: PegwordError) -> None:
        """Answer *error* and close; when an earlier request still waits for its answer, close after that instead."""
        if self.transport.is_closing():
            return
        waiting = self.cycle is not None and not self.cycle.response_complete
        if waiting and not self.cycle.more_body:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if not (waiting and self.cycle.response_started):
            self.transport.write(written(error))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Invalid(msg, code="bad_request"))


class _Lingering:
    """A transport that does not hang up on a client which still sends: it says that it is done, and takes what comes for a while.

    Otherwise the answer that tells the client why would be lost with the connection.
    """

    def __init__(self, transport: asyncio.Transport, protocol: Protocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._closing = False
        self._left = LINGER_BYTES_MAX

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """Close, once the client has nothing more to send or `LINGER_S` have passed."""
        if self.is_closing():
            return
        protocol = self._protocol
        protocol._within(None)
        still_sending = (protocol._in_head and protocol._head_bytes > 0) or (protocol.cycle is not None and protocol.cycle.more_body)
        if not still_sending or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._closing = True
        self._transport.write_eof()
        self._transport.resume_reading()
        protocol.loop.call_later(LINGER_S, self._transport.close)

    def discard(self, count: int) -> None:
        """Take *count* bytes that nobody reads."""
        self._left -= count
        if self._left < 0:
            self._transport.abort()


def _head_too_large() -> HeadersTooLarge:
    return HeadersTooLarge(f"the request's head exceeds the limit of {HEAD_BYTES_MAX} bytes")


def written(error: PegwordError) -> bytes:
    """The whole answer to *error*, as it goes over a connection that is closed after it."""
    reply = failure(error)
    headers = {"content-type": "application/json", "content-length": str(len(reply.body)), "connection": "close", **dict(reply.headers)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[reply.status] + lines.encode("latin-1") + b"\r\n" + reply.body


def turn_away(connection: socket.socket) -> None:
    """Say that as many are connected as may be, if that can be done without waiting, and hang up."""
    try:
        connection.setblocking(False)
        connection.send(_FULL)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1 << 16)  # what was asked: unread, it would take the answer with it
    except OSError:
        pass
    finally:
        connection.close()


_FULL = written(Overloaded("as many connections are open as may be; try again", retry_after_s=1))
