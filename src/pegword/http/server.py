"""Running the application: listen, serve, and end in good order when asked to. Nothing here prints."""

import contextlib
import os
import signal
import socket
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from pegword.core.errors import Invalid
from pegword.http.heap import giving_back
from pegword.http.listener import Listener, connections_max
from pegword.http.protocol import Protocol

DRAIN_S = 10
KEEP_ALIVE_S = 30  # longer than clients keep idle connections, so that it is they who close them
BACKLOG = 1_024


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on *host* and *port* (0: a free one). Raises `Invalid` when that cannot be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # The protocol is named, or else asyncio would not switch Nagle's algorithm off, which costs 40 ms an answer.
        listener = Listener(family, kind, protocol or socket.IPPROTO_TCP, count=connections_max())
    except OSError as error:
        raise Invalid(f"cannot listen on {host}: {error.strerror or error}", field="server.host") from error
    except UnicodeError:
        raise Invalid(f"cannot listen on {host}: that can be no name of a host", field="server.host") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise Invalid(f"cannot listen on {host} port {port}: {error.strerror}", field="server.port") from error
    return listener


class Server(uvicorn.Server):
    """A server for one application. SIGTERM and SIGINT end it in good order; a second one ends the process at once."""

    def __init__(self, app: Any, *, ready: Callable[[], None] = lambda: None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(Protocol, connections_max=connections_max()),  # type: ignore[arg-type]
                ws="none",
                lifespan="off",
                interface="asgi3",
                proxy_headers=False,
                server_header=False,
                access_log=False,
                log_config=None,
                log_level="error",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=DRAIN_S,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begin to end; the second time, let the signal have its way.

        The base class would raise the signal again after a good end, and the process would not end with 0.
        """
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            os.kill(os.getpid(), sig)
        self.should_exit = True

    def stop(self) -> None:
        """End in good order: take no more connections, finish what is being answered within `DRAIN_S` seconds. From any thread."""
        self.should_exit = True


def run(app: Any, host: str, port: int, *, listening: Callable[[int], None] = lambda _: None) -> None:
    """Serve *app* until SIGTERM or SIGINT, then return, at most `DRAIN_S` seconds after what was being done. For the main thread.

    *listening* is told the port once connections are taken. Raises `Invalid` when the address cannot be had.
    """
    with contextlib.closing(listen(host, port)) as listener, giving_back():
        Server(app, ready=lambda: listening(listener.getsockname()[1])).run([listener])
