"""Clients over HTTP under whom something is broken: what was acknowledged, what was refused, what is in doubt."""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S, Port

START_S_MAX = 120.0
NAMES_MAX = 300  # of one writer: under load for long, a store stays as large
PYTHON = sys.executable
SERVE = (PYTHON, "-m", "pegword", "serve")
UNHURRIED = (PYTHON, "-m", "tests.faults.serving", "unhurried", "serve")  # the same, and nobody gives up because a machine is slow
IN_DOUBT = ("in_doubt", "ending")  # the codes of a 503 that does not say that nothing was changed


@dataclass
class Ledger:
    """Written before each request and after each answer. Contents by name; a name may be saved again with other content.

    *statuses* counts the answers by status and code. *wrong* names the answers that nobody may get: an accident, or "not now" without a
    word on when.
    """

    intended: dict[str, list[str]] = field(default_factory=dict)
    acknowledged: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    statuses: Counter[tuple[int, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    answers: int = 0

    def answered(self, *statuses: int) -> int:
        """How many writes were answered one of *statuses*; writers may be at work."""
        return sum(number for (status, _), number in dict(self.statuses).items() if status in statuses)

    def open(self) -> int:
        """Of how many names a change was asked for and has no answer yet, or is in doubt; writers may be at work."""
        return sum(bool(contents) for contents in list(self.intended.values()))

    def lost(self, stored: dict[str, str]) -> list[str]:
        """What *stored* (content by name) shows otherwise than it was answered. What is in doubt may be there or not; what was refused may
        not."""
        missing = []
        for name, content in self.acknowledged.items():
            if stored.get(name) not in (content, *self.intended.get(name, [])):
                missing.append(f"{name}: acknowledged {content[:30]!r}, stored {str(stored.get(name))[:30]!r}")
        missing += [f"{name}: its deletion was acknowledged, yet it is there" for name in self.deleted if name in stored]
        known = self.acknowledged.keys() | self.deleted | {name for name, contents in self.intended.items() if contents}
        return missing + [f"{name}: refused, yet it is there" for name in stored.keys() - known]


class Server:
    """A server process on a port of its own. *command* gets ``--database``, ``--host`` and ``--port`` appended."""

    def __init__(self, command: Sequence[str], database: str, home: Path, **more: Any) -> None:
        self._reserved = Port()
        self.port = self._reserved.number
        self.process = subprocess.Popen(
            [*command, "--database", database, "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)},
            **more,
        )
        self._said: list[bytes] = []
        assert self.process.stderr is not None
        self._reader = threading.Thread(target=self._said.extend, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        self._wait()

    @property
    def said(self) -> str:
        """What it wrote to its error output, when it has ended."""
        return b"".join(self._said).decode()

    def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self.ended()

    def stop(self) -> int:
        """Ask the process to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Wait for the process to end; its exit code."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self._reserved.free()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def _wait(self) -> None:
        until = time.monotonic() + START_S_MAX
        while time.monotonic() < until:
            if self.process.poll() is not None:
                self._reader.join(10)
                raise AssertionError(f"the server ended: {self.said}")
            try:
                if ask(self.port, "GET", "/livez")[0] == 200:
                    return
            except OSError:
                time.sleep(0.02)
        self.kill()
        raise AssertionError("the server did not answer")


def ask(
    port: int, method: str, path: str, body: Any = None, token: str = "", patience_s: float = PATIENCE_S
) -> tuple[int, Any, dict[str, str]]:
    """One request on a connection of its own: status, parsed body, headers in lower case."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience_s)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), _headers(token))
        with connection.getresponse() as response:
            return response.status, json.loads(response.read()), {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()


class Writer(threading.Thread):
    """One client that saves, changes and deletes until its server is gone, or until *stop*."""

    def __init__(self, number: int, port: int, token: str, ledger: Ledger, seed: int, stop: threading.Event | None = None) -> None:
        super().__init__(daemon=True)
        self.number = number
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self._token = token
        self._ledger = ledger
        self._random = random.Random(f"{seed}-{number}")
        self._round = seed
        self._stop_asked = stop or threading.Event()

    def run(self) -> None:
        step = 0
        try:
            while not self._stop_asked.is_set():
                name = f"r{self._round}_w{self.number}_{self._random.randrange(min(step // 2 + 1, NAMES_MAX))}"
                step += 1
                self.save(name, f"content {step} of {name} {'words ' * self._random.randrange(60)} x{self._random.getrandbits(40):x}")
                if self._random.random() < 0.1:
                    self.remove(name)
        except (OSError, http.client.HTTPException):
            return
        finally:
            self._connection.close()

    def save(self, name: str, content: str) -> None:
        """Save, and book the answer."""
        ledger = self._ledger
        ledger.intended.setdefault(name, []).append(content)
        was_deleted = name in ledger.deleted
        ledger.deleted.discard(name)
        status, code = self._ask("POST", "/v1/api/memories", {"name": name, "content": content})
        if status in (200, 201):
            ledger.acknowledged[name] = content
            ledger.intended[name] = []
        elif code not in IN_DOUBT:
            ledger.intended[name].remove(content)
            if was_deleted:
                ledger.deleted.add(name)

    def remove(self, name: str) -> None:
        """Delete, and book the answer."""
        ledger = self._ledger
        kept = ledger.acknowledged.pop(name, None)
        if kept is not None:
            ledger.intended.setdefault(name, []).append(kept)  # in doubt until the answer: there or not
        status, code = self._ask("DELETE", f"/v1/api/memories/{name}", None)
        if status == 200:
            ledger.deleted.add(name)
            ledger.intended[name] = []
        elif code not in IN_DOUBT and kept is not None:
            ledger.acknowledged[name] = kept
            ledger.intended[name].remove(kept)

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, str]:
        self._connection.request(method, path, None if body is None else json.dumps(body), _headers(self._token))
        with self._connection.getresponse() as response:
            answer = json.loads(response.read())
            status, code = response.status, answer.get("code", "")
            self._ledger.statuses[status, code] += 1
            if status in (503, 507) and int(response.headers.get("Retry-After", "0")) < 1:
                self._ledger.wrong.append(f"{status} {code} without Retry-After")
        if status in (200, 201):
            self._ledger.answers += 1
        elif status == 404 and method == "DELETE":
            pass
        elif status in (429, 503, 507):
            time.sleep(0.005)
        else:
            self._ledger.wrong.append(f"{method} was answered {status}: {answer}")
        return status, code


def writers(count: int, port: int, token: str, ledger: Ledger, seed: int, stop: threading.Event | None = None) -> list[Writer]:
    """*count* clients at work."""
    threads = [Writer(number, port, token, ledger, seed, stop) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def joined(threads: Sequence[threading.Thread], patience_s: float = 2 * PATIENCE_S) -> None:
    """Wait for all of *threads*."""
    until = time.monotonic() + patience_s
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
        assert not thread.is_alive(), "a client was never answered"


def _headers(token: str) -> dict[str, str]:
    return {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
