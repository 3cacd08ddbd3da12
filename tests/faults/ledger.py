"""A server under writers that is killed: what was acknowledged, what was refused, what is in doubt."""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

START_S_MAX = 30.0


@dataclass
class Ledger:
    """Written before each request and after each answer. Contents by name; a name may be saved again with other content."""

    intended: dict[str, list[str]] = field(default_factory=dict)
    acknowledged: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    answers: int = 0


class Server:
    """A server process on a port of its own. *command* gets ``--database``, ``--host`` and ``--port`` appended."""

    def __init__(self, command: list[str], database: Path, home: Path) -> None:
        self.port = _free_port()
        self._process = subprocess.Popen(
            [*command, "--database", f"sqlite:///{database}", "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)},
        )
        self._wait()

    def kill(self) -> None:
        """End the process as a crash would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def stop(self) -> int:
        """Ask the process to end, and return its exit code."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(20)
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    def _wait(self) -> None:
        until = time.monotonic() + START_S_MAX
        while time.monotonic() < until:
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                raise AssertionError(f"the server ended: {self._process.stderr.read().decode()}")
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.02)
            finally:
                connection.close()
        raise AssertionError("the server did not answer")


class Writer(threading.Thread):
    """One client that saves, changes and deletes until its server is gone."""

    def __init__(self, number: int, port: int, token: str, ledger: Ledger, seed: int) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._ledger = ledger
        self._random = random.Random(f"{seed}-{number}")
        self._round = seed

    def run(self) -> None:
        step = 0
        try:
            while True:
                name = f"r{self._round}_w{self.number}_{self._random.randrange(step // 2 + 1)}"
                step += 1
                self.save(name, f"content {step} of {name} " + "words " * self._random.randrange(60))
                if self._random.random() < 0.1:
                    self.remove(name)
        except (OSError, http.client.HTTPException):
            return
        finally:
            self.connection.close()

    def save(self, name: str, content: str) -> None:
        ledger = self._ledger
        ledger.intended.setdefault(name, []).append(content)
        ledger.deleted.discard(name)
        status = self.ask("POST", "/v1/api/memories", json.dumps({"name": name, "content": content}))
        if status in (200, 201):
            ledger.answers += 1
            ledger.acknowledged[name] = content
            ledger.intended[name] = []

    def remove(self, name: str) -> None:
        ledger = self._ledger
        kept = ledger.acknowledged.pop(name, None)
        if kept is not None:
            ledger.intended.setdefault(name, []).append(kept)  # in doubt until the answer: there or not
        if self.ask("DELETE", f"/v1/api/memories/{name}", None) == 200:
            ledger.answers += 1
            ledger.deleted.add(name)
            ledger.intended[name] = []

    def ask(self, method: str, path: str, body: str | None) -> int:
        self.connection.request(method, path, body, self._headers)
        with self.connection.getresponse() as response:
            response.read()
            return response.status


def crash_rounds(command: list[str], database: Path, home: Path, token: str, *, rounds: int, writers: int, seed: int) -> Ledger:
    """Start the server, let *writers* write, kill it at a random moment; again and again, with one ledger."""
    chance = random.Random(seed)
    ledger = Ledger()
    for number in range(rounds):
        server = Server(command, database, home)
        threads = [Writer(n, server.port, token, ledger, seed * 1_000 + number) for n in range(writers)]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.05, 0.6))
        server.kill()
        for thread in threads:
            thread.join(10)
    return ledger


def lost(ledger: Ledger, stored: dict[str, str]) -> list[str]:
    """The acknowledged changes that *stored* (content by name) does not show. What is in doubt may be there or not."""
    missing = []
    for name, content in ledger.acknowledged.items():
        if stored.get(name) not in (content, *ledger.intended.get(name, [])):
            missing.append(f"{name}: acknowledged {content[:30]!r}, stored {str(stored.get(name))[:30]!r}")
    missing += [f"{name}: its deletion was acknowledged, yet it is there" for name in ledger.deleted if name in stored]
    return missing


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


PYTHON = sys.executable
