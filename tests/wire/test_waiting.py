"""While somebody else holds the database's one writer, saves wait; what only reads is answered as ever."""

import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tests.patience import PATIENCE_S, until
from tests.stored import held
from tests.wire.conftest import Site, save
from tests.wire.test_turns import ASK, turn

# Saves wait for the database as long as a test goes on: what is answered meanwhile has not waited behind them.
pytestmark = pytest.mark.usefixtures("unhurried")


def writers(count: int, write: Callable[[int], httpx2.Response]) -> tuple[list[threading.Thread], list[httpx2.Response]]:
    """*count* threads that write at the same time, and the list in which their answers come."""
    answers: list[httpx2.Response] = []
    threads = [threading.Thread(target=lambda n=n: answers.append(write(n))) for n in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


def waiting(server: Site) -> int:
    """How many saves wait."""
    assert server.app is not None
    return server.app._writes.in_work


def test_a_turn_is_answered_at_once_while_more_saves_wait_than_there_are_threads(
    server: Site, database: Path | str, alice: httpx2.Client
) -> None:
    """Turns, searches, lists and looks: none of them stands behind a writer; and no writer is forgotten."""
    saved = save(alice)
    client = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=100))
    with held(database):
        threads, answers = writers(70, lambda n: client.post("/v1/api/memories", json={"name": f"w{n}", "content": "x"}))
        until(lambda: waiting(server) == 70)
        shown = turn(alice, ASK)["memories"]
        found = alice.post("/v1/api/memories/search", json={"query": "deploy"}).json()["total"]
        listed = alice.get("/v1/api/memories").json()["total"]
        looked = alice.get(f"/v1/api/memory/{saved['memory_id']}").status_code
        still = waiting(server)
    for thread in threads:
        thread.join(PATIENCE_S)

    assert (["deploy_day"], 1, 1, 200) == ([m["name"] for m in shown], found, listed, looked)
    assert 70 == still
    assert {201} == {answer.status_code for answer in answers}
    assert 70 == len(answers)


def test_explanations_have_a_place_of_their_own(server: Site, database: Path | str, alice: httpx2.Client) -> None:
    """They may wait for the receipts that are to be written: then neither saves nor turns stand behind them. What is written already is
    explained while more saves wait than there are threads."""
    save(alice)
    written, unwritten = turn(alice, ASK)["receipt"], ""
    client = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=120))
    client.get(f"/v1/api/turn/{written}").raise_for_status()
    with held(database):
        threads, answers = writers(30, lambda n: client.post("/v1/api/memories", json={"name": f"w{n}", "content": "x"}))
        until(lambda: waiting(server) == 30)
        explained = client.get(f"/v1/api/turn/{written}").status_code
        unwritten = turn(alice, ASK)["receipt"]
        more, explanations = writers(20, lambda _: client.get(f"/v1/api/turn/{unwritten}"))
        until(lambda: server.app is not None and server.app._explanations.in_work == 20)
        turn(alice, ASK)
        still = (waiting(server), server.app._explanations.in_work if server.app else 0)
    for thread in (*threads, *more):
        thread.join(PATIENCE_S)

    assert 200 == explained
    assert (30, 20) == still
    assert {201} == {answer.status_code for answer in answers}
    assert {200, 404} >= {answer.status_code for answer in explanations}


def test_more_explanations_than_may_wait_are_told_to_come_again(
    server: Site, database: Path | str, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their line is bounded too."""
    assert server.app is not None
    monkeypatch.setattr(server.app._explanations, "in_work_max", 10)
    save(alice)
    client = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=50))
    with held(database):
        receipt = turn(alice, ASK)["receipt"]
        threads, answers = writers(20, lambda _: client.get(f"/v1/api/turn/{receipt}"))
        until(lambda: len(answers) >= 10)
    for thread in threads:
        thread.join(PATIENCE_S)
    refused = [(a.status_code, a.json()["error"], a.headers["retry-after"]) for a in answers if a.status_code == 503]

    assert refused
    assert {(503, "as many explanations wait as may; try again", "1")} == set(refused)


def test_who_has_no_token_stands_in_no_line(server: Site, database: Path | str, nobody: httpx2.Client) -> None:
    """Where a save waits, they are refused at once."""
    alice = server.client(server.token("alice"))
    with held(database):
        threads, _ = writers(30, lambda n: alice.post("/v1/api/memories", json={"name": f"w{n}", "content": "x"}))
        until(lambda: waiting(server) == 30)
        refused = nobody.delete("/v1/api/memories/w1").status_code
        still = waiting(server)
    for thread in threads:
        thread.join(PATIENCE_S)

    assert (401, 30) == (refused, still)


def test_more_writers_than_may_wait_are_told_to_come_again(
    server: Site, database: Path | str, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of writers is bounded, so that it never fills the server."""
    assert server.app is not None
    monkeypatch.setattr(server.app._writes, "in_work_max", 30)
    save(alice)
    client = server.client(server.token("alice"), limits=httpx2.Limits(max_connections=100))
    with held(database):
        threads, answers = writers(40, lambda n: client.post("/v1/api/memories", json={"name": f"w{n}", "content": "x"}))
        until(lambda: len(answers) == 10)
        refused = list(answers)
    for thread in threads:
        thread.join(PATIENCE_S)

    assert [503] * 10 == [answer.status_code for answer in refused]
    assert {("overloaded", "1")} == {(answer.json()["code"], answer.headers["retry-after"]) for answer in refused}
    assert [201] * 30 == [answer.status_code for answer in answers[10:]]
