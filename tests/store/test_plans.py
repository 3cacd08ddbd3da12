"""No statement of what is done often reads a whole table of PostgreSQL, however many memories there are.

Each statement is planned with scans of whole tables forbidden: where the plan has one all the same, no index serves it.
"""

from collections.abc import Iterator, Sequence

import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Session, Visible, reach, user_scope
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.services.writing import Changes
from pegword.settings import load
from pegword.store import memory_rows
from pegword.store.engine import Parameters, Row, Tx, among, padded
from pegword.store.postgres import PostgresTx
from tests import postgres

CALLER = Caller("u1", "alice", "key:1")
FEW = "removals"  # a table of a few rows, whatever the number of memories
SAID = [{"role": "user", "content": "walrus tea with honey"}]


@pytest.fixture
def scans(postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements whose plans read a whole table."""
    found: list[str] = []
    execute = PostgresTx._execute

    def planned(tx: PostgresTx, sql: str, parameters: Parameters) -> None:
        if sql.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            execute(tx, "SET LOCAL enable_seqscan = off", ())
            execute(tx, f"EXPLAIN {sql}", parameters)
            plan: list[Row] = tx._cursor.fetchall()
            execute(tx, "SET LOCAL enable_seqscan = on", ())
            if any("Seq Scan" in line and FEW not in line for (line,) in plan):
                found.append(sql)
        execute(tx, sql, parameters)

    monkeypatch.setattr(PostgresTx, "_execute", planned)
    postgres_database.empty()
    return found


def do_everything(services: Services) -> None:
    memories, turns = services.memories, services.turns
    for number in range(5):
        memories.save(CALLER, Draft(f"n{number}", f"walrus tea {number}", user_scope(CALLER), tags=("warm",)))
    memory = memories.save(CALLER, Draft("n1", "walrus milk", GLOBAL)).memory
    memories.update(CALLER, memory.memory_id, Changes(description="a drink", expected_version=1))
    memories.revert(CALLER, memory.memory_id, 1)
    memories.search(CALLER, reach(CALLER), "walrus", tag="warm", kind="project", include_expired=True, counted=True)
    memories.search(CALLER, reach(CALLER), " ".join(f"word{number}" for number in range(300)))
    memories.search(CALLER, reach(CALLER), '"walrus tea"')
    memories.list(CALLER, Visible((GLOBAL,)), tag="warm")
    for mode in ("tail", "index", "index"):
        turn = turns.turn(CALLER, Session("w1"), SAID, mode=mode)
    turns.explain(CALLER, turn.receipt)
    memories.get(CALLER, GLOBAL, "n1")
    memories.versions(CALLER, memory.memory_id)
    services.housekeeper.settle()
    memories.delete_by_id(CALLER, memory.memory_id)


def test_every_statement_of_saves_searches_and_turns_has_its_index(postgres_database: postgres.Database, scans: list[str]) -> None:
    services = open_services(postgres_database.url, load(environment={}))
    do_everything(services)
    services.close()

    assert [] == scans


def test_the_same_test_catches_a_condition_that_no_index_serves(
    postgres_database: postgres.Database, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: two conditions of which each has an index, joined by OR."""

    def either(tx: Tx, slots: Sequence[tuple[str, int]], memory_ids: Sequence[str]) -> list[tuple[str, int, str, int]]:
        pairs = ", ".join(["(?, ?)"] * len(slots))
        condition = f"(scope_key, slot) IN (VALUES {pairs}) OR {among('memory_id', len(memory_ids))}" if slots else "1 = 0"
        values = [value for pair in slots for value in pair]
        return tx.rows(f"{memory_rows._IDS}{condition}", (*values, *padded(memory_ids)) if slots else ())  # type: ignore[return-value]

    monkeypatch.setattr(memory_rows, "still_there", either)
    services = open_services(postgres_database.url, load(environment={}))
    for number in range(30):
        services.memories.save(CALLER, Draft(f"n{number}", f"walrus tea {number}", GLOBAL))
    services.turns.turn(CALLER, Session(), SAID)
    services.housekeeper.settle()
    services.close()

    assert scans
