"""The tool as it is offered: flat, in the host's dialect, and no more than the session may ask for."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from pegword.core.caller import Caller, Session
from pegword.core.errors import Invalid
from pegword.services.bundle import Services
from pegword.tool.arguments import USES
from pegword.tool.calling import MemoryTool
from pegword.tool.schema import DIALECTS, NAME

DESCRIPTION_BYTES_MAX = 2_048
PLAIN = {"type", "enum", "description", "items", "minimum", "maximum"}


def form_of(schema: dict[str, Any] | None, dialect: str) -> dict[str, Any]:
    """The JSON Schema in a tool of that dialect."""
    assert schema is not None
    form: dict[str, Any] = {
        "openai": lambda: schema["function"]["parameters"],
        "anthropic": lambda: schema["input_schema"],
        "mcp": lambda: schema["inputSchema"],
    }[dialect]()
    return form


def description_of(schema: dict[str, Any], dialect: str) -> str:
    text: str = schema["function"]["description"] if dialect == "openai" else schema["description"]
    return text


@pytest.fixture(params=["interactive", "child", "coordinator", "reader"])
def case(request: pytest.FixtureRequest, services: Services, alice: Caller) -> tuple[Caller, Session]:
    """A caller and a session of each kind, and one that may only read."""
    kind = request.param
    if kind == "reader":
        return replace(alice, right="read"), Session("w1")
    if kind == "child":
        return alice, services.sessions.create(alice, parent_id=services.sessions.create(alice, workstream_id="w1").session_id)
    return alice, services.sessions.create(alice, kind=kind, workstream_id="w1")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_the_same_form_and_name(tool: MemoryTool, case: tuple[Caller, Session], dialect: str) -> None:
    schema = tool.schema(*case, dialect)
    assert schema is not None

    assert NAME == (schema["function"] if dialect == "openai" else schema)["name"]
    assert form_of(tool.schema(*case, "mcp"), "mcp") == form_of(schema, dialect)
    assert json.loads(json.dumps(schema)) == schema


def test_the_form_is_flat(tool: MemoryTool, case: tuple[Caller, Session]) -> None:
    """An object of plain properties: nothing combined, nothing referred to, each with a type and a description."""
    form = form_of(tool.schema(*case, "openai"), "openai")

    assert {"type", "properties", "required"} == set(form)
    assert ("object", ["action"]) == (form["type"], form["required"])
    for name, part in form["properties"].items():
        assert set(part) <= PLAIN, name
        assert part["type"] in ("string", "integer", "number", "array"), name
        assert part["description"], name
        assert {"type": "string"} == part.get("items", {"type": "string"})


def test_a_description_is_short_enough_for_every_host(tool: MemoryTool, case: tuple[Caller, Session]) -> None:
    schema = tool.schema(*case, "openai")
    assert schema is not None

    assert len(description_of(schema, "openai").encode()) <= DESCRIPTION_BYTES_MAX
    assert len(json.dumps(schema)) < 2 * DESCRIPTION_BYTES_MAX


@pytest.mark.parametrize(
    ("session", "scopes"),
    [
        (Session(), ["global", "user"]),
        (Session("w1"), ["global", "workstream", "user"]),
        (Session("w1", project_id="p"), ["global", "workstream", "user", "project"]),
        (Session("w1", kind="coordinator"), ["coordinator"]),
        (Session("w1", anonymous=True), ["global", "workstream"]),
    ],
    ids=["bare", "workstream", "project", "coordinator", "anonymous"],
)
def test_the_scopes_offered_are_those_of_the_session_and_the_default_is_told(
    tool: MemoryTool, alice: Caller, session: Session, scopes: list[str]
) -> None:
    scope = form_of(tool.schema(alice, session, "openai"), "openai")["properties"]["scope"]

    assert scopes == scope["enum"]
    assert f"Default for save, get, delete: {scopes[0]}" in scope["description"]
    for word in {"global", "workstream", "user", "project", "coordinator"} - set(scopes):
        assert f"{word}:" not in scope["description"]


def test_who_may_only_read_is_offered_no_writing(tool: MemoryTool, alice: Caller) -> None:
    schema = tool.schema(replace(alice, right="read"), Session("w1"), "mcp")
    form = form_of(schema, "mcp")

    assert ["search", "list", "get"] == form["properties"]["action"]["enum"]
    assert {"action", "name", "type", "scope", "query", "limit"} == set(form["properties"])
    assert not re.search(r"\b(save|saving|delete)\b", json.dumps(schema).lower())
    assert schema is not None
    assert {"readOnlyHint": True, "destructiveHint": False} == {k: schema["annotations"][k] for k in ("readOnlyHint", "destructiveHint")}


def test_all_four_hints_are_given(tool: MemoryTool, case: tuple[Caller, Session]) -> None:
    schema = tool.schema(*case, "mcp")
    assert schema is not None

    assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(schema["annotations"])


def test_the_descriptions_carry_the_advice(tool: MemoryTool, alice: Caller) -> None:
    """Stable names in snake_case with a prefix, two to five tags in lower case, and the scale of confidence."""
    properties = form_of(tool.schema(alice, Session("w1"), "openai"), "openai")["properties"]

    for word in ("stable", "snake_case", "preference_communication", "mistake_npm_version", "256"):
        assert word in properties["name"]["description"]
    assert "2-5 tags in lower case" in properties["tags"]["description"]
    for step in ("1.0 the user said so", "0.7 you concluded it", "0.5 uncertain", "0.0 doubted"):
        assert step in properties["confidence"]["description"]
    assert "32768" in properties["content"]["description"]


def test_the_type_is_spelt_as_the_credential_reads_it(tool: MemoryTool, alice: Caller) -> None:
    kind = form_of(tool.schema(replace(alice, project_word="general"), Session(), "openai"), "openai")["properties"]["type"]

    assert ["user", "general", "feedback", "reference"] == kind["enum"]
    assert "project" not in kind["description"]


def test_every_argument_that_is_read_is_described_and_the_other_way_round(tool: MemoryTool, alice: Caller) -> None:
    properties = form_of(tool.schema(alice, Session(), "openai"), "openai")["properties"]

    assert {"action", *(name for names in USES.values() for name in names)} == set(properties)


@pytest.mark.parametrize("dialect", ["", "OpenAI", "gemini", "\ud800", "x" * 5000])
def test_an_unknown_dialect_is_told_which_there_are(tool: MemoryTool, alice: Caller, dialect: str) -> None:
    with pytest.raises(Invalid, match="it must be one of openai, anthropic, mcp") as refusal:
        tool.schema(alice, Session(), dialect)

    assert len(str(refusal.value)) < 200


def test_the_same_session_is_offered_the_same_bytes(tool: MemoryTool, case: tuple[Caller, Session]) -> None:
    """It stands before everything else that a host may cache."""
    assert json.dumps(tool.schema(*case, "openai")) == json.dumps(tool.schema(*case, "openai"))
