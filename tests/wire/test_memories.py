"""The endpoints at /v1/api/memories: whole answers, as Turnstone's clients and ours read them."""

import hashlib
from typing import Any

import httpx2
import pytest

from tests.conftest import Clock
from tests.wire.conftest import Site, save

DEPLOY = {
    "name": "deploy_day",
    "description": "",
    "type": "project",
    "scope": "global",
    "scope_id": "",
    "content": "We deploy on Tuesdays.",
    "created": "2027-01-15T08:00:00",
    "updated": "2027-01-15T08:00:00",
    "tags": [],
    "priority": "normal",
    "source": "agent",
    "author": "alice",
    "verified": False,
    "confidence": 0.7,
    "expires_at": None,
    "version": 1,
    "last_accessed": "",
    "access_count": 0,
}


def without_chance(record: dict[str, Any]) -> dict[str, Any]:
    """*record* without its random id and its hash, both checked for their form."""
    record = dict(record)
    assert len(record.pop("memory_id")) == 36
    assert len(record.pop("hash")) == len(hashlib.sha256().hexdigest())
    return record


def test_a_new_memory_is_answered_whole_with_201_and_its_version_as_etag(alice: httpx2.Client) -> None:
    """Turnstone: 201 with the full row. Ours: the whole record, what happened, and an ETag for If-Match."""
    answer = alice.post("/v1/api/memories", json={"name": "Deploy Day", "content": "We deploy on Tuesdays."})

    assert answer.status_code == 201
    assert answer.headers["etag"] == '"1"'
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert without_chance(answer.json()) == {**DEPLOY, "outcome": "created"}


def test_every_field_that_is_sent_comes_back(alice: httpx2.Client) -> None:
    """The optional fields of a save are stored and answered in their normal form."""
    record = save(
        alice, description="when", type="feedback", tags=["Ops", "ops", "release"], priority="critical", confidence=0, source="tool",
        expires_at="2027-02-01T00:00:00", sitting="monday", session="s1", scope="workstream", scope_id="ws-1",
    )  # fmt: skip

    assert without_chance(record) == {
        **DEPLOY, "description": "when", "type": "feedback", "tags": ["Ops", "release"], "priority": "critical", "confidence": 0.0,
        "source": "tool", "expires_at": "2027-02-01T00:00:00Z", "scope": "workstream", "scope_id": "ws-1", "outcome": "created",
    }  # fmt: skip


def test_saving_again_updates_with_200_and_keeps_id_and_created(alice: httpx2.Client, clock: Clock) -> None:
    """An upsert: same identity, same id, a new version."""
    first = save(alice, description="kept")
    clock.pass_s(60)
    answer = alice.post("/v1/api/memories", json={"name": "deploy-day", "content": "On Mondays."})

    second = answer.json()
    assert answer.status_code == 200
    assert (second["memory_id"], second["created"], second["description"]) == (first["memory_id"], first["created"], "kept")
    assert (second["outcome"], second["version"], second["updated"]) == ("updated", 2, "2027-01-15T08:01:00")
    assert answer.headers["etag"] == '"2"'


def test_the_same_thing_again_is_unchanged_and_makes_no_version(alice: httpx2.Client) -> None:
    """The same thing again answers unchanged."""
    save(alice)
    again = save(alice)

    assert (again["outcome"], again["version"]) == ("unchanged", 1)


def test_null_means_absent_in_a_save(alice: httpx2.Client) -> None:
    """In a save null = absent, so nothing that is stored is cleared by it."""
    save(alice, description="kept", tags=["kept"], priority="high")
    record = save(alice, "deploy_day", "changed", description=None, tags=None, priority=None, scope_id=None, type=None, expires_at=None)

    assert (record["description"], record["tags"], record["priority"]) == ("kept", ["kept"], "high")


def test_an_empty_description_clears_it(alice: httpx2.Client) -> None:
    """`""` as a description clears."""
    save(alice, description="gone soon")

    assert save(alice, description="")["description"] == ""


def test_what_a_save_names_without_effect_comes_back_as_warnings(alice: httpx2.Client) -> None:
    """Unknown and read-only fields are ignored and named, a claim of trust is told to have no effect; the save goes through."""
    record = save(alice, memory_id="mine", created="1999", version=7, colour="red", verified=True, source="user")

    assert record["warnings"] == [
        "source: an agent's credential cannot save as user; saved as agent",
        "verified: only a human can verify; saved as not verified",
        "memory_id: set by the server; ignored",
        "created: set by the server; ignored",
        "version: set by the server; ignored",
        "colour: no such field here; ignored",
    ]
    assert (record["version"], record["verified"], record["source"]) == (1, False, "agent")


def test_a_past_expiry_is_accepted_with_a_warning_and_get_says_expired(alice: httpx2.Client) -> None:
    """Expired rows are in no read path but the by-name and by-id get, which say so, and anywhere with include_expired."""
    record = save(alice, expires_at=1000)

    assert record["expires_at"] == "1970-01-01T00:16:40Z"
    assert record["warnings"] == ["expires_at lies in the past; the memory is kept but not shown"]
    assert alice.get("/v1/api/memories").json() == {"memories": [], "total": 0, "truncated": False}
    assert alice.post("/v1/api/memories/search", json={"query": "deploy"}).json() == {"memories": [], "total": 0, "truncated": False}
    assert alice.get("/v1/api/memories?include_expired=true").json()["total"] == 1
    assert alice.post("/v1/api/memories/search", json={"query": "deploy", "include_expired": True}).json()["total"] == 1
    assert alice.get("/v1/api/memories/deploy_day").json()["expired"] is True
    assert alice.get(f"/v1/api/memory/{record['memory_id']}").json()["expired"] is True


def test_the_list_is_newest_first_with_the_number_of_all(alice: httpx2.Client) -> None:
    """`total` is the number of all matches under the filters, whatever the limit."""
    for name in ("one", "two", "three"):
        save(alice, name)
    answer = alice.get("/v1/api/memories", params={"limit": 2}).json()

    assert [m["name"] for m in answer["memories"]] == ["three", "two"]
    assert {key: answer[key] for key in answer if key != "memories"} == {"total": 3, "truncated": True}


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"type": "feedback"}, ["two"]),
        ({"type": "general"}, ["four", "three", "one"]),
        ({"scope": "user"}, ["three"]),
        ({"scope": "workstream", "scope_id": "ws"}, ["four"]),
        ({"scope": "workstream"}, ["four"]),
        ({"tag": "OPS"}, ["two"]),
        ({"type": "", "scope": "", "scope_id": "", "tag": "", "limit": "", "include_expired": ""}, ["four", "three", "two", "one"]),
    ],
)
def test_filters_hold_for_list_and_search(alice: httpx2.Client, filters: dict[str, str], names: list[str]) -> None:
    """type (general means project), scope, scope_id and tag leave in what they name; an empty one is absent."""
    save(alice, "one")
    save(alice, "two", type="feedback", tags=["Ops"])
    save(alice, "three", scope="user")
    save(alice, "four", scope="workstream", scope_id="ws")
    searched = {key: value for key, value in filters.items() if key not in ("limit", "include_expired")}

    assert [m["name"] for m in alice.get("/v1/api/memories", params=filters).json()["memories"]] == names
    found = alice.post("/v1/api/memories/search", json={"query": "Tuesdays", **searched}).json()
    assert sorted(m["name"] for m in found["memories"]) == sorted(names)
    assert found["total"] == len(names)


def test_a_search_answers_whole_records_with_scores_best_first(alice: httpx2.Client) -> None:
    """Search is ranked: a strong older match stands before a weak newer one."""
    save(alice, "strong", "kestrel lemming ocelot", description="kestrel lemming ocelot")
    save(alice, "weak", "a kestrel only, and many other words that say nothing of the matter")
    answer = alice.post("/v1/api/memories/search", json={"query": "kestrel lemming ocelot", "colour": 1}).json()

    strong, weak = answer["memories"]
    assert (strong["name"], weak["name"]) == ("strong", "weak")
    assert strong["score"] > weak["score"] > 0
    assert set(strong) == {*DEPLOY, "memory_id", "hash", "score"}
    assert {key: answer[key] for key in answer if key != "memories"} == {
        "total": 2, "truncated": False, "warnings": ["colour: no such field here; ignored"],
    }  # fmt: skip


def test_get_by_name_is_the_whole_record_and_counts_an_access(alice: httpx2.Client, server: Site) -> None:
    """By-name get: default scope global; the access shows in the next answer, lists and searches count none."""
    saved = save(alice)
    first = alice.get("/v1/api/memories/deploy_day")
    alice.get("/v1/api/memories")
    alice.post("/v1/api/memories/search", json={"query": "deploy"})
    assert server.services is not None
    server.services.housekeeper.settle()
    second = alice.get("/v1/api/memories/deploy_day").json()

    assert first.headers["etag"] == '"1"'
    assert first.json() == {key: value for key, value in saved.items() if key != "outcome"}
    assert second["access_count"] == 1
    assert second["last_accessed"].startswith("2027-01-15T08:00:00")
    assert second["last_accessed"].endswith("Z")


def test_delete_answers_exactly_what_the_reference_does(alice: httpx2.Client) -> None:
    """200 {"status","name"}, then 404 naming the normal form."""
    save(alice)
    first = alice.delete("/v1/api/memories/Deploy-Day")
    second = alice.delete("/v1/api/memories/Deploy-Day")

    assert (first.status_code, first.json()) == (200, {"status": "ok", "name": "deploy_day"})
    assert (second.status_code, second.json()) == (404, {"error": "Memory 'deploy_day' not found", "code": "not_found"})


def test_the_same_name_in_three_scopes_is_three_memories(alice: httpx2.Client) -> None:
    """Identity is name, scope and scope id; get and delete without a scope mean global."""
    save(alice, content="for all")
    user = save(alice, content="mine", scope="user")
    save(alice, content="here", scope="workstream", scope_id="ws")

    assert alice.get("/v1/api/memories/deploy_day").json()["content"] == "for all"
    assert alice.get("/v1/api/memories/deploy_day", params={"scope": "user"}).json()["content"] == "mine"
    assert alice.get("/v1/api/memories/deploy_day", params={"scope": "user", "scope_id": user["scope_id"]}).status_code == 200
    assert alice.get("/v1/api/memories/deploy_day", params={"scope": "workstream", "scope_id": "ws"}).json()["content"] == "here"
    assert alice.delete("/v1/api/memories/deploy_day").status_code == 200
    assert sorted(m["content"] for m in alice.get("/v1/api/memories").json()["memories"]) == ["here", "mine"]


@pytest.mark.parametrize(
    ("body", "field", "sentence"),
    [
        ({}, "name", "name is required (max 256 characters)"),
        ({"name": None, "content": None}, "name", "name is required (max 256 characters)"),
        ({"name": "", "content": "x"}, "name", "name is required (max 256 characters)"),
        ({"name": " \t ", "content": "x"}, "name", "name is required (max 256 characters)"),
        ({"name": "n" * 257, "content": "x"}, "name", "name is required (max 256 characters): it has 257"),
        ({"name": "a<b", "content": "x"}, "name", "name holds the character U+003C '<'; letters, digits and _ . : / @ + # are allowed"),
        ({"name": "a"}, "content", "content is required"),
        ({"name": "a", "content": " \n\t "}, "content", "content is required"),
        ({"name": "a", "content": "c" * 65_537}, "content", "content exceeds 65536 character limit: it has 65537"),
        ({"name": "a", "content": 5}, "content", "content must be a text"),
        ({"name": ["a"], "content": "x"}, "name", "name must be a text"),
        ({"name": "a", "content": "x", "description": "d" * 8_193}, "description", "description exceeds 8192 character limit: it has 8193"),
        (
            {"name": "a", "content": "x", "type": "bogus"},
            "type",
            "invalid type: bogus; must be one of ['feedback', 'general', 'project', 'reference', 'user']",
        ),
        (
            {"name": "a", "content": "x", "scope": "coordinator"},
            "scope",
            "invalid scope: coordinator cannot be used here; must be one of ['global', 'user', 'workstream']",
        ),
        ({"name": "a", "content": "x", "scope_id": "y"}, "scope_id", "scope_id is not allowed with global scope"),
        ({"name": "a", "content": "x", "scope": "workstream"}, "scope_id", "scope_id is required for workstream scope"),
        (
            {"name": "a", "content": "x", "priority": "urgent"},
            "priority",
            "invalid priority: urgent; must be one of ['critical', 'high', 'normal', 'low']",
        ),
        ({"name": "a", "content": "x", "tags": "one,two"}, "tags", "tags must be a list"),
        ({"name": "a", "content": "x", "tags": ["one", 2]}, "tags", "tags[1] must be a text"),
        ({"name": "a", "content": "x", "tags": [f"t{i}" for i in range(33)]}, "tags", "tags exceeds the limit of 32 tags: there are 33"),
        ({"name": "a", "content": "x", "confidence": 1.5}, "confidence", "confidence must be between 0.0 and 1.0: it is 1.5"),
        ({"name": "a", "content": "x", "confidence": "0.5"}, "confidence", "confidence must be a number"),
        ({"name": "a", "content": "x", "confidence": True}, "confidence", "confidence must be a number"),
        (
            {"name": "a", "content": "x", "expires_at": "soon"},
            "expires_at",
            "expires_at must be an ISO 8601 time or seconds since 1970, up to the year 9999",
        ),
        ({"name": "a", "content": "x", "expires_at": True}, "expires_at", "expires_at must be a number or a text"),
        ({"name": "a", "content": "x", "expected_version": "1"}, "expected_version", "expected_version must be an integer"),
        ({"name": "a", "content": "x", "expected_version": -1}, "expected_version", "expected_version must be at least 0"),
        ({"name": "a", "content": "x", "sitting": "s" * 65}, "sitting", "sitting exceeds 64 character limit: it has 65"),
    ],
)
def test_a_save_that_cannot_be_is_400_in_one_sentence_with_its_field(
    alice: httpx2.Client, body: dict[str, Any], field: str, sentence: str
) -> None:
    """Each mistake names its field, what is valid, and the limit in plain digits; the reference's sentences are kept."""
    answer = alice.post("/v1/api/memories", json=body)

    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (400, sentence, field)


def test_the_word_for_project_follows_the_token_then_the_row(alice: httpx2.Client, server: Site) -> None:
    """Answered type word: the token's, else the one of the row's last save; other kinds have one word."""
    general = server.client(server.token("alice", project_word="general"))

    assert save(alice, "one", type="general")["type"] == "general"
    assert save(alice, "two", type="project")["type"] == "project"
    assert {m["type"] for m in general.get("/v1/api/memories").json()["memories"]} == {"general"}
    assert save(general, "three")["type"] == "general"
    assert save(general, "four", type="user")["type"] == "user"
    assert alice.get("/v1/api/memories/three").json()["type"] == "project"


def test_an_expected_version_that_is_not_the_stored_one_is_412(alice: httpx2.Client) -> None:
    """expected_version and If-Match say the same; a lost race names the version that won."""
    save(alice)
    body = {"name": "deploy_day", "content": "new"}
    by_body = alice.post("/v1/api/memories", json={**body, "expected_version": 7})
    by_header = alice.post("/v1/api/memories", json=body, headers={"If-Match": '"7"'})
    must_not_exist = alice.post("/v1/api/memories", json={**body, "expected_version": 0})
    absent = alice.post("/v1/api/memories", json={**body, "name": "other", "expected_version": 1})
    differing = alice.post("/v1/api/memories", json={**body, "expected_version": 1}, headers={"If-Match": "2"})
    good = alice.post("/v1/api/memories", json=body, headers={"If-Match": '"1"'})

    assert (by_body.status_code, by_body.json()) == (
        412,
        {
            "error": "Memory 'deploy_day' is at version 1, not at 7",
            "code": "version_mismatch",
            "field": "expected_version",
            "current_version": 1,
        },
    )
    assert [a.status_code for a in (by_header, must_not_exist, absent, differing, good)] == [412, 412, 412, 400, 200]
    assert absent.json()["current_version"] == 0
    assert alice.get("/v1/api/memories/other").status_code == 404
