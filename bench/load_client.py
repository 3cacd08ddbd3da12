"""The clients of `bench.load`, all in one process on one thread: reads one order, a JSON line, and answers with what it measured.

Each client has one connection, kept alive, and sends its next request when it has the answer to the last. Requests are bytes that lie
ready but for a name or a number, and of an answer only status and length are read: little that takes time but the server.
"""

import json
import random
import select
import socket
import sys
import time
from typing import Any

ANSWER_S_MAX = 60.0
RECEIVE_BYTES = 1 << 18
SEARCH_LIMIT, LIST_LIMIT = 20, 100
_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Requests:
    """Makes the requests of an order. What is saved is called *prefix* and a number, in the order of sending."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {order['token']}\r\n".encode()
        self._json_head = self._head + b"Content-Type: application/json\r\nContent-Length: "
        self._texts = [json.dumps(text).encode() for text in order["texts"]]
        self._queries = [json.dumps(query).encode() for query in order["queries"]]
        self._own = bool(order["own_scopes"])
        self._prefix = order["prefix"].encode()
        self._chosen = random.Random(order["seed"])
        self.numbered = 0

    def make(self, kind: str, client: int) -> bytes:
        """One request of *kind* by the client of that number: ``save``, ``delete``, ``search``, ``list`` or ``turn``."""
        place = b'"scope":"workstream","scope_id":"s%d"' % client if self._own else b'"scope":"global"'
        if kind in ("save", "delete"):
            number = self.numbered
            name = b"%s%d" % (self._prefix, number)
            self.numbered += 1
            if kind == "delete":
                return b"DELETE /v1/api/memories/%s?scope=global HTTP/1.1\r\n%s\r\n" % (name, self._head)
            content = self._texts[number % len(self._texts)]  # in their order, so that two servers come to hold the same
            return self._post(b"/v1/api/memories", b'{"name":"%s","content":%s,%s}' % (name, content, place))
        if kind == "list":
            scope = b"&scope=workstream&scope_id=s%d" % client if self._own else b""
            return b"GET /v1/api/memories?limit=%d%s HTTP/1.1\r\n%s\r\n" % (LIST_LIMIT, scope, self._head)
        query = self._chosen.choice(self._queries)
        if kind == "search":
            where = b"," + place if self._own else b""
            return self._post(b"/v1/api/memories/search", b'{"query":%s,"limit":%d%s}' % (query, SEARCH_LIMIT, where))
        before = self._chosen.choice(self._queries)
        said = b'{"role":"user","content":%s},{"role":"assistant","content":"Let me see."},{"role":"user","content":%s}' % (before, query)
        return self._post(b"/v1/api/turn", b'{"messages":[%s],"session":{"workstream_id":"s%d"}}' % (said, client))

    def _post(self, path: bytes, body: bytes) -> bytes:
        return b"POST %s HTTP/1.1\r\n%s%d\r\n\r\n%s" % (path, self._json_head, len(body), body)


class Client:
    """One connection, and the request that is under way on it."""

    def __init__(self, number: int, address: tuple[str, int]) -> None:
        self.number = number
        self._address = address
        self.kind = ""
        self.sent_at = 0.0
        self._held = b""
        self.socket = self._connected()

    def send(self, kind: str, request: bytes) -> None:
        """Send the next request."""
        self.kind, self.sent_at, self._held = kind, time.perf_counter(), b""
        self.socket.sendall(request)

    def receive(self) -> int:
        """Read what is there: the status once the answer is whole, 0 before, -1 when the connection is gone."""
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except OSError:
            return -1
        if not data:
            return -1
        held = self._held = self._held + data if self._held else data
        end = held.find(_END)
        if end < 0:
            return 0
        head = held[:end].lower()
        length = int(head[head.index(_LENGTH) + len(_LENGTH) :].split(b"\r\n", 1)[0])
        return int(held[9:12]) if len(held) >= end + len(_END) + length else 0

    def reconnect(self) -> None:
        """Begin with a new connection."""
        self.socket.close()
        self.socket = self._connected()

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._address, timeout=ANSWER_S_MAX)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Load:
    """An order on its way: *seconds* long, or so many *requests*, whichever ends first; what is under way then is still waited for."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._seconds = order["seconds"] or float("inf")
        self._left = order["requests"] or sys.maxsize
        self._kinds = random.Random(order["seed"]).choices(list(order["kinds"]), list(order["kinds"].values()), k=1 << 14)
        self._requests = Requests(order)
        addresses = [tuple(address) for address in order["addresses"]]
        self._clients = [Client(number, addresses[number % len(addresses)]) for number in range(order["clients"])]
        self._times: dict[str, list[float]] = {kind: [] for kind in order["kinds"]}
        self._statuses: dict[str, dict[str, int]] = {kind: {} for kind in order["kinds"]}
        self._sent = 0

    def run(self) -> dict[str, Any]:
        """Do it. Times in milliseconds; a connection that was lost counts as status ``lost``."""
        poll = select.poll()
        by_descriptor = {client.socket.fileno(): client for client in self._clients}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        used, start = time.process_time(), time.perf_counter()
        until = start + self._seconds
        busy = sum(self._next(client) for client in self._clients)
        while busy:
            ready = poll.poll(ANSWER_S_MAX * 1_000)
            if not ready:
                raise TimeoutError(f"{busy} answers did not come within {ANSWER_S_MAX:.0f} s")
            for descriptor, _ in ready:
                client = by_descriptor[descriptor]
                status = client.receive()
                if status == 0:
                    continue
                self._note(client, status)
                if status < 0:
                    poll.unregister(descriptor)
                    client.reconnect()
                    by_descriptor[client.socket.fileno()] = client
                    poll.register(client.socket.fileno(), select.POLLIN)
                busy -= time.perf_counter() >= until or not self._next(client)
        took = time.perf_counter() - start
        return {
            "seconds": took, "cpu": time.process_time() - used, "times": self._times, "statuses": self._statuses,
            "numbered": self._requests.numbered,
        }  # fmt: skip

    def _next(self, client: Client) -> bool:
        """Let *client* send its next request, if there is one."""
        if self._sent >= self._left:
            return False
        kind = self._kinds[self._sent % len(self._kinds)]
        self._sent += 1
        client.send(kind, self._requests.make(kind, client.number))
        return True

    def _note(self, client: Client, status: int) -> None:
        self._times[client.kind].append((time.perf_counter() - client.sent_at) * 1_000)
        name = "lost" if status < 0 else str(status)
        self._statuses[client.kind][name] = self._statuses[client.kind].get(name, 0) + 1


if __name__ == "__main__":
    print(json.dumps(Load(json.loads(sys.stdin.readline())).run()))
