"""pegword tool: what a model is offered and what it would be answered."""

import json

from tests.cli.conftest import Cli


def tool(cli: Cli, *more: str, **arguments: object) -> str:
    return cli.ok("tool", json.dumps(arguments), *more).out


def test_a_call_prints_what_the_model_would_read(cli: Cli) -> None:
    assert "Saved memory 'deploy_day' (type=project, scope=global, id=" in tool(
        cli, action="save", name="Deploy Day", content="On Tuesdays."
    )
    assert "Memories (1):\n  [project:global] deploy_day\n    On Tuesdays.\nRead one whole with memory(" in tool(cli, action="list")


def test_what_it_saves_is_an_agents_word(cli: Cli) -> None:
    """Though a person types it: it is there to try what a model would do."""
    tool(cli, action="save", name="n", content="c")

    shown = cli.ok("show", "n", "--json").json
    assert ("agent", False, 0.7) == (shown["source"], shown["verified"], shown["confidence"])


def test_an_error_of_the_model_is_printed_and_is_the_exit_code(cli: Cli) -> None:
    result = cli("tool", '{"action": "search"}')

    assert (2, "Error: search needs a query; use list to see the newest\n") == (result.code, result.out)
    assert (2, True) == (cli("tool", "nonsense").code, cli("tool", "nonsense", "--json").json["is_error"])


def test_as_json_it_is_the_answer_of_the_http_api(cli: Cli) -> None:
    answer = cli.ok("tool", '{"action": "save", "name": "n", "content": "c"}', "--json").json

    assert {"text", "is_error", "outcome", "memories"} == set(answer)
    assert ("created", "n", 1) == (answer["outcome"], answer["memories"][0]["name"], answer["memories"][0]["version"])


def test_arguments_can_come_from_stdin(cli: Cli) -> None:
    assert "No memories stored.\n" == cli.ok("tool", "-", stdin=b'{"action": "list"}\n').out


def test_the_schema_is_printed_in_each_dialect(cli: Cli) -> None:
    assert "memory" == cli.ok("tool", "--schema").json["function"]["name"]
    assert "input_schema" in cli.ok("tool", "--schema", "--dialect", "anthropic").json
    scopes = cli.ok("tool", "--schema", "--dialect", "mcp", "--workstream", "w1").json["inputSchema"]["properties"]["scope"]["enum"]

    assert ["global", "workstream", "user"] == scopes


def test_json_or_schema_is_given_and_not_both(cli: Cli) -> None:
    for arguments in ((), ("{}", "--schema")):
        result = cli("tool", *arguments)
        assert (2, "pegword: give JSON, or --schema, one of them\n") == (result.code, result.err)


def test_a_session_is_named_by_its_id(cli: Cli) -> None:
    result = cli("tool", "{}", "--session", "none")
    assert (1, "pegword: Session not found\n") == (result.code, result.err)

    assert "not both" in cli("tool", "{}", "--session", "none", "--workstream", "w").err
