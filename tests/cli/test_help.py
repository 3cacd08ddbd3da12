"""The help of every command is a checked file under help/.

Never edit one by hand: PEGWORD_REWRITE=1 makes this test write them anew.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from pegword.cli import failing
from pegword.cli.app import build
from tests.cli.conftest import Cli

REWRITE = bool(os.environ.get("PEGWORD_REWRITE"))  # read before a test clears the environment
HELP = Path(__file__).parent / "help"


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command, the program itself and groups included."""

    def below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name, deeper in getattr(command, "commands", {}).items():
            yield from below(deeper, (*words, name))

    return below(typer.main.get_command(build()), ())


def test_the_help_of_every_command_is_as_written_down(cli: Cli) -> None:
    """A change of a command shows in a diff of its help."""
    shown = {f"{'-'.join(words) or 'pegword'}.txt": cli.ok(*words, "--help").out for words in commands()}
    if REWRITE:
        for old in HELP.glob("*.txt"):
            old.unlink()
        for name, text in shown.items():
            (HELP / name).write_text(text, encoding="utf-8")

    assert {path.name: path.read_text(encoding="utf-8") for path in HELP.glob("*.txt")} == shown


def test_every_command_takes_json_and_all_that_open_a_store_take_database_and_config(cli: Cli) -> None:
    for words in commands():
        text = cli.ok(*words, "--help").out
        if "Commands:" not in text:
            assert "--json" in text, words
            assert words == ("version",) or ("--config FILE" in text and ("--database URL" in text or "--to URL" in text)), words


def test_the_first_help_tells_every_exit_code(cli: Cli) -> None:
    text = cli.ok("--help").out

    for code in (failing.OK, failing.REFUSED, failing.INVALID, failing.DENIED, failing.UNAVAILABLE, failing.INTERNAL):
        assert f"\n  {code:<4} " in text.replace("\n    ", "\n  ")


def test_no_command_at_all_is_help(cli: Cli) -> None:
    assert cli.ok().out == cli.ok("--help").out


def test_the_version_is_told_by_command_and_by_option(cli: Cli) -> None:
    assert cli.ok("version").out == cli.ok("--version").out
    assert cli.ok("version", "--json").json["version"] in cli.ok("version").out
