"""File systems as they are: a small one that fills up, and one that may only be read. Each lies in a mount space of the server's own."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.faults.harness import PATIENCE_S, Tally
from tests.faults.ledger import SERVE, Ledger, Server, ask, joined, writers
from tests.faults.test_disk import until
from tests.faults.test_kill import token as token
from tests.faults.work import look

WRITERS = 8
SPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
_FULL = 'mount -t tmpfs -o size=6m tmpfs "$0" && cp -p "$1"/pegword.db "$0"/ && head -c 4m /dev/zero > "$0"/ballast && shift && exec "$@"'
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && shift && exec "$@"'

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


@pytest.mark.parametrize("mounts", [True] if may_mount() else [])
def test_a_file_system_that_fills_up_refuses_saves_and_takes_them_again_when_there_is_room(
    tmp_path: Path, folder: Path, token: str, mounts: bool
) -> None:
    """Eight clients save until it is full: 507 with Retry-After, reads go on, readiness tells; with room, the same process goes on."""
    tally, ledger, stop, small = Tally("a file system of 6 MiB that fills up"), Ledger(), threading.Event(), tmp_path / "small"
    small.mkdir()
    server = Server([*SPACE, _FULL, str(small), str(folder), *SERVE], f"sqlite:///{small}/pegword.db", tmp_path)
    inside = Path(f"/proc/{server.process.pid}/root{small}")
    threads = writers(WRITERS, server.port, token, ledger, 1, stop)
    until(lambda: ledger.answered(507) > 100)
    wrong = reads_go_on(server.port, token)
    until(lambda: ask(server.port, "GET", "/readyz")[0] == 507, 20)  # it looks again every five seconds
    (inside / "ballast").unlink()
    before = ledger.answers
    until(lambda: ledger.answers > before + 100)
    stop.set()
    joined(threads)
    for name in ("pegword.db", "pegword.db-wal"):
        (tmp_path / name).write_bytes((inside / name).read_bytes())
    refusals = ledger.answered(507)
    wrong += [f"answered {answer}" for answer in ledger.statuses if answer[0] in (500, 503)] + ledger.wrong
    wrong += [f"ended with {code}"] if (code := server.stop()) else []
    found, unsound = look(tmp_path / "pegword.db")
    tally.notes["answered 507"] = refusals
    tally.book(
        acknowledged=ledger.answers,
        lost=ledger.lost({name: text for (_, name), text in found.items()}),
        wrong=wrong + unsound,
    )
    tally.hold()


@pytest.mark.parametrize("mounts", [True] if may_mount() else [])
def test_a_file_system_that_may_only_be_read_is_served_for_reading(folder: Path, tmp_path: Path, token: str, mounts: bool) -> None:
    """The server starts, reads are answered, each write is refused with 503, and it ends in good order."""
    tally = Tally("a file system that may only be read")
    server = Server([*SPACE, _READ_ONLY, str(folder), "-", *SERVE], f"sqlite:///{folder}/pegword.db", tmp_path)
    wrong = reads_go_on(server.port, token)
    for _ in range(5):
        status, answer, headers = ask(server.port, "POST", "/v1/api/memories", {"name": "n", "content": "x1"}, token)
        if (status, answer.get("code")) != (503, "read_only") or int(headers.get("retry-after", 0)) < 1:
            wrong.append(f"a save was answered {status} {answer}")
    wrong += [f"ended with {code}"] if (code := server.stop()) else []
    found, unsound = look(folder / "pegword.db")
    tally.book(wrong=wrong + unsound + [f"{key} is there" for key in found], faults=5)
    tally.hold()
