"""If-Match, If-None-Match and expected_version: nobody overwrites or deletes what they have not seen."""

import threading
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from pegword.core.caller import GLOBAL
from pegword.core.caller import Caller as Agent
from pegword.core.errors import Invalid, NotFound, VersionMismatch
from pegword.core.memory import Draft
from pegword.core.versions import Expected, meets
from pegword.http.conditions import expected_of
from pegword.services.bundle import Services
from tests.patience import PATIENCE_S
from tests.wire.conftest import Site, save
from tests.wire.test_once import ALL, EXAMPLES, ONE, everything
from tests.wire.test_once import host as host

HOLDS = ['"2"', "2", "*", '"1", "2"', '"1","2","3"', ', "2",', 'W/"1", "2"', '"abc", "2"', '"a,b", "2"']
DOES_NOT = ['"1"', "0", '"1", "3"', 'W/"2"', 'W/"1", W/"2"', '"abc"', '"02"', '""', f'"{"9" * 30}"']
MALFORMED = ["", "abc", '"2', '2"', '"2 "', "-1", "1e3", "02", "²", '*, "2"', '"2" "3"', "w/2", "9" * 19, ","]


def if_match(value: str) -> dict[str, bytes]:
    return {"If-Match": value.encode("latin-1")}


def two_versions(client: httpx2.Client) -> str:
    """The path of a memory that is at version 2."""
    save(client, content="one")
    return f"{ONE}/{save(client, content='two')['memory_id']}"


def asked(client: httpx2.Client, path: str, headers: dict[str, bytes]) -> list[httpx2.Response]:
    """Every way to change or delete that memory, the deletes last."""
    return [
        client.post(ALL, json={"name": "deploy_day", "content": "two"}, headers=headers),
        client.patch(path, json={"priority": "normal"}, headers=headers),
        client.post(f"{path}/revert", json={"version": 2}, headers=headers),
        client.delete(f"{ALL}/deploy_day", headers=headers),
        client.delete(path, headers=headers),
    ]


@pytest.mark.parametrize("value", HOLDS)
def test_a_condition_that_holds_lets_every_write_through(alice: httpx2.Client, value: str) -> None:
    """As HTTP compares tags: one of a list is enough, and * is any version."""
    path = two_versions(alice)
    *writes, _ = asked(alice, path, if_match(value))
    save(alice, content="one")
    again = f"{ONE}/{save(alice, content='two')['memory_id']}"

    assert [200] * 4 == [answer.status_code for answer in writes]
    assert 200 == alice.delete(again, headers=if_match(value)).status_code


@pytest.mark.parametrize("value", DOES_NOT)
def test_a_condition_that_does_not_hold_is_412_with_the_current_version(alice: httpx2.Client, services: Services, value: str) -> None:
    """A weak tag never matches, nor one that is none of ours. Nothing is changed."""
    path = two_versions(alice)
    before = everything(services)
    answers = asked(alice, path, if_match(value))

    assert [(412, "version_mismatch", 2)] * 5 == [
        (answer.status_code, answer.json()["code"], answer.json()["current_version"]) for answer in answers
    ]
    assert before == everything(services)


@pytest.mark.parametrize("value", MALFORMED)
def test_a_condition_that_is_none_is_400(alice: httpx2.Client, value: str) -> None:
    """What cannot be read must not be taken for a condition that holds."""
    path = two_versions(alice)
    answers = asked(alice, path, if_match(value))
    sentence = 'If-Match must be *, or versions as the ETags of answers show them, such as "3" or "3", "4"'

    assert [(400, sentence, "If-Match")] * 5 == [(a.status_code, a.json()["error"], a.json()["field"]) for a in answers]


def test_several_headers_are_one_list(alice: httpx2.Client) -> None:
    path = two_versions(alice)

    assert 200 == alice.patch(path, json={"content": "x"}, headers=[("If-Match", '"1"'), ("If-Match", '"2"')]).status_code


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ('"7"', "Memory 'deploy_day' is at version 2, not at 7"),
        ('"7", "3", "5"', "Memory 'deploy_day' is at version 2, not at 3, 5 or 7"),
        ('W/"2"', "Memory 'deploy_day' is at version 2, and nothing that was expected can be one of its versions"),
    ],
)
def test_a_412_says_what_was_expected(alice: httpx2.Client, value: str, sentence: str) -> None:
    assert sentence == alice.delete(two_versions(alice), headers=if_match(value)).json()["error"]


def test_what_is_not_there_has_no_version(alice: httpx2.Client) -> None:
    """A save that expects something is 412 at version 0; what needs the memory itself is 404, as without a condition."""
    body = {"name": "absent", "content": "x"}
    saves = [alice.post(ALL, json=body, headers=if_match(value)) for value in ("*", '"1"', '"1", "2"')]
    deletes = [alice.delete(f"{ALL}/absent", headers=if_match(value)) for value in ("*", '"1"', "0")]

    assert [(412, 0)] * 3 == [(answer.status_code, answer.json()["current_version"]) for answer in saves]
    assert "Memory 'absent' is not there" == saves[0].json()["error"]
    assert [404] * 3 == [answer.status_code for answer in deletes]
    assert 201 == alice.post(ALL, json=body, headers=if_match("0")).status_code


def test_if_none_match_says_that_there_must_be_none_yet(alice: httpx2.Client) -> None:
    """As expected_version 0."""
    body, none = {"name": "deploy_day", "content": "x"}, {"If-None-Match": "*"}
    first, second = (alice.post(ALL, json=body, headers=none) for _ in range(2))
    other = alice.post(ALL, json=body, headers={"If-None-Match": '"1"'})
    both = alice.post(ALL, json=body, headers={**none, "If-Match": "*"})
    delete = alice.delete(f"{ALL}/deploy_day", headers=none)

    assert [201, 412, 400, 400, 412] == [answer.status_code for answer in (first, second, other, both, delete)]
    assert "If-None-Match must be *, which says that there must be no such memory yet" == other.json()["error"]


def test_a_delete_takes_expected_version_in_its_query(alice: httpx2.Client) -> None:
    """It has no body; a client that cannot set headers says it there."""
    path = two_versions(alice)
    refused = [
        alice.delete(f"{where}?expected_version={value}") for where in (path, f"{ALL}/deploy_day") for value in ("1", "0", "-1", "x")
    ]
    differing = alice.delete(f"{path}?expected_version=2", headers=if_match('"1"'))
    gone = alice.delete(f"{path}?expected_version=2", headers=if_match('"1", "2"'))

    assert [412, 412, 400, 400] * 2 == [answer.status_code for answer in refused]
    assert (400, "expected_version") == (differing.status_code, differing.json()["field"])
    assert 200 == gone.status_code


def test_every_route_that_changes_one_memory_takes_a_condition_and_the_others_refuse_it(server: Site, host: httpx2.Client) -> None:
    """A condition that is not looked at must not be taken for one that holds."""
    assert server.app is not None
    one_memory = ("/v1/api/memories", "/v1/api/memory/")
    for route in server.app.table.routes:
        if not route.may_write:
            continue
        (path, body), _ = EXAMPLES[route.method, route.path](host)
        answer = host.request(route.method, path, json=body, headers=if_match('"99"'))
        expected = 412 if route.path.startswith(one_memory) else 400
        assert (expected, expected == 412) == (answer.status_code, route.conditional), (route, answer.text)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1), st.integers(0, 6))
def test_a_list_of_tags_holds_where_one_strong_tag_is_the_version(tags: list[tuple[bool, int]], current: int) -> None:
    """Weak ones count for nothing."""
    value = ", ".join(f'{"W/" if weak else ""}"{number}"' for weak, number in tags)

    assert (current in {number for weak, number in tags if not weak}) == meets(expected_of(Headers({"If-Match": value})), current)


@given(st.text(st.characters(max_codepoint=255)))
def test_no_header_is_read_but_to_a_condition_or_a_refusal(value: str) -> None:
    raw: Any = [(b"if-match", value.encode("latin-1"))]
    try:
        read: Expected = expected_of(Headers(raw=raw))
    except Invalid:
        return

    assert read is not None


@pytest.mark.usefixtures("unhurried")
def test_what_is_compared_is_what_is_deleted(services: Services) -> None:
    """In one transaction: however it is changed meanwhile, only the version that was named goes."""
    agent = services.access.agent(services.access.ensure_user("alice"), "key:1")
    wrong: list[tuple[int, int]] = []
    deleted: list[int] = []
    ended = threading.Event()

    def save_on() -> None:
        for number in range(150):
            services.memories.save(agent, Draft("n", f"content {number}", GLOBAL))
        ended.set()

    def delete_on(by: Agent) -> None:
        while True:
            last = ended.is_set()
            try:
                seen = services.memories.get(by, GLOBAL, "n", counted=False).version
                gone = services.memories.delete(by, GLOBAL, "n", expected_version=seen).version
            except (NotFound, VersionMismatch):
                if last:
                    return
                continue
            deleted.append(gone)
            if gone != seen:
                wrong.append((seen, gone))

    threads = [threading.Thread(target=save_on), *(threading.Thread(target=delete_on, args=(agent,)) for _ in range(2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert [] == wrong
    assert deleted
