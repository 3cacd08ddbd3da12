"""What a config file and the environment may say, and how a command tells of what it cannot use."""

import json
from pathlib import Path

import pytest

from pegword.core.errors import Invalid
from pegword.settings import SETTINGS, load
from tests.cli.conftest import Cli

# One command of each kind that opens a store, and what it is called with.
COMMANDS = [
    ("save", "a", "b"),
    ("search", "a"),
    ("list",),
    ("show", "kept"),
    ("versions", "kept"),
    ("revert", "kept", "--to", "1"),
    ("delete", "kept"),
    ("turn", "--message", "a"),
    ("user", "add", "alice"),
    ("user", "list"),
    ("key", "add", "--user", "sam"),
    ("key", "list"),
    ("reindex",),
]


def config(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("section", list(SETTINGS))
@pytest.mark.parametrize("text", ["{} = 3", '{} = "text"', "{} = true", "{} = [1]", "[[{}]]"])
def test_a_section_that_is_none_is_an_error_that_names_it(tmp_path: Path, section: str, text: str) -> None:
    """It is not an unknown section: whoever wrote it meant this one."""
    with pytest.raises(Invalid, match=rf"config\.toml: {section} must be a section, a line \[{section}\]") as refusal:
        load(config(tmp_path, text.format(section)), {})
    assert section == refusal.value.field


def test_a_key_outside_of_its_section_is_an_error_that_names_the_section(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"port stands in no section; write it below \[server\]"):
        load(config(tmp_path, "port = 8090"), {})
    with pytest.raises(Invalid, match=r"weather stands in no section$"):
        load(config(tmp_path, 'weather = "fine"'), {})


def test_an_unknown_section_is_a_warning_wherever_it_is_said(tmp_path: Path) -> None:
    """It may belong to a newer Pegword."""
    warnings = load(config(tmp_path, "[weather]\nsunny = true\n"), {"PEGWORD_TIDE__HIGH": "9"}).warnings

    assert [
        f"{tmp_path}/config.toml: unknown section [weather] is ignored", "PEGWORD_TIDE__HIGH: unknown section tide is ignored",
    ] == list(warnings)  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_that_opens_a_store_tells_of_an_unknown_section(cli: Cli, arguments: tuple[str, ...]) -> None:
    """One line on stderr; with --json it is JSON too, and the result stays what it is."""
    cli.ok("save", "kept", "text")
    cli.ok("save", "kept_too", "text")
    path = str(config(cli.home, "[weather]\nsunny = true\n"))
    warning = f"{path}: unknown section [weather] is ignored"

    plain = cli.ok(*arguments, "--config", path)
    again = [word.replace("alice", "bob").replace("kept", "kept_too") for word in arguments]
    as_json = cli.ok(*again, "--config", path, "--json")

    assert 1 == plain.err.count(f"pegword: {warning}\n")
    assert {"warning": warning} == json.loads(as_json.err)
    assert as_json.json


def test_a_path_that_no_database_can_have_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no UTF-8, from the environment: the command line itself takes none."""
    monkeypatch.setenv("PEGWORD_DATABASE", "sqlite:////tmp/\udcff.db")

    refused = cli("list")

    assert (2, "pegword: the path of the database holds the character U+DCFF, which it may not\n") == (refused.code, refused.err)


@pytest.mark.parametrize(
    ("set_to", "saved_with", "answered"),
    [("", "general", "general"), ("", "project", "project"), ("general", "project", "general"), ("project", "general", "project")],
)
def test_the_word_for_kind_project_is_the_one_that_is_set_else_the_one_it_was_saved_with(
    cli: Cli, set_to: str, saved_with: str, answered: str
) -> None:
    path = str(config(cli.home, f'[turnstone]\nproject_word = "{set_to}"\n'))
    cli.ok("save", "a", "b", "--type", saved_with)

    assert answered == cli.ok("show", "a", "--json", "--config", path).json["type"]
    assert "feedback" == cli.ok("save", "c", "d", "--type", "feedback", "--json", "--config", path).json["type"]
