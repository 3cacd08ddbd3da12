"""Runs what the documentation shows, and compares what it prints.

Fenced blocks, by their first line:

    ```console         commands after "$ " (continued after "> ") and what they print; run in order, in one shell a page
    ```console serve   one command that keeps running, and what it prints first; the other blocks of the page talk to it
    ```python          a program; run by itself
    ```python FILE     a program that lies in the repository at FILE: shown as it is there, and put there for the commands of the page
    ```text output     what the program above it prints
    ```toml config     a config file; loaded

Any other block is not run. Ids, tokens and times differ from run to run: of times only the form is compared, of ids and tokens which of
them are the same. All else is compared as it is: scores, weights, hashes, counts.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.patience import Port

ROOT = Path(__file__).parents[1]
PROGRAMS = tuple(f"python examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.py")))
HOME_SHOWN = "~"
ADDRESS_SHOWN = "127.0.0.1:8080"
STARTED = "Press Ctrl-C to stop"
WAIT_S = 120

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "-- end of command --"
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?")
_IDS = re.compile(
    r"(?P<token>\bpw_[\w-]{43})|(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<user>\b[0-9a-f]{16}\b)|(?P<key>\b[0-9a-f]{12}\b)"
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its info string, its text, and where the text lies in the page."""

    info: str
    text: str
    start: int
    end: int


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of *page*."""
    for found in _FENCE.finditer(page):
        yield Block(found[1].strip(), found[2], found.start(2), found.end(2))


def canonical(text: str) -> str:
    """*text* without what differs from run to run: each id is the number of its first place among those of its kind."""
    met: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        return f"<{found.lastgroup} {met.setdefault(found[0], len(met))}>"

    return _IDS.sub(numbered, _TIME.sub("<time>", text))


class Page:
    """One page being run, with a home folder, a shell and a server of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._reserved = Port()
        self._port = self._reserved.number
        programs = home / "bin"
        programs.mkdir()
        script = f"#!/bin/sh\nexec {sys.executable} -c 'from pegword.cli import main; main()' \"$@\"\n"
        (programs / "pegword").write_text(script, encoding="utf-8")
        (programs / "pegword").chmod(0o755)
        # Not a link: the interpreter would look for its packages beside that.
        (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
        (programs / "python").chmod(0o755)
        self._environment = {
            "HOME": str(home), "LOGNAME": "sam", "USER": "sam", "PYTHONPATH": str(ROOT / "src"), "LANG": "C.UTF-8", "COLUMNS": "100",
            "PATH": f"{programs}:{os.environ['PATH']}", "PEGWORD_SERVER__PORT": str(self._port), "NO_PROXY": "*", "no_proxy": "*",
        }  # fmt: skip
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=home, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, encoding="utf-8",
        )  # fmt: skip
        self._server: subprocess.Popen[str] | None = None
        self._program_output = ""

    def close(self) -> None:
        """Stop the shell and the server."""
        for process in (self._server, self._shell):
            if process is not None:
                process.terminate()
                process.communicate(timeout=WAIT_S)
        self._reserved.free()

    def run(self, block: Block) -> str:
        """Run *block*; its text as it really is."""
        if block.info == "console":
            return "".join(f"{self._command_lines(command)}{self._printed(command)}" for command in _commands(block.text))
        if block.info == "console serve":
            return self._serve(block.text)
        if block.info == "python":
            self._program_output = self._run([sys.executable, "-W", "error", "-c", block.text])
        if block.info in PROGRAMS:
            return self._put(block.info.removeprefix("python "))
        if block.info == "text output":
            return self._program_output
        if block.info == "toml config":
            path = self._home / "example.toml"
            path.write_text(block.text, encoding="utf-8")
            code = "import sys; from pathlib import Path; from pegword.settings import load; print(load(Path(sys.argv[1]), {}).warnings)"
            assert self._run([sys.executable, "-c", code, str(path)]) == "()\n"
        return block.text

    def _put(self, name: str) -> str:
        """Put a program of the repository into the home folder; its text."""
        text = (ROOT / name).read_text(encoding="utf-8")
        (self._home / name).parent.mkdir(exist_ok=True)
        (self._home / name).write_text(text, encoding="utf-8")
        return text

    def _printed(self, command: str) -> str:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {self._real(command)}\n}} </dev/null\nprintf '\\n%s\\n' '{_MARK}'\n")
        self._shell.stdin.flush()
        lines: list[str] = []
        for line in self._shell.stdout:
            if line == f"{_MARK}\n":
                break
            lines.append(line)
        real = self._shown("".join(lines)[:-1])
        if real and not real.endswith("\n"):
            real += "\n"
        return real

    def _serve(self, text: str) -> str:
        """Start the server that *text* starts, and wait until it says that it is ready."""
        (command,) = _commands(text)
        self._server = subprocess.Popen(
            ["bash", "-c", f"exec {self._real(command)}"], cwd=self._home, env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8",
        )  # fmt: skip
        assert self._server.stdout is not None
        lines: list[str] = []
        until = time.monotonic() + WAIT_S
        for line in self._server.stdout:
            lines.append(line)
            if STARTED in line or time.monotonic() > until:
                break
        # What it logs later must not fill the pipe.
        threading.Thread(target=self._server.stdout.read, daemon=True).start()
        return self._command_lines(command) + self._shown("".join(lines))

    def _run(self, words: list[str]) -> str:
        ran = subprocess.run(
            words, cwd=self._home, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", timeout=WAIT_S, check=False,
        )  # fmt: skip
        return self._shown(ran.stdout)

    def _real(self, text: str) -> str:
        return text.replace(ADDRESS_SHOWN, f"127.0.0.1:{self._port}")

    def _shown(self, text: str) -> str:
        return text.replace(f"127.0.0.1:{self._port}", ADDRESS_SHOWN).replace(str(self._home), HOME_SHOWN)

    @staticmethod
    def _command_lines(command: str) -> str:
        first, *rest = command.split("\n")
        return "".join([f"$ {first}\n", *(f"> {line}\n" for line in rest)])


def _commands(text: str) -> list[str]:
    """The commands of a console block."""
    found: list[str] = []
    goes_on = False
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(line[2:])
        elif line.startswith("> ") and goes_on:
            found[-1] += f"\n{line[2:]}"
        goes_on = line.startswith("$ ") or (goes_on and line.startswith("> "))
    return found
