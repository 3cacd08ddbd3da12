"""Where a save goes: what is always refused is not offered, and the scope that is meant where none is named can be written to."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Session, scope_words
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.tool.calling import MemoryTool
from pegword.tool.schema import DIALECTS
from tests.conftest import Clock
from tests.tool.test_schema import form_of

NOTE = {"content": "The quokka deploys on Mondays, whatever the walrus says."}


@dataclass
class Place:
    """A store under a policy, and callers in it."""

    services: Services
    tool: MemoryTool
    alice: Caller
    approver: Caller
    host: Caller

    def session(self, kind: str) -> tuple[Caller, Session]:
        """A caller with a session of that kind."""
        make = self.services.sessions.create
        if kind == "interactive":
            return self.alice, make(self.alice, workstream_id="w1")
        if kind == "bare":
            return self.alice, Session()
        if kind == "child":
            return self.alice, make(self.alice, parent_id=make(self.alice, workstream_id="w1").session_id)
        if kind == "coordinator":
            return self.alice, make(self.alice, kind="coordinator")
        if kind == "reading a project":
            project = self.services.sharing.create(self.approver, "project", "atlas", {"alice": False})
            return self.alice, make(self.alice, project_id=project.scope.id)
        if kind == "served":
            return self.host, make(self.host, user="alice")
        if kind == "anonymous":
            return self.host, make(self.host, anonymous=True, workstream_id="w1")
        if kind == "approver":
            return self.approver, Session()
        return self.host, make(self.host, anonymous=True)


def place_under(database: Path | str, clock: Clock, policy: str) -> Place:
    services = open_services(database, load(environment={"PEGWORD_POLICY__GLOBAL_WRITE": policy}), clock=clock)
    callers = []
    for name, right in (("alice", "write"), ("ada", "approve"), ("host", "service")):
        services.access.ensure_user(name)
        callers.append(services.access.caller_of(services.access.add_key(name, right=right)[1]))
    return Place(services, MemoryTool(services, kind_word=lambda kind, *_: kind), *callers)


@pytest.fixture
def restricted(database: Path | str, clock: Clock) -> Iterator[Place]:
    place = place_under(database, clock, "restricted")
    yield place
    place.services.close()


@pytest.fixture
def open_to_all(database: Path | str, clock: Clock) -> Iterator[Place]:
    place = place_under(database, clock, "open")
    yield place
    place.services.close()


# Kind of session -> where a save goes that names no scope, and where one may go at all. Under the policy restricted.
WRITES: dict[str, tuple[str, ...]] = {
    "bare": ("user",),
    "interactive": ("user", "workstream"),
    "child": ("user", "workstream"),
    "coordinator": ("coordinator",),
    "reading a project": ("user",),
    "served": ("user",),
    "anonymous": ("workstream",),
    "approver": ("global", "user"),
}


@pytest.mark.parametrize("kind", WRITES)
def test_where_global_is_restricted_the_default_of_every_kind_of_session_works(restricted: Place, kind: str) -> None:
    """A save that names no scope goes to one that it may go to, and get and delete find it there without being told."""
    who, session = restricted.session(kind)
    saved = restricted.tool.call(who, session, {"action": "save", "name": "deploy_day", **NOTE})

    assert ("created", WRITES[kind][0]) == (saved.outcome, saved.memories[0].scope.kind if saved.memories else saved.text)
    for action in ("get", "delete"):
        assert [saved.memories[0].memory_id] == [
            m.memory_id for m in restricted.tool.call(who, session, {"action": action, "name": "deploy_day"}).memories
        ]


@pytest.mark.parametrize("kind", WRITES)
def test_what_the_schema_says_can_be_written_can_be_and_the_rest_cannot(restricted: Place, kind: str) -> None:
    """Each scope of the enumeration is tried, and the description says of each what comes of it."""
    who, session = restricted.session(kind)
    scope = form_of(restricted.tool.schema(who, session, "openai"), "openai")["properties"]["scope"]
    saves: dict[str, Any] = {
        word: restricted.tool.call(who, session, {"action": "save", "name": f"in_{word}", "scope": word, "content": f"Quokka {word}."})
        for word in scope["enum"]
    }

    assert set(WRITES[kind]) == {word for word, result in saves.items() if not result.is_error}
    for word, result in saves.items():
        said = next(part for part in scope["description"].split("; ") if part.startswith(f"{word}:"))
        assert result.is_error == ("(to be read only)" in said), said
    assert f"Default for save, get, delete: {WRITES[kind][0]};" in scope["description"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_where_nothing_can_be_written_nothing_of_writing_is_offered(restricted: Place, dialect: str) -> None:
    """The tool of somebody who is no user, without a workstream, is one for reading, in every dialect and hint."""
    who, session = restricted.session("anonymous without a workstream")
    schema = restricted.tool.schema(who, session, dialect)
    assert schema is not None

    assert ["search", "list", "get"] == form_of(schema, dialect)["properties"]["action"]["enum"]
    assert "delete" not in json.dumps(schema)
    assert (dialect == "mcp") == ("annotations" in schema)
    if dialect == "mcp":
        assert (True, False) == (schema["annotations"]["readOnlyHint"], schema["annotations"]["destructiveHint"])
    assert "may only read" in restricted.tool.call(who, session, {"action": "save", "name": "a", **NOTE}).text


def test_no_nudge_speaks_of_saving_where_nothing_can_be_saved(restricted: Place) -> None:
    who, session = restricted.session("anonymous without a workstream")
    with_place = restricted.session("anonymous")[1]
    said = [
        {"role": "user", "content": "Format it."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "No, that's wrong. I told you to use tabs."},
    ]

    assert None is restricted.services.turns.turn(who, session, said).nudge
    assert None is not restricted.services.turns.turn(who, with_place, said).nudge


def test_a_refusal_to_write_names_what_can_be_written(restricted: Place) -> None:
    who, session = restricted.session("interactive")
    answers = {
        word: restricted.tool.call(who, session, {"action": "save", "name": "a", "scope": word, **NOTE}).text
        for word in ("global", "project")
    }

    assert answers["global"].endswith("use another scope: user, workstream")
    assert answers["project"].endswith("must be one of ['user', 'workstream']")
    assert "'global'" in restricted.tool.call(who, session, {"action": "search", "query": "a", "scope": "project"}).text


def test_what_is_global_is_found_and_read_all_the_same(restricted: Place) -> None:
    who, session = restricted.session("interactive")
    restricted.services.memories.save(restricted.approver, Draft("deploy_day", "Quokka on Monday.", GLOBAL))

    assert "Quokka" in restricted.tool.call(who, session, {"action": "search", "query": "quokka"}).text
    assert "Quokka" in restricted.tool.call(who, session, {"action": "get", "name": "deploy_day", "scope": "global"}).text
    assert "there is one in scope global" in restricted.tool.call(who, session, {"action": "get", "name": "deploy_day"}).text


@pytest.mark.parametrize("kind", WRITES)
def test_where_it_is_open_the_default_is_global_as_ever(open_to_all: Place, kind: str) -> None:
    who, session = open_to_all.session(kind)
    saved = open_to_all.tool.call(who, session, {"action": "save", "name": "deploy_day", **NOTE})

    assert ("coordinator" if kind == "coordinator" else "global") == saved.memories[0].scope.kind


def test_these_tests_catch_a_default_that_is_refused(restricted: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the first scope that the session reads is the default, whether it can be written to or not."""
    monkeypatch.setattr("pegword.core.caller.default_word", lambda session, **_: scope_words(session)[0])
    with pytest.raises(AssertionError):
        test_where_global_is_restricted_the_default_of_every_kind_of_session_works(restricted, "interactive")
