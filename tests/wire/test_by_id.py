"""The endpoints at /v1/api/memory: one memory by its id, changed in part, with its history."""

from typing import Any

import httpx2
import pytest

from pegword.http.native import PatchBody
from pegword.http.turnstone import SaveBody
from tests.wire.conftest import Site, save

ABSENT = {"error": "Memory not found", "code": "not_found"}


def path(record: dict[str, Any], rest: str = "") -> str:
    return f"/v1/api/memory/{record['memory_id']}{rest}"


def test_a_memory_is_found_by_its_id_in_every_spelling(alice: httpx2.Client) -> None:
    """Every face takes the id plain, as `mem_` + id and as `m_` + id."""
    saved = save(alice)
    expected = {key: value for key, value in saved.items() if key != "outcome"}
    plain, synapse, mind = (alice.get(f"/v1/api/memory/{before}{saved['memory_id']}") for before in ("", "mem_", "m_"))

    assert plain.json() == synapse.json() == mind.json() == expected
    assert plain.headers["etag"] == '"1"'


@pytest.mark.parametrize("bad", ["x", "no-such-id", "0" * 36, "%00", "%FF", "..", "'", "a" * 5_000, "%F0%9F%8C%B5"])
def test_an_ill_formed_id_is_404(alice: httpx2.Client, bad: str) -> None:
    """An id that cannot be is absent, on every path that takes one."""
    answers = [
        alice.get(f"/v1/api/memory/{bad}"),
        alice.delete(f"/v1/api/memory/{bad}"),
        alice.patch(f"/v1/api/memory/{bad}", json={"content": "x"}),
        alice.get(f"/v1/api/memory/{bad}/versions"),
        alice.post(f"/v1/api/memory/{bad}/revert", json={"version": 1}),
    ]

    assert [a.status_code for a in answers] == [404] * 5
    if bad != "..":  # which the client itself resolves
        assert [a.json() for a in answers] == [ABSENT] * 5


def test_a_patch_changes_what_it_names_and_nothing_else(alice: httpx2.Client) -> None:
    """PATCH takes any subset of a save's fields."""
    saved = save(alice, description="when", tags=["ops"], priority="high", confidence=0.9, expires_at="2030-01-01T00:00:00Z")
    answer = alice.patch(path(saved), json={"content": "On Mondays."})

    changed = answer.json()
    kept = {key: changed[key] for key in saved if key not in ("content", "hash", "version", "outcome", "updated", "confidence")}
    assert answer.status_code == 200
    assert answer.headers["etag"] == '"2"'
    assert kept == {key: saved[key] for key in kept}
    assert (changed["content"], changed["version"], changed["outcome"]) == ("On Mondays.", 2, "updated")


def test_a_patch_takes_every_field_of_a_save_but_those_that_say_which_memory(alice: httpx2.Client) -> None:
    """What identifies a memory, its name and where it lies, is not among them."""
    assert {*SaveBody.__struct_fields__} - {*PatchBody.__struct_fields__} == {"name", "scope", "scope_id"}
    saved = save(alice)
    everything = {
        "content": "On Mondays.", "description": "when", "type": "feedback", "tags": ["ops"], "priority": "high", "confidence": 0.5,
        "source": "tool", "expires_at": "2030-01-01T00:00:00Z", "sitting": "monday", "session": "s-1", "expected_version": 1,
        "verified": False,
    }  # fmt: skip
    assert {*everything} == {*PatchBody.__struct_fields__}
    answer = alice.patch(path(saved), json=everything).json()

    assert "warnings" not in answer
    told = {key: value for key, value in everything.items() if key in answer}
    assert told == {key: answer[key] for key in told}


def test_a_patch_says_which_sitting_it_belongs_to(alice: httpx2.Client, server: Site) -> None:
    """Text that changes takes a new place: beside what was saved in the same sitting."""
    assert server.services is not None
    first, other = save(alice, "first", sitting="monday"), save(alice, "other", sitting="tuesday")
    alice.patch(path(first), json={"content": "Changed.", "sitting": "tuesday"})
    refused = alice.patch(path(other), json={"content": "x", "sitting": "s" * 65})
    with server.services.engine.read() as tx:
        places = dict(tx.rows("SELECT name, place FROM structured_memories"))

    assert {"other": 0, "first": 1} == places
    assert (400, "sitting") == (refused.status_code, refused.json()["field"])


def test_null_in_a_patch_clears_three_fields_and_means_absent_elsewhere(alice: httpx2.Client) -> None:
    """In an update null clears description, tags, expires_at."""
    saved = save(alice, description="when", tags=["ops"], priority="high", expires_at="2030-01-01")
    cleared = alice.patch(path(saved), json={"description": None, "tags": None, "expires_at": None}).json()
    absent = alice.patch(path(saved), json={"content": None, "type": None, "priority": None, "source": None, "confidence": None}).json()

    assert (cleared["description"], cleared["tags"], cleared["expires_at"]) == ("", [], None)
    assert (absent["content"], absent["type"], absent["priority"]) == ("We deploy on Tuesdays.", "project", "high")
    assert absent["outcome"] == "unchanged"


def test_a_patch_cannot_rename_or_move_and_says_so(alice: httpx2.Client) -> None:
    """What identifies a memory is not among what a PATCH changes; it is named in the warnings, not silently dropped."""
    saved = save(alice)
    answer = alice.patch(path(saved), json={"name": "other", "scope": "user", "memory_id": "x"}).json()

    assert answer["name"] == "deploy_day"
    assert answer["warnings"] == [
        "name: no such field here; ignored", "scope: no such field here; ignored", "memory_id: set by the server; ignored",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"content": " "}, "content"),
        ({"content": 5}, "content"),
        ({"description": 5}, "description"),
        ({"tags": {}}, "tags"),
        ({"priority": "urgent"}, "priority"),
        ({"confidence": -0.1}, "confidence"),
        ({"expires_at": []}, "expires_at"),
        ({"type": "bogus"}, "type"),
    ],
)
def test_a_patch_that_cannot_be_is_400_and_changes_nothing(alice: httpx2.Client, body: dict[str, Any], field: str) -> None:
    """A mistake names its field."""
    saved = save(alice)
    answer = alice.patch(path(saved), json=body)

    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert alice.get(path(saved)).json()["version"] == 1


def test_two_patches_of_one_version_let_one_win(alice: httpx2.Client) -> None:
    """If-Match on a PATCH: the second hears the current version."""
    saved = save(alice)
    first = alice.patch(path(saved), json={"content": "one"}, headers={"If-Match": '"1"'})
    second = alice.patch(path(saved), json={"content": "two"}, headers={"If-Match": '"1"'})
    third = alice.patch(path(saved), json={"content": "three", "expected_version": 2})

    assert [a.status_code for a in (first, second, third)] == [200, 412, 200]
    assert second.json()["current_version"] == 2


def test_versions_are_told_newest_first_and_a_revert_makes_a_new_one(alice: httpx2.Client) -> None:
    """Each change is a version; a revert is one more, with the old text."""
    saved = save(alice, content="first", tags=["ops"])
    save(alice, content="second")
    reverted = alice.post(path(saved, "/revert"), json={"version": 1})
    answer = alice.get(path(saved, "/versions")).json()

    assert (reverted.status_code, reverted.json()["content"], reverted.json()["version"]) == (200, "first", 3)
    assert answer["total"] == 3
    assert [(v["version"], v["action"], v["content"]) for v in answer["versions"]] == [
        (3, "revert", "first"), (2, "save", "second"), (1, "save", "first"),
    ]  # fmt: skip
    first = answer["versions"][-1]
    assert {key: first[key] for key in first if key not in ("hash", "saved")} == {
        "version": 1, "action": "save", "name": "deploy_day", "description": "", "type": "project", "content": "first", "tags": ["ops"],
        "priority": "normal", "source": "agent", "author": "alice", "verified": False, "confidence": 0.7, "expires_at": None,
    }  # fmt: skip
    assert first["saved"].endswith("Z")


def test_a_revert_to_what_never_was_is_refused(alice: httpx2.Client) -> None:
    """A version must be a number from 1 that this memory has."""
    saved = save(alice)
    bodies: list[dict[str, Any]] = [{"version": 9}, {"version": 0}, {"version": "1"}, {"version": 1.0}, {}, {"version": True}]
    answers = [alice.post(path(saved, "/revert"), json=body) for body in bodies]

    assert [(a.status_code, a.json()["error"]) for a in answers] == [
        (404, "Memory 'deploy_day' has no version 9"),
        (400, "version must be at least 1"),
        (400, "version must be an integer"),
        (400, "version must be an integer"),
        (400, "version is required"),
        (400, "version must be an integer"),
    ]


def test_a_revert_honours_the_expected_version(alice: httpx2.Client) -> None:
    """A revert is a write like any other."""
    saved = save(alice, content="first")
    save(alice, content="second")
    stale = alice.post(path(saved, "/revert"), json={"version": 1, "expected_version": 1})
    good = alice.post(path(saved, "/revert"), json={"version": 1}, headers={"If-Match": '"2"'})

    assert (stale.status_code, stale.json()["current_version"], good.status_code) == (412, 2, 200)


def test_delete_by_id_is_final(alice: httpx2.Client) -> None:
    """Row and versions are gone; the answer is as by name."""
    saved = save(alice)
    answer = alice.delete(path(saved))

    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "name": "deploy_day"})
    assert [alice.get(path(saved, rest)).status_code for rest in ("", "/versions")] == [404, 404]
    assert alice.delete(path(saved)).json() == ABSENT


def test_versions_come_a_page_at_a_time(alice: httpx2.Client) -> None:
    """As lists do: 100 unless asked otherwise, at most 200, `total` counts all, and `truncated` says that there are older ones."""
    for number in range(205):
        saved = save(alice, content=f"text {number}")

    def told(**asked: int | str) -> tuple[int, int, int, bool]:
        page = alice.get(path(saved, "/versions"), params=asked).json()
        return (page["versions"] or [{"version": 0}])[0]["version"], len(page["versions"]), page["total"], page["truncated"]

    assert (205, 100, 205, True) == told() == told(limit="", offset="")
    assert (205, 200, 205, True) == told(limit=1_000)
    assert (105, 100, 205, True) == told(offset=100)
    assert (5, 5, 205, False) == told(offset=200)
    assert (0, 0, 205, False) == told(offset=205) == told(offset=2**63 - 1)
    for name, value in (("limit", "0"), ("limit", "ten"), ("offset", "-1"), ("offset", "1.5")):
        refused = alice.get(path(saved, "/versions"), params={name: value})
        assert (400, name) == (refused.status_code, refused.json()["field"])
