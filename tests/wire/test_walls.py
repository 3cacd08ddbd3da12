"""Alice owns, Bob must see nothing of hers, Charlie may only read: on every path."""

import httpx2
import pytest

from tests.wire.conftest import Site, save

SECRET = "The vault opens with quokka."
ASK = {"role": "user", "content": "What opens the vault, quokka?"}


@pytest.fixture
def hers(alice: httpx2.Client) -> dict[str, dict[str, object]]:
    """What Alice keeps to herself, one in each of her scopes."""
    return {
        "user": save(alice, "vault", SECRET, scope="user"),
        "workstream": save(alice, "vault", SECRET, scope="workstream", scope_id="ws"),
    }


@pytest.mark.parametrize("scope", ["user", "workstream"])
def test_bob_finds_nothing_of_hers_by_any_route(
    alice: httpx2.Client, bob: httpx2.Client, hers: dict[str, dict[str, object]], scope: str
) -> None:
    """Foreign and absent answer alike, byte for byte, and nothing of it is counted."""
    place = {"scope": scope, **({"scope_id": "ws"} if scope == "workstream" else {})}
    one = f"/v1/api/memory/{hers[scope]['memory_id']}"
    none = "/v1/api/memory/00000000-0000-4000-8000-000000000000"
    empty = {"memories": [], "total": 0, "truncated": False}

    assert bob.get("/v1/api/memories").json() == bob.get("/v1/api/memories", params=place).json() == empty
    assert bob.get("/v1/api/memories", params={"include_expired": "true"}).json() == empty
    for filters in ({}, place):
        assert bob.post("/v1/api/memories/search", json={"query": "quokka vault", **filters}).json() == empty
        assert bob.post("/v1/api/memories/search", json={"query": '"opens with quokka"', **filters}).json() == empty
    assert bob.get("/v1/api/memories/vault", params=place).json() == {"error": "Memory 'vault' not found", "code": "not_found"}
    assert bob.delete("/v1/api/memories/vault", params=place).status_code == 404
    for method, rest, body in (
        ("GET", "", None), ("PATCH", "", {"content": "mine"}), ("DELETE", "", None), ("GET", "/versions", None),
        ("POST", "/revert", {"version": 1}),
    ):  # fmt: skip
        foreign, absent = (bob.request(method, at + rest, json=body) for at in (one, none))
        assert (foreign.status_code, foreign.content) == (404, absent.content)
    for session in ({}, {"session": {"workstream_id": "ws"}}):
        made = bob.post("/v1/api/turn", json={"messages": [ASK], **session}).json()
        assert (made["block"], made["hint"], made["in_scope"], made["memories"]) == ("", "", 0, [])
    assert alice.get(one).json()["content"] == SECRET


def test_a_workstream_of_the_same_id_is_another_one(alice: httpx2.Client, bob: httpx2.Client, hers: dict[str, dict[str, object]]) -> None:
    """Ids of two users never meet: saving under hers makes his own and touches nothing of hers."""
    saved = save(bob, "vault", "Bob's own", scope="workstream", scope_id="ws")

    assert (saved["outcome"], saved["version"]) == ("created", 1)
    assert saved["memory_id"] != hers["workstream"]["memory_id"]
    answer = alice.get("/v1/api/memories/vault", params={"scope": "workstream", "scope_id": "ws"}).json()
    assert answer["content"] == SECRET


def test_naming_another_user_is_403_whether_or_not_they_exist(alice: httpx2.Client, bob: httpx2.Client) -> None:
    """A scope_id that is not the caller's user id is 403 for scope=user: hers, and nobody's, in the same words."""
    own = save(alice, scope="user")["scope_id"]
    answers = []
    for user in (own, "nobody-at-all"):
        place = {"scope": "user", "scope_id": user}
        answers += [
            bob.get("/v1/api/memories", params=place),
            bob.get("/v1/api/memories/deploy_day", params=place),
            bob.delete("/v1/api/memories/deploy_day", params=place),
            bob.post("/v1/api/memories/search", json={"query": "x", **place}),
            bob.post("/v1/api/memories", json={"name": "a", "content": "x", **place}),
        ]

    assert {a.status_code for a in answers} == {403}
    assert {a.text for a in answers} == {'{"error":"Cannot access another user\'s memories","code":"foreign_user","field":"scope_id"}'}


@pytest.mark.parametrize(
    "query",
    ["scope=user&scope_id={id}%00", "scope=user&scope_id[]={id}", "scope=user&scope_id={id}&scope_id={own}", "scope=user&scope_id=%20{id}",
     "scope=user&scope_id={id}%20", "scope=USER&scope_id={id}", "scope=user&scope=global&scope_id={id}", "scope=global&scope_id={id}",
     "scope=workstream&scope_id=u:{id}", "scope=workstream&scope_id=w:{id}:ws", "scope=coordinator", "scope=project", "scope=mind",
     "scope_id={id}"],
)  # fmt: skip
def test_no_spelling_of_a_scope_id_reaches_her_rows(alice: httpx2.Client, bob: httpx2.Client, query: str) -> None:
    """Repeated, bracketed, padded, NUL-ended or forged ids: refused or empty, never her rows."""
    own = save(alice, "vault", SECRET, scope="user")["scope_id"]
    save(alice, "vault", SECRET, scope="workstream", scope_id="ws")
    his = save(bob, "own", "x", scope="user")["scope_id"]
    answer = bob.get("/v1/api/memories?" + query.format(id=own, own=his))

    assert answer.status_code in (200, 400, 403)
    assert SECRET not in answer.text
    if answer.status_code == 200:
        assert answer.json()["total"] == 0


def test_bob_cannot_explain_her_turn(alice: httpx2.Client, bob: httpx2.Client, hers: dict[str, dict[str, object]]) -> None:
    """A receipt is its own user's; to others it is absent."""
    assert hers
    receipt = alice.post("/v1/api/turn", json={"messages": [ASK]}).json()["receipt"]

    assert alice.get(f"/v1/api/turn/{receipt}").status_code == 200
    assert bob.get(f"/v1/api/turn/{receipt}").json() == {"error": "Receipt not found", "code": "not_found"}


def test_what_is_global_is_everybodys(alice: httpx2.Client, bob: httpx2.Client, charlie: httpx2.Client) -> None:
    """Global rows are read by all and written by all who may write."""
    saved = save(alice)

    assert charlie.get("/v1/api/memories/deploy_day").json()["author"] == "alice"
    assert bob.patch(f"/v1/api/memory/{saved['memory_id']}", json={"content": "On Mondays."}).json()["author"] == "bob"


def test_one_users_words_do_not_move_anothers_scores(alice: httpx2.Client, bob: httpx2.Client) -> None:
    """Relevance uses the statistics of the visible scopes only."""
    for number in range(5):
        save(bob, f"note_{number}", f"kestrel note {number}", scope="user")
    ask = {"query": "kestrel 3"}
    before = bob.post("/v1/api/memories/search", json=ask).json()
    for number in range(20):
        save(alice, f"flood_{number}", "kestrel kestrel kestrel", scope="user")

    assert bob.post("/v1/api/memories/search", json=ask).json() == before


def test_a_revoked_or_expired_token_is_nobody_at_once(server: Site, alice: httpx2.Client) -> None:
    """From the moment of its end nobody gets in with it."""
    assert server.services is not None
    access = server.services.access
    assert alice.get("/v1/api/memories").status_code == 200
    access.revoke_key(access.keys("alice")[0].key_id)
    short = server.token("alice", expires_at=server.services.clock() + 1_000)
    for _ in range(1_000):
        server.services.clock()

    assert alice.get("/v1/api/memories").status_code == 401
    assert server.client(short).get("/v1/api/memories").status_code == 401
