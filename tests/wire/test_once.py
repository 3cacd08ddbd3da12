"""The Idempotency-Key: a write that is asked for twice is done once, and answered the same."""

import json
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegword.core.caller import GLOBAL, Caller, reach
from pegword.core.errors import Invalid, Unavailable
from pegword.core.memory import Draft
from pegword.http import app, shapes
from pegword.services.bundle import Services
from pegword.services.once import Asked, Kept, once
from pegword.store.migrate import migrations
from tests.conftest import Clock, Statements
from tests.wire.conftest import Site, save

HOUR_S = 3_600
WORD = "xylophone"
KEY = {"Idempotency-Key": "first-try"}
SAVE = {"name": "deploy_day", "content": f"We deploy on Tuesdays, says the {WORD}."}
ALL = "/v1/api/memories"
ONE = "/v1/api/memory"
TOOL = "/v1/api/tool"
SESSIONS = "/v1/api/sessions"
SHARED = "/v1/api/shared"
IMPORT = "/v1/api/import"

# What a route that writes is asked for: a path and a body. The first is something that it can do, the second is another request.
Asks = tuple[str, dict[str, Any] | None]


def stored(client: httpx2.Client) -> str:
    """The path of a memory that has two versions."""
    save(client, "two_versions", f"The first {WORD}.")
    return f"{ONE}/{save(client, 'two_versions', f'The second {WORD}.')['memory_id']}"


def tool(action: str, name: str = "from_the_tool", **more: Any) -> dict[str, Any]:
    """What a model asks of the tool."""
    return {"arguments": {"action": action, "name": name, **more}}


def session(
    client: httpx2.Client, rest: str = "", body: dict[str, Any] | None = None, other: dict[str, Any] | None = None
) -> tuple[Asks, Asks]:
    """Two requests on a session: of the same path with another body, or without one of another path."""
    first, second = (f"{SESSIONS}/{client.post(SESSIONS, json={}).json()['session_id']}{rest}" for _ in range(2))
    return (first, body), (first if body else second, other)


def shared(
    client: httpx2.Client, rest: str = "", body: dict[str, Any] | None = None, other: dict[str, Any] | None = None
) -> tuple[Asks, Asks]:
    """The same, on a project with a member."""
    project = {"kind": "project", "title": "Roof", "members": [{"user": "bob", "write": True}]}
    first, second = (f"{SHARED}/project/{client.post(SHARED, json=project).json()['id']}{rest}" for _ in range(2))
    return (first, body), (first if body else second, other)


def workstream(client: httpx2.Client) -> tuple[Asks, Asks]:
    save(client, scope="workstream", scope_id="w1")
    return ("/v1/api/workstreams/w1?with_memories=true", None), ("/v1/api/workstreams/w2?with_memories=true", None)


def by_name(client: httpx2.Client) -> tuple[Asks, Asks]:
    save(client, "goes")
    return (f"{ALL}/goes", None), (f"{ALL}/stays", None)


def by_id(client: httpx2.Client, rest: str = "", body: dict[str, Any] | None = None) -> tuple[Asks, Asks]:
    path = stored(client)
    return (path + rest, body), (path.replace("memory/", "memory/mem_") + rest, body)


EXAMPLES: dict[tuple[str, str], Callable[[httpx2.Client], tuple[Asks, Asks]]] = {
    ("POST", ALL): lambda _: ((ALL, SAVE), (ALL, {**SAVE, "priority": "high"})),
    ("DELETE", ALL + "/{name:path}"): by_name,
    ("PATCH", ONE + "/{memory_id}"): lambda client: by_id(client, "", {"content": f"Patched {WORD}."}),
    ("DELETE", ONE + "/{memory_id}"): by_id,
    ("POST", ONE + "/{memory_id}/revert"): lambda client: by_id(client, "/revert", {"version": 1}),
    ("POST", SESSIONS): lambda _: ((SESSIONS, {}), (SESSIONS, {"kind": "coordinator"})),
    ("POST", SESSIONS + "/{session_id}/resume"): lambda client: session(client, "/resume"),
    ("DELETE", SESSIONS + "/{session_id}"): session,
    ("POST", SESSIONS + "/{session_id}/events"): lambda client: session(
        client, "/events", {"kind": "tool_call", "tool": "run"}, {"kind": "tool_call", "tool": "look"}
    ),
    ("POST", SHARED): lambda _: ((SHARED, {"kind": "project", "title": "Roof"}), (SHARED, {"kind": "project", "title": "Cellar"})),
    ("PATCH", SHARED + "/{kind}/{id}"): lambda client: shared(client, "", {"title": "Loft"}, {"title": "Roof"}),
    ("DELETE", SHARED + "/{kind}/{id}"): shared,
    ("PUT", SHARED + "/{kind}/{id}/members/{user:path}"): lambda client: shared(client, "/members/bob", {"write": False}, {"write": True}),
    ("DELETE", SHARED + "/{kind}/{id}/members/{user:path}"): lambda client: shared(client, "/members/bob"),
    ("DELETE", "/v1/api/workstreams/{workstream_id:path}"): workstream,
    ("POST", TOOL): lambda _: ((TOOL, tool("save", content=f"Ask the {WORD} first.")), (TOOL, tool("save", content="Other."))),
    ("POST", IMPORT): lambda _: ((IMPORT, {"name": "brought", "content": WORD}), (IMPORT, {"name": "brought", "content": "Other."})),
}


def told(answer: httpx2.Response) -> tuple[int, bytes, str | None]:
    """What a client reads of an answer."""
    return answer.status_code, answer.content, answer.headers.get("etag")


def everything(services: Services) -> list[list[Any]]:
    """Every row of every table."""
    tables = re.findall(r"CREATE TABLE (\w+)", "".join(sql for _, _, sql in migrations()))
    with services.engine.read() as tx:
        return [sorted(tx.rows(f"SELECT * FROM {table}"), key=repr) for table in tables]


def check_every_write(server: Site, client: httpx2.Client) -> None:
    """Each route that writes does one request under one key once, and refuses the key for another request."""
    assert server.app is not None
    assert server.services is not None
    routes = [route for route in server.app.table.routes if route.may_write]
    assert {(route.method, route.path) for route in routes} == {*EXAMPLES}, "give each route that writes an example here"
    for route in routes:

        def ask(asks: Asks, method: str = route.method) -> httpx2.Response:
            return client.request(method, asks[0], json=asks[1], headers=KEY)

        one, other = EXAMPLES[route.method, route.path](client)
        first, before = ask(one), everything(server.services)
        again, refused = ask(one), ask(other)
        assert first.is_success, (route, first.text)
        assert told(first) == told(again), route
        assert (409, "key_reused") == (refused.status_code, refused.json().get("code")), route
        assert before == everything(server.services), route


@pytest.fixture
def host(server: Site, bob: httpx2.Client) -> httpx2.Client:
    """A client of Alice that may do whatever a route can; and Bob, whom it may do it to."""
    return server.client(server.token("alice", "approve"))


def test_every_write_in_the_table_of_routes_is_done_once(server: Site, host: httpx2.Client) -> None:
    check_every_write(server, host)


def test_a_route_that_does_not_honour_the_key_is_noticed(server: Site, host: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail."""
    monkeypatch.setattr(app, "once", lambda services, _, work: work(services))

    with pytest.raises(AssertionError):
        check_every_write(server, host)


def post(client: httpx2.Client, key: str | bytes = "first-try", **more: Any) -> httpx2.Response:
    """Save under a key."""
    headers = {**more.pop("headers", {}), "Idempotency-Key": key}
    return client.post(ALL, json={**SAVE, **more}, headers=headers)


def version(client: httpx2.Client) -> int:
    """The version of the memory that is saved here; 0 when there is none."""
    answer = client.get(f"{ALL}/deploy_day")
    return int(answer.json()["version"]) if answer.is_success else 0


@pytest.mark.usefixtures("unhurried")
def test_fifty_tries_at_once_make_one_memory_and_one_version(server: Site, alice: httpx2.Client) -> None:
    """A client that gave up and tries again may meet its own first try."""
    save(alice, content="before")
    many = server.client(alice.headers["Authorization"].removeprefix("Bearer "), limits=httpx2.Limits(max_connections=50))
    answers: list[tuple[int, bytes, str | None]] = []
    threads = [threading.Thread(target=lambda: answers.append(told(post(many)))) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 50 == len(answers)
    assert 1 == len(set(answers))
    assert (200, '"2"') == (answers[0][0], answers[0][2])
    assert (1, 2) == (alice.get(ALL).json()["total"], version(alice))


@pytest.mark.usefixtures("unhurried")
def test_clients_that_hang_up_at_once_and_try_again_make_one_version(server: Site, alice: httpx2.Client) -> None:
    """Whether what they left behind is done before, between or after the tries that wait for an answer."""
    save(alice, content="before")
    body = json.dumps(SAVE).encode()
    head = (
        f"POST {ALL} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {alice.headers['Authorization']}\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: first-try\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    many = server.client(alice.headers["Authorization"].removeprefix("Bearer "), limits=httpx2.Limits(max_connections=25))
    answers: list[tuple[int, bytes, str | None]] = []

    def hang_up() -> None:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head.encode() + body)

    threads = [threading.Thread(target=work) for _ in range(25) for work in (hang_up, lambda: answers.append(told(post(many))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 25 == len(answers)
    assert 1 == len(set(answers))
    assert 2 == version(alice)


def test_a_save_that_is_in_doubt_is_answered_at_the_second_try(
    server: Site, services: Services, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may have come through although nobody heard of it: then the second try is its answer, else it is the first."""
    write = services.engine.write

    def after(work: Callable[[Any], Any]) -> Any:
        write(work)
        raise Unavailable("it is not known whether this was done", code="in_doubt")

    def instead(work: Callable[[Any], Any]) -> Any:
        raise Unavailable("it is not known whether this was done", code="in_doubt")

    for name, lost in (("came_through", after), ("did_not", instead)):
        with monkeypatch.context() as planted:
            planted.setattr(services.engine, "write", lost)
            doubt = post(alice, name, name=name)
        again = post(alice, name, name=name)

        assert (503, "in_doubt") == (doubt.status_code, doubt.json()["code"])
        assert (201, "created", 1) == (again.status_code, again.json()["outcome"], again.json()["version"])


@pytest.mark.parametrize(
    "other", [{"content": "Other."}, {"headers": {"If-Match": '"1"'}}, {"spelt": 1}], ids=["body", "If-Match", "field"]
)
def test_a_key_is_not_taken_for_another_request(alice: httpx2.Client, other: dict[str, Any]) -> None:
    """A key that stands for two things would stand for neither; the first keeps it."""
    first = post(alice)
    refused = post(alice, **other)

    assert (409, "key_reused", "Idempotency-Key") == (refused.status_code, refused.json()["code"], refused.json()["field"])
    assert told(first) == told(post(alice))


def test_a_key_belongs_to_its_credential_and_its_route(server: Site, alice: httpx2.Client, bob: httpx2.Client) -> None:
    """Nobody meets another's key, not even another agent of the same user; and each route has keys of its own."""
    second = server.client(server.token("alice"))
    saved = [post(client, content=f"Saved by {n}.") for n, client in enumerate((alice, second, bob))]
    deleted = alice.delete(f"{ALL}/deploy_day", headers=KEY)

    assert [201, 200, 200, 200] == [answer.status_code for answer in (*saved, deleted)]


def test_a_refusal_is_not_kept(alice: httpx2.Client) -> None:
    """What failed changed nothing: the same request under the same key is looked at anew."""
    early = post(alice, expected_version=1)
    save(alice, content="before")
    late = post(alice, expected_version=1)

    assert (412, 200) == (early.status_code, late.status_code)
    assert told(late) == told(post(alice, expected_version=1))


def test_what_the_tool_does_for_nobody_is_not_kept(alice: httpx2.Client) -> None:
    """A model's mistake and a look change nothing: under the same key they are looked at anew. An answer of success is kept."""

    def texts(body: dict[str, Any]) -> list[str]:
        return [alice.post(TOOL, json=body, headers={"Idempotency-Key": "of the tool"}).json()["text"] for _ in range(2)]

    absent, looked = texts(tool("delete")), texts(tool("search", query="xylophone"))
    save(alice, "from_the_tool")
    deleted = texts(tool("delete"))

    assert absent[0] == absent[1]
    assert "not found" in absent[0]
    assert looked[0] == looked[1]
    assert deleted[0] == deleted[1]
    assert "not found" not in deleted[0]


def test_an_answer_of_the_tool_keeps_no_text_of_a_similar_memory_that_was_deleted(services: Services, alice: httpx2.Client) -> None:
    """It tells of memories beside the one that it saved."""
    text = f"The {WORD} stands in the music room on the second floor, and is tuned each May"
    save(alice, "first_of_two", text + ".")
    answer = alice.post(TOOL, json=tool("save", content=text + " by Sam."), headers=KEY).json()["text"]
    alice.delete(f"{ALL}/from_the_tool")
    alice.post(TOOL, json=tool("save", content=text + " by Sam."), headers={"Idempotency-Key": "second"})
    alice.delete(f"{ALL}/first_of_two")

    assert "first_of_two" in answer
    assert "first_of_two" not in repr(everything(services))


def test_a_kept_report_of_an_import_names_no_memory_that_was_deleted(services: Services, alice: httpx2.Client) -> None:
    """Its notes hold names: of lines that were skipped, and of those that are about the same memory as another. One without notes stays."""
    save(alice, f"{WORD}_differs")
    lines = [f'{{"name": "{WORD}_{name}", "content": "x"}}' for name in ("differs", "doubled", "doubled")]

    def brought(key: str, *lines: str) -> httpx2.Response:
        headers = {"Idempotency-Key": key, "Content-Type": "application/x-ndjson"}
        return alice.post(IMPORT, content="\n".join(lines).encode(), headers=headers)

    noted, plain = brought("noted", *lines), brought("plain", '{"name": "stays", "content": "x"}')
    for name in ("differs", "doubled"):
        alice.delete(f"{ALL}/{WORD}_{name}")
    alice.delete(f"{ALL}/stays")

    assert [f"{WORD}_differs", f"{WORD}_doubled"] == [note["name"] for note in noted.json()["notes"]]
    assert WORD not in repr(everything(services))
    assert (404, "deleted_since") == ((again := brought("noted", *lines)).status_code, again.json()["code"])
    assert told(plain) == told(brought("plain", '{"name": "stays", "content": "x"}'))


def test_a_failure_of_ours_keeps_neither_the_change_nor_an_answer(
    server: Site, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that cannot be made undoes its change, or a second try would not be the first."""

    def broken(*_: Any) -> Any:
        raise RuntimeError

    with monkeypatch.context() as planted:
        planted.setattr(shapes, "_etag", broken)
        failed = post(alice)
    between = version(alice)
    again = post(alice)

    assert (500, 0, 201) == (failed.status_code, between, again.status_code)


def test_a_key_is_kept_a_day(alice: httpx2.Client, clock: Clock) -> None:
    """After that it is as good as new, whether or not it was swept out."""
    first = post(alice)
    save(alice, content="after")
    clock.pass_s(24 * HOUR_S - 1)
    kept = post(alice)
    clock.pass_s(2)
    anew = post(alice)

    assert told(first) == told(kept)
    assert (200, '"3"') == (anew.status_code, anew.headers["etag"])
    assert told(anew) == told(post(alice))


def test_old_keys_are_swept_out(services: Services, alice: httpx2.Client, clock: Clock) -> None:
    """By the housekeeper, and young ones stay."""
    for n in range(3):
        post(alice, f"old {n}", name=f"old_{n}")
    clock.pass_s(24 * HOUR_S + 1)
    post(alice, "young")
    services.housekeeper.sweep()
    with services.engine.read() as tx:
        left = [tx.rows("SELECT count(*) FROM once_answers"), tx.rows("SELECT count(*) FROM once_memories")]

    assert [[(1,)], [(1,)]] == left


@pytest.mark.parametrize("key", ["k" * 256, '"quoted"', "\xe9", "猫".encode(), "a b, c"], ids=["long", "quoted", "latin", "utf-8", "list"])
def test_any_text_is_a_key(alice: httpx2.Client, key: str | bytes) -> None:
    key = key.encode("latin-1") if isinstance(key, str) else key

    assert told(post(alice, key)) == told(post(alice, key))


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("k" * 257, "Idempotency-Key exceeds 256 character limit: it has 257"),
        ("", "Idempotency-Key must hold 1 to 256 characters: it is empty"),
    ],
    ids=["too long", "empty"],
)
def test_a_key_has_a_length(alice: httpx2.Client, key: str, error: str) -> None:
    answer = post(alice, key)

    assert (400, error, "Idempotency-Key") == (answer.status_code, answer.json()["error"], answer.json()["field"])
    assert 0 == version(alice)


def test_two_keys_are_refused(alice: httpx2.Client) -> None:
    """Which of them is meant cannot be known."""
    answer = alice.post(ALL, json=SAVE, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])

    assert (400, "there are 2 Idempotency-Key headers; give one") == (answer.status_code, answer.json()["error"])


def test_what_only_reads_takes_no_notice_of_a_key(alice: httpx2.Client) -> None:
    """A search may be asked again anyway."""
    before = alice.post(f"{ALL}/search", json={"query": "deploy"}, headers=KEY).json()["total"]
    save(alice)

    assert (0, 1) == (before, alice.post(f"{ALL}/search", json={"query": "deploy"}, headers=KEY).json()["total"])


def test_a_second_try_does_not_bring_back_what_was_deleted_since(alice: httpx2.Client) -> None:
    """It was done; that it is gone is somebody's wish."""
    post(alice)
    alice.delete(f"{ALL}/deploy_day")
    again = post(alice)

    assert (404, "deleted_since", 0) == (again.status_code, again.json()["code"], version(alice))
    assert 201 == post(alice, "another").status_code


def answers_on_one(alice: httpx2.Client) -> str:
    """The path of a memory that three answers tell of, each kept under a key."""
    path = f"{ONE}/{post(alice).json()['memory_id']}"
    alice.patch(path, json={"content": f"Patched: {WORD}."}, headers=KEY)
    alice.post(f"{path}/revert", json={"version": 1}, headers=KEY)
    return path


def test_no_kept_answer_keeps_the_text_of_what_was_deleted(services: Services, alice: httpx2.Client) -> None:
    """Delete is final for every answer that told of the memory, under whichever route."""
    path = answers_on_one(alice)
    before = repr(everything(services)).count(WORD)
    alice.delete(path, headers=KEY)

    assert before == 1 + 3 + 3  # the memory, its versions, their answers
    assert WORD not in repr(everything(services))
    assert 200 == alice.delete(path, headers=KEY).status_code


def test_nor_of_what_went_with_its_whole_scope(server: Site, services: Services, alice: httpx2.Client) -> None:
    """A workstream that is deleted takes its memories' text out of kept answers, and leaves the others."""
    there = {"scope": "workstream", "scope_id": "w1"}
    elsewhere = post(alice, "elsewhere", content="Stays.")
    post(alice, "there", **there)
    services.removing.workstream(
        services.access.caller_of(alice.headers["Authorization"].removeprefix("Bearer ")), "w1", with_memories=True
    )

    assert WORD not in repr(everything(services))
    assert (404, "deleted_since") == ((again := post(alice, "there", **there)).status_code, again.json()["code"])
    assert told(elsewhere) == told(post(alice, "elsewhere", content="Stays."))


def test_nor_is_it_left_in_the_file_or_its_log(server: Site, services: Services, alice: httpx2.Client, store_path: Path) -> None:
    """The bytes themselves are gone once the housekeeper has cut the log."""

    def count() -> int:
        return sum(file.read_bytes().count(WORD.encode()) for file in store_path.parent.glob(f"{store_path.name}*"))

    path = answers_on_one(alice)
    before = count()
    alice.delete(path, headers=KEY)
    services.housekeeper.settle()

    assert before >= 7
    assert 0 == count()


def test_deleting_a_memory_leaves_the_answers_on_others(alice: httpx2.Client, clock: Clock) -> None:
    """Also where a key told of the deleted one a day before, and of another one since."""
    post(alice, name="first")
    clock.pass_s(24 * HOUR_S + 1)
    second = post(alice, name="second")
    alice.delete(f"{ALL}/first")

    assert told(second) == told(post(alice, name="second"))


def test_what_fails_inside_and_is_caught_leaves_nothing_behind(services: Services) -> None:
    """A handler may answer a failure with a sentence of its own; what was half done in it is undone alone."""
    caller = Caller("u", "alice", "key:1")

    def work(inner: Services) -> Kept:
        inner.memories.save(caller, Draft("kept", "x", GLOBAL))

        def half(tx: Any) -> None:
            inner.memories.save(caller, Draft("undone", "x", GLOBAL))
            raise Invalid("no")

        with pytest.raises(Invalid):
            inner.engine.write(half)
        return Kept(200, (), b"said so")

    once(services, Asked("id", "fingerprint"), work)

    assert ["kept"] == [m.name for m in services.memories.list(caller, reach(caller)).memories]


@pytest.mark.usefixtures("unhurried")
def test_a_key_costs_few_statements(statements: Statements, alice: httpx2.Client) -> None:
    """To claim it, to stand apart, to keep the answer and what it tells of; to answer again, two."""
    save(alice, "warm")
    statements.seen.clear()
    alice.post(ALL, json={**SAVE, "name": "plain"})
    plain = len(statements.seen)
    statements.seen.clear()
    post(alice)
    keyed = len(statements.seen)
    statements.seen.clear()
    post(alice)

    assert (plain + 5, 3) == (keyed, len(statements.seen))  # each with the one that looks the token up
