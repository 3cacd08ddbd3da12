"""Too many, too slow, too much: what cannot be taken is refused at once and told when to come again; what was taken is there."""

import http.client
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pegword.http import app, protocol
from pegword.services.bundle import Services
from tests.faults.disk import Disk
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.ledger import PYTHON, SERVE, Ledger, Server, ask, joined, writers
from tests.faults.test_kill import token as token
from tests.faults.work import look, open_on
from tests.patience import PATIENCE_S as ENOUGH_S
from tests.patience import comes_to, served, until
from tests.wire.conftest import Site

CLIENTS = how_many("OVERLOAD_CLIENTS", 320)
FLOOD_S = how_many("OVERLOAD_S", 6)
SLOW = how_many("SLOW_CLIENTS", 200)
# The server's, and what the C library gives the threads of the clients, which are in this process too: up to eight heaps a processor.
RSS_GROWTH_MAX = (64 << 20) + (min(8 * (os.cpu_count() or 1), CLIENTS) << 20)
FLUSH_S = 0.03
LINE_MAX = 256
AFTERWARDS_S_MAX = 100  # for one save, when nobody else is there any more

pytestmark = pytest.mark.timeout(PATIENCE_S)


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Both ends of each connection lie in this process: it needs twice the files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY and hard < 8_192 else 8_192, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def flood(tally: Tally, folder: Path, serve: Callable[[Services], Site]) -> Tally:
    """Far more clients than the server works for at once save on a slow disk for some seconds. The first flush under them takes as long as
    it takes until there are too many, or until there cannot be."""
    ledger, stop, going = Ledger(), threading.Event(), threading.Event()
    longest = 0

    def slow(action: str, _: str) -> None:
        if action == "flush":
            time.sleep(FLUSH_S)
            while going.is_set() and not (ledger.answered(429, 503) or longest > LINE_MAX or stop.is_set()):
                time.sleep(FLUSH_S)

    disk = Disk(slow)
    site = serve(open_on(folder / "pegword.db", disk.name))
    token = site.token("alice")
    going.set()
    assert site.app is not None
    before = resident()
    threads = writers(CLIENTS, site.port, token, ledger, 1, stop)
    ends = time.monotonic() + FLOOD_S
    last = ends + ENOUGH_S
    while (now := time.monotonic()) < ends or (now < last and not (ledger.answered(429, 503) or longest > LINE_MAX)):
        longest = max(longest, site.app._writes.in_work)
        time.sleep(0.01)
    grown = resident() - before
    read = ask(site.port, "GET", "/v1/api/memories?limit=1", token=token)
    stop.set()
    joined(threads)
    until(lambda: site.app is not None and site.app._writes.in_work == 0)
    began = time.monotonic()
    saved = ask(site.port, "POST", "/v1/api/memories", {"name": "afterwards", "content": "x1"}, token)
    took = time.monotonic() - began
    found, wrong = look(folder / "pegword.db")
    found.pop(("g", "afterwards"), None)
    wrong += ledger.wrong
    wrong += [f"the line of writers grew to {longest}"] if longest > LINE_MAX else []
    wrong += [f"the memory grew by {grown >> 20} MiB"] if grown > RSS_GROWTH_MAX else []
    wrong += (
        []
        if (read[0], saved[0]) == (200, 201) and took < AFTERWARDS_S_MAX
        else [f"a read {read[0]}, a save afterwards {saved[0]} in {took:.1f} s"]
    )
    refused = ledger.answered(429, 503)
    tally.notes = {"refused": refused, "longest line": longest, "memory MiB": grown >> 20}
    tally.book(
        acknowledged=ledger.answers, lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong, faults=CLIENTS
    )
    if not refused:
        tally.wrong.append("nobody was refused: it was no overload")
    disk.unregister()
    return tally


def test_an_overload_is_refused_and_what_was_accepted_is_there(folder: Path, serve: Callable[[Services], Site]) -> None:
    """503 with Retry-After for the excess, a line of bounded length, bounded memory, and back to normal when the flood is over."""
    flood(Tally(f"an overload by {CLIENTS} clients"), folder, serve).hold()


def test_a_server_whose_line_has_no_end_is_caught(folder: Path, serve: Callable[[Services], Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "WRITES_IN_WORK_MAX", 1 << 20)
    monkeypatch.setattr(app, "WRITE_WAIT_S", ENOUGH_S)  # nor is anybody sent away who has stood there for long, however slow the machine
    monkeypatch.setattr(f"{__name__}.FLOOD_S", 2)
    flood(Tally("an overload, a line without end"), folder, serve).catch()


def _slow_head(_: str) -> bytes:
    return b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "


def _slow_body(token: str) -> bytes:
    head = f"POST /v1/api/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000000\r\n\r\n"
    return head.encode() + b"{"


def _never_reads(token: str) -> bytes:
    return f"GET /v1/api/memories?type=user HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode() * 40


def crawl(tally: Tally, folder: Path, serve: Callable[[Services], Site], patience_s: float) -> Tally:
    """Slow clients of three kinds beside writers: how many of them are cut off within *patience_s*, and what the writers lose by them."""
    site = serve(open_on(folder / "pegword.db", ""))
    token, ledger, stop = site.token("alice"), Ledger(), threading.Event()
    for number in range(20):
        ask(site.port, "POST", "/v1/api/memories", {"name": f"big{number}", "content": f"{'x' * 60_000} y{number}", "type": "user"}, token)
    slow: list[tuple[str, socket.socket]] = []
    for chance in tally.schedule(SLOW):
        kind = chance.choice([_slow_head, _slow_body, _never_reads])
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect(("127.0.0.1", site.port))
        connection.sendall(kind(token))
        slow.append((kind.__name__, connection))
    threads = writers(4, site.port, token, ledger, 1, stop)
    ends = time.monotonic() + patience_s
    open_still = dict(enumerate(slow))
    while open_still and time.monotonic() < ends:
        there = served(site.port)
        for number, (kind, connection) in list(open_still.items()):
            if connection.getsockname()[1] not in there if kind == "_never_reads" else _drip(connection):
                del open_still[number]
        time.sleep(0.1)
    stop.set()
    joined(threads)
    for _, connection in slow:
        connection.close()
    found, wrong = look(folder / "pegword.db")
    texts = {name: text for (_, name), text in found.items() if not name.startswith("big")}
    wrong += ledger.wrong + [f"{kind} was not cut off" for kind, _ in open_still.values()]
    tally.book(acknowledged=ledger.answers, lost=ledger.lost(texts), wrong=wrong, faults=SLOW)
    return tally


def _drip(connection: socket.socket) -> bool:
    """Send one byte more; whether the server has hung up."""
    try:
        connection.setblocking(False)
        connection.send(b"y")
        return connection.recv(65_536) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def limits(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for name in ("HEAD_S", "BODY_S", "WRITE_S", "LINGER_S"):
        monkeypatch.setattr(protocol, name, seconds)


def test_slow_clients_are_cut_off_and_the_others_are_served(
    folder: Path, serve: Callable[[Services], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then, for a head, for a body, or answers that nobody takes: each has a span of time, and holds nobody up."""
    limits(monkeypatch, 6)
    crawl(Tally(f"{SLOW} slow clients"), folder, serve, ENOUGH_S).hold()


def test_a_server_of_endless_patience_is_caught(folder: Path, serve: Callable[[Services], Site], monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, 10 * ENOUGH_S)
    crawl(Tally("slow clients, endless patience"), folder, serve, 3).catch()


def without_files(tally: Tally, command: Sequence[str], folder: Path, token: str, more: int) -> Tally:
    """A server that may open 64 files; more connections than that come and say nothing, beside eight writers, who are answered *more*
    writes meanwhile."""
    ledger, database, stop = Ledger(), folder / "pegword.db", threading.Event()
    server = Server(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *command], f"sqlite:///{database}", folder)
    threads = writers(8, server.port, token, ledger, 1, stop)
    until(lambda: ledger.answers > 20)
    idle = []
    for _ in range(100):
        connection = socket.socket()
        connection.settimeout(ENOUGH_S)
        connection.connect(("127.0.0.1", server.port))
        idle.append(connection)
    before, heard = ledger.answers, set[int]()

    def told() -> int:
        heard.update(number for number, connection in enumerate(idle) if _said(connection).startswith(b"HTTP/1.1 503"))
        return len(heard)

    enough = comes_to(lambda: told() > 50)
    during = comes_to(lambda: ledger.answers > before + more)
    for connection in idle:
        connection.close()
    stop.set()
    joined(threads)
    saved = comes_to(lambda: _is_saved(server.port, token))
    code = server.stop()
    found, wrong = look(database)
    found.pop(("g", "afterwards"), None)
    wrong += ledger.wrong + ([] if saved else ["no save was taken afterwards"]) + ([f"it ended with {code}"] if code else [])
    wrong += [] if enough else [f"only {len(heard)} heard that it is full"]
    wrong += [] if during else ["those who were connected were served no more"]
    wrong += [f"it said {server.said.count(chr(10))} lines: {server.said[-1000:]}"] if server.said.count("\n") > 500 else []
    tally.book(acknowledged=ledger.answers, lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong, faults=100)
    return tally


def _said(connection: socket.socket) -> bytes:
    """What the server has said without being asked."""
    try:
        connection.setblocking(False)
        return connection.recv(1_000)
    except OSError:
        return b""


def _is_saved(port: int, token: str) -> bool:
    """Whether a save on a new connection is taken now."""
    try:
        return ask(port, "POST", "/v1/api/memories", {"name": "afterwards", "content": "x1"}, token)[0] in (200, 201)
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return False


def test_a_server_without_files_to_open_serves_who_is_connected_and_recovers(folder: Path, token: str) -> None:
    """Whoever comes beyond the limit waits or is refused; nothing is lost, nothing is an accident, and it is over when they have gone."""
    without_files(Tally("64 files and 100 silent connections"), SERVE, folder, token, 200).hold()


def test_a_server_without_files_that_drops_writes_is_caught(folder: Path, token: str) -> None:
    """What was taken back is not seen where the same name is saved again: of a hundred such writes some are the last of theirs."""
    command = [PYTHON, "-m", "tests.faults.serving", "DroppingSqlite", "serve"]
    without_files(Tally("64 files and 100 silent connections, some writes taken back"), command, folder, token, 1_000).catch()
