"""A real server on a free port, and three people with tokens of their own.

One server runs for all tests; each test puts an application on a store of its own into it, so nothing is left from one to the next.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from pegword.http.app import App, create_app
from pegword.http.server import Server, listen
from pegword.services.bundle import Services
from pegword.settings import load
from tests.patience import PATIENCE_S


@dataclass
class Reply:
    """An answer as it came over a raw connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Site:
    """The running server: its port, the application that is in it, and the store under that."""

    port: int
    app: App | None = None
    services: Services | None = None
    _clients: list[httpx2.Client] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def token(self, name: str, right: str = "write", **more: Any) -> str:
        """A new token of a user, who is added if need be."""
        assert self.services is not None
        self.services.access.ensure_user(name)
        return self.services.access.add_key(name, right=right, **more)[1]

    def client(self, token: str = "", **more: Any) -> httpx2.Client:
        """A client with that token; without one it sends no credential."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        client = httpx2.Client(base_url=self.url, headers=headers, trust_env=False, timeout=PATIENCE_S, **more)
        self._clients.append(client)
        return client

    def raw(self, data: bytes, *, half_close: bool = False, patience_s: float = PATIENCE_S, at_least: int = 1) -> list[Reply]:
        """Send *data* as it is, and return the answers until the server closes or, after *at_least* so many, falls silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=patience_s) as connection:
            with contextlib.suppress(OSError):  # the server may hang up on what is too long; what it said first still counts
                connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return read_replies(connection, at_least)

    def reset(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        self.app = self.services = None


def read_replies(connection: socket.socket, at_least: int = 1) -> list[Reply]:
    """The answers on *connection* until it ends, or until nothing more comes after *at_least* so many."""
    data = b""
    try:
        while chunk := connection.recv(1 << 16):
            data += chunk
            replies, rest = _split(data)
            if len(replies) >= at_least and not rest:
                connection.settimeout(0.3)
    except OSError:
        pass
    return _split(data)[0]


def _split(data: bytes) -> tuple[list[Reply], bytes]:
    replies: list[Reply] = []
    while b"\r\n\r\n" in data:
        head, _, rest = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            break
        status = int(first.split()[1])
        if status >= 200:
            replies.append(Reply(status, headers, rest[:length]))
        data = rest[length:]
    return replies, data


@pytest.fixture(scope="session")
def running() -> Iterator[Site]:
    """The server, for all tests."""
    listener = listen("127.0.0.1", 0)
    site = Site(listener.getsockname()[1])
    ready = threading.Event()
    server = Server(site, ready=ready.set)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    assert ready.wait(PATIENCE_S)
    yield site
    server.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.fixture
def server(running: Site, services: Services) -> Iterator[Site]:
    """The server, with an empty store in it."""
    running.services = services
    running.app = create_app(services, load(environment={}))
    yield running
    running.reset()


@pytest.fixture
def alice(server: Site) -> httpx2.Client:
    """A client with a write token of Alice."""
    return server.client(server.token("alice"))


@pytest.fixture
def bob(server: Site) -> httpx2.Client:
    """A client with a write token of Bob, who must see nothing of Alice's."""
    return server.client(server.token("bob"))


@pytest.fixture
def charlie(server: Site) -> httpx2.Client:
    """A client with a token of Charlie that may only read."""
    return server.client(server.token("charlie", "read"))


@pytest.fixture
def nobody(server: Site) -> httpx2.Client:
    """A client without a credential."""
    return server.client()


def save(client: httpx2.Client, name: str = "deploy_day", content: str = "We deploy on Tuesdays.", **more: Any) -> Any:
    """Save a memory; its record."""
    answer = client.post("/v1/api/memories", json={"name": name, "content": content, **more})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()
