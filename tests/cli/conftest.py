"""The command line, run as a person would run it: in a home folder of its own, and nothing of this machine's settings."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pegword.cli import run
from tests.patience import PATIENCE_S

MAIN = "from pegword.cli import main; main()"
ENTRY = (sys.executable, "-c", MAIN)
SOURCE = Path(__file__).parents[2] / "src"
ACCOUNT = "sam"


@dataclass(frozen=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its one JSON document."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The JSON error on stderr."""
        return json.loads(self.err)


class Cli:
    """The command line in one home folder. Call it to run a command in this process; `process` runs the real entry point in its own."""

    def __init__(self, home: Path, environment: Mapping[str, str], capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.environment = dict(environment)
        self.database = home / "data" / "pegword" / "pegword.db"
        self._capture = capture
        self._patch = patch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        self._capture.readouterr()
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = run(arguments)
        out, err = self._capture.readouterr()
        return Result(code, out, err)

    def ok(self, *arguments: str, stdin: bytes = b"") -> Result:
        """Run a command that must succeed."""
        result = self(*arguments, stdin=stdin)
        assert result.code == 0, result.err
        return result

    def start(self, *arguments: str, entry: str = MAIN, **more: str) -> "subprocess.Popen[str]":
        """Start a command as a process of its own; *more* goes on top of its environment. *entry* is the program."""
        return subprocess.Popen(
            [sys.executable, "-c", entry, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding="utf-8", env={**self.environment, **more},
        )  # fmt: skip

    def process(self, *arguments: str, **more: str) -> Result:
        """Run a command as a process of its own."""
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=PATIENCE_S)
        return Result(process.returncode, out, err)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """A command line whose account is called sam, with an empty home."""
    for variable in [name for name in os.environ if name.startswith(("PEGWORD_", "XDG_"))]:
        monkeypatch.delenv(variable)
    for variable, value in {
        "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "LOGNAME": ACCOUNT, "USER": ACCOUNT, "COLUMNS": "100", "PYTHONPATH": str(SOURCE), "TERM": "xterm",
    }.items():  # fmt: skip
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Cli(tmp_path, os.environ, capsys, monkeypatch)


@pytest.fixture
def each_engine(cli: Cli, database: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine of this run is not SQLite, every command works on its database."""
    if isinstance(database, str):
        monkeypatch.setenv("PEGWORD_DATABASE", database)
        cli.environment["PEGWORD_DATABASE"] = database
