"""Stores that hold something in every table, on each pair of engines, and how to see whether two hold the same."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest

from pegword.assembly import open_engine, open_services
from pegword.core.caller import GLOBAL, Session, scope_of, user_scope
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store import copying
from pegword.store.engine import Engine, Tx
from pegword.store.migrate import _statements, migrate, migrations
from pegword.store.sqlite import SqliteEngine
from tests import postgres
from tests.conftest import Clock

Place = Path | str

PAIRS = (("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "sqlite"), ("postgres", "postgres"))
_OF_TYPE = {"TEXT": "x", "BIGINT": 1, "DOUBLE PRECISION": 0.5, "BLOB": b"\x01"}


@pytest.fixture(scope="session")
def postgres_target(postgres_server: str) -> Iterator[postgres.Database]:
    """A second database on the server."""
    database = postgres.Database(postgres_server, f"pegword_target_{os.getpid()}")
    yield database
    database.close()


@pytest.fixture(params=PAIRS, ids="-to-".join)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Place, Place]:
    """Two empty databases, of one kind or of two."""
    return made(request, tmp_path)


def made(request: pytest.FixtureRequest, folder: Path) -> tuple[Place, Place]:
    """Two empty databases of the kinds that *request* is for; files are in *folder*."""
    places: list[Place] = []
    for kind, name in zip(request.param, ("postgres_database", "postgres_target"), strict=True):
        if kind == "sqlite":
            places.append(folder / f"{name}.db")
        else:
            there: postgres.Database = request.getfixturevalue(name)
            there.empty()
            places.append(there.url)
    return places[0], places[1]


@pytest.fixture
def opened() -> Iterator[Callable[[Path | str], Services]]:
    """Opens stores, and closes them when the test is over."""
    with ExitStack() as stack:
        clock = Clock()

        def open_one(database: Path | str) -> Services:
            services = open_services(database, load(environment={}), clock=clock)
            stack.callback(services.close)
            return services

        yield open_one


@pytest.fixture
def engine_of() -> Iterator[Callable[[Path | str], Engine]]:
    """Opens databases with the program's schema and nothing else, and closes them when the test is over."""
    with ExitStack() as stack:

        def open_one(database: Path | str) -> Engine:
            engine = open_engine(database)
            stack.callback(engine.close)
            migrate(engine)
            return engine

        yield open_one


def fill(services: Services, memories: int = 40) -> None:
    """Put something into every table: memories in three scopes, changed, expired and deleted, folded, with tags, keys and receipts."""
    alice = services.access.agent(services.access.ensure_user("alice"), "key:alice")
    services.access.add_key("alice")
    scopes = (GLOBAL, user_scope(alice), scope_of(alice, "workstream", "w:1"))
    for number in range(memories):
        text = f"Walrus {number} drinks tea, café №{number % 7}, 猫 \U0001f9ad \t'\"\\ end."
        services.memories.save(
            alice, Draft(f"n{number}", text, scopes[number % 3], tags=("Tea", f"t{number % 5}"), confidence=0.1 * (number % 9))
        )
    for number in range(0, memories, 5):
        services.memories.save(alice, Draft(f"n{number}", f"changed {number}", scopes[number % 3], description="new"))
    for number in range(1, memories, 11):
        services.memories.delete(alice, scopes[number % 3], f"n{number}")
    soon = services.clock() + 1_000_000
    services.memories.save(alice, Draft("gone", "soon over", GLOBAL, expires_at=soon))
    services.reindexer.run(everything=True)  # so that there are blocks
    services.memories.save(alice, Draft("n0", "changed once more", GLOBAL))
    services.turns.turn(alice, Session(), [{"role": "user", "content": "walrus tea"}])
    services.memories.get(alice, GLOBAL, "n3")
    services.housekeeper.settle()
    services.engine.write(_fill_the_rest)


def _fill_the_rest(tx: Tx) -> None:
    """A row in every table that is still empty, made from its types alone."""
    types = types_of(migrations())
    empty = [table for table in copying.TABLES if not copying.count(tx, table)]
    fill_by_type(tx, {table.name: types[table.name] for table in empty})


def fill_by_type(tx: Tx, tables: Mapping[str, Mapping[str, str]]) -> None:
    """A row in each of *tables*, of which the type of each column is given."""
    for name, types in tables.items():
        values = [_OF_TYPE[kind] for kind in types.values()]
        tx.run(f"INSERT INTO {name} ({', '.join(types)}) VALUES ({', '.join('?' * len(values))})", values)


def types_of(known: Sequence[tuple[int, str, str]]) -> dict[str, dict[str, str]]:
    """The type of each column of each table that these migrations make."""
    memory = apsw.Connection(":memory:")
    try:
        for _, _, sql in known:
            for statement in _statements(sql):
                for word, text in SqliteEngine.flavor.items():
                    statement = statement.replace("{" + word + "}", text)
                memory.execute(statement)
        names = [name for (name,) in memory.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        return {name: {row[1]: row[2] for row in memory.execute(f"PRAGMA table_info({name})")} for name in names}
    finally:
        memory.close()


def rows_of(engine: Engine) -> dict[str, list[Any]]:
    """Every row of every table, in one order on every engine."""
    with engine.read() as tx:
        return {table.name: sorted(_rows(tx, table), key=repr) for table in copying.TABLES}


def _rows(tx: Tx, table: copying.Table) -> list[Any]:
    rows = tx.rows(f"SELECT {', '.join(table.columns)} FROM {table.name}")
    return [row for row in rows if table.name != "facts" or row[0] not in copying.OWN_FACTS]


def after(calls: int) -> Callable[[str, int, int], None]:
    """A progress that is interrupted when it was told *calls* times."""
    told = count(1)

    def progress(_what: str, _done: int, _of: int) -> None:
        if next(told) > calls:
            raise KeyboardInterrupt

    return progress
