"""Nothing acknowledged is lost when the server is killed."""

import os
import time
from pathlib import Path

import apsw
import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Visible
from pegword.services.bundle import Services
from pegword.settings import load
from tests.faults.ledger import PYTHON, crash_rounds, lost
from tests.store.test_index import check

ROUNDS = int(os.environ.get("PEGWORD_KILL_ROUNDS", "25"))
SEED = int(os.environ.get("SEED", str(time.time_ns() % 1_000_000)))
WRITERS = 16


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "pegword.db"


@pytest.fixture
def token(database: Path) -> str:
    services = open_services(database, load(environment={}))
    services.access.add_user("alice")
    _, token = services.access.add_key("alice")
    services.close()
    return token


def stored(services: Services) -> dict[str, str]:
    """Every memory, by name, read as rows and so not through the index."""
    with services.engine.read() as tx:
        return dict(tx.rows("SELECT name, content FROM structured_memories"))


@pytest.mark.timeout(600)
def test_every_acknowledged_save_survives_kill_9(database: Path, token: str, tmp_path: Path) -> None:
    """16 writers over HTTP, the server killed at random moments: saves, changes and deletes that were answered are there, the file
    is sound, the index agrees with the rows, and every memory is found by its own words."""
    ledger = crash_rounds([PYTHON, "-m", "pegword", "serve"], database, tmp_path, token, rounds=ROUNDS, writers=WRITERS, seed=SEED)
    connection = apsw.Connection(str(database))
    services = open_services(database, load(environment={}))
    found = stored(services)

    assert "ok" == connection.pragma("integrity_check"), f"SEED={SEED}"
    assert [] == lost(ledger, found), f"SEED={SEED}"
    check(services)
    alice = services.access.agent(services.access.user("alice"), "library")
    for name in list(ledger.acknowledged)[:: max(1, len(ledger.acknowledged) // 50)]:
        hits = services.memories.search(alice, Visible((GLOBAL,)), f'"{name}"', limit=50).hits
        assert name in [hit.memory.name for hit in hits], f"SEED={SEED}"
    services.close()
    connection.close()
    print(f"{ROUNDS} kills, {ledger.answers} acknowledged, 0 lost, SEED={SEED}")
    assert ledger.answers > ROUNDS * WRITERS


@pytest.mark.timeout(300)
def test_the_same_test_catches_a_server_that_answers_before_it_commits(database: Path, token: str, tmp_path: Path) -> None:
    """The planted fault loses acknowledged saves, and the ledger says so: the test above can fail."""
    ledger = crash_rounds(
        [PYTHON, str(Path(__file__).parent / "hasty_server.py"), "serve"], database, tmp_path, token, rounds=4, writers=WRITERS, seed=SEED
    )
    services = open_services(database, load(environment={}))
    found = stored(services)
    services.close()

    assert lost(ledger, found), f"SEED={SEED}, {ledger.answers} acknowledged"
