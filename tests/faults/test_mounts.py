"""File systems as they are: a small one that fills up, and one that may only be read. Each lies in a mount space of the server's own."""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.harness import PATIENCE_S, Tally
from tests.faults.ledger import PYTHON, SERVE, UNHURRIED, Ledger, Server, ask, joined, writers
from tests.faults.test_kill import token as token
from tests.faults.work import look
from tests.patience import comes_to, until

WRITERS = 8
DEAF = 300  # saves that are taken when there is no room show that nobody listens to it
SPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
_FULL = 'mount -t tmpfs -o size=6m tmpfs "$0" && cp -p "$1"/pegword.db "$0"/ && head -c $2 /dev/zero > "$0"/ballast && shift 2 && exec "$@"'
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && shift && exec "$@"'
# A copy as of one moment, made inside: files of a store in use cannot be copied one by one.
_KEEP = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as source, sqlite3.connect(sys.argv[2]) as target:
    source.backup(target)
"""

pytestmark = pytest.mark.timeout(PATIENCE_S)


def may_mount() -> bool:
    """Whether this user may make a mount space of their own; where not, the disks that are pretended have to do."""
    return sys.platform == "linux" and not subprocess.run([*SPACE, "true"], capture_output=True, check=False).returncode


def reads_go_on(port: int, token: str) -> list[str]:
    """Which reads are not answered."""
    asked = {
        "list": ask(port, "GET", "/v1/api/memories", token=token),
        "search": ask(port, "POST", "/v1/api/memories/search", {"query": "content"}, token),
        "/livez": ask(port, "GET", "/livez"),
    }
    return [f"{name} answered {answer[:2]}" for name, answer in asked.items() if answer[0] != 200]


def fill_up(tally: Tally, command: Sequence[str], folder: Path, home: Path, token: str, ballast: str, enough: int) -> Tally:
    """Eight clients save until the file system is full and *enough* of them were refused or, which is as bad as can be, hundreds were
    taken all the same; then there is room again."""
    ledger, stop, small = Ledger(), threading.Event(), home / "small"
    small.mkdir()
    server = Server([*SPACE, _FULL, str(small), str(folder), ballast, *command], f"sqlite:///{small}/pegword.db", home)
    inside = Path(f"/proc/{server.process.pid}/root{small}")
    threads = writers(WRITERS, server.port, token, ledger, 1, stop)
    until(lambda: bool(ledger.answered(507)) or not os.statvfs(inside).f_bavail)
    taken = ledger.answers
    until(lambda: ledger.answered(507) >= enough or ledger.answers >= taken + DEAF)
    wrong = reads_go_on(server.port, token)
    # What is as small as a probe may find room in what a larger write has left of its place, and so it may be asked several times.
    told = comes_to(lambda: ask(server.port, "GET", "/readyz")[0] == 507, PATIENCE_S if ledger.answered(507) else 0)
    wrong += [] if told else ["/readyz never said that it is full"]
    (inside / "ballast").unlink()
    before = ledger.answers
    wrong += [] if comes_to(lambda: ledger.answers > before + 100) else ["no save was taken when there was room again"]
    stop.set()
    joined(threads)
    copied = ["nsenter", "--user", "--mount", "--preserve-credentials", "--target", str(server.process.pid)]
    subprocess.run([*copied, sys.executable, "-c", _KEEP, f"{small}/pegword.db", str(home / "pegword.db")], check=True)
    wrong += [f"answered {answer}" for answer in ledger.statuses if answer[0] in (500, 503)] + ledger.wrong
    wrong += [f"ended with {code}"] if (code := server.stop()) else []
    found, unsound = look(home / "pegword.db")
    tally.notes["answered 507"] = ledger.answered(507)
    tally.book(
        acknowledged=ledger.answers,
        lost=ledger.lost({name: text for (_, name), text in found.items()}),
        wrong=wrong + unsound,
    )
    return tally


@pytest.mark.parametrize("mounts", [True] if may_mount() else [])
def test_a_file_system_that_fills_up_refuses_saves_and_takes_them_again_when_there_is_room(
    tmp_path: Path, folder: Path, token: str, mounts: bool
) -> None:
    """507 with Retry-After, reads go on, readiness tells; with room, the same process goes on."""
    fill_up(Tally("a file system of 6 MiB that fills up"), UNHURRIED, folder, tmp_path, token, "4m", 100).hold()


@pytest.mark.parametrize("mounts", [True] if may_mount() else [])
def test_a_server_that_does_not_listen_to_a_full_file_system_is_caught(tmp_path: Path, folder: Path, token: str, mounts: bool) -> None:
    command = [PYTHON, "-m", "tests.faults.serving", "CheerfulSqlite", "serve"]
    fill_up(Tally("a file system that fills up, answered as done"), command, folder, tmp_path, token, "5m", 1).catch()


def only_read(tally: Tally, command: Sequence[str], folder: Path, home: Path, token: str) -> Tally:
    """A server whose folder may only be read, asked to read and to write."""
    server = Server([*SPACE, _READ_ONLY, str(folder), "-", *command], f"sqlite:///{folder}/pegword.db", home)
    wrong = reads_go_on(server.port, token)
    for _ in range(5):
        status, answer, headers = ask(server.port, "POST", "/v1/api/memories", {"name": "n", "content": "x1"}, token)
        if (status, answer.get("code")) != (503, "read_only") or int(headers.get("retry-after", 0)) < 1:
            wrong.append(f"a save was answered {status} {answer}")
    wrong += [f"ended with {code}"] if (code := server.stop()) else []
    found, unsound = look(folder / "pegword.db")
    tally.book(wrong=wrong + unsound + [f"{key} is there" for key in found], faults=5)
    return tally


@pytest.mark.parametrize("mounts", [True] if may_mount() else [])
def test_a_file_system_that_may_only_be_read_is_served_for_reading(folder: Path, tmp_path: Path, token: str, mounts: bool) -> None:
    """The server starts, reads are answered, each write is refused with 503, and it ends in good order."""
    only_read(Tally("a file system that may only be read"), SERVE, folder, tmp_path, token).hold()


@pytest.mark.parametrize("mounts", [True] if may_mount() else [])
def test_a_server_that_takes_it_for_an_accident_is_caught(folder: Path, tmp_path: Path, token: str, mounts: bool) -> None:
    command = [PYTHON, "-m", "tests.faults.serving", "ConfusedSqlite", "serve"]
    only_read(Tally("a file system that may only be read, not understood"), command, folder, tmp_path, token).catch()
