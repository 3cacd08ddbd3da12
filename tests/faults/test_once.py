"""A server that is killed between the commit and the answer: who tries again under the same key is answered, and nothing is done twice."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pegword.assembly import open_services
from pegword.settings import load
from tests.conftest import url_of
from tests.faults.harness import ENGINE_SHOWN, PATIENCE_S, Tally, how_many
from tests.faults.ledger import PYTHON, SERVE, Server
from tests.patience import PATIENCE_S as ENOUGH_S
from tests.patience import until

KILLS = how_many("KILLS_UNDER_KEYS", 6)
WRITERS = 8

pytestmark = pytest.mark.timeout(PATIENCE_S)


@dataclass
class Client:
    """One client that saves one memory again and again, each time another content under another key. What it heard no answer to, it
    asks again, the same under the same key."""

    name: str
    token: str
    requests: int = 0
    answered: int = 0
    again: int = 0
    wrong: list[str] = field(default_factory=list)

    def write(self, port: int, *, whole: bool = False) -> None:
        """Save until the server is gone, or, when *whole*, until nothing is without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ENOUGH_S)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            while not whole or self.answered < self.requests:
                self.next(connection)

    def next(self, connection: http.client.HTTPConnection) -> None:
        """One request: the last one again, if that had no answer. Each makes one version, and is answered as at first."""
        if self.answered < self.requests:
            self.again += 1
        else:
            self.requests += 1
        number = self.requests
        body = json.dumps({"name": self.name, "content": f"content {number}"})
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "Idempotency-Key": f"key {number}"}
        connection.request("POST", "/v1/api/memories", body, headers)
        with connection.getresponse() as response:
            told = json.loads(response.read())
        expected = (number, "created" if number == 1 else "updated")
        if (told.get("version"), told.get("outcome")) != expected:
            self.wrong.append(f"request {number} of {self.name} is answered {response.status} {told}")
        self.answered = number


def killed(tally: Tally, command: Sequence[str], database: Path | str, home: Path, rounds: int) -> None:
    """Kill the server in the midst of requests, *rounds* times; then let it answer what had no answer."""
    services = open_services(database, load(environment={}))
    services.access.add_user("alice")
    clients = [Client(f"memory_{n}", services.access.add_key("alice")[1]) for n in range(WRITERS)]
    services.close()
    for chance in tally.schedule(rounds):
        before = sum(client.answered for client in clients)
        server = Server(command, url_of(database), home)
        threads = [threading.Thread(target=client.write, args=(server.port,), daemon=True) for client in clients]
        for thread in threads:
            thread.start()
        wanted = before + chance.randrange(WRITERS, 4 * WRITERS)
        until(lambda wanted=wanted: sum(client.answered for client in clients) >= wanted)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.02))
        server.kill()
        for thread in threads:
            thread.join(ENOUGH_S)
        _book(tally, clients, before)
    before = sum(client.answered for client in clients)
    server = Server(command, url_of(database), home)
    for client in clients:
        client.write(server.port, whole=True)
    server.stop()
    _book(tally, clients, before, faults=0)
    tally.notes["asked again"] = sum(client.again for client in clients)


def _book(tally: Tally, clients: Sequence[Client], before: int, faults: int = 1) -> None:
    tally.book(
        acknowledged=sum(client.answered for client in clients) - before,
        wrong=[text for client in clients for text in client.wrong],
        faults=faults,
    )
    for client in clients:
        client.wrong.clear()


def test_who_tries_again_after_a_crash_is_answered_and_nothing_is_done_twice(
    database: Path | str, engine_name: str, tmp_path: Path
) -> None:
    """Every request makes one version, whether its answer was heard at the first try or after the server had come back."""
    tally = Tally(f"kill -9 of a server under {WRITERS} writers with keys, {ENGINE_SHOWN[engine_name]}")
    killed(tally, SERVE, database, tmp_path, KILLS)
    tally.hold()

    assert tally.acknowledged > KILLS
    assert tally.notes["asked again"] > 0


def test_a_server_that_keeps_the_answer_after_the_commit_is_caught(database: Path | str, engine_name: str, tmp_path: Path) -> None:
    tally = Tally(f"kill -9 of a server, {ENGINE_SHOWN[engine_name]}, answers kept after the commit", until_noticed=True)
    killed(tally, [PYTHON, str(Path(__file__).parent / "forgetful_server.py"), "serve"], database, tmp_path, 4)
    tally.catch()
