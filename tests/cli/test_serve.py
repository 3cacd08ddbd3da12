"""The command serve, as a process of its own, and commands beside it on the same database."""

import json
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pegword.core.address import without_password
from tests.cli.conftest import Cli
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("each_engine")


@contextmanager
def serving(cli: Cli, *arguments: str) -> Iterator[tuple[dict[str, Any], "subprocess.Popen[str]"]]:
    """A server on a free port, and what it said of itself as JSON."""
    process = cli.start("serve", "--port", "0", "--json", *arguments)
    try:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.communicate()
            text += line
        yield json.loads(text), process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def ask(url: str, token: str = "", body: Any = None) -> tuple[int, Any]:
    """Status and JSON answer of one request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_commands_and_the_server_work_on_one_database_at_the_same_time(cli: Cli) -> None:
    """What one of them saves, the other finds at once; a key works from the moment it is made until the moment it is revoked."""
    with serving(cli) as (about, _):
        assert about["first_steps"] == ["pegword user add sam", "pegword key add --user sam --scopes read,write"]
        url = about["address"]
        cli.ok("user", "add", "alice")
        made = cli.ok("key", "add", "--user", "alice", "--json").json
        assert ask(f"{url}/v1/api/memories", made["token"], {"name": "tea", "content": "Green tea."})[0] == 201
        assert cli.ok("show", "tea", "--content").out == "Green tea."
        cli.ok("save", "tea", "Black tea.", "--user", "alice")
        status, turn = ask(f"{url}/v1/api/turn", made["token"], {"messages": [{"role": "user", "content": "Which tea?"}]})
        assert (status, [m["name"] for m in turn["memories"]]) == (200, ["tea"])
        assert "Black tea." in turn["block"]
        cli.ok("key", "revoke", made["key_id"])
        assert ask(f"{url}/v1/api/memories", made["token"])[0] == 401


def test_the_command_line_s_turn_and_the_server_s_have_the_same_bytes(cli: Cli) -> None:
    """Another process, another face, the same answer."""
    cli.ok("user", "add", "alice")
    token = cli.ok("key", "add", "--user", "alice").out.strip()
    for number, text in enumerate(("We deploy on Tuesdays.", "Deploys need two reviews.", "Lunch is at noon.")):
        cli.ok("save", f"note_{number}", text, "--user", "alice")
    with serving(cli) as (about, _):
        body = {"messages": [{"role": "user", "content": "How do we deploy?"}]}
        _, turn = ask(f"{about['address']}/v1/api/turn", token, body)

    assert cli.ok("turn", "--user", "alice", "--message", "How do we deploy?", "--json").json["text"] == turn["text"]


def test_it_says_where_it_serves_from_and_where_that_was_said(cli: Cli) -> None:
    with serving(cli, "--database", f"sqlite://{cli.home}/named.db") as (about, _):
        assert (about["database"], about["database_from"]) == (f"{cli.home}/named.db", "the command line")
        assert all(f"--database sqlite://{cli.home}/named.db" in step for step in about["first_steps"])


def test_once_there_is_a_key_there_are_no_first_steps(cli: Cli) -> None:
    cli.ok("user", "add", "alice")
    with serving(cli) as (about, _):
        (step,) = about["first_steps"]
        assert "key add --user alice" in step
    cli.ok("key", "add", "--user", "alice")
    with serving(cli) as (about, _):
        assert about["first_steps"] == []


def test_people_get_the_same_in_lines(cli: Cli, database: Path | str) -> None:
    """The last of them comes when connections are taken; both signals end it in good order, with exit code 0."""
    default = f"{cli.database} (from the default place)"
    place = default if isinstance(database, Path) else f"{without_password(database)} (from PEGWORD_DATABASE)"
    for ending in (signal.SIGINT, signal.SIGTERM):
        process = cli.start("serve", "--port", "0")
        assert process.stdout is not None
        lines = []
        while not lines or "Press Ctrl-C" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], process.communicate()
        process.send_signal(ending)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert f"database: {place}\n" in lines
        assert any(line.startswith("address:  http://127.0.0.1:") for line in lines)
        assert any("user add sam" in line for line in lines)
        assert (process.returncode, err) == (0, "pegword: stopped\n")


def test_a_setting_alone_does_not_open_it_to_other_machines(cli: Cli) -> None:
    """The command line must say it too."""
    refused = cli.process("serve", "--port", "0", PEGWORD_SERVER__HOST="0.0.0.0")

    assert refused.code == 2
    assert "0.0.0.0 (from PEGWORD_SERVER__HOST)" in refused.err
    assert "pegword serve --host 0.0.0.0" in refused.err


def test_listening_beyond_this_machine_says_that_there_is_no_tls(cli: Cli) -> None:
    process = cli.start("serve", "--port", "0", "--host", "0.0.0.0")
    assert process.stdout is not None
    while "Press Ctrl-C" not in process.stdout.readline():
        assert process.poll() is None
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE_S)

    assert "listening on 0.0.0.0" in err
    assert "not encrypted" in err


def test_a_port_that_is_taken_is_one_sentence(cli: Cli) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        refused = cli.process("serve", "--port", str(holder.getsockname()[1]), "--json")

    assert (refused.code, refused.out) == (2, "")
    assert refused.error["field"] == "server.port"


def test_warnings_of_the_config_file_are_told_at_the_start(cli: Cli) -> None:
    path = cli.home / "config.toml"
    path.write_text("[weather]\nsunny = true\n", encoding="utf-8")
    process = cli.start("serve", "--port", "0", "--config", str(path))
    assert process.stdout is not None
    while "Press Ctrl-C" not in process.stdout.readline():
        assert process.poll() is None
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE_S)

    assert "unknown section [weather] is ignored" in err
