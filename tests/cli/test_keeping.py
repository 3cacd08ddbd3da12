"""Backup, restore and migrate as commands: what they say, and the exit code that whoever runs them by night sees."""

from pathlib import Path

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
