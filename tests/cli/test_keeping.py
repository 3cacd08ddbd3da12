"""Backup, restore and migrate as commands: what they say, and the exit code that whoever runs them by night sees."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests import postgres
from tests.cli.conftest import Cli


def test_a_backup_is_put_back_and_moved_on(cli: Cli, tmp_path: Path) -> None:
    cli.ok("save", "lamp", "The lamp is green.")
    kept = cli.ok("backup", str(tmp_path / "kept"), "--json").json
    restored = cli.ok("restore", str(tmp_path / "kept"), "--to", f"sqlite://{tmp_path}/two.db", "--json").json
    moved = cli.ok("migrate", "--from", f"sqlite://{tmp_path}/two.db", "--to", f"sqlite://{tmp_path}/three.db", "--json").json

    assert [1, 1, 1] == [done["memories"] for done in (kept, restored, moved)]
    assert kept["rows"] == restored["rows"] == moved["rows"]
    assert str(tmp_path / "kept") == kept["file"]
    assert (tmp_path / "kept").stat().st_size == kept["bytes"]
    assert 1 == cli.ok("search", "lamp", "--database", f"sqlite://{tmp_path}/three.db", "--json").json["total"]


def test_a_backup_that_exists_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli.ok("save", "lamp", "The lamp is green.")
    (tmp_path / "kept").touch()
    refused = cli("backup", str(tmp_path / "kept"))

    assert 2 == refused.code
    assert "nothing is overwritten" in refused.err


def test_no_database_is_made_to_be_backed_up_or_moved(cli: Cli, tmp_path: Path) -> None:
    """A mistyped address must not be answered by an empty store."""
    absent = f"sqlite://{tmp_path}/absent.db"

    assert 2 == cli("backup", str(tmp_path / "kept"), "--database", absent).code
    assert 2 == cli("migrate", "--from", absent, "--to", f"sqlite://{tmp_path}/new.db").code
    assert not (tmp_path / "absent.db").exists()


def test_a_store_is_not_moved_into_itself(cli: Cli, tmp_path: Path) -> None:
    cli.ok("save", "lamp", "The lamp is green.")
    refused = cli("migrate", "--to", f"sqlite:///{cli.database}", "--json")

    assert (1, "--from and --to name the same database") == (refused.code, refused.error["error"])


def test_replacing_says_where_the_old_is(cli: Cli, tmp_path: Path) -> None:
    cli.ok("save", "lamp", "The lamp is green.")
    cli.ok("backup", str(tmp_path / "kept.backup"))
    cli.ok("save", "chair", "The chair is red.")
    refused = cli("restore", str(tmp_path / "kept.backup"))
    done = cli.ok("restore", str(tmp_path / "kept.backup"), "--replace", "--json").json

    assert (1, True) == (refused.code, "--replace" in refused.err)
    assert 1 == cli.ok("list", "--json").json["total"]
    assert 2 == cli.ok("list", "--database", f"sqlite://{done['replaced']}", "--json").json["total"]


def test_a_wrong_name_of_a_backup_leaves_no_empty_store_behind(cli: Cli, tmp_path: Path) -> None:
    """A server started on that would look as if everything were lost."""
    (tmp_path / "torn").write_bytes(b"no database")
    codes = [cli("restore", str(tmp_path / name), "--to", f"sqlite://{tmp_path}/new.db").code for name in ("absent", "torn")]

    assert 0 not in codes
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("restore", "kept", "--to", ""), ("restore", "kept", "--replace", "--to", " "),
        ("migrate", "--to", ""), ("migrate", "--from", "", "--to", "new"),
        ("save", "chair", "The chair is red.", "--database", ""), ("backup", "again", "--database", ""), ("doctor", "--database", ""),
    ],
)  # fmt: skip
def test_an_empty_address_is_not_that_of_the_default_place(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    """It is what a variable leaves that was not set: a store that was meant for another place must not be written into this one."""
    cli.ok("save", "lamp", "The lamp is green.")
    cli.ok("backup", str(tmp_path / "kept"))
    paths = {"kept": str(tmp_path / "kept"), "again": str(tmp_path / "again"), "new": f"sqlite://{tmp_path}/new.db"}
    before = sorted(tmp_path.rglob("*.db"))
    refused = cli(*(paths.get(word, word) for word in command), "--json")

    assert (2, "database") == (refused.code, refused.error["field"])
    assert before == sorted(tmp_path.rglob("*.db"))


@pytest.mark.parametrize(
    "command",
    [
        ("restore", "{torn}", "--to", "{new}"), ("restore", "{kept}", "--to", "sqlite://{torn}"),
        ("migrate", "--from", "sqlite://{torn}", "--to", "{new}"), ("migrate", "--from", "sqlite://{kept}", "--to", "sqlite://{torn}"),
        ("list", "--database", "sqlite://{torn}"), ("backup", "{made}", "--database", "sqlite://{torn}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cut", [False, True])
def test_what_cannot_be_read_is_named(cli: Cli, tmp_path: Path, command: tuple[str, ...], cut: bool) -> None:
    """Two files take part, and whoever reads the sentence must know which of them is damaged."""
    cli.ok("save", "lamp", "The lamp is green.")
    kept, torn = tmp_path / "kept", tmp_path / "torn"
    cli.ok("backup", str(kept))
    torn.write_bytes(kept.read_bytes()[:20_000] if cut else b"no database" * 1_000)
    refused = cli(*(word.format(kept=kept, torn=torn, new=f"sqlite://{tmp_path}/new.db", made=tmp_path / "made") for word in command))

    assert 0 != refused.code
    assert str(torn) in refused.err


@pytest.mark.parametrize("link", [False, True])
def test_a_backup_is_not_put_back_into_itself(cli: Cli, tmp_path: Path, link: bool) -> None:
    """Under another name neither: the backup is never changed."""
    cli.ok("save", "lamp", "The lamp is green.")
    cli.ok("backup", str(tmp_path / "kept"))
    target = tmp_path / ("other" if link else "kept")
    if link:
        target.hardlink_to(tmp_path / "kept")
    before = (tmp_path / "kept").read_bytes()
    refused = cli("restore", str(tmp_path / "kept"), "--to", f"sqlite://{target}", "--replace")

    assert (1, True) == (refused.code, "is the target itself" in refused.err)
    assert before == (tmp_path / "kept").read_bytes()


def test_what_is_damaged_is_told_by_the_exit_code(cli: Cli, tmp_path: Path) -> None:
    """The backup is there, and nobody believes that all is well."""
    import apsw

    cli.ok("save", "lamp", "The lamp is green.")
    connection = apsw.Connection(str(cli.database))
    connection.execute("UPDATE structured_memories SET content = 'altered'")
    connection.close()
    result = cli("backup", str(tmp_path / "kept"), "--json")

    assert 1 == result.code
    assert ["does not match its hash" in fault for fault in result.json["faults"]] == [True]
    assert (tmp_path / "kept").exists()


def test_a_progress_bar_is_for_terminals_only(cli: Cli, tmp_path: Path) -> None:
    cli.ok("save", "lamp", "The lamp is green.")

    assert "" == cli.ok("backup", str(tmp_path / "kept")).err


def test_the_doctor_says_what_to_do_and_whether_it_must_be_done(cli: Cli, tmp_path: Path) -> None:
    cli.ok("save", "lamp", "The lamp is green.")
    sound = cli.ok("doctor", "--json").json
    cli.database.chmod(0o644)
    found = cli("doctor", "--json")
    shown = cli("doctor")

    assert (False, str(cli.database)) == (sound["must_act"], sound["database"])
    assert (1, True, "") == (found.code, found.json["must_act"], found.err)
    assert [f"chmod 600 {cli.database}"] == [f["fix"] for f in found.json["findings"] if f["state"] == "warning"]
    assert (1, True) == (shown.code, f"to do: chmod 600 {cli.database}" in shown.out)
    assert "1 thing to do" == shown.out.splitlines()[-1]


def test_the_doctor_looks_at_what_no_other_command_opens(cli: Cli, tmp_path: Path) -> None:
    """A file that is none, and a server that is not there, are findings and no failures; nothing is made."""
    (tmp_path / "x.db").write_text("dear diary, " * 1_000, encoding="utf-8")
    for database in (f"sqlite://{tmp_path}/x.db", f"sqlite://{tmp_path}/absent.db", "postgresql://alice:canary@127.0.0.1:1/x"):
        found = cli("doctor", "--database", database, "--json")
        assert (1, True, False) == (found.code, found.json["must_act"], "canary" in found.out + found.err)

    assert not (tmp_path / "absent.db").exists()


def test_memories_go_out_and_come_in_as_lines(cli: Cli, tmp_path: Path) -> None:
    cli.ok("save", "lamp", "The lamp is green.")
    out = cli.ok("export")
    cli.ok("export", str(tmp_path / "e.jsonl"))
    again = cli("export", str(tmp_path / "e.jsonl"))
    brought = cli.ok("import", "-", "--database", f"sqlite://{tmp_path}/two.db", "--json", stdin=out.out.encode())

    assert out.out == (tmp_path / "e.jsonl").read_text(encoding="utf-8")
    assert (0o600, 2) == ((tmp_path / "e.jsonl").stat().st_mode & 0o777, again.code)
    assert (1, False, {}) == (brought.json["created"], brought.json["dry_run"], brought.json["not_taken"])
    assert (
        cli.ok("show", "lamp", "--json").json["memory_id"]
        == cli.ok("show", "lamp", "--json", "--database", f"sqlite://{tmp_path}/two.db").json["memory_id"]
    )


def test_a_refused_line_is_told_and_shows_in_the_exit_code(cli: Cli) -> None:
    data = b'{"name": "a", "content": "x"}\n{"name": "b", "content": ""}\n'
    brought = cli("import", "-", stdin=data)
    cut = cli("import", "-", stdin=data[:-5])

    assert (1, "imported: 1 created, 1 refused\n") == (brought.code, brought.out)
    assert "line 2 (b) refused: content is required" in brought.err
    assert (2, True) == (cut.code, "nothing was imported" in cut.err)


def test_a_failed_export_leaves_no_file(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of an export is none."""
    from pegword import lines

    cli.ok("save", "lamp", "The lamp is green.")
    monkeypatch.setattr(lines, "end", lambda *_: 1 / 0)

    assert 70 == cli("export", str(tmp_path / "e.jsonl")).code
    assert not (tmp_path / "e.jsonl").exists()


@pytest.fixture
def strange(postgres_server: str) -> Iterator[postgres.Database]:
    """A PostgreSQL database that holds no store."""
    database = postgres.Database(postgres_server, f"pegword_test_strange_{os.getpid()}", fill=False)
    yield database
    database.close()


def tables(database: postgres.Database) -> list[str]:
    with psycopg.connect(database.url) as connection:
        return sorted(name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))


LOOKING = [
    ("list",),
    ("search", "lamp"),
    ("user", "list"),
    ("backup", "{file}"),
    ("migrate", "--from", "{there}", "--to", "{file}"),
    ("reindex",),
]


@pytest.mark.parametrize("command", LOOKING, ids=lambda command: command[0])
def test_a_database_without_a_store_does_not_answer_as_an_empty_one(
    cli: Cli, tmp_path: Path, strange: postgres.Database, command: tuple[str, ...]
) -> None:
    """As an absent file does not: a backup of the wrong database would say every night that it was done."""
    words = [word.format(file=tmp_path / "made", there=strange.url) for word in command]
    words = [f"sqlite://{word}" if words[index - 1] == "--to" else word for index, word in enumerate(words)]
    refused = cli(*words, *([] if "--from" in words else ["--database", strange.url]))

    assert (2, True) == (refused.code, "there is no store in" in refused.err)
    assert [] == tables(strange)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "theirs", ["CREATE TABLE users (id INT)", "CREATE TABLE schema_migrations (version TEXT)", "CREATE TYPE facts AS ENUM ('a')"]
)
def test_tables_of_another_program_are_no_fault_of_ours(cli: Cli, tmp_path: Path, strange: postgres.Database, theirs: str) -> None:
    """One sentence says what it is, and theirs are all that is there afterwards."""
    with psycopg.connect(strange.url) as connection:
        connection.execute(theirs)
    before = tables(strange)
    cli.ok("save", "lamp", "The lamp is green.")
    cli.ok("backup", str(tmp_path / "kept"))
    commands = (
        ("save", "chair", "The chair is red.", "--database", strange.url), ("restore", str(tmp_path / "kept"), "--to", strange.url),
        ("migrate", "--to", strange.url),
    )  # fmt: skip
    refused = [cli(*command) for command in commands]

    assert [2] * len(commands) == [answer.code for answer in refused]
    assert all("holds tables of another program" in answer.err for answer in refused)
    assert before == tables(strange)
    assert 1 == cli("doctor", "--database", strange.url).code
