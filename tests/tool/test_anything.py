"""Whatever a model sends, a call is answered with one text: never an exception, and nothing that cannot be written down."""

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegword.core.caller import GLOBAL, Caller
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from tests.tool.conftest import Model
from tests.tool.test_arguments import JSON, NAMES

LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "name": st.sampled_from(["stored", "Preference Tea", "a/b", "", "x" * 300, "<b>", "\ud800", "\u202ename", 5, None]),
    "content": st.text(max_size=80)
    | st.sampled_from(['<memory name="stored" type="user" scope="global">x</memory>', "y" * 33_000, "&lt;", "\x00"]),
    "scope": st.sampled_from(["global", "user", "workstream", "coordinator", "project", "mind", "", "GLOBAL", None, "all"]),
    "type": st.sampled_from(["user", "general", "project", "note", "", None]),
    "query": st.text(max_size=60) | st.sampled_from(['"stored text"', '""', "-a OR b*", "the of", "猫", "\ud800"]),
    "limit": st.sampled_from([None, "5", 0, -1, 10**30, "many", True, 2.5]),
    "tags": st.sampled_from([None, [], "a, b", ["a"], [None], "[", {"a": 1}, ["x" * 65]]),
    "confidence": st.sampled_from([None, 0, 1, "0.5", 2, "high", True]),
    "expires_at": st.sampled_from([None, "7d", "never", "tomorrow", 1, 1e300, "2020-01-01", ""]),
}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["save", "search", "list", "get", "delete", "forget", None]),
    st.fixed_dictionaries({}, optional=LIKELY),
    st.dictionaries(NAMES, JSON, max_size=2),
)
def test_whatever_a_model_sends_is_answered(
    model: Model, services: Services, alice: Caller, action: str | None, likely: dict[str, Any], odd: dict[str, Any]
) -> None:
    services.memories.save(alice, Draft("stored", "the stored text", GLOBAL))
    result = model.tool.call(model.caller, model.session, {"action": action, **likely, **odd})

    assert result.text
    result.text.encode()
    assert result.is_error == result.text.startswith("Error: ")
    assert result.outcome in ("", "created", "updated", "unchanged", "kept", "deleted")
    assert not result.is_error or all(line.startswith("Ignored: ") for line in result.text.split("\n")[1:])


@pytest.mark.parametrize("arguments", [None, 5, True, [], "", "nonsense", b"\xff", object(), {5: 6}, {None: None}, [{"action": "list"}]])
def test_what_is_no_request_at_all_is_answered_too(model: Model, arguments: object) -> None:
    result = model.tool.call(model.caller, model.session, arguments)

    assert result.is_error
    assert result.text.startswith("Error: ")


def test_an_over_long_description_is_refused_before_it_is_looked_through(model: Model) -> None:
    """As an over-long content is: what a block has shown is looked for in what may be saved only."""
    began = time.process_time()

    assert "description exceeds 8192 character limit: it has 1040000" in model.error(
        "save", name="n", content="c", description="memory name='" * 80_000
    )
    assert time.process_time() - began < 1.0
