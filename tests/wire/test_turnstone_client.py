"""The real clients of Turnstone, unchanged, each in an environment of its own, against our server on default settings.

They are installed by `make clients` into .venv-clients; `PEGWORD_CLIENTS` names another folder. A client that is missing is a failure.
`PEGWORD_ACCEPTANCE` names an acceptance program that is not part of this repository; where it is not at hand, no test is skipped.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.conftest import Site

ROOT = Path(__file__).parents[2]
CLIENTS = Path(os.environ.get("PEGWORD_CLIENTS", ROOT / ".venv-clients"))
PROBE = Path(__file__).with_name("sdk_probe.py")
ACCEPTANCE = Path(os.environ.get("PEGWORD_ACCEPTANCE", ROOT.parent / "shared" / "acceptance" / "turnstone_client.py"))

# The release, and the word for the kind project that its users give their keys: the newest client sends no type, and reads one word only.
RELEASES = [("1.6.9", ""), ("1.7.4", ""), ("1.8.7", "general")]


def python_of(release: str) -> Path:
    """The interpreter that has this release of the client."""
    python = CLIENTS / f"turnstone-{release}" / "bin" / "python"
    assert python.exists(), f"Turnstone's client {release} is not installed: run make clients"
    return python


def tokens(server: Site, word: str) -> tuple[str, str, str]:
    """A writer's, another user's, and a reader's."""
    return (
        server.token("alice", project_word=word),
        server.token("bob", project_word=word),
        server.token("alice", "read", project_word=word),
    )


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240, check=False)


def short_life(python: Path, server: Site, word: str) -> None:
    """Save, save again, list, search, delete, walls, and the asynchronous client."""
    done = run(python, PROBE, server.url, *tokens(server, word))

    assert (done.returncode, done.stdout, done.stderr) == (0, "all held\n", "")


def acceptance(python: Path, server: Site, word: str) -> None:
    """Every memory method of the real client, held against what the real server does: no FAIL, and nothing weaker than it could be."""
    write, other, read = tokens(server, word)
    done = run(
        python, ACCEPTANCE, "--server", server.url, "--token", write, "--other-token", other, "--read-token", read,
        "--ws-id", "harbour", "--strict", "--heavy",
    )  # fmt: skip
    faults = [line for line in done.stdout.splitlines() if line.startswith(("FAIL", "WEAK"))]

    assert (faults, done.returncode) == ([], 0), done.stdout[-2_000:] + done.stderr[-2_000:]
    assert done.stdout.count("PASS ") > 100


@pytest.mark.parametrize("judge", [short_life, acceptance] if ACCEPTANCE.exists() else [short_life], ids=lambda judge: judge.__name__)
@pytest.mark.parametrize(("release", "word"), RELEASES)
def test_the_real_client_finds_no_fault(server: Site, release: str, word: str, judge: Callable[[Path, Site, str], None]) -> None:
    """By our own program, and by the longer acceptance program where that is at hand."""
    judge(python_of(release), server, word)
