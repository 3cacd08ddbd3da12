"""What goes wrong is one sentence on stderr, nothing on stdout, and an exit code that scripts can rely on."""

import sqlite3
import subprocess

import apsw
import pytest

from pegword.cli import failing
from pegword.core import errors
from tests.cli.conftest import ENTRY, Cli, Result
from tests.patience import PATIENCE_S


def check(result: Result, code: int, *words: str) -> None:
    """A failure with *code*, whose one sentence holds *words*."""
    assert (code, "", 1) == (result.code, result.out, result.err.count("\n")), result
    for word in words:
        assert word in result.err


def test_every_error_of_the_tree_has_its_exit_code() -> None:
    """Only what is raised by mistake is a fault inside."""
    tree = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.PegwordError)]

    for kind in set(tree) - {errors.PegwordError}:
        error = errors.VersionMismatch("x", current=1) if kind is errors.VersionMismatch else kind("x")
        assert failing.exit_code(error) in (1, 2, 3, 4), kind
    assert failing.exit_code(KeyError("x")) == 70


def test_an_unknown_user_is_not_found_and_says_how_to_add_one(cli: Cli) -> None:
    cli.ok("user", "add", "alice")

    check(cli("list", "--user", "nobody"), 1, "there is no user 'nobody'", "pegword user add nobody")


def test_a_bad_scope_lists_the_good_ones(cli: Cli) -> None:
    check(cli("save", "a", "b", "--scope", "galaxy"), 2, "galaxy", "global", "user", "workstream")
    check(cli("list", "--scope", "galaxy"), 2, "galaxy", "global")
    check(cli("save", "a", "b", "--scope", "workstream"), 2, "scope_id is required")
    check(cli("save", "a", "b", "--scope-id", "x"), 2, "scope_id is not allowed with global scope")


def test_another_user_s_id_is_denied(cli: Cli) -> None:
    """Whether or not that user exists."""
    check(cli("list", "--scope", "user", "--scope-id", "someone"), 3, "another user")


def test_control_characters_in_a_name_are_named_and_not_shown(cli: Cli) -> None:
    """The sentence itself must not drive a terminal."""
    refused = cli("save", "a\x1b[31mb", "text")

    check(refused, 2, "U+001B")
    assert "\x1b" not in refused.err
    assert "\x1b" not in cli("list", "--user", "\x1b[31mred").err


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_blank_content_is_refused(cli: Cli, text: str) -> None:
    check(cli("save", "a", text), 2, "content is required")


def test_content_that_is_too_long_is_told_its_length_and_the_limit(cli: Cli) -> None:
    """65,536 characters fit exactly; a line end that closes stdin is not counted."""
    check(cli("save", "a", "-", stdin=b"x" * 70_000), 2, "content exceeds 65536 character limit: it has 70000")
    cli.ok("save", "a", "-", stdin=b"x" * 65_536 + b"\n")
    check(cli("save", "a", "-", stdin=b"x" * 2_000_000), 2, "content exceeds 1048576 bytes")


def test_stdin_that_is_no_text_is_refused(cli: Cli) -> None:
    check(cli("save", "a", "-", stdin=b"caf\xe9"), 2, "not UTF-8", "0xe9")
    check(cli("save", "a", "-", stdin=b"nul \x00"), 2, "U+0000")
    check(cli("save", "a", "half \ud83d"), 2, "U+D83D")


UNDECODABLE = "caf\udce9"  # as Python hands on the bytes caf\xe9


@pytest.mark.parametrize(
    "arguments",
    [
        ("save", UNDECODABLE, "text"),
        ("save", "a", UNDECODABLE),
        ("save", "a", "b", "--tag", UNDECODABLE),
        ("save", "a", "b", "--description", UNDECODABLE),
        ("save", "a", "b", "--type", UNDECODABLE),
        ("save", "a", "b", "--sitting", UNDECODABLE),
        ("save", "a", "b", "--expires", UNDECODABLE),
        ("save", "a", "b", "--scope", "workstream", "--scope-id", UNDECODABLE),
        ("save", "a", "b", "--user", UNDECODABLE),
        ("save", "a", "b", "--database", f"sqlite:////tmp/{UNDECODABLE}.db"),
        ("save", "a", "b", "--config", UNDECODABLE),
        ("search", UNDECODABLE),
        ("search", "a", "--tag", UNDECODABLE),
        ("list", "--tag", UNDECODABLE),
        ("list", "--user", UNDECODABLE),
        ("show", UNDECODABLE),
        ("show", "--id", UNDECODABLE),
        ("versions", "--id", UNDECODABLE),
        ("revert", "--id", UNDECODABLE, "--to", "1"),
        ("delete", UNDECODABLE),
        ("delete", "--id", UNDECODABLE),
        ("turn", "--message", UNDECODABLE),
        ("turn", "--messages-file", UNDECODABLE),
        ("turn", "--message", "a", "--workstream", UNDECODABLE),
        ("user", "add", UNDECODABLE),
        ("user", "add", "a", "--email", UNDECODABLE),
        ("key", "add", "--user", UNDECODABLE),
        ("key", "add", "--user", "alice", "--name", UNDECODABLE),
        ("key", "add", "--user", "alice", "--expires", UNDECODABLE),
        ("key", "list", "--user", UNDECODABLE),
        ("key", "revoke", UNDECODABLE),
        ("serve", "--host", UNDECODABLE),
        (UNDECODABLE,),
    ],
    ids=lambda words: " ".join(word.encode("ascii", "replace").decode() for word in words),
)
def test_an_argument_that_is_no_text_is_refused_and_nothing_is_done(cli: Cli, arguments: tuple[str, ...]) -> None:
    """Wherever it stands."""
    check(cli(*arguments), 2, "is not UTF-8: it holds the byte 0xe9")
    assert not cli.database.exists()


def test_bytes_that_are_no_text_are_refused_from_a_real_shell(cli: Cli) -> None:
    """As `pegword list --tag $'\\xff'` gives them."""
    listed = subprocess.run([*ENTRY, "list", "--tag", b"\xff"], env=cli.environment, capture_output=True, check=False)

    assert (2, b"", b"pegword: argument 3 is not UTF-8: it holds the byte 0xff\n") == (listed.returncode, listed.stdout, listed.stderr)


def test_half_of_a_character_in_a_message_from_a_file_does_no_harm(cli: Cli) -> None:
    """JSON can spell what no text holds; a message is only read."""
    cli.ok("save", "deploy_day", "We deploy on Tuesdays.")
    messages = b'[{"role": "user", "content": "when do we deploy \\ud83d \\ud83dx"}]'

    assert "Tuesdays" in cli.ok("turn", "--messages-file", "-", "--explain", stdin=messages).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("save", "a", "b", "--type", "rumour"), ("rumour", "feedback")),
        (("save", "a", "b", "--priority", "loud"), ("loud", "critical")),
        (("save", "a", "b", "--confidence", "1.5"), ("confidence", "1.5")),
        (("save", "a", "b", "--confidence", "nan"), ("confidence", "nan")),
        (("save", "a", "b", "--confidence", "high"), ("confidence", "pegword save --help")),
        (("save", "a", "b", "--expires", "soon"), ("expires", "ISO 8601")),
        (("save", "a", "b", "--expires", "90"), ("expires", "90d")),
        (("save", "a", "b", "--expires", "999999999d"), ("expires", "9999")),
        (("save", "a", "b", "--sitting", "s" * 65), ("sitting", "64")),
        (("save", "a", "b", "--expected-version", "-1"), ("expected-version",)),
        (("save", "a" * 257, "b"), ("256", "257")),
        (("list", "--limit", "0"), ("limit",)),
        (("search", "x", "--limit", "many"), ("limit",)),
        (("search", " "), ("query is required",)),
        (("show",), ("NAME", "--id")),
        (("show", "a", "--id", "b"), ("NAME", "--id")),
        (("delete",), ("NAME", "--id")),
        (("user", "add", " "), ("name is required",)),
        (("user", "add", "a\nb"), ("U+000A",)),
        (("key", "add"), ("--user", "pegword key add --help")),
        (("key", "add", "--user", "alice", "--scopes", "read,fly"), ("fly", "approve")),
        (("key", "add", "--user", "alice", "--project-word", "x"), ("project_word", "general")),
        (("key", "add", "--user", "alice", "--expires", "2020-01-01"), ("past",)),
        (("frobnicate",), ("frobnicate", "pegword --help")),
        (("save", "a"), ("CONTENT", "pegword save --help")),
        (("list", "--database", "mysql://x"), ("sqlite:///",)),
        (("list", "--database", "sqlite:///"), ("sqlite:///",)),
        (("list", "--config", "/nowhere/at/all.toml"), ("no config file",)),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said_in_one_sentence(cli: Cli, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    cli.ok("user", "add", "alice")

    check(cli(*arguments), 2, *words)


def test_with_json_the_error_is_the_body_of_the_http_api(cli: Cli) -> None:
    """error, code and, where one field is at fault, its name; usage errors too."""
    bad_type = cli("save", "a", "b", "--type", "rumour", "--json")
    bad_usage = cli("save", "--json")

    assert (bad_type.code, bad_type.out, bad_type.error["code"], bad_type.error["field"]) == (2, "", "invalid", "type")
    assert (bad_usage.code, bad_usage.out, bad_usage.error["code"]) == (2, "", "usage")


def test_a_named_database_that_is_absent_is_made_by_writers_only(cli: Cli) -> None:
    """A mistyped path must not answer as an empty store."""
    path = cli.home / "typo.db"
    url = f"sqlite://{path}"

    check(cli("list", "--database", url), 2, "there is no database at")
    assert not path.exists()
    assert "made a new database at" in cli.ok("save", "a", "b", "--database", url).err
    assert path.exists()


def test_a_file_that_is_no_database_of_ours_is_refused_and_left_alone(cli: Cli) -> None:
    text, foreign = cli.home / "notes.txt", cli.home / "other.db"
    text.write_text("not a database, but long enough to look like one" * 20, encoding="utf-8")
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = text.read_bytes(), foreign.read_bytes()

    check(cli("save", "a", "b", "--database", f"sqlite://{foreign}"), 2, "is no database of Pegword; name another file")
    assert cli("save", "a", "b", "--database", f"sqlite://{text}").code == 1

    assert before == (text.read_bytes(), foreign.read_bytes())


def test_a_database_that_another_process_holds_is_not_now(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads go on; a write gives up after its wait and says that nothing was changed."""
    monkeypatch.setattr("pegword.store.sqlite_file.BUSY_WAIT_MS", 50)
    cli.ok("save", "a", "b")
    holder = apsw.Connection(str(cli.database))
    holder.execute("BEGIN IMMEDIATE")

    refused = cli("save", "a", "c")

    check(refused, 4, "nothing was changed")
    assert cli.ok("list", "--json").json["total"] == 1
    holder.close()


def test_a_fault_inside_is_70_and_says_where_without_what_was_stored(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("my secret text")

    monkeypatch.setattr("pegword.services.memories.Memories.list", fail)

    failed = cli("list")

    check(failed, 70, "KeyError", "test_failing.py")
    assert "secret" not in failed.err


def test_a_reader_that_goes_away_is_no_error_message(cli: Cli) -> None:
    """pegword list | head -1 ends quietly."""
    for number in range(3):
        cli.ok("save", f"n{number}", "text")
    process = cli.start("list", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()

    with process.stderr:
        assert (process.stderr.read(), process.wait(timeout=PATIENCE_S)) == ("", 141)
