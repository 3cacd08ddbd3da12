"""While somebody else holds the database's one writer, saves wait; what only reads is answered as ever."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from pegword.http import app
from tests.stored import held
from tests.wire.conftest import Site, save
from tests.wire.test_turns import ASK, turn

READ_S = 2.0  # what a read may take on a slow machine; a save waits ten seconds for the database


def writers(count: int, write: Callable[[int], httpx2.Response]) -> tuple[list[threading.Thread], list[httpx2.Response]]:
    """*count* threads that write at the same time, and the list in which their answers come."""
    answers: list[httpx2.Response] = []
    threads = [threading.Thread(target=lambda n=n: answers.append(write(n))) for n in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


def until(condition: Callable[[], bool]) -> None:
    """Return as soon as *condition* holds."""
    last = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.02)


def test_a_turn_is_answered_at_once_while_more_saves_wait_than_there_are_threads(
    server: Site, database: Path | str, alice: httpx2.Client
) -> None:
    """Turns, searches, lists and looks: none of them stands behind a writer; and no writer is forgotten."""
    saved = save(alice)
    waiting = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=100))
    with held(database):
        threads, answers = writers(70, lambda n: waiting.post("/v1/api/memories", json={"name": f"w{n}", "content": "x"}))
        until(lambda: server.app is not None and server.app._writes_in_work == 70)
        began = time.monotonic()
        shown = turn(alice, ASK)["memories"]
        found = alice.post("/v1/api/memories/search", json={"query": "deploy"}).json()["total"]
        listed = alice.get("/v1/api/memories").json()["total"]
        looked = alice.get(f"/v1/api/memory/{saved['memory_id']}").status_code
        took = time.monotonic() - began
    for thread in threads:
        thread.join(60)

    assert (["deploy_day"], 1, 1, 200) == ([m["name"] for m in shown], found, listed, looked)
    assert took < READ_S
    assert {201} == {answer.status_code for answer in answers}
    assert 70 == len(answers)


def test_explanations_wait_among_the_writers(server: Site, database: Path | str, alice: httpx2.Client) -> None:
    """They have the receipts written first that wait to be: many of them must not stand before a turn."""
    save(alice)
    receipt = turn(alice, ASK)["receipt"]
    waiting = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=100))
    with held(database):
        threads, answers = writers(50, lambda _: waiting.get(f"/v1/api/turn/{receipt}"))
        until(lambda: server.app is not None and server.app._writes_in_work == 50)
        began = time.monotonic()
        turn(alice, ASK)
        took = time.monotonic() - began
    for thread in threads:
        thread.join(60)

    assert took < READ_S
    assert {200} == {answer.status_code for answer in answers}


def test_more_writers_than_may_wait_are_told_to_come_again(
    server: Site, database: Path | str, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of writers is bounded, so that it never fills the server."""
    monkeypatch.setattr(app, "WRITES_IN_WORK_MAX", 30)
    save(alice)
    waiting = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=100))
    with held(database):
        threads, answers = writers(40, lambda n: waiting.post("/v1/api/memories", json={"name": f"w{n}", "content": "x"}))
        until(lambda: len(answers) == 10)
        refused = list(answers)
    for thread in threads:
        thread.join(60)

    assert [503] * 10 == [answer.status_code for answer in refused]
    assert {("overloaded", "1")} == {(answer.json()["code"], answer.headers["retry-after"]) for answer in refused}
    assert [201] * 30 == [answer.status_code for answer in answers[10:]]
