"""Who was let in a moment ago stands in line for a write at once; let in they are when their turn has come, each time anew."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.datastructures import Headers

from pegword.core.caller import Caller
from pegword.core.errors import Unauthenticated
from pegword.http import auth
from pegword.http.app import READERS_AT_ONCE_MAX, App, create_app
from pegword.http.auth import RECENT_MAX, RECENT_S, Recent
from pegword.http.rates import Rates
from pegword.http.routing import Route
from pegword.services.access import Access
from pegword.services.memories import Memories
from pegword.settings import load
from tests.patience import PATIENCE_S, until
from tests.stored import held
from tests.wire.conftest import Site, read_replies, save

pytestmark = pytest.mark.usefixtures("unhurried")
MEMORIES = "/v1/api/memories"
ALICE = Caller("u1", "alice", "key:1", False, "write", "")


@pytest.fixture
def memorable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment ago is as long as a test takes, however slow the machine."""
    monkeypatch.setattr(auth, "RECENT_S", 10 * PATIENCE_S)


def with_token(token: str) -> Headers:
    return Headers({"Authorization": f"Bearer {token}"})


def writes(server: Site) -> list[Route]:
    """Every route that may have to wait."""
    assert server.app is not None
    return [route for route in server.app.table.routes if route.right and route.may_wait]


def asked(client: httpx2.Client, route: Route) -> httpx2.Response:
    """Something that *route* may do or not, by somebody who may ask for it."""
    path = route.path.replace(":path", "").format(**dict.fromkeys(route.parameters, "there_is_none"))
    body: dict[str, Any] = {"json": {"name": "n", "content": "c"}} if route.body else {}
    return client.request(route.method, path, **body)


def check_that_what_is_revoked_writes_nothing(server: Site, client: httpx2.Client) -> None:
    assert server.services is not None
    access = server.services.access
    save(client)
    before = {asked(client, route).status_code for route in writes(server)}
    access.revoke_key(access.keys("alice")[0].key_id)

    assert not before & {401, 503}
    assert [] == [f"{route.method} {route.path}" for route in writes(server) if asked(client, route).status_code != 401]


def test_what_was_revoked_a_moment_after_it_wrote_writes_nothing(server: Site) -> None:
    """By no route: the token is looked up again in the transaction that writes."""
    check_that_what_is_revoked_writes_nothing(server, server.client(server.token("alice", "service")))


def test_a_server_that_goes_by_what_it_remembers_is_noticed(server: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a token that was good a moment ago is good."""
    remembered: dict[str, Caller] = {}
    look_up = Access.caller_of

    def remembers(access: Access, token: str) -> Caller:
        return remembered.get(token) or remembered.setdefault(token, look_up(access, token))

    monkeypatch.setattr(Access, "caller_of", remembers)
    with pytest.raises(AssertionError, match="POST /v1/api/memories"):
        check_that_what_is_revoked_writes_nothing(server, server.client(server.token("alice", "service")))


@pytest.mark.usefixtures("memorable")
def test_a_save_does_not_stand_behind_those_who_read(server: Site, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many read, and however long: who saved before saves again meanwhile. Who did not has to be looked up by a reader first."""
    assert server.services is not None
    save(alice)
    go_on, reading = threading.Event(), threading.Semaphore(0)

    def slow(*_: object, **__: object) -> None:
        reading.release()
        assert go_on.wait(PATIENCE_S)
        raise Unauthenticated("that was long")

    monkeypatch.setattr(Memories, "search", slow)
    client = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=100))
    stranger = server.client(server.token("bob"))
    late: list[int] = []
    threads = [
        threading.Thread(target=client.post, args=(f"{MEMORIES}/search",), kwargs={"json": {"query": "deploy"}})
        for _ in range(READERS_AT_ONCE_MAX)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert reading.acquire(timeout=PATIENCE_S)
    strange = threading.Thread(target=lambda: late.append(stranger.post(MEMORIES, json={"name": "b", "content": "c"}).status_code))
    strange.start()
    mine = alice.post(MEMORIES, json={"name": "mine", "content": "c"}).status_code
    too_early = list(late)
    go_on.set()
    for thread in (*threads, strange):
        thread.join(PATIENCE_S)

    assert (201, [], [201]) == (mine, too_early, late)


@pytest.mark.usefixtures("memorable")
def test_a_body_that_comes_later_does_not_stand_behind_those_who_read(
    server: Site, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a request that comes in two parts, as those of some clients do."""
    token = server.token("alice")
    save(server.client(token))
    body = b'{"name": "mine", "content": "c"}'
    head = f"POST {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    monkeypatch.setattr(App, "_admitted", in_line_only(App._admitted))
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
        connection.sendall(head.encode())
        until(lambda: server.app is not None and server.app._in_work == 1)
        connection.sendall(body)
        replies = read_replies(connection)

    assert [201] == [reply.status for reply in replies]


def in_line_only(admitted: Callable[..., Any]) -> Callable[..., Any]:
    """*admitted*, for those alone who stood in line."""

    def only(app: App, request: Any, route: Route, path: dict[str, str], on: Any = None) -> Any:
        assert on is not None
        return admitted(app, request, route, path, on)

    return only


@pytest.mark.usefixtures("memorable")
def test_who_is_unknown_does_not_stand_in_the_line_of_those_who_write(
    server: Site, database: Path | str, alice: httpx2.Client, nobody: httpx2.Client
) -> None:
    """401 at once, while others wait for the database; so is a right that is missing 403, and too much 429."""
    assert server.services is not None
    reader, writer = server.client(server.token("charlie", "read")), server.client(server.token("alice"))
    settings = load(environment={"PEGWORD_SERVER__REQUESTS_PER_MINUTE": "2"})
    server.app = create_app(server.services, settings, rates=Rates(lambda: 1_000.0))
    save(alice)
    save(writer)
    save(writer, "another")
    answered: list[int] = []
    body = {"name": "w", "content": "c"}
    with held(database):
        waits = threading.Thread(target=lambda: answered.append(alice.post(MEMORIES, json=body).status_code))
        waits.start()
        until(lambda: server.app is not None and server.app._writes.in_work == 1)
        refused = [client.post(MEMORIES, json=body).status_code for client in (nobody, server.client("pw_x"), reader, writer)]
        still = (server.app._writes.in_work, list(answered))
    waits.join(PATIENCE_S)

    assert [401, 401, 403, 429] == refused
    assert (1, []) == still
    assert [201] == answered


@pytest.mark.usefixtures("memorable")
def test_what_is_sent_by_somebody_known_is_counted_once(server: Site, alice: httpx2.Client) -> None:
    """Whether it can be done, is no JSON, or is not there: each takes one of a minute's worth."""
    assert server.services is not None
    settings = load(environment={"PEGWORD_SERVER__REQUESTS_PER_MINUTE": "7"})
    server.app = create_app(server.services, settings, rates=Rates(lambda: 1_000.0))  # of a minute that stands still
    said = [alice.post(MEMORIES, json={"name": f"n{number}", "content": "c"}).status_code for number in range(4)]
    said.append(alice.post(MEMORIES, content=b"{}", headers={"Content-Type": "text/plain"}).status_code)
    said.append(alice.post(MEMORIES, content=b"{", headers={"Content-Type": "application/json"}).status_code)
    said += [alice.delete(f"{MEMORIES}/n0").status_code, alice.delete(f"{MEMORIES}/n1").status_code]

    assert [201, 201, 201, 201, 415, 400, 200, 429] == said


@pytest.mark.parametrize("what", [lambda at: at, lambda at: at - 0.001], ids=["is forgotten", "is known"])
def test_who_was_looked_up_a_while_ago(what: Callable[[float], float]) -> None:
    """For so many seconds, and not longer."""
    now = [1_000.0]
    recent = Recent(lambda: now[0])
    recent.put(with_token("a"), ALICE)
    passed = what(RECENT_S)
    now[0] += passed

    assert (ALICE if passed < RECENT_S else None) == recent.get(with_token("a"))


def test_no_more_are_remembered_than_may_be() -> None:
    """Those whose look-up is longest ago go."""
    recent = Recent()
    for number in range(RECENT_MAX):
        recent.put(with_token(f"t{number}"), ALICE)
    recent.put(with_token("t0"), ALICE)
    recent.put(with_token("one more"), ALICE)

    assert [ALICE, None, ALICE] == [recent.get(with_token(token)) for token in ("t0", "t1", "one more")]


def test_no_token_is_kept_as_it_is() -> None:
    """Nor any part of it that would do."""
    recent = Recent()
    recent.put(with_token("secret"), ALICE)

    assert "secret" not in repr(vars(recent))


def test_what_is_no_token_is_nobodys() -> None:
    """And to forget it is no accident."""
    recent = Recent()
    recent.put(with_token("a"), ALICE)
    recent.drop(with_token("a"))
    with pytest.raises(Unauthenticated, match=auth.REFUSAL):
        recent.drop(Headers({}))

    assert [None, None] == [recent.get(with_token("a")), recent.get(Headers({}))]


def changes(server: Site, client: httpx2.Client) -> list[tuple[str, str, dict[str, Any]]]:
    """A change by each kind of route that makes one, each of which would be done."""
    memory = save(client, "there")
    session = client.post("/v1/api/sessions", json={}).json()["session_id"]
    lines = {"content": b'{"name": "brought", "content": "c"}', "headers": {"Content-Type": "application/x-ndjson"}}
    return [
        ("POST", MEMORIES, {"json": {"name": "late", "content": "c"}}),
        ("POST", MEMORIES, {"json": {"name": "once", "content": "c"}, "headers": {"Idempotency-Key": "k"}}),
        ("PATCH", f"/v1/api/memory/{memory['memory_id']}", {"json": {"description": "d"}}),
        ("POST", "/v1/api/tool", {"json": {"arguments": {"action": "save", "name": "by_tool", "content": "c"}}}),
        ("POST", "/v1/api/sessions", {"json": {}}),
        ("POST", f"/v1/api/sessions/{session}/events", {"json": {"kind": "correction"}}),
        ("DELETE", f"/v1/api/sessions/{session}", {}),
        ("POST", "/v1/api/shared", {"json": {"kind": "project", "title": "t"}}),
        ("POST", "/v1/api/import", lines),
        ("DELETE", f"{MEMORIES}/there", {}),
    ]


def left_undone(server: Site, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """How changes are answered whose tokens are revoked when they were looked up and nothing was written."""
    assert server.services is not None
    access, admitted = server.services.access, App._admitted
    whose: list[str] = []

    def revoked(app: App, request: Any, route: Route, path: dict[str, str], on: Any = None) -> Any:
        call = admitted(app, request, route, path, on)
        while whose:
            access.revoke_key(whose.pop())
        return call

    monkeypatch.setattr(App, "_admitted", revoked)
    monkeypatch.setattr("pegword.http.app.LOOKED_UP_S", 0.0)
    statuses = set()
    for known in (False, True):
        owner = server.client(server.token("alice", "approve"))
        for method, path, more in changes(server, owner):
            client = server.client(server.token("alice", "approve"))
            if known:
                save(client, "known")
            whose.append(access.keys("alice")[-1].key_id)
            statuses.add(client.request(method, path, **more).status_code)
    return statuses


def test_what_is_revoked_while_it_waits_changes_nothing(server: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token was good when it was looked up; somebody else had the database, and revoked it, before it could write."""
    assert {401} == left_undone(server, monkeypatch)
    names = {memory["name"] for memory in server.client(server.token("alice")).get(MEMORIES).json()["memories"]}

    assert {"there", "known"} == names


def test_a_token_that_is_looked_up_but_once_is_noticed(server: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: whoever was let in may write, however long they waited."""
    monkeypatch.setattr(App, "_still_admitted", lambda *_: None)

    assert 201 in left_undone(server, monkeypatch)
