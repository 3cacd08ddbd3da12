"""A kept answer tells nothing that its caller may no longer see: the same request again is then answered as it now would be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from pegword.core.people import Seen
from pegword.services.bundle import Services
from pegword.store import sharing_rows
from tests.wire.conftest import Site

SESSIONS, SHARED, TOOL, ALL = "/v1/api/sessions", "/v1/api/shared", "/v1/api/tool", "/v1/api/memories"
SECRET = "The quokka moved to Harbour Street in May."


@dataclass
class Team:
    """A project or a shared workstream of the owner's, of which Bob is a member; and what Bob, and a host for him, ask in it."""

    owner: httpx2.Client
    bob: httpx2.Client
    host: httpx2.Client
    kind: str
    id: str

    @property
    def at(self) -> str:
        return f"{SHARED}/{self.kind}/{self.id}"

    @property
    def place(self) -> dict[str, Any]:
        return {"project_id": self.id} if self.kind == "project" else {"workstream_id": self.id, "shared": True}

    def session(self, client: httpx2.Client) -> str:
        made = client.post(SESSIONS, json={**self.place, **({"user": "bob"} if client is self.host else {})})
        assert made.status_code == 201, made.text
        return str(made.json()["session_id"])

    def tool(self, client: httpx2.Client, action: str = "save") -> tuple[httpx2.Client, str, str, Any]:
        arguments = {"action": action, "name": "address", "content": SECRET, "scope": self.kind}
        return client, "POST", TOOL, {"session": self.session(client), "arguments": arguments}


Ask = tuple[httpx2.Client, str, str, Any]


def tool_delete(team: Team) -> Ask:
    client, method, path, body = team.tool(team.bob)
    client.request(method, path, json=body)
    return team.tool(team.bob, "delete")


# What was asked, by what its answer tells of the team's own.
ASKS: dict[str, Callable[[Team], Ask]] = {
    "tool save": lambda team: team.tool(team.bob),
    "tool save of a host": lambda team: team.tool(team.host),
    "tool delete": tool_delete,
    "session": lambda team: (team.bob, "POST", SESSIONS, team.place),
    "session of a host": lambda team: (team.host, "POST", SESSIONS, {**team.place, "user": "bob"}),
}
# How it was taken away.
WAYS: dict[str, Callable[[Team], httpx2.Response]] = {
    "the member is taken out": lambda team: team.owner.delete(f"{team.at}/members/bob"),
    "the member leaves": lambda team: team.bob.delete(f"{team.at}/members/bob"),
    "it is archived": lambda team: team.owner.patch(team.at, json={"archived": True}),
    "it is deleted": lambda team: team.owner.delete(team.at, params={"with_memories": True}),
}


@pytest.fixture(params=["project", "workstream"])
def team(server: Site, request: pytest.FixtureRequest) -> Team:
    owner, bob, host = (
        server.client(server.token(name, right)) for name, right in (("ada", "service"), ("bob", "write"), ("host", "service"))
    )
    made = owner.post(SHARED, json={"kind": request.param, "title": "Harbour", "members": [{"user": "bob", "write": True}]})
    assert made.status_code == 201, made.text
    return Team(owner, bob, host, request.param, made.json()["id"])


def under(key: str, ask: Ask) -> httpx2.Response:
    client, method, path, body = ask
    return client.request(method, path, json=body, headers={"Idempotency-Key": key})


def told(answer: httpx2.Response) -> tuple[int, bytes]:
    return answer.status_code, answer.content


def is_refusal(answer: httpx2.Response) -> bool:
    return not answer.is_success or bool(answer.json().get("is_error"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ASKS)
def test_who_lost_the_place_is_answered_as_anybody_without_it(team: Team, services: Services, what: str, way: str) -> None:
    """Of what was kept nothing is told, and nothing is done: the answer is that of the same request under a new key. Where the
    memory itself is gone with its place, the key says that."""
    ask = ASKS[what](team)
    first = under("first", ask)
    kept = under("first", ask)
    assert not is_refusal(first), first.text
    assert told(first) == told(kept)
    assert WAYS[way](team).is_success
    again, anew = under("first", ask), under("anew", ask)

    assert is_refusal(again), again.text
    assert told(again) == told(anew) or "deleted_since" == again.json()["code"]
    for secret in (SECRET, first.json().get("session_id", SECRET)):
        assert secret not in again.text


@pytest.mark.parametrize("what", ASKS)
def test_who_may_only_read_it_now_is_told_again_what_was_done(team: Team, what: str) -> None:
    ask = ASKS[what](team)
    first = under("first", ask)
    assert team.owner.put(f"{team.at}/members/bob", json={"write": False}).is_success

    assert told(first) == told(under("first", ask))


@pytest.mark.parametrize("what", ASKS)
def test_who_is_a_member_again_is_told_again(team: Team, what: str) -> None:
    """What was refused meanwhile did not use up the key."""
    ask = ASKS[what](team)
    first = under("first", ask)
    team.owner.delete(f"{team.at}/members/bob")
    between = under("first", ask)
    team.owner.put(f"{team.at}/members/bob", json={"write": True})

    assert is_refusal(between)
    assert told(first) == told(under("first", ask))


def test_an_owner_is_told_of_what_is_archived_and_not_of_what_is_deleted(team: Team) -> None:
    """Making it a second time, since the first one is gone, is no answer either."""
    make = (team.owner, "POST", SHARED, {"kind": team.kind, "title": "Second", "members": [{"user": "bob", "write": True}]})
    made = under("make", make)
    at = f"{SHARED}/{team.kind}/{made.json()['id']}"
    asks: list[Ask] = [
        make, (team.owner, "PATCH", at, {"title": "Third"}), (team.owner, "PUT", f"{at}/members/bob", {"write": False}),
        (team.owner, "DELETE", f"{at}/members/bob", None),
    ]  # fmt: skip
    firsts = [told(under("make", ask)) for ask in asks]
    team.owner.patch(at, json={"archived": True})
    archived = [told(under("make", ask)) for ask in asks]
    deletes: Ask = (team.owner, "DELETE", at, None)
    deleted = under("make", deletes)
    gone = [under("make", ask) for ask in asks]

    assert firsts == archived
    assert [(404, "gone_since"), (404, "not_found"), (404, "not_found")] == [(g.status_code, g.json()["code"]) for g in gone[:3]]
    assert firsts[3] == told(gone[3])  # it tells nothing of the place
    assert told(deleted) == told(under("make", deletes))
    assert not any("Third" in one.text or "bob" in one.text for one in gone[:3])
    assert [team.id] == [one["id"] for one in team.owner.get(SHARED, params={"kind": team.kind}).json()["shared"]]


def narrow(services: Services, client: httpx2.Client, right: str) -> None:
    """Give the key of *client* another right."""
    credential = services.access.caller_of(client.headers["Authorization"].removeprefix("Bearer ")).credential
    changed = services.engine.write(
        lambda tx: tx.run("UPDATE access_keys SET access_right = ? WHERE key_id = ?", (right, credential.removeprefix("key:")))
    )
    assert changed == 1


def test_a_key_whose_right_was_narrowed_is_told_no_more_than_it_may_ask_for(server: Site, services: Services) -> None:
    """What it may still ask for is told again as it was, deletes and conditions too."""
    host, _ = server.client(server.token("host", "service")), server.token("bob")
    session: Ask = (host, "POST", SESSIONS, {"user": "bob"})
    in_session = under("k", session).json()["session_id"]
    save = {"action": "save", "name": "address", "content": SECRET, "scope": "user"}
    tool: Ask = (host, "POST", TOOL, {"session": in_session, "arguments": save})
    shared: Ask = (host, "POST", SHARED, {"kind": "workstream", "title": "Harbour"})
    plain: Ask = (host, "POST", ALL, {"name": "own", "content": "Its own."})
    guarded: Ask = (host, "POST", ALL, {"name": "own", "content": "Its own again.", "expected_version": 1})
    firsts = [under("k", ask) for ask in (session, tool, shared)]
    stays = [under("k2", ask) for ask in (plain,)] + [under("k3", guarded)]
    assert all(one.is_success for one in (*firsts, *stays))
    narrow(services, host, "write")
    now = [under("k", ask) for ask in (session, tool, shared)]

    assert [(403, "missing_scope"), (404, "not_found"), (403, "missing_scope")] == [(one.status_code, one.json()["code"]) for one in now]
    assert [told(one) for one in stays] == [told(under("k2", plain)), told(under("k3", guarded))]
    narrow(services, host, "read")
    assert [403] * 2 == [under("k2", plain).status_code, under("k", session).status_code]
    narrow(services, host, "service")
    assert [told(one) for one in firsts] == [told(under("k", ask)) for ask in (session, tool, shared)]


def test_looking_again_does_nothing_a_second_time(server: Site, services: Services, team: Team) -> None:
    """A request is tried to see whether it is still allowed, and undone, its errands too."""
    asks = [make(team) for make in ASKS.values()]
    for n, ask in enumerate(asks):
        under(f"k{n}", ask)
    team.owner.delete(f"{team.at}/members/bob")
    services.housekeeper.settle()
    before = rows(services)
    for n, ask in enumerate(asks):
        under(f"k{n}", ask)
    services.housekeeper.settle()

    assert before == rows(services)


def rows(services: Services) -> list[list[Any]]:
    with services.engine.read() as tx:
        return [
            sorted(tx.rows(f"SELECT * FROM {table}"), key=repr) for table in ("structured_memories", "sessions", "once_answers", "receipts")
        ]


def test_answers_that_are_given_whoever_asks_are_noticed(team: Team, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what was seen is not looked at again."""
    monkeypatch.setattr(sharing_rows, "sees", lambda _tx, seen: isinstance(seen, Seen))
    with pytest.raises(AssertionError):
        test_who_lost_the_place_is_answered_as_anybody_without_it(team, services, "session", "the member is taken out")
