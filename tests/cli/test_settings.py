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


def test_a_persona_may_have_no_memory(tmp_path: Path) -> None:
    """Case and width of its name do not count, and the environment is above the file."""
    path = config(tmp_path, '[personas.Scribe]\nmemory = false\n[personas."night owl"]\nmemory = true\n[personas.quiet]\n')
    settings = load(path, {"PEGWORD_PERSONAS__CRITIC__MEMORY": "0", "PEGWORD_PERSONAS__NIGHT OWL__MEMORY": "false"})

    has = {name: settings.has_memory(name) for name in ("scribe", " SCRIBE", "ｓｃｒｉｂｅ", "critic", "night owl", "quiet", "nobody", "")}
    assert ["quiet", "nobody", ""] == [name for name, memory in has.items() if memory]
    assert (str(path), "PEGWORD_PERSONAS__CRITIC__MEMORY") == (
        settings.origin["personas_scribe"], settings.origin["personas_critic"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("personas = 3", r"personas must be a section"),
        ("[personas]\nscribe = false", r"personas\.scribe must be a section, a line \[personas\.NAME\] with memory = true or false"),
        ("[personas.scribe]\nmemry = false", r"\[personas\.scribe\] has no key memry; did you mean memory\?"),
        ('[personas.scribe]\nmemory = "no"', r"personas\.scribe\.memory must be true or false: it is 'no'"),
        ("[personas.a]\nmemory = true\n[personas.A]\nmemory = false", r"personas\.A is there twice"),
        ('[personas." "]\nmemory = true', r"must be a section"),
    ],
)
def test_a_persona_that_cannot_be_is_an_error(tmp_path: Path, text: str, sentence: str) -> None:
    """One sentence; a lever that is misspelt must not stay on unnoticed."""
    with pytest.raises(Invalid, match=sentence) as refusal:
        load(config(tmp_path, text), {})
    assert "personas" == refusal.value.field


@pytest.mark.parametrize("variable", ["PEGWORD_PERSONAS__SCRIBE", "PEGWORD_PERSONAS__SCRIBE__MEMRY", "PEGWORD_PERSONAS__MEMORY"])
def test_a_variable_that_names_no_persona_is_an_error(variable: str) -> None:
    with pytest.raises(Invalid, match=variable):
        load(None, {variable: "false", "XDG_CONFIG_HOME": "/nowhere"})


def test_the_personas_are_among_what_is_in_force(cli: Cli) -> None:
    path = str(config(cli.home, "[personas.scribe]\nmemory = false\n"))

    assert {"name": "personas.scribe.memory", "value": False, "default": True, "origin": path} == {
        key: entry[key]
        for entry in cli.ok("config", "--config", path, "--json").json["settings"]
        if entry["name"].startswith("personas")
        for key in ("name", "value", "default", "origin")
    }


def test_a_session_of_a_persona_without_memory_has_none(cli: Cli) -> None:
    """Everywhere alike: no block, no hint, no number, no tool."""
    path = str(config(cli.home, "[personas.scribe]\nmemory = false\n"))
    cli.ok("save", "deploy_day", "We deploy on Tuesdays.")
    session = cli.ok("session", "add", "--persona", "Scribe", "--config", path).out.strip()
    turn = cli.ok("turn", "--session", session, "--message", "on which day do we deploy?", "--mode", "index", "--json").json

    assert ("", "", 0, [], "", None) == tuple(turn[key] for key in ("text", "hint", "in_scope", "memories", "index", "nudge"))
    assert "null" == cli.ok("tool", "--schema", "--session", session).out.strip()
    assert "memory is off in this session" in cli("tool", '{"action": "list"}', "--session", session).out


def test_what_is_printed_names_the_file_that_it_stands_on(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another account has another one; which it is, and whether it is there, is said, so that nobody takes theirs for a server's."""
    path = config(tmp_path, "[memory]\nrelevance_k = 9\n")
    own, named = cli.ok("config"), cli.ok("config", "--config", str(path))
    monkeypatch.setenv("PEGWORD_CONFIG", str(path))
    by_variable = cli.ok("config", "--json").json

    assert "config.toml, which is not there\n" in own.out
    assert str(cli.home) in own.out.replace("\n", "")
    assert f"The config file is {path}\n" in named.out
    assert (str(path), True) == (by_variable["config_path"], by_variable["config_there"])
