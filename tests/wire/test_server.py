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

import httpx2
import pytest

from pegword.assembly import open_services
from pegword.core.errors import Invalid
from pegword.http.server import listen
from pegword.settings import load
from tests.conftest import url_of
from tests.wire.conftest import Site, read_replies

SERVING = Path(__file__).with_name("serving.py")


class Process:
    """A server process on a store of its own, and a token for it."""

    def __init__(self, database: Path | str) -> None:
        services = open_services(database, load(environment={}))
        services.access.ensure_user("alice")
        self.token = services.access.add_key("alice")[1]
        services.close()
        self.child = subprocess.Popen(
            [sys.executable, str(SERVING), url_of(database)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.child.stdout is not None
        self.port = int(self.child.stdout.readline())

    def client(self) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers={"Authorization": f"Bearer {self.token}"}, trust_env=False, timeout=30
        )

    def post(self, name: str, *, missing: int = 0) -> bytes:
        """A save as bytes, but for the last *missing* of them."""
        body = b'{"name":"%s","content":"x"}' % name.encode()
        who = f"Host: 127.0.0.1\r\nAuthorization: Bearer {self.token}"
        head = f"POST /v1/api/memories HTTP/1.1\r\n{who}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body[: len(body) - missing]


@pytest.fixture
def process(database: Path | str) -> Iterator[Process]:
    running = Process(database)
    yield running
    if running.child.poll() is None:
        running.child.kill()
    running.child.communicate(timeout=20)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_good_order_and_silence(process: Process, sig: signal.Signals) -> None:
    """Idle connections do not hold it up; it ends with 0 and has printed nothing."""
    with process.client() as client:
        assert client.post("/v1/api/memories", json={"name": "a", "content": "x"}).status_code == 201
        began = time.monotonic()
        process.child.send_signal(sig)
        out, err = process.child.communicate(timeout=20)

    assert (process.child.returncode, out, err) == (0, "", "")
    assert time.monotonic() - began < 5


def test_a_request_under_way_is_finished_and_new_ones_are_not_taken(process: Process) -> None:
    """SIGTERM stops accepting and drains: what was begun is answered, and its connection closed."""
    with socket.create_connection(("127.0.0.1", process.port), timeout=20) as connection:
        connection.sendall(process.post("begun", missing=5))
        time.sleep(0.3)
        process.child.send_signal(signal.SIGTERM)
        time.sleep(0.7)
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", process.port), timeout=2).close()
        connection.sendall(process.post("begun")[-5:])
        (reply,) = read_replies(connection)
    process.child.wait(20)

    assert (reply.status, reply.json()["name"], process.child.returncode) == (201, "begun", 0)


def test_who_does_not_finish_is_not_waited_for_longer_than_ten_seconds(process: Process) -> None:
    """A client that stops in the middle cannot keep the server from ending."""
    with socket.create_connection(("127.0.0.1", process.port), timeout=20) as connection:
        connection.sendall(process.post("never", missing=5))
        time.sleep(0.3)
        began = time.monotonic()
        process.child.send_signal(signal.SIGTERM)
        process.child.wait(20)

    assert process.child.returncode == 0
    assert 8 < time.monotonic() - began < 14


def test_a_second_signal_ends_it_at_once(process: Process) -> None:
    """Whoever asks twice does not want to wait."""
    with socket.create_connection(("127.0.0.1", process.port), timeout=20) as connection:
        connection.sendall(process.post("never", missing=5))
        time.sleep(0.3)
        process.child.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        began = time.monotonic()
        process.child.send_signal(signal.SIGTERM)
        process.child.wait(20)

    assert process.child.returncode == -signal.SIGTERM
    assert time.monotonic() - began < 2


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
    time.sleep(1)
    process.child.send_signal(signal.SIGTERM)
    assert process.child.wait(20) == 0
    for worker in workers:
        worker.join(20)
    services = open_services(database, load(environment={}))
    with services.engine.read() as tx:
        stored = {name for (name,) in tx.rows("SELECT name FROM structured_memories")}
    services.close()

    assert len(acknowledged) > 20
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


def test_answers_do_not_wait_for_the_clients_acknowledgement(server: Site) -> None:
    """Nagle's algorithm is off: fifty small answers on one connection take far less than 40 ms each."""
    with server.client() as client:
        client.get("/livez")
        began = time.monotonic()
        for _ in range(50):
            client.get("/livez")
        took = time.monotonic() - began

    assert took < 1
