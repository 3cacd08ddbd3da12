"""Faults planted in the tool: the tests beside this file must notice each of them, or they would guard nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from pegword.core import caller as walls
from pegword.core import render, results
from pegword.core.caller import Caller, Session, Visible
from pegword.core.echo import Echo
from pegword.services import resembling
from pegword.services.bundle import Services
from pegword.tool import arguments as reading
from pegword.tool import calling, schema
from pegword.tool.calling import MemoryTool
from tests.tool import test_arguments, test_calling, test_schema, test_similar, test_texts
from tests.tool.conftest import Model, ModelOf


@contextmanager
def noticed() -> Iterator[None]:
    """Whatever guards inside must fail."""
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        yield


def test_a_tool_that_believes_the_kind_in_an_argument_is_noticed(
    monkeypatch: pytest.MonkeyPatch, model_of: ModelOf, alice: Caller, services: Services
) -> None:
    honest = MemoryTool.call

    def believing(self: MemoryTool, who: Caller, session: Session, arguments: object) -> calling.ToolResult:
        said = arguments.get("kind") if isinstance(arguments, dict) else None
        return honest(self, who, replace(session, kind=said) if said else session, arguments)

    monkeypatch.setattr(MemoryTool, "call", believing)
    with noticed():
        test_calling.test_only_a_coordinator_reaches_the_coordinator_scope(model_of, alice, services, "list", "interactive")


def test_a_coordinator_that_sees_everything_is_noticed(
    monkeypatch: pytest.MonkeyPatch, model: Model, model_of: ModelOf, alice: Caller, bob: Caller, services: Services
) -> None:
    def everything(who: Caller, *_: Any, **__: Any) -> Visible:
        return Visible((*walls.reach(who).scopes, walls.coordinator_scope(who.user_id)), who.user_id)

    monkeypatch.setattr(calling, "session_scopes", everything)
    monkeypatch.setattr("pegword.services.memories.session_reach", everything)
    with noticed():
        test_calling.test_coordinators_of_one_user_share_their_rows_and_nobody_else_sees_them(model, model_of, alice, bob, services)


def test_a_reader_that_may_write_is_noticed(monkeypatch: pytest.MonkeyPatch, model_of: ModelOf, model: Model, alice: Caller) -> None:
    monkeypatch.setattr(Caller, "may", lambda *_: True)
    with noticed():
        test_calling.test_a_read_only_credential_has_no_save_and_no_delete(model_of, alice, model)


@pytest.mark.parametrize("plain", ["escaped", "visible_text"])
def test_results_that_show_what_is_stored_as_it_is_are_noticed(
    monkeypatch: pytest.MonkeyPatch, model: Model, services: Services, alice: Caller, plain: str
) -> None:
    for n, text in enumerate(test_texts.HOSTILE):
        services.memories.save(alice, test_texts.Draft(f"n{n}", f"CANARY {text}", test_texts.GLOBAL, description=text))
    for module in (render, results):
        monkeypatch.setattr(module, plain, lambda text: text)
    with noticed():
        test_texts.test_no_answer_holds_a_tag_or_what_no_reader_sees(model, None)


def test_content_that_is_not_indented_is_noticed(monkeypatch: pytest.MonkeyPatch, model: Model, services: Services, alice: Caller) -> None:
    services.memories.save(alice, test_texts.Draft("n5", f"CANARY {test_texts.HOSTILE[5]}", test_texts.GLOBAL, description="d"))
    whole = results.whole
    monkeypatch.setattr(results, "whole", lambda *of: whole(*of).replace("\n  ", "\n"))
    with noticed():
        test_texts.test_the_content_of_one_memory_is_whole_and_indented(model, None, 5)


def _deaf(text: str) -> Echo:
    return Echo((), text, False)


@pytest.mark.parametrize("planted", ["deaf", "forgetful"])
def test_a_tool_that_saves_what_it_has_shown_is_noticed(
    monkeypatch: pytest.MonkeyPatch, model: Model, services: Services, alice: Caller, planted: str
) -> None:
    services.memories.save(alice, test_similar.Draft("replica_port", test_similar.PORT, test_similar.GLOBAL))

    def turn(said: str) -> str:
        return services.turns.turn(alice, Session("w1"), [{"role": "user", "content": said}]).text

    if planted == "deaf":
        monkeypatch.setattr(calling, "echo", _deaf)
    else:
        monkeypatch.setattr(resembling, "_forms", lambda _: set())
    guard: Callable[..., None] = test_similar.test_what_a_turn_has_shown_is_not_saved_again
    with noticed():
        guard(model, services, alice, turn, "Which port has the postgres replica?", str)


def test_company_taken_for_likeness_is_noticed(
    monkeypatch: pytest.MonkeyPatch, model_of: ModelOf, services: Services, alice: Caller
) -> None:
    monkeypatch.setattr(resembling.Likeness, "to", lambda *_: 1.0)
    with noticed():
        test_similar.test_what_was_saved_together_is_not_similar_for_that(model_of, services, alice)


def test_a_user_taken_from_an_argument_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SETTLED", frozenset())
    with noticed():
        test_arguments.test_who_and_where_follow_from_the_session("user_id")


def test_a_form_that_is_not_flat_is_noticed(monkeypatch: pytest.MonkeyPatch, tool: MemoryTool, alice: Caller) -> None:
    monkeypatch.setattr(schema, "_text", lambda says: {"anyOf": [{"type": "string"}, {"type": "null"}], "description": says})
    with noticed():
        test_schema.test_the_form_is_flat(tool, (alice, Session()))
