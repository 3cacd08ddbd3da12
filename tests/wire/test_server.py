"""The server as a process: it listens, and it ends in good order."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegword.assembly import open_services
from pegword.core.errors import Invalid
from pegword.http.protocol import Protocol
from pegword.http.server import DRAIN_S, listen
from pegword.settings import load
from tests.conftest import url_of
from tests.patience import PATIENCE_S, takes_connections, until
from tests.wire.conftest import Site, read_replies

SERVING = Path(__file__).with_name("serving.py")


class Process:
    """A server process on a store of its own, and a token for it. It *drains* for so many seconds when it is asked to end."""

    def __init__(self, database: Path | str, drains: int) -> None:
        services = open_services(database, load(environment={}))
        services.access.ensure_user("alice")
        self.token = services.access.add_key("alice")[1]
        services.close()
        self.child = subprocess.Popen(
            [sys.executable, str(SERVING), url_of(database), str(drains)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.child.stdout is not None
        self.port = int(self.child.stdout.readline())

    def client(self) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers={"Authorization": f"Bearer {self.token}"}, trust_env=False, timeout=PATIENCE_S
        )

    @contextlib.contextmanager
    def begun(self, body: bytes) -> Iterator[socket.socket]:
        """A connection on which a save is being worked on, of whose *body* nothing has come yet."""
        who = f"Host: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\nExpect: 100-continue"
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall(f"POST /v1/api/memories HTTP/1.1\r\n{who}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            assert connection.recv(1_000).startswith(b"HTTP/1.1 100")
            yield connection

    def ask_to_end(self) -> None:
        """Send SIGTERM, and return when nobody new is let in any more."""
        self.child.send_signal(signal.SIGTERM)
        until(lambda: not takes_connections(self.port))


@pytest.fixture(params=[3_600], ids=["patient"])
def process(database: Path | str, request: pytest.FixtureRequest) -> Iterator[Process]:
    """One that has not given up by itself, however slow the machine is, before a test is done."""
    running = Process(database, request.param)
    yield running
    if running.child.poll() is None:
        running.child.kill()
    running.child.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_good_order_and_silence(process: Process, sig: signal.Signals) -> None:
    """Idle connections do not hold it up; it ends with 0 and has printed nothing."""
    with process.client() as client:
        assert client.post("/v1/api/memories", json={"name": "a", "content": "x"}).status_code == 201
        process.child.send_signal(sig)
        out, err = process.child.communicate(timeout=PATIENCE_S)  # which is far less than it would wait for them

    assert (process.child.returncode, out, err) == (0, "", "")


def test_a_request_under_way_is_finished_and_new_ones_are_not_taken(process: Process) -> None:
    """SIGTERM stops accepting and drains: what was begun is answered, and its connection closed."""
    body = b'{"name":"begun","content":"x"}'
    with process.begun(body) as connection:
        connection.sendall(body[:-5])
        process.ask_to_end()
        connection.sendall(body[-5:])
        (reply,) = read_replies(connection)
    process.child.wait(PATIENCE_S)

    assert (reply.status, reply.json()["name"], process.child.returncode) == (201, "begun", 0)


@pytest.mark.parametrize("process", [DRAIN_S], ids=["as it is"], indirect=True)
def test_who_does_not_finish_is_not_waited_for_longer_than_ten_seconds(process: Process) -> None:
    """A client that stops in the middle cannot keep the server from ending."""
    with process.begun(b'{"name":"never","content":"x"}'):
        began = time.monotonic()
        process.child.send_signal(signal.SIGTERM)
        process.child.wait(PATIENCE_S)
        took = time.monotonic() - began

    assert process.child.returncode == 0
    assert DRAIN_S - 1 < took  # and it ended at all: for the body alone it would have waited an hour


def test_a_second_signal_ends_it_at_once(process: Process) -> None:
    """Whoever asks twice does not want to wait."""
    with process.begun(b'{"name":"never","content":"x"}'):
        process.ask_to_end()
        process.child.send_signal(signal.SIGTERM)
        process.child.wait(PATIENCE_S)

    assert process.child.returncode == -signal.SIGTERM  # and not 0, as when it has waited


def test_every_acknowledged_save_survives_the_end_under_load(process: Process, database: Path | str) -> None:
    """What was answered is there afterwards, also when the end comes in the middle."""
    acknowledged: list[str] = []

    def work(worker: int) -> None:
        with process.client() as client:
            for number in range(10_000):
                try:
                    answer = client.post("/v1/api/memories", json={"name": f"w{worker}_{number}", "content": "x"})
                except httpx2.TransportError:
                    return
                if answer.status_code == 201:
                    acknowledged.append(f"w{worker}_{number}")

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    until(lambda: len(acknowledged) > 50)
    process.child.send_signal(signal.SIGTERM)
    assert process.child.wait(PATIENCE_S) == 0
    for worker in workers:
        worker.join(PATIENCE_S)
    services = open_services(database, load(environment={}))
    with services.engine.read() as tx:
        stored = {name for (name,) in tx.rows("SELECT name FROM structured_memories")}
    services.close()

    assert set(acknowledged) <= stored


def test_an_address_that_cannot_be_had_is_told_in_a_sentence(server: Site) -> None:
    """A taken port, and a host that is none, are faults of the call."""
    with pytest.raises(Invalid, match=f"port {server.port}: Address already in use"):
        listen("127.0.0.1", server.port)
    with pytest.raises(Invalid, match="cannot listen on nowhere"):
        listen("nowhere.invalid", 0)


def _loopbacks() -> list[str]:
    """The loopback addresses of this machine: not every one has IPv6."""
    found = ["127.0.0.1"]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        found.append("::1")
    return found


@pytest.mark.parametrize("host", _loopbacks())
def test_it_listens_on_every_loopback_address_that_there_is(host: str) -> None:
    """`--host ::1` works where the machine has it."""
    with listen(host, 0) as listener:
        assert listener.getsockname()[0] == host


@pytest.mark.parametrize("host", ["\udcff", "a..b", "x" * 64, "\0"])
def test_a_host_that_can_be_none_is_told_in_a_sentence(host: str) -> None:
    """What no name can hold is found out before anybody is asked for it."""
    with pytest.raises(Invalid, match="cannot listen on"):
        listen(host, 0)


def test_answers_do_not_wait_for_the_clients_acknowledgement(server: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagle's algorithm is off, which would hold back a second small answer for some 40 ms."""
    real, off = Protocol.connection_made, []

    def seen(self: Protocol, transport: Any) -> None:
        off.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        real(self, transport)

    monkeypatch.setattr(Protocol, "connection_made", seen)
    with server.client() as client:
        client.get("/livez")

    assert [1] == off
