"""The operations guide is true: its SQL runs, what it promises of it holds, and its examples name what there is."""

import configparser
import os
import re
import shlex
from collections.abc import Iterator

import psycopg
import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Session, reach, user_scope
from pegword.core.errors import ReadOnly
from pegword.core.memory import Draft
from pegword.settings import load
from tests import postgres
from tests.cli.test_help import commands
from tests.docrunner import ROOT, blocks
from tests.store.test_index import check

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
CALLER = Caller("u1", "alice", "key:1")


def sql_of(name: str) -> str:
    """The block of that name."""
    return next(block.text for block in blocks(PAGE) if block.info == f"sql {name}")


@pytest.fixture
def empty(postgres_server: str) -> Iterator[postgres.Database]:
    """A database without tables."""
    made = postgres.Database(postgres_server, f"pegword_test_operations_{os.getpid()}", fill=False)
    yield made
    made.close()


def execute(url: str, statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in [statements] if "$$" in statements else statements.split(";\n"):
            connection.execute(statement)  # type: ignore[arg-type]


def work(url: str) -> None:
    """Save, change, find, turn and delete, until tails have been folded."""
    services = open_services(url, load(environment={}))
    for number in range(300):
        services.memories.save(CALLER, Draft(f"n{number % 200}", f"tea number {number}", GLOBAL if number % 2 else user_scope(CALLER)))
    services.housekeeper.settle()
    saved = services.memories.get(CALLER, GLOBAL, "n1")
    turn = services.turns.turn(CALLER, Session(), [{"role": "user", "content": "tea number 299"}])
    assert "number 299" in turn.block
    services.memories.delete_by_id(CALLER, saved.memory_id)
    services.housekeeper.settle()
    assert 199 == services.memories.search(CALLER, reach(CALLER), "tea").total
    check(services)
    services.close()


def test_the_set_up_for_postgresql_is_enough(postgres_server: str) -> None:
    """A role and a database made by the guide's words serve."""
    execute(postgres_server, "DROP DATABASE IF EXISTS pegword WITH (FORCE)")
    execute(postgres_server, "DROP ROLE IF EXISTS pegword")
    execute(postgres_server, sql_of("setup"))
    try:
        work(re.sub(r"//[^/]*/[^?]*", "//pegword@/pegword", postgres_server))
    finally:
        execute(postgres_server, "DROP DATABASE pegword WITH (FORCE)")
        execute(postgres_server, "DROP ROLE pegword")


def test_a_role_that_may_only_work_in_the_tables_serves(postgres_server: str, empty: postgres.Database) -> None:
    """It reads and writes, and cannot change a table."""
    open_services(empty.url, load(environment={})).close()
    owner = "CREATE ROLE pegword;\n"
    execute(empty.url, owner + sql_of("runtime"))
    try:
        work(empty.url.replace("postgres:@", "pegword_server@"))
        again = open_services(empty.url.replace("postgres:@", "pegword_server@"), load(environment={}))
        with pytest.raises(ReadOnly, match="role may not"):
            again.engine.write(lambda tx: tx.run("ALTER TABLE facts ADD COLUMN more TEXT"))
        again.close()
    finally:
        execute(empty.url, "DROP OWNED BY pegword_server;\nDROP ROLE pegword_server;\nDROP OWNED BY pegword;\nDROP ROLE pegword")


def test_the_tables_can_be_tuned(empty: postgres.Database) -> None:
    open_services(empty.url, load(environment={})).close()
    execute(empty.url, sql_of("tuning"))
    work(empty.url)


def test_the_tables_can_be_partitioned_by_scope(empty: postgres.Database) -> None:
    """Every statement works on them unchanged, and rows really lie in several partitions."""
    open_services(empty.url, load(environment={})).close()
    execute(empty.url, sql_of("partitions"))
    work(empty.url)
    with psycopg.connect(empty.url) as connection:
        parts = connection.execute("SELECT count(DISTINCT tableoid) FROM structured_memories").fetchall()
        other_indexes = connection.execute(
            "SELECT count(*) FROM pg_indexes WHERE tablename = 'structured_memories' AND indexname LIKE 'memory_%'"
        ).fetchall()

    assert [(2,)] == parts
    assert [(3,)] == other_indexes


def test_a_database_that_may_only_be_read_serves_what_reads(empty: postgres.Database) -> None:
    """As a standby does: searches and turns go on, writes are refused as read only."""
    services = open_services(empty.url, load(environment={}))
    services.memories.save(CALLER, Draft("n", "tea", GLOBAL))
    services.close()
    execute(empty.url, f"ALTER DATABASE {empty.name} SET default_transaction_read_only = on")
    services = open_services(empty.url, load(environment={}))
    services.housekeeper.start()
    try:
        assert 1 == services.memories.search(CALLER, reach(CALLER), "tea").total
        assert "tea" in services.turns.turn(CALLER, Session(), [{"role": "user", "content": "tea"}]).block
        with pytest.raises(ReadOnly):
            services.memories.save(CALLER, Draft("m", "tea", GLOBAL))
    finally:
        services.close()


def test_the_unit_starts_a_command_that_there_is() -> None:
    """It names the database as the command line wants it, and a folder that the unit itself makes."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((ROOT / "examples" / "pegword.service").read_text(encoding="utf-8"))
    program, *words = shlex.split(unit["Service"]["ExecStart"])

    assert "/opt/pegword/bin/pegword" == program
    assert ("serve",) in commands()
    assert "serve" == words[0]
    assert f"PEGWORD_DATABASE=sqlite:////var/lib/{unit['Service']['StateDirectory']}/pegword.db" == unit["Service"]["Environment"]


def test_the_container_is_made_of_what_the_repository_has() -> None:
    text = (ROOT / "examples" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    copied = [name for word, rest in lines if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]]

    assert {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD"} == {
        w for w, _ in lines
    }
    assert [] == [name for name in copied if not (ROOT / name).exists()]
    assert "USER pegword" in text.splitlines()
    assert 'CMD ["pegword", "serve"' in text
