"""What a server keeps in memory stays level: every store of it has a bound, and a bound that is missing is seen.

The bounds are made small here, so that a few requests fill what takes a server under load some minutes.
"""

import gc
import http.client
import json
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pegword.assembly import open_services
from pegword.core import text
from pegword.core.memo import Memo
from pegword.http import auth
from pegword.http.app import create_app
from pegword.services import nudges
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store import sqlite
from pegword.store.tails import KeptTails
from tests.conftest import Clock
from tests.faults.conftest import folder as folder
from tests.patience import PATIENCE_S
from tests.wire.conftest import Site

WARM, ROUNDS, TIMES = 36, 12, 3
A_ROUND_MAX = 300  # bytes that a round of requests may leave behind, of what Python counts: it keeps some things of its own for a while
SMALL = 1 << 13


class Client:
    """One client over one connection, with another token and ever new words, names, workstreams and sessions each round."""

    def __init__(self, server: Site, services: Services) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        self._services = services
        self._tokens = iter([server.token(f"user{number}") for number in range(WARM + TIMES * ROUNDS)])
        self._token = ""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request, which must be answered well."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        with self._connection.getresponse() as response:
            answer = json.loads(response.read())
            assert response.status in (200, 201), answer
        return answer

    def round(self, number: int) -> None:
        """What an agent does in one session, from its beginning to its end."""
        self._token = next(self._tokens)
        words = " ".join(f"w{number}x{n}" for n in range(40))
        session = self.ask("POST", "/v1/api/sessions", {"kind": "interactive", "workstream_id": f"ws{number}"})["session_id"]
        said = {"action": "save", "name": f"n{number}", "content": f"content of {words}", "scope": "workstream"}
        self.ask("POST", "/v1/api/tool", {"session": session, "arguments": said})
        messages = [{"role": "user", "content": f"no, that is wrong: {words}"}]
        self.ask("POST", "/v1/api/turn", {"session": {"id": session}, "mode": "index", "messages": messages})
        self.ask("POST", "/v1/api/memories", {"name": f"m{number}", "content": words})
        self.ask("POST", "/v1/api/memories/search", {"query": f'{words} "w{number}x1 w{number}x2"'})
        self.ask("GET", "/v1/api/memories?limit=5")
        self.ask("DELETE", f"/v1/api/memories/m{number}")
        self.ask("DELETE", f"/v1/api/sessions/{session}")
        self._services.housekeeper.settle()

    def close(self) -> None:
        self._connection.close()


BOUNDS: dict[str, tuple[Any, str, Any]] = {
    "words": (text, "Memo", lambda size: lambda *_: Memo(size(SMALL))),
    "tails": (sqlite, "KeptTails", lambda size: partial(KeptTails, size(SMALL))),
    "sessions": (nudges, "SESSIONS_REMEMBERED_MAX", lambda size: size(4)),
    "callers": (auth, "RECENT_MAX", lambda size: size(4)),
}


def left_behind(server: Site, folder: Path, clock: Clock, patch: pytest.MonkeyPatch, unbounded: str = "") -> float:
    """How many bytes a round of requests leaves in a server that has been filled; with one bound missing.

    The least of some times: what grows without end does each time.
    """
    for what, (module, name, made) in BOUNDS.items():
        patch.setattr(module, name, made((lambda _: sys.maxsize) if what == unbounded else (lambda bound: bound)))
    settings = load(environment={})
    services = open_services(folder / "pegword.db", settings, clock=clock)
    server.services, server.app = services, create_app(services, settings)
    client = Client(server, services)
    tracemalloc.start()
    try:
        at = [held_after(client, range(WARM))]
        for time in range(TIMES):
            at.append(held_after(client, range(WARM + time * ROUNDS, WARM + (time + 1) * ROUNDS)))
    finally:
        tracemalloc.stop()
        client.close()
        services.close()
    return min(after - before for before, after in pairwise(at)) / ROUNDS


def held_after(client: Client, numbers: Iterable[int]) -> int:
    """How many bytes Python holds after these rounds, of what it took since it counts them.

    The least of some counts: what the server still holds of the last request for a moment is gone in one of them.
    """
    for number in numbers:
        client.round(number)
    counts = []
    for _ in range(5):
        gc.collect()
        counts.append(tracemalloc.get_traced_memory()[0])
    return min(counts)


@pytest.fixture
def server(running: Site) -> Iterator[Site]:
    yield running
    running.reset()


def test_a_server_that_has_been_filled_takes_no_more_memory(
    server: Site, folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever comes: new words, names, workstreams, sessions, tokens."""
    assert left_behind(server, folder, clock, monkeypatch) <= A_ROUND_MAX


@pytest.mark.parametrize("missing", BOUNDS)
def test_a_bound_that_is_missing_is_seen(server: Site, folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    assert left_behind(server, folder, clock, monkeypatch, missing) > A_ROUND_MAX
