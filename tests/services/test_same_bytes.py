"""The same inputs give the same bytes: in another process, on the other engine, after a restart; whatever a provider cached stays valid."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pegword.assembly import open_services
from pegword.core import render
from pegword.core.caller import GLOBAL, Caller, Session, session_scope
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.services.turns import MODES
from pegword.settings import load
from pegword.testing import SequenceIds
from tests import postgres
from tests.conftest import Clock
from tests.hostile import PARTS

ALICE = Caller("u1", "alice", "key:1")
SAID = ("How do we deploy to staging?", "thanks, and which port has the replica?", "What about obey CANARY?", "", "kettle 7 " * 30)
ROOT = Path(__file__).parents[2]


def filled(services: Services) -> Session:
    """A store with ties, long texts, several scopes and a few hundred memories, the same on every engine; and a session in it."""
    services.access.ensure_user("alice")
    session = Session("w1", "", user_id="u1", user_name="alice")
    texts = ["Deploy to staging with make release.", "The replica in staging listens on port 5433.", *PARTS]
    drafts = [
        Draft(
            f"note_{n}", f"{texts[n % len(texts)]} kettle {n % 7} " + "staging " * (n % 90),
            session_scope(ALICE, session, ("global", "user", "workstream")[n % 3]), description=f"note {n // 2}" if n % 4 else "",
            tags=(f"tag{n % 5}",), priority="critical" if n in (50, 80) else None,
        )
        for n in range(300)
    ]  # fmt: skip
    services.engine.write(lambda tx: [services.memories.writing.put(tx, ALICE, draft, "save") for draft in drafts])
    for scope in ("global", "user", "workstream"):
        services.housekeeper.due(session_scope(ALICE, session, scope).key)
    services.housekeeper.settle()
    return session


def answers(services: Services) -> dict[str, Any]:
    """What turns answer in every mode, but for the receipt's name."""
    session = Session("w1", "", user_id="u1", user_name="alice")
    told = {}
    for mode in MODES:
        for number, text in enumerate(SAID):
            turn = services.turns.turn(ALICE, session, [{"role": "user", "content": text}], mode=mode)
            told[f"{mode} {number}"] = [turn.block, turn.hint, turn.text, turn.index, turn.in_scope]
    return told


def elsewhere(database: Path | str) -> dict[str, Any]:
    """The same, from another process with another clock, other ids and another seed of hashes."""
    program = "import sys; from tests.services.test_same_bytes import print_answers; print_answers(sys.argv[1])"
    seed = "8" if os.environ.get("PYTHONHASHSEED") == "7" else "7"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"}
    done = subprocess.run([sys.executable, "-c", program, str(database)], env=environment, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return dict(json.loads(done.stdout))


def print_answers(database: str) -> None:
    """For the other process."""
    place = database if "://" in database else Path(database)
    with closing(open_services(place, load(environment={}))) as services:
        print(json.dumps(answers(services)))


def opened(database: Path | str) -> Services:
    return open_services(database, load(environment={}), clock=Clock(), new_id=SequenceIds())


def test_another_process_answers_the_same_bytes_in_every_mode(database: Path | str) -> None:
    """And so does the same one after a restart; the index too, which the first one made."""
    with closing(opened(database)) as services:
        filled(services)
        here = answers(services)
    there = elsewhere(database)
    with closing(opened(database)) as services:
        again = answers(services)

    assert here == there
    assert here == again
    assert all(here[f"system {n}"][:3] == here[f"tail {n}"][:3] for n in range(len(SAID)))
    assert 1 == len({here[f"index {n}"][3] for n in range(len(SAID))})
    assert sum(bool(told[0]) for told in here.values()) > len(MODES) * 3


def test_both_engines_answer_the_same_bytes_in_every_mode(tmp_path: Path, postgres_database: postgres.Database) -> None:
    """Ties, order and cuts included; the index too, which each made for itself."""
    postgres_database.empty()
    told = []
    for database in (tmp_path / "pegword.db", postgres_database.url):
        with closing(opened(database)) as services:
            filled(services)
            told.append(answers(services))

    assert told[0] == told[1]


def test_an_index_that_two_processes_make_for_themselves_is_the_same(fresh: Callable[[], Path | str]) -> None:
    """It follows from the memories alone, not from who makes it or when."""
    database = fresh()
    with closing(opened(database)) as services:
        session = filled(services)
        first = services.turns.turn(ALICE, session, [], mode="index").index
        for table in ("session_indexes", "session_index_memories"):
            services.engine.write(lambda tx, table=table: tx.run(f"DELETE FROM {table}"))  # type: ignore[misc]
        second = services.turns.turn(ALICE, session, [], mode="index").index

    assert first
    assert first == second


@pytest.mark.parametrize("fault", ["a clock", "a nonce", "an order of the process"])
def test_what_differs_from_process_to_process_is_noticed(fault: str, database: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted faults: each makes the guard above fail."""
    original = render.block

    def faulty(notes: Any, **more: Any) -> render.Block:
        made = original(sorted(notes, key=lambda note: hash(note.name)) if fault == "an order of the process" else notes, **more)
        mark = {"a clock": str(os.times().elapsed), "a nonce": os.urandom(4).hex()}.get(fault, "")
        return render.Block(made.text + mark, made.shown)

    monkeypatch.setattr(render, "block", faulty)
    with pytest.raises(AssertionError):
        test_another_process_answers_the_same_bytes_in_every_mode(database)


def test_saves_of_others_do_not_move_what_is_answered(services: Services) -> None:
    """Bytes follow from what the session sees: another user's memories change nothing."""
    filled(services)
    bob = services.access.agent(services.access.ensure_user("bob"), "key:bob")
    before = answers(services)
    for n in range(20):
        services.memories.save(bob, Draft(f"deploy_{n}", "Deploy to staging, kettle and replica.", session_scope(bob, Session(), "user")))

    assert before == answers(services)
    services.memories.save(bob, Draft("deploy_note", "Deploy to staging, kettle and replica.", GLOBAL))
    assert before != answers(services)
