"""The command turn."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.fixture
def stocked(cli: Cli) -> Cli:
    """A command line with three memories."""
    cli.ok("save", "deploy_day", "We deploy on Tuesdays.")
    cli.ok("save", "backup_time", "Backups run at three in the morning.")
    cli.ok("save", "plan", "The freeze begins on Friday.", "--scope", "workstream", "--scope-id", "ws-1")
    return cli


def test_stdout_is_the_text_for_the_system_message_and_nothing_else(stocked: Cli) -> None:
    """Block, blank line, hint."""
    shown = stocked.ok("turn", "--message", "On which day do we deploy?")

    answer = stocked.ok("turn", "--message", "On which day do we deploy?", "--json").json
    assert (f"{answer['text']}\n", "") == (shown.out, shown.err)
    assert f"{answer['block']}\n\n{answer['hint']}" == answer["text"]
    assert [m["name"] for m in answer["memories"]] == ["deploy_day"]


def test_nothing_relevant_is_no_block(stocked: Cli) -> None:
    """Silence is a good answer; the hint still tells the true number."""
    answer = stocked.ok("turn", "--message", "zebra xylophone", "--json").json

    assert (answer["block"], answer["memories"], answer["in_scope"]) == ("", [], 2)


def test_no_message_shows_the_newest(stocked: Cli) -> None:
    answer = stocked.ok("turn", "--json", "-k", "1").json

    assert [m["name"] for m in answer["memories"]] == ["backup_time"]


def test_a_session_of_a_workstream_sees_its_memories(stocked: Cli) -> None:
    """Only those of its own workstream."""
    asked = ("turn", "--message", "When does the freeze begin?", "--json")

    assert stocked.ok(*asked).json["memories"] == []
    assert [m["name"] for m in stocked.ok(*asked, "--workstream", "ws-1").json["memories"]] == ["plan"]


def test_messages_come_from_a_file_or_from_stdin_in_both_shapes(stocked: Cli, tmp_path: Path) -> None:
    """A JSON array of messages, as OpenAI and Anthropic have them."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "On which day do we deploy?"}]},
        {"role": "assistant", "content": "backups"},
    ]
    (tmp_path / "messages.json").write_text(json.dumps(messages), encoding="utf-8")

    from_file = stocked.ok("turn", "--messages-file", str(tmp_path / "messages.json"), "--json").json
    from_stdin = stocked.ok("turn", "--messages-file", "-", "--json", stdin=json.dumps(messages).encode()).json

    assert from_file["block"] == from_stdin["block"] != ""
    assert [m["name"] for m in from_file["memories"]] == ["deploy_day"]


def test_explain_says_what_was_considered_and_why(stocked: Cli) -> None:
    """The explanation is worked out from the receipt, with the block as it was."""
    answer = stocked.ok("turn", "--message", "On which day do we deploy?", "--explain", "--json").json

    explained = answer["explanation"]
    assert (answer["receipt"], answer["block"]) == (explained["receipt"], explained["block"])
    assert tuple(explained["considered"][0][key] for key in ("name", "shown", "why")) == ("deploy_day", True, "relevant")
    assert "deploi" in [term["term"] for term in explained["terms"]] or "deploy" in [term["term"] for term in explained["terms"]]
    assert "relevant" in stocked.ok("turn", "--message", "On which day do we deploy?", "--explain").out


@pytest.mark.parametrize(
    ("arguments", "stdin", "sentence"),
    [
        (("--messages-file", "-"), b"[1]", "array of objects"),
        (("--messages-file", "-"), b"{", "not valid JSON"),
        (("--messages-file", "-"), b"[" * 200_000, "not valid JSON"),
        (("--messages-file", "-"), b"\xff", "not UTF-8"),
        (("--messages-file", "-", "--message", "hi"), b"[]", "not by both"),
        (("--messages-file", "/nowhere/at/all.json"), b"", "cannot be read"),
        (("--mode", "loud"), b"", "['system', 'tail', 'index']"),
        (("--budget", "3"), b"", "at least 200"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_turn_is_refused_with_one_sentence(stocked: Cli, arguments: tuple[str, ...], stdin: bytes, sentence: str) -> None:
    refused = stocked("turn", *arguments, stdin=stdin)

    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert sentence in refused.err
