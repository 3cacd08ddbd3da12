"""What happens on the connection itself: heads, patience, lies about lengths, other protocols; always in JSON, never for ever."""

import contextlib
import json
import select
import socket
import threading
import time
from typing import Any

import httpx2
import pytest

from pegword.http import protocol
from tests.patience import PATIENCE_S, served, until
from tests.wire.conftest import Reply, Site, read_replies, save

GET = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limits in a fraction of the time."""
    hurry(monkeypatch)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on there is little time: what a test needs beforehand is done by then, however slow the machine is."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.5)
    monkeypatch.setattr(protocol, "BODY_S", 0.8)
    monkeypatch.setattr(protocol, "WRITE_S", 0.8)
    monkeypatch.setattr(protocol, "LINGER_S", 0.5)


def connected(site: Site) -> socket.socket:
    return socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE_S)


def begun(site: Site) -> socket.socket:
    """A connection on which a request has been answered: the time for the next one begins with that one's first byte."""
    connection = connected(site)
    connection.sendall(GET + b"\r\n")
    told = b""
    while not told.endswith(b'{"status":"ok"}'):
        told += connection.recv(1_000)
    return connection


def drip(connection: socket.socket, piece: bytes) -> list[Reply]:
    """Send *piece* again and again until there is an answer; it."""
    last = time.monotonic() + PATIENCE_S
    while not select.select([connection], [], [], 0.05)[0]:
        assert time.monotonic() < last, "who sends a little now and then is never answered"
        with contextlib.suppress(OSError):  # it may have been answered, and closed, just now
            connection.sendall(piece)
    return read_replies(connection)


def post(site: Site, lengths: str, body: bytes = b"") -> bytes:
    head = f"POST /v1/api/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {site.token('alice')}\r\n{lengths}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"hello\r\n\r\n", 400, "bad_request"),
        (b"GET /livez\r\n\r\n", 400, "bad_header"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "bad_request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_request"),
        (b"CONNECT example:80 HTTP/1.1\r\nHost: example\r\n\r\n", 400, "bad_request"),
        (b"FOO /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400, "bad_request"),
        (GET + b"No colon\r\n\r\n", 400, "bad_request"),
        (GET + b"Space : x\r\n\r\n", 400, "bad_request"),
        (GET + b"Fold: x\r\n  y\r\n\r\n", 400, "bad_request"),
        (GET + b"Nul: a\x00b\r\n\r\n", 400, "bad_request"),
        (GET + b"Content-Length: -1\r\n\r\n", 400, "bad_request"),
        (GET + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, "bad_request"),
        (GET + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "bad_request"),
        (GET + b"Transfer-Encoding: gzip\r\n\r\n", 400, "bad_request"),
        (GET + b"Host: 127.0.0.1\r\n\r\n", 400, "bad_header"),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400, "bad_header"),
        (GET + b"X: " + b"y" * (64 << 10) + b"\r\n\r\n", 431, "headers_too_large"),
        (GET + b"X: " + b"y" * (8 << 20), 431, "headers_too_large"),
        (GET + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n", 431, "headers_too_large"),
        (GET + b"y" * (1 << 20), 431, "headers_too_large"),
        (b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 414, "uri_too_long"),
        (b"GET /" + b"a" * (8 << 20), 414, "uri_too_long"),
        (b"GET /?" + b"a=1&" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 414, "uri_too_long"),
        (b"A" * (1 << 20), 400, "bad_request"),
    ],
    ids=lambda part: ascii(part)[:40],
)  # fmt: skip
def test_what_is_no_request_is_refused_in_json_and_closed(server: Site, data: bytes, status: int, code: str) -> None:
    """400, 414 and 431, whatever the parser thinks; one answer, then the end of the connection."""
    replies = server.raw(data)

    assert [(r.status, r.json()["code"]) for r in replies] == [(status, code)]
    assert replies[0].headers["content-type"] == "application/json"
    if code != "bad_header":
        assert replies[0].headers["connection"] == "close"


def test_http_1_0_needs_no_host_and_closes(server: Site) -> None:
    """Old clients are served."""
    (reply,) = server.raw(b"GET /livez HTTP/1.0\r\n\r\n")

    assert (reply.status, reply.json()) == (200, {"status": "ok"})


def test_a_body_shorter_than_its_length_is_400(server: Site, alice: httpx2.Client) -> None:
    """The client stops sending: nothing is saved, and it hears why if it still listens."""
    body = b'{"name":"a","content":"x"}'
    (reply,) = server.raw(post(server, f"Content-Length: {len(body) + 10}", body), half_close=True)

    assert (reply.status, reply.json()["error"]) == (400, "the body ends before its Content-Length")
    assert reply.headers["connection"] == "close"
    assert alice.get("/v1/api/memories").json()["total"] == 0


def test_a_body_longer_than_its_length_ends_the_connection_after_one_answer(server: Site, alice: httpx2.Client) -> None:
    """What follows is no request: the first is answered, nothing is answered twice, the connection is closed."""
    body = b'{"name":"a","content":"x"}'
    whole = server.raw(post(server, f"Content-Length: {len(body)}", body + b"surplus that is no request"))
    cut = server.raw(post(server, f"Content-Length: {len(body) - 5}", body))

    assert whole[0].status == 201
    assert [r.status for r in whole[1:]] in ([], [400])
    assert cut[0].status == 400
    assert alice.get("/v1/api/memories").json()["total"] == 1


@pytest.mark.parametrize("chunks", [b"zz\r\nx\r\n", b"5\r\n{}", b"-1\r\n\r\n", b"ffffffffffffffffff\r\nx", b"2\r\n{}x\r\n0\r\n\r\n"])
def test_broken_chunks_are_400(server: Site, chunks: bytes) -> None:
    """A chunk that is none."""
    replies = server.raw(post(server, "Transfer-Encoding: chunked", chunks), half_close=True)

    assert [r.status for r in replies] == [400]


def test_a_request_that_is_whole_is_answered_after_a_half_close(server: Site) -> None:
    """`printf … | nc -N` gets its answer."""
    body = b'{"name":"a","content":"x"}'
    (reply,) = server.raw(post(server, f"Content-Length: {len(body)}", body), half_close=True)

    assert reply.status == 201


def test_requests_in_a_row_on_one_connection_are_answered_in_their_order(server: Site) -> None:
    """Pipelining, and broken bytes after it: each whole request gets its own answer."""
    replies = server.raw((GET + b"\r\n") * 5 + b"garbage\r\n\r\n", at_least=5)

    assert [r.status for r in replies][:5] == [200] * 5
    assert [r.status for r in replies][5:] in ([], [400])


def test_a_request_in_single_bytes_is_read(server: Site, alice: httpx2.Client) -> None:
    """Nothing depends on how the bytes were cut, plain UTF-8 in the path included."""
    save(alice, "café")
    request = f"GET /v1/api/memories/café HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token('alice')}\r\n\r\n".encode()
    with connected(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(request)):
            connection.sendall(request[at : at + 1])
        (reply,) = read_replies(connection)

    assert (reply.status, reply.json()["name"]) == (200, "café")


@pytest.mark.parametrize("offer", ["Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings",
                                   "Upgrade: websocket\r\nConnection: Upgrade"])  # fmt: skip
def test_an_offer_of_another_protocol_is_passed_over(server: Site, offer: str) -> None:
    """Some clients offer HTTP/2 with each request, bodies included: it is served as the HTTP/1.1 that it is."""
    body = b'{"name":"a","content":"x"}'
    data = post(server, f"{offer}\r\nContent-Length: {len(body)}", body) + GET + offer.encode() + b"\r\n\r\n" + GET + b"\r\n"
    replies = server.raw(data, at_least=3)

    assert [r.status for r in replies] == [201, 200, 200]


def test_a_client_that_asks_before_it_sends_is_told_to_go_on_or_why_not(server: Site) -> None:
    """Expect: 100-continue: 100 and then the answer, or the refusal at once."""
    body = b'{"name":"a","content":"x"}'
    with connected(server) as connection:
        connection.sendall(post(server, f"Expect: 100-continue\r\nContent-Length: {len(body)}"))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert read_replies(connection)[0].status == 201
    (reply,) = server.raw(post(server, f"Expect: 100-continue\r\nContent-Length: {1 << 30}"))
    assert reply.status == 413


@pytest.mark.parametrize("start", [b"GET /liv", b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y"])
def test_a_head_that_takes_too_long_is_408(server: Site, start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte now and then does not keep a connection: the whole head has one span of time."""
    with begun(server) as connection:
        hurry(monkeypatch)
        connection.sendall(start)
        replies = drip(connection, b"y")

    assert [(r.status, r.json()["code"]) for r in replies] == [(408, "request_timeout")]


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_says_nothing_is_closed_without_an_answer(server: Site) -> None:
    """Nothing was asked."""
    with connected(server) as connection:
        assert connection.recv(1) == b""


@pytest.mark.parametrize("lengths", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
def test_a_body_that_takes_too_long_is_408(server: Site, alice: httpx2.Client, lengths: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole body has one span of time; nothing is saved."""
    beginning = post(server, lengths, b"1\r\n{\r\n" if "chunked" in lengths else b"{")
    with begun(server) as connection, monkeypatch.context() as hurried:
        hurry(hurried)
        connection.sendall(beginning)
        replies = drip(connection, b"1\r\n \r\n" if "chunked" in lengths else b" ")

    assert [(r.status, r.json()["code"]) for r in replies] == [(408, "request_timeout")]
    assert alice.get("/v1/api/memories").json()["total"] == 0


def test_a_client_that_never_reads_its_answers_is_cut_off(server: Site, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that nobody takes do not stay in memory."""
    for number in range(60):
        save(alice, f"big_{number}", "x" * 60_000)
    hurry(monkeypatch)
    request = f"GET /v1/api/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token('alice')}\r\n\r\n".encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(PATIENCE_S)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(request * 4)
        until(lambda: connection.getsockname()[1] not in served(server.port))
        received = 0
        with pytest.raises(ConnectionError):  # noqa: PT012
            while chunk := connection.recv(1 << 20):
                received += len(chunk)
            raise ConnectionResetError

    assert received < 4 * 3_600_000


def half_sent(server: Site, count: int) -> list[socket.socket]:
    """Connections with half a head or half a body on each."""
    body = post(server, "Content-Length: 1000", b"{")
    connections = []
    for number in range(count):
        connections.append(connected(server))
        with contextlib.suppress(OSError):  # whoever is too slow to begin with has been cut off already
            connections[-1].sendall(GET if number % 2 else body)
    return connections


def test_many_slow_clients_do_not_slow_the_others(server: Site, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 half-sent heads and bodies: the rest are served while all of them are still there."""
    monkeypatch.setattr(protocol, "HEAD_S", PATIENCE_S)
    monkeypatch.setattr(protocol, "BODY_S", PATIENCE_S)
    slow = half_sent(server, 200)
    for number in range(20):
        save(alice, f"n{number}")
    there = served(server.port)
    still = sum(connection.getsockname()[1] in there for connection in slow)
    for connection in slow:
        connection.close()

    assert 200 == still


@pytest.mark.usefixtures("impatient")
def test_many_slow_clients_are_all_told_and_gone_in_the_end(server: Site) -> None:
    slow = half_sent(server, 200)
    mine = {connection.getsockname()[1] for connection in slow}
    closed = [read_replies(connection) for connection in slow]
    until(lambda: not mine & served(server.port))
    for connection in slow:
        connection.close()

    assert {reply.status for replies in closed for reply in replies} == {408}


def test_too_much_at_once_is_503_with_retry_after(server: Site, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be worked on is refused at once; probes are still answered."""
    assert server.services is not None
    monkeypatch.setattr("pegword.http.app.IN_WORK_MAX", 4)
    gate, inside = threading.Event(), threading.Semaphore(0)
    real = server.services.memories.list

    def slow(*arguments: Any, **more: Any) -> Any:
        inside.release()
        gate.wait(PATIENCE_S)
        return real(*arguments, **more)

    server.services.memories.list = slow  # type: ignore[method-assign]
    answers: list[httpx2.Response] = []
    token = server.token("alice")
    waiting = [threading.Thread(target=lambda: answers.append(server.client(token).get("/v1/api/memories"))) for _ in range(4)]
    for thread in waiting:
        thread.start()
    for _ in waiting:
        assert inside.acquire(timeout=PATIENCE_S)
    refused = alice.get("/v1/api/memories")
    alive = alice.get("/livez")
    gate.set()
    for thread in waiting:
        thread.join(PATIENCE_S)

    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
    assert alive.status_code == 200
    assert [a.status_code for a in answers] == [200] * 4
    assert alice.get("/v1/api/memories").status_code == 200


def test_bodies_together_are_bounded(server: Site, alice: httpx2.Client) -> None:
    """Many large bodies at once are refused before they fill the memory, and what they held is given back."""
    assert server.app is not None
    bodies = server.app._bodies
    bodies._bytes_max = 100
    refused = alice.post("/v1/api/memories", content=b" " * 101)
    bodies._bytes_max = 1 << 20
    served = alice.post("/v1/api/memories", json={"name": "a", "content": "x"})

    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert (served.status_code, bodies.held) == (201, 0)


def test_who_hangs_up_leaves_nothing_behind(server: Site, alice: httpx2.Client) -> None:
    """Clients that go in the middle of a body: no answer, no memory held, no error."""
    for _ in range(20):
        with connected(server) as connection:
            connection.sendall(post(server, "Content-Length: 1000000", json.dumps({"pad": "x" * 50_000}).encode()))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    app = server.app
    assert app is not None
    assert server.client().get("/livez").status_code == 200  # a new connection: it is taken after theirs
    until(lambda: (app._bodies.held, app._in_work) == (0, 0))
    assert alice.get("/v1/api/memories").status_code == 200
