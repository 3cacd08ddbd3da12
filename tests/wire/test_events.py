"""POST /v1/api/sessions/{id}/events, and the nudge in the answer of a turn."""

from typing import Any

import httpx2
import pytest

from pegword.core.nudge import KINDS, TEXTS
from pegword.services.nudges import EVENT_KINDS
from tests.conftest import Clock
from tests.wire.conftest import Site, save

LATER = [{"role": "user", "content": "Build it"}, {"role": "assistant", "content": "Built."}, {"role": "user", "content": "And the next?"}]
AT_TOOL = [
    *LATER,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "run", "input": {"a": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "42"}]},
]


def session_of(server: Site, name: str, **more: Any) -> str:
    assert server.services is not None
    access = server.services.access
    return server.services.sessions.create(access.agent(access.ensure_user(name), "key:test"), **more).session_id


@pytest.fixture
def hers(server: Site, alice: httpx2.Client) -> str:
    """A session of Alice's."""
    save(alice)
    return session_of(server, "alice")


def report(client: httpx2.Client, session: str, **event: Any) -> httpx2.Response:
    return client.post(f"/v1/api/sessions/{session}/events", json=event)


@pytest.mark.parametrize("kind", sorted(set(EVENT_KINDS) - {"tool_call", "cancel"}))
def test_what_is_reported_waits_for_a_turn(alice: httpx2.Client, hers: str, kind: str) -> None:
    answer = report(alice, hers, kind=kind)

    assert (200, {"kind": kind, "waits": True}) == (answer.status_code, answer.json())


def test_a_denial_is_reported_and_the_next_turn_nudges(alice: httpx2.Client, hers: str) -> None:
    """Through a turn of that session; kind and fixed text."""
    report(alice, hers, kind="denial", channel="any", valid_s=60)
    answer = alice.post("/v1/api/turn", json={"messages": AT_TOOL, "session": {"id": hers}}).json()

    assert {"kind": "denial", "text": TEXTS["denial"]} == answer["nudge"]


def test_the_third_identical_call_makes_an_event(alice: httpx2.Client, hers: str) -> None:
    """Arguments as a text or as an object, which are two things."""
    calls = [report(alice, hers, kind="tool_call", tool="run", arguments={"b": 1, "a": [2]}).json() for _ in range(3)]

    assert [False, False, True] == [answer["waits"] for answer in calls]
    assert not report(alice, hers, kind="tool_call", tool="run", arguments="{}").json()["waits"]
    assert {"kind": "cancel", "waits": False} == report(alice, hers, kind="cancel").json()


@pytest.mark.parametrize(
    ("event", "field", "sentence"),
    [
        ({"kind": "weather"}, "kind", f"invalid kind: weather; must be one of {list(EVENT_KINDS)}"),
        ({}, "kind", "kind is required"),
        ({"kind": 5}, "kind", "kind must be a text"),
        ({"kind": "denial", "channel": "loud"}, "channel", "invalid channel: loud; must be one of ['user', 'tool', 'any', 'quiet']"),
        ({"kind": "denial", "valid_s": 0}, "valid_s", "valid_s must be 1 to 86400: it is 0"),
        ({"kind": "tool_call"}, "tool", "tool must name the tool of a tool_call, in at most 256 characters, and of no other kind of event"),
        ({"kind": "tool_call", "tool": "run", "arguments": [1]}, "arguments", "arguments must be"),
    ],
)
def test_what_cannot_be_an_event_is_400_with_one_sentence(
    alice: httpx2.Client, hers: str, event: dict[str, Any], field: str, sentence: str
) -> None:
    answer = report(alice, hers, **event)

    assert (400, field) == (answer.status_code, answer.json().get("field"))
    assert answer.json()["error"].startswith(sentence)


def test_unknown_fields_are_named(alice: httpx2.Client, hers: str) -> None:
    assert ["text: no such field here; ignored"] == report(alice, hers, kind="denial", text="SENTINEL").json()["warnings"]


def test_a_session_that_is_not_hers_is_absent(server: Site, alice: httpx2.Client, bob: httpx2.Client, hers: str) -> None:
    """Bob's answer for Alice's session is that for one that never was."""
    answers = [report(bob, session, kind="denial") for session in (hers, "nobody", "00000000-0000-4000-8000-000000000000")]

    assert {(404, '{"error":"Session not found","code":"not_found","field":"session"}')} == {(a.status_code, a.text) for a in answers}


def test_who_may_only_read_reports_nothing(charlie: httpx2.Client, nobody: httpx2.Client, hers: str) -> None:
    assert (403, 401) == (report(charlie, hers, kind="denial").status_code, report(nobody, hers, kind="denial").status_code)


def test_a_closed_session_takes_nothing(server: Site, alice: httpx2.Client, hers: str) -> None:
    assert server.services is not None
    access = server.services.access
    server.services.sessions.close(access.agent(access.ensure_user("alice"), "key:test"), hers)
    answer = report(alice, hers, kind="denial")

    assert (409, "session_closed") == (answer.status_code, answer.json()["code"])


def test_a_turn_nudges_once_in_a_cool_down(alice: httpx2.Client, clock: Clock) -> None:
    """Null is the usual answer. Without a session, the clock is that of the user's conversations."""
    save(alice)
    correction = [*LATER[:2], {"role": "user", "content": "No, don’t do it like that"}]
    told = []
    for seconds in (0, 10, 300):
        clock.pass_s(seconds)
        told.append(alice.post("/v1/api/turn", json={"messages": correction}).json()["nudge"])

    expected = {"kind": "correction", "text": TEXTS["correction"]}
    assert [expected, None, expected] == told


def test_the_document_names_the_kinds(alice: httpx2.Client) -> None:
    document = alice.get("/openapi.json").json()

    assert list(EVENT_KINDS) == document["components"]["schemas"]["EventBody"]["properties"]["kind"]["enum"]
    assert list(KINDS) == document["components"]["schemas"]["TurnNudge"]["properties"]["kind"]["enum"]
