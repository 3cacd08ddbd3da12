"""At a terminal there are tables and colours, and nothing stored can drive it."""

import os
import pty
import select
import subprocess

import pytest

from tests.cli.conftest import ENTRY, Cli
from tests.patience import PATIENCE_S

TRICK = "a \x1b]0;x\x07 \x1b[31m \u202eb\u202c \u200bc \x9b31m [bold]markup[/bold] :smile: d"


def at_terminal(cli: Cli, *arguments: str, **more: str) -> str:
    """What a person at a terminal sees of a command."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*ENTRY, *arguments], stdin=follower, stdout=follower, stderr=follower, env={**cli.environment, **more}, close_fds=True
    )
    os.close(follower)
    seen = b""
    while select.select([leader], [], [], PATIENCE_S)[0]:
        try:
            data = os.read(leader, 65_536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not data:
            break
        seen += data
    os.close(leader)
    assert process.wait(timeout=PATIENCE_S) == 0, seen
    return seen.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("search", "markup"),
        ("show", "trick"),
        ("show", "trick", "--content"),
        ("versions", "trick"),
        ("turn", "--message", "markup", "--explain"),
    ],
)
def test_stored_text_cannot_drive_a_terminal(cli: Cli, arguments: tuple[str, ...]) -> None:
    """Escape sequences, bidirectional and zero-width characters are taken out; what looks like markup stays text."""
    cli.ok("save", "trick", TRICK)

    seen = at_terminal(cli, *arguments, NO_COLOR="1", COLUMNS="200")

    assert "markup" in seen
    assert ":smile:" in seen
    assert "[bold]" in seen
    for hidden in ("\x1b]", "\x1b[31m", "\x07", "\x9b", "\u202e", "\u202c", "\u200b"):
        assert hidden not in seen


def test_colours_are_for_terminals_that_want_them(cli: Cli) -> None:
    """None in a pipe, none with NO_COLOR."""
    cli.ok("save", "tea", "Green tea.")

    assert "\x1b[" in at_terminal(cli, "list")
    assert "\x1b[3" not in at_terminal(cli, "list", NO_COLOR="1")
    assert "\x1b" not in cli.process("list").out


def test_a_pipe_gets_the_content_as_it_is_stored(cli: Cli) -> None:
    """show --content into a file is the stored text, byte for byte."""
    cli.ok("save", "trick", TRICK)

    assert cli.ok("show", "trick", "--content").out == TRICK
    assert cli.ok("show", "trick", "--json").json["content"] == TRICK


def test_a_locale_that_cannot_spell_a_text_gets_escapes_not_a_fault(cli: Cli) -> None:
    cli.ok("save", "cat", "猫 sleeps")

    shown = cli.process("show", "cat", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")

    assert shown.code == 0
    assert r"\u732b sleeps" in shown.out
