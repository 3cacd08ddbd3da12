"""Sessions, projects and shared workstreams over HTTP."""

from typing import Any

import httpx2
import pytest

from tests.wire.conftest import Site, save

ASK = {"messages": [{"role": "user", "content": "Where does the quokka go?"}]}


def make(client: httpx2.Client, path: str = "/v1/api/sessions", **body: Any) -> Any:
    """Make a session, or what *path* makes; its record."""
    answer = client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def turn(client: httpx2.Client, session_id: str) -> httpx2.Response:
    return client.post("/v1/api/turn", json={**ASK, "session": {"id": session_id}})


@pytest.fixture
def host(server: Site) -> httpx2.Client:
    """An agent host that acts for many users."""
    return server.client(server.token("host", "service"))


@pytest.fixture
def approver(server: Site) -> httpx2.Client:
    """A client of Alice that may make projects."""
    return server.client(server.token("alice", "approve"))


def test_a_session_is_made_read_listed_closed_and_resumed(alice: httpx2.Client) -> None:
    """Every answer tells it as it then stands; a closed one is listed when that is asked for."""
    made = make(alice, workstream_id="ws1", persona="scribe", resumed=True, colour="red")
    at = f"/v1/api/sessions/{made['session_id']}"

    assert ["colour: no such field here; ignored"] == made.pop("warnings")
    assert made == alice.get(at).json() == alice.get("/v1/api/sessions").json()["sessions"][0]
    assert ("interactive", "alice", "ws1", ["global", "workstream", "user"], "none", True, False) == tuple(
        made[field] for field in ("kind", "user", "workstream_id", "scopes", "project_access", "resumed", "closed")
    )
    assert {"status": "ok", "session_id": made["session_id"]} == alice.delete(at).json()
    assert [] == alice.get("/v1/api/sessions").json()["sessions"]
    assert {**made, "closed": True} == alice.get("/v1/api/sessions", params={"include_closed": "true"}).json()["sessions"][0]
    assert made == alice.post(at + "/resume").json()


def test_a_turn_in_a_session_sees_what_the_session_has(alice: httpx2.Client, bob: httpx2.Client) -> None:
    """Unknown and foreign are 404 in the same words, a closed one 409 in a sentence; both names at once are refused."""
    for at in ("ws1", "ws2"):
        save(alice, "plan", f"The quokka goes to {at}.", scope="workstream", scope_id=at)
    session = make(alice, workstream_id="ws1")["session_id"]
    answer = turn(alice, session).json()

    assert ["ws1"] == [m["scope_id"] for m in answer["memories"]]
    assert 200 == alice.get(f"/v1/api/turn/{answer['receipt']}", params={"session": session}).status_code
    unknown = {"error": "Session not found", "code": "not_found", "field": "session"}
    for client, named in ((bob, session), (alice, "none"), (alice, "\0"), (alice, "é")):
        refused = turn(client, named)
        assert (404, unknown) == (refused.status_code, refused.json())
    both = alice.post("/v1/api/turn", json={**ASK, "session": {"id": session, "workstream_id": "ws1"}})
    assert (400, "session") == (both.status_code, both.json()["field"])
    alice.delete(f"/v1/api/sessions/{session}")
    closed = turn(alice, session)
    assert (409, "session_closed") == (closed.status_code, closed.json()["code"])


def test_a_host_acts_for_the_user_it_names_and_nobody_else_does(
    alice: httpx2.Client, bob: httpx2.Client, charlie: httpx2.Client, host: httpx2.Client
) -> None:
    save(alice, "plan", "The quokka is hers.", scope="user")
    hers = make(host, user="alice")

    assert (["plan"], "alice") == ([m["name"] for m in turn(host, hers["session_id"]).json()["memories"]], hers["user"])
    anonymous = make(host, anonymous=True)
    assert ("", "", ["global"]) == (anonymous["user"], anonymous["user_id"], anonymous["scopes"])
    for client, body, status in (
        (bob, {"user": "alice"}, 403), (bob, {"anonymous": True}, 403), (host, {"user": "nobody"}, 404), (charlie, {}, 403),
        (host, {"kind": "coordinator", "anonymous": True}, 400), (alice, {"parent_id": anonymous["session_id"]}, 404),
        (alice, {"kind": "mind"}, 400), (alice, {"project_id": "none"}, 404), (alice, {"workstream_id": "x", "shared": True}, 404),
        (alice, {"parent_id": "\0"}, 404), (alice, {"project_id": "\0"}, 400), (alice, {"persona": "\0"}, 400),
        (host, {"user": "\0"}, 400),
    ):  # fmt: skip
        assert status == client.post("/v1/api/sessions", json=body).status_code, body


def test_a_session_of_a_host_that_names_nobody_is_refused(host: httpx2.Client, server: Site) -> None:
    """What is a user's must not become the host's for want of a word."""
    for body in ({}, {"workstream_id": "ws1"}, {"kind": "coordinator"}, {"user": ""}, {"anonymous": False}):
        refused = host.post("/v1/api/sessions", json=body)
        assert (400, "no_acting_user", "user") == (refused.status_code, refused.json().get("code"), refused.json().get("field")), body

    assert server.services is not None
    with server.services.engine.read() as tx:
        assert [(0,)] == tx.rows("SELECT count(*) FROM sessions")


def test_without_a_session_a_host_asks_for_itself(alice: httpx2.Client, host: httpx2.Client) -> None:
    """Its own user's, as with every other key, and nobody else's."""
    save(alice, "hers", "The quokka is hers.", scope="user")
    save(host, "own", "The quokka is the host's.", scope="user")
    found = host.post("/v1/api/tool", json={"arguments": {"action": "search", "query": "quokka"}}).json()["memories"]

    assert ["own"] == [m["name"] for m in host.post("/v1/api/turn", json=ASK).json()["memories"]]
    assert ["own"] == [m["name"] for m in found]


def test_a_host_may_name_itself_and_keeps_its_own_memories(host: httpx2.Client) -> None:
    """Said by name it is meant; and lists, saves and deletes of memories outside of sessions are the token's user's as ever."""
    own = make(host, user="host")
    saved = host.post("/v1/api/memories", json={"name": "quokka", "content": "The quokka is the host's.", "scope": "user"})

    assert (201, "host") == (saved.status_code, own["user"])
    assert ["quokka"] == [m["name"] for m in turn(host, own["session_id"]).json()["memories"]]
    child = make(host, parent_id=make(host, anonymous=True)["session_id"])
    assert ("child", "") == (child["kind"], child["user"])


def test_a_host_that_may_leave_out_whom_a_session_is_for_is_noticed(
    host: httpx2.Client, server: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a session without a user is the host's own user's, as with every other key."""
    monkeypatch.setattr("pegword.services.sessions._is_service", lambda _: False)

    with pytest.raises(AssertionError):
        test_a_session_of_a_host_that_names_nobody_is_refused(host, server)


def test_a_project_has_members_who_read_or_write_it(approver: httpx2.Client, alice: httpx2.Client, bob: httpx2.Client) -> None:
    """Made with approve, changed by its owner, left by its members, absent to all others."""
    assert 403 == alice.post("/v1/api/shared", json={"kind": "project", "title": "Harbour"}).status_code
    assert [] == bob.get("/v1/api/sessions").json()["sessions"]
    made = make(approver, "/v1/api/shared", kind="project", title=" Harbour ")
    at = f"/v1/api/shared/project/{made['id']}"
    assert 404 == bob.get(at).status_code == bob.patch(at, json={"archived": True}).status_code == bob.delete(at).status_code
    joined = approver.put(at + "/members/bob", json={"write": False}).json()

    assert ("Harbour", "alice", [("alice", True), ("bob", False)]) == (
        joined["title"], joined["owner"], [(m["user"], m["write"]) for m in joined["members"]],
    )  # fmt: skip
    assert joined == bob.get(at).json() == bob.get("/v1/api/shared").json()["shared"][0]
    assert "read" == make(bob, project_id=made["id"])["project_access"]
    assert 403 == bob.put(at + "/members/bob", json={}).status_code
    assert approver.patch(at, json={"archived": True}).json()["archived"]
    assert 404 == bob.post("/v1/api/sessions", json={"project_id": made["id"]}).status_code
    assert {"status": "ok", "user": "bob"} == bob.delete(at + "/members/bob").json()
    assert 404 == bob.get(at).status_code
    assert {"status": "ok", "id": made["id"], "memories": 0} == approver.delete(at).json()


def test_a_workstream_with_members_is_a_hosts(alice: httpx2.Client, host: httpx2.Client) -> None:
    assert 403 == alice.post("/v1/api/shared", json={"kind": "workstream", "title": "Support"}).status_code
    made = make(host, "/v1/api/shared", kind="workstream", title="Support", members=[{"user": "alice"}])
    session = make(host, user="alice", workstream_id=made["id"], shared=True)

    assert (True, made["id"]) == (session["shared"], session["workstream_id"])
    assert [made["id"]] == [s["id"] for s in alice.get("/v1/api/shared", params={"kind": "workstream"}).json()["shared"]]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "team", "title": "x"}, "kind"), ({"kind": "project"}, "title"), ({"kind": "project", "title": " "}, "title"),
        ({"kind": "project", "title": "x", "members": [{"user": "alice"}, {"user": "alice", "write": False}]}, "members"),
        ({"kind": "project", "title": "x", "members": [{}]}, "members[0].user"),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_names_its_field(approver: httpx2.Client, body: dict[str, Any], field: str) -> None:
    answer = approver.post("/v1/api/shared", json=body)

    assert (400, field) == (answer.status_code, answer.json()["field"])
    assert [] == approver.get("/v1/api/shared").json()["shared"]


@pytest.mark.parametrize("at", ["ws1", "a/b members/x", "%25 ?#", "é"])
def test_a_workstream_is_deleted_with_its_memories_when_that_is_said(alice: httpx2.Client, bob: httpx2.Client, at: str) -> None:
    """Whatever its id is; another user's of that id stays."""
    for client in (alice, bob):
        save(client, "plan", "quokka", scope="workstream", scope_id=at)
    path = "/v1/api/workstreams/" + "".join(f"%{byte:02x}" for byte in at.encode())

    assert [{"workstream_id": at, "memories": 1}] == alice.get("/v1/api/workstreams").json()["workstreams"]
    kept = alice.delete(path)
    assert (409, "holds_memories", "with_memories") == (kept.status_code, kept.json()["code"], kept.json()["field"])
    assert {"status": "ok", "id": at, "memories": 1} == alice.delete(path, params={"with_memories": "true"}).json()
    assert 404 == alice.delete(path).status_code
    assert 0 == alice.get("/v1/api/memories").json()["total"]
    assert 1 == bob.get("/v1/api/memories").json()["total"]


@pytest.mark.parametrize("name", ["n" * 65, "sam\u200b"], ids=["long", "invisible"])
def test_what_can_be_no_users_name_is_refused_under_its_own_field(host: httpx2.Client, name: str) -> None:
    """In every route that names a user in its body; `name` is a field of none of them."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/v1/api/sessions", {"user": name}),
        ("/v1/api/shared", {"kind": "project", "title": "Roof", "members": [{"user": name}]}),
    ]
    answers = [host.post(path, json=body) for path, body in asked]

    assert [(400, "user"), (400, "members")] == [(answer.status_code, answer.json()["field"]) for answer in answers]
    assert all(answer.json()["error"].startswith(f"{answer.json()['field']}: a user's name ") for answer in answers)
