"""The socket that takes connections: as many at once as the process has files for, and no more."""

import resource
import socket
import time
import weakref
from errno import EMFILE, ENFILE
from typing import Any

from pegword.http.failures import Overloaded
from pegword.http.protocol import written

CONNECTIONS_MAX = 10_000
CONNECTIONS_MIN = 8
FILES_OF_OURS = 40  # that a process opens beside its connections: the database and its log, on as many threads as read
FULL_REST_S = 1.0

_FULL = written(Overloaded("as many connections are open as may be; try again", retry_after_s=1))


def connections_max() -> int:
    """How many connections this process may hold at once: what it may open of files, but for those that it needs otherwise."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return min(CONNECTIONS_MAX, max(CONNECTIONS_MIN, files - FILES_OF_OURS))


class Listener(socket.socket):
    """A listening socket. Whoever comes when there are *count* connections hears that it is full, and is hung up on.

    A process that can open no file any more could accept nobody, and could not read its database either.
    """

    def __init__(self, *args: Any, count: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self._count = count
        self._taken: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._rest_until = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection. Raises `BlockingIOError` when there is none to be had now."""
        if time.monotonic() < self._rest_until:
            raise BlockingIOError
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in (EMFILE, ENFILE):  # said once; the event loop rests then, but asks first as often as its backlog is long
                self._rest_until = time.monotonic() + FULL_REST_S / 2
            raise
        if len(self._taken) >= self._count and sum(taken.fileno() >= 0 for taken in self._taken) >= self._count:
            _refuse(connection)
            raise BlockingIOError
        self._taken.add(connection)
        return connection, address


def _refuse(connection: socket.socket) -> None:
    """Say why, if that can be done without waiting, and hang up."""
    try:
        connection.setblocking(False)
        connection.send(_FULL)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1 << 16)  # what was asked: unread, it would take the answer with it
    except OSError:
        pass
    finally:
        connection.close()
