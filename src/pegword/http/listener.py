"""The socket that takes connections: as many at once as the process has files for, and no more."""

import resource
import socket
import time
import weakref
from errno import EMFILE, ENFILE
from typing import Any

from pegword.http.protocol import turn_away

CONNECTIONS_MAX = 10_000
CONNECTIONS_MIN = 8
FILES_OF_OURS = 40  # that a process opens beside its connections: the database and its log, on as many threads as read
FULL_REST_S = 1.0


def connections_max() -> int:
    """How many connections this process may hold at once: what it may open of files, but for those that it needs otherwise."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return min(CONNECTIONS_MAX, max(CONNECTIONS_MIN, files - FILES_OF_OURS))


class Listener(socket.socket):
    """A listening socket. Whoever comes when there are *count* connections hears that it is full, and is hung up on.

    A process that can open no file any more could accept nobody, and could not read its database either. An event loop that takes
    connections by itself, as uvloop does, never asks here: there `Protocol` counts.
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
            turn_away(connection)
            raise BlockingIOError
        self._taken.add(connection)
        return connection, address
