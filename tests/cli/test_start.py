"""Commands start fast: they load what they need, when they need it."""

import json
import subprocess
import sys

from tests.cli.conftest import SOURCE, Cli

_HEAVY = ("numpy", "apsw", "Stemmer", "starlette", "uvicorn", "rich", "msgspec")


def loaded(cli: Cli, *arguments: str) -> set[str]:
    """Which heavy modules a command loads."""
    code = f"import json, sys; from pegword.cli import run; run({list(arguments)!r}); print(); print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**cli.environment, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True
    )
    return set(_HEAVY) & set(json.loads(ran.stdout.splitlines()[-1]))


def test_version_and_help_load_nothing_heavy(cli: Cli) -> None:
    assert loaded(cli, "version") == set()
    assert loaded(cli, "--help") == set()
    assert loaded(cli, "save", "--help") == set()


def test_config_opens_no_database_and_makes_none(cli: Cli) -> None:
    assert not loaded(cli, "config") & {"numpy", "apsw", "starlette", "uvicorn"}
    assert not cli.database.exists()


def test_memory_commands_do_not_load_the_server(cli: Cli) -> None:
    assert not loaded(cli, "save", "a", "b") & {"starlette", "uvicorn", "rich"}
