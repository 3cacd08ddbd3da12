"""Whenever a command is told to end, it ends without a traceback: with a word, or silently."""

import signal
from pathlib import Path

import pytest

from tests.cli.conftest import SOURCE, Cli

# What a command loads, in about this order; and from where it is that the signal comes.
LOADED = ("typer", "numpy", "Stemmer", "apsw", "msgspec", "starlette", "uvicorn")
INTERRUPTING = """\
import importlib.util, os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Interrupting())
"""


def started_with(cli: Cli, folder: Path, name: str, sig: signal.Signals, *arguments: str) -> tuple[int, str, str]:
    """How a command ends that gets *sig* while it loads *name*: exit code, stdout, stderr."""
    (folder / "sitecustomize.py").write_text(INTERRUPTING.format(name=name, number=int(sig)), encoding="utf-8")
    ended = cli.process(*arguments, PYTHONPATH=f"{folder}:{SOURCE}")
    return ended.code, ended.out, ended.err


@pytest.mark.parametrize("name", LOADED)
def test_an_interrupt_while_it_loads_is_130_and_silent(cli: Cli, tmp_path: Path, name: str) -> None:
    """Ctrl-C at any moment of a start: no traceback."""
    assert (130, "", "") == started_with(cli, tmp_path, name, signal.SIGINT, "serve", "--port", "0")


@pytest.mark.parametrize("name", LOADED)
def test_a_termination_while_it_loads_is_silent(cli: Cli, tmp_path: Path, name: str) -> None:
    """The signal does what it does to every program."""
    assert (-signal.SIGTERM, "", "") == started_with(cli, tmp_path, name, signal.SIGTERM, "serve", "--port", "0")


@pytest.mark.parametrize("arguments", [("save", "a", "b"), ("list",), ("turn", "--message", "a"), ("user", "list")])
def test_every_command_ends_so(cli: Cli, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert (130, "", "") == started_with(cli, tmp_path, "apsw", signal.SIGINT, *arguments)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_connections_are_taken_ends_in_good_order(cli: Cli, tmp_path: Path, sig: signal.Signals) -> None:
    """uvicorn loads its protocol while it starts, when it minds signals already."""
    code, _, err = started_with(cli, tmp_path, "uvicorn.lifespan.off", sig, "serve", "--port", "0")

    assert (0, "pegword: stopped\n") == (code, err)


# The signal comes when a file is about to be flushed: it is there, and not finished.
FLUSHING = """\
import os
flush = os.fsync
def interrupting(descriptor):
    os.fsync = flush
    os.kill(os.getpid(), {number})
    return flush(descriptor)
os.fsync = interrupting
"""


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("arguments", [("export", "new.jsonl"), ("backup", "new.db"), ("restore", "kept.db", "--replace")])
def test_what_is_told_to_end_leaves_no_half_made_file(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], sig: signal.Signals) -> None:
    """It is tidied up, and the process ends as the signal has it."""
    cli.ok("save", "tea", "tea at four")
    cli.ok("backup", str(tmp_path / "kept.db"))
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text(FLUSHING.format(number=int(sig)), encoding="utf-8")
    words = [str(tmp_path / word) if "." in word else word for word in arguments]
    before = names(tmp_path)
    ended = cli.process(*words, PYTHONPATH=f"{tmp_path / 'start'}:{SOURCE}")

    assert (130 if sig == signal.SIGINT else -sig, "") == (ended.code, ended.err)
    assert before == names(tmp_path)
    assert "tea at four" in cli.ok("show", "tea").out


def names(folder: Path) -> list[str]:
    """Every file below *folder*, but for those that SQLite keeps beside an open database."""
    return sorted(str(path) for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm", ".pyc", "__pycache__")))
