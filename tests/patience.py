"""Waiting in tests: for a condition, never for a time; and ports that nobody else is given meanwhile.

What is waited for comes at once on a machine with nothing else to do. How long it may take at most says only when a test gives up.
"""

import socket
import time
from collections.abc import Callable
from pathlib import Path

from pegword.http import app
from pegword.services import health, housekeeping
from pegword.store import postgres, sqlite_file

PATIENCE_S = 120.0


def without_hurry(patch: Callable[[object, str, object], object]) -> None:
    """Let whoever waits for others wait as long as a test does, in the database, for a connection to it, and in the line of a server: on a
    slow machine they would else be refused. *patch* sets an attribute: `setattr`, or that of a `pytest.MonkeyPatch`. For what is opened
    from here on."""
    ms = int(PATIENCE_S * 1_000)
    patch(sqlite_file, "BUSY_WAIT_MS", ms)
    patch(postgres, "LOCK_WAIT_MS", ms)
    patch(postgres, "_SETTINGS", f"{postgres._SETTINGS}; SET lock_timeout = {ms}; SET statement_timeout = {ms}")
    patch(postgres, "CONNECT_WAIT_S", int(PATIENCE_S))
    patch(postgres, "HEAL_WAIT_S", PATIENCE_S)
    patch(app, "WRITE_WAIT_S", PATIENCE_S)
    patch(app, "LOOKED_UP_S", PATIENCE_S)  # nor is a token looked up once more because a write took long
    patch(health, "PROBE_WAIT_S", PATIENCE_S)
    patch(housekeeping, "JOIN_S", PATIENCE_S)


def until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Return as soon as *condition* holds."""
    last = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < last, "it never came to that"
        time.sleep(0.005)


def comes_to(condition: Callable[[], bool], patience_s: float = PATIENCE_S / 2) -> bool:
    """Whether *condition* holds now or later."""
    try:
        until(condition, patience_s)
    except AssertionError:
        return False
    return True


class Port:
    """A port of this machine for a server that is started later: until `free`, nobody who asks for any port is given it.

    It is bound, and nobody listens: a server that reuses addresses, as ours and PostgreSQL do, may.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = int(self._socket.getsockname()[1])

    def free(self) -> None:
        """Let others have it."""
        self._socket.close()


def takes_connections(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True


def served(port: int) -> set[int]:
    """The ports of the clients whose connections to *port* a process still holds: of who takes nothing, only the system knows more."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return {
        int(remote.split(":")[1], 16) for _, local, remote, state, *_ in lines if state == "01" and int(local.split(":")[1], 16) == port
    }
