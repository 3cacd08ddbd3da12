"""The same operations on both engines: the same answers, their order and their scores included."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Session, Visible, reach, scope_of, user_scope
from pegword.core.errors import PegwordError
from pegword.core.memory import Draft, Memory
from pegword.services.bundle import Services
from pegword.services.writing import Changes
from pegword.settings import load
from pegword.testing import SequenceIds
from tests import postgres
from tests.conftest import Clock
from tests.store.test_index import small_index  # noqa: F401  (a fixture)

OPERATIONS = 2_000
SEED = int(os.environ.get("SEED", "20"))
ALICE, BOB = Caller("u1", "alice", "key:1"), Caller("u2", "bob", "key:2", human=True, right="approve")
WORDS = (
    "tea milk honey lemon kettle deploy port replica staging postgres hexagonal architecture naïve café CAFÉ 猫 straße STRASSE İstanbul "
    "don't e-mail v1.2 C++ user_id runners running ran it the of 2026 🫖 e\u0301tude étude \ufb01le"
).split()
KINDS = ("user", "project", "feedback", "reference", "general")
PRIORITIES = ("low", "normal", "high", "critical")
DAY_US = 24 * 3_600 * 1_000_000


class Store:
    """One engine, with a clock and ids that stand where those of the other one stand."""

    def __init__(self, database: Path | str) -> None:
        self._database = database
        self.clock, self._ids = Clock(), SequenceIds()
        self.services = self._open()

    def _open(self) -> Services:
        return open_services(self._database, load(environment={}), clock=self.clock, new_id=self._ids)

    def restart(self) -> None:
        self.services.close()
        self.services = self._open()


@pytest.fixture
def stores(tmp_path: Path, postgres_database: postgres.Database) -> Iterator[tuple[Store, Store]]:
    postgres_database.empty()
    pair = Store(tmp_path / "pegword.db"), Store(postgres_database.url)
    yield pair
    for store in pair:
        store.services.close()


def words(chance: random.Random, most: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, most)))


def a_name(chance: random.Random) -> str:
    return chance.choice(("note {}", "Note-{}", "café_{}", "a/{}", "Ärger {}", "v{}") * 4 + ("bad<{}",)).format(chance.randrange(12))


def draft(chance: random.Random, caller: Caller, now: int) -> Draft:
    """A save at random, some of them not to be."""
    scope = chance.choice((GLOBAL, user_scope(caller), scope_of(caller, "workstream", chance.choice("xy"))))
    return Draft(
        a_name(chance),
        words(chance, 40),
        scope,
        kind=chance.choice((*KINDS, None) * 3 + ("nonsense",)),
        description=chance.choice((None, "", words(chance, 6))),
        tags=chance.choice((None, (), tuple(words(chance, 3).split()))),
        priority=chance.choice((None, *PRIORITIES)),
        confidence=chance.choice((None, 0.0, 0.5, 1.0) * 4 + (2.0,)),
        expires_at=chance.choice((None, None, None, now + DAY_US, now - 5)),
        sitting=chance.choice(("", "", "monday")),
        expected_version=chance.choice((None,) * 20 + (0, 1, 2)),
        claims_verified=chance.random() < 0.1,
    )


def some_memory(store: Store, caller: Caller, place: int) -> Memory | None:
    """The memory at *place* in the caller's list."""
    listed = store.services.memories.list(caller, reach(caller), limit=200, include_expired=True).memories
    return listed[place % len(listed)] if listed else None


def operate(store: Store, seed: int) -> Any:
    """One operation, chosen and filled by *seed*; what it answers, or the error that it raises."""
    chance = random.Random(seed)
    caller, kind, place = chance.choice((ALICE, BOB)), chance.random(), chance.randrange(1_000)
    memories, turns = store.services.memories, store.services.turns
    try:
        if kind < 0.45:
            return memories.save(caller, draft(chance, caller, store.clock.now))
        if kind < 0.60:
            query = chance.choice((words(chance, 8), f'"{words(chance, 2)}" {words(chance, 2)}', words(chance, 90)))
            return memories.search(
                caller,
                chance.choice((reach(caller), Visible((GLOBAL,)), Visible(()))),
                query,
                kind=chance.choice(("", "", "", "", "nonsense", *KINDS)),
                tag=chance.choice(("", "", "", chance.choice(WORDS))),
                limit=chance.choice((1, 5, 50)),
                include_expired=chance.random() < 0.3,
            )
        if kind < 0.67:
            return memories.list(caller, reach(caller), kind=chance.choice(("", *KINDS)), limit=chance.choice((1, 20, 200)))
        if kind < 0.80:
            turn = turns.turn(
                caller,
                Session(chance.choice(("", "x"))),
                [{"role": "user", "content": words(chance, 12)} for _ in range(chance.randrange(4))],
                mode=chance.choice(("system", "tail", "index")),  # the last is refused without the workstream
                k=chance.choice((None, 1, 20)),
                budget_chars=chance.choice((None, None, 300)),
            )
            return turn, turns.explain(caller, turn.receipt) if chance.random() < 0.4 else None
        if kind < 0.93:
            memory = some_memory(store, caller, place)
            if memory is None:
                return None
            return chance.choice(
                (
                    lambda: memories.update(caller, memory.memory_id, Changes(content=words(chance, 20), tags=("changed",))),
                    lambda: memories.revert(caller, memory.memory_id, chance.randint(1, 3)),
                    lambda: memories.versions(caller, memory.memory_id),
                    lambda: memories.get_by_id(caller, memory.memory_id),
                    lambda: memories.delete_by_id(caller, memory.memory_id),
                )
            )()
        if kind < 0.97:
            return store.services.housekeeper.settle()
        store.clock.pass_s(chance.choice((10, 3_600, 24 * 3_600)))
        return store.services.housekeeper.sweep() if chance.random() < 0.7 else store.restart()
    except PegwordError as error:
        return type(error), str(error)


@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("small_index")
def test_the_same_operations_have_the_same_answers(stores: tuple[Store, Store]) -> None:
    """Whole records, order, totals, scores to the last bit, blocks, explanations and refusals."""
    told: Counter[str] = Counter()
    for number in range(OPERATIONS):
        here, there = (operate(store, SEED * 1_000_000 + number) for store in stores)
        told[type(here).__name__] += 1
        told["hits"] += len(getattr(here, "hits", ()))
        assert here == there, f"operation {number}, SEED={SEED}"
        assert stores[0].clock.now == stores[1].clock.now, f"operation {number}, SEED={SEED}"
    assert told["Saved"] > OPERATIONS / 4, told
    assert told["hits"] > OPERATIONS / 2, told
    assert told["tuple"] < OPERATIONS / 2, told  # refusals, and turns with their explanations
