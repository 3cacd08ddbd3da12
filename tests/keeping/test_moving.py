"""A store carried to another database: all of it, of one moment, and only when it was compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegword.core.caller import GLOBAL, reach
from pegword.core.errors import Conflict, Damaged
from pegword.core.memory import Draft
from pegword.core.text import Analyser
from pegword.services.bundle import Services
from pegword.services.moving import move
from pegword.store import copying
from pegword.store import migrate as migrate_module
from pegword.store.engine import Engine
from pegword.store.migrate import migrations
from pegword.store.sqlite import SqliteEngine
from tests.keeping.conftest import after, fill, fill_by_type, rows_of, types_of
from tests.store.test_index import check

Pair = tuple[Path | str, Path | str]
Open = Callable[[Path | str], Services]
Bare = Callable[[Path | str], Engine]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few rows at a time that a small store takes many steps."""
    monkeypatch.setattr(copying, "ROWS_AT_ONCE", 7)


@pytest.fixture
def source(pair: Pair, opened: Open) -> Services:
    services = opened(pair[0])
    fill(services)
    return services


@pytest.fixture
def target(pair: Pair, engine_of: Bare) -> Engine:
    return engine_of(pair[1])


def test_every_row_of_every_table_arrives(source: Services, target: Engine, small_steps: None) -> None:
    moved = move(source.engine, target, Analyser())
    expected = rows_of(source.engine)

    assert [] == [name for name, rows in expected.items() if not rows]  # or a table would be compared with nothing
    assert expected == rows_of(target)
    assert {name: len(rows) for name, rows in expected.items()} == moved.tables
    assert ((), False) == (moved.faults, moved.behind)


def test_the_copy_gives_the_same_answers(source: Services, target: Engine, pair: Pair, opened: Open) -> None:
    """The index comes along: the same memories, in the same order, with the same scores."""
    move(source.engine, target, Analyser())
    there = opened(pair[1])
    alice = source.access.agent(source.access.user("alice"), "key:alice")
    here, copied = (s.memories.search(alice, reach(alice), "walrus tea changed", limit=50) for s in (source, there))

    assert here.total > 20
    assert [(h.memory, h.score) for h in here.hits] == [(h.memory, h.score) for h in copied.hits]
    check(there)


@pytest.mark.parametrize("calls", [1, 5, 30, 60])
def test_a_copy_that_was_broken_off_is_no_store_and_goes_on(
    source: Services, target: Engine, pair: Pair, opened: Open, small_steps: None, calls: int
) -> None:
    """Half of a store is never opened; what was changed between the two runs is carried too."""
    with pytest.raises(KeyboardInterrupt):
        move(source.engine, target, Analyser(), after(calls))
    with pytest.raises(Conflict, match="unfinished copy"):
        opened(pair[1])
    alice = source.access.agent(source.access.user("alice"), "key:alice")
    source.memories.save(alice, Draft("n0", "changed between", GLOBAL))
    source.memories.save(alice, Draft("new", "made between", GLOBAL))
    source.memories.delete(alice, GLOBAL, "n3")
    move(source.engine, target, Analyser())

    assert rows_of(source.engine) == rows_of(target)
    check(opened(pair[1]))


def test_a_copy_that_goes_on_brings_nothing_twice(source: Services, target: Engine, small_steps: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(source.engine, target, Analyser(), after(60))
    with target.read() as tx:
        there = sum(copying.held(tx).values())
    told: list[tuple[str, int]] = []
    move(source.engine, target, Analyser(), lambda what, done, _: told.append((what, done)))

    assert there > 100
    assert ("copying", there) == told[0]


def test_what_is_saved_while_it_is_copied_leaves_the_copy_unfinished(source: Services, target: Engine, pair: Pair, opened: Open) -> None:
    """The copy is of one moment; whoever would start to use it then would lose what came later, so they cannot."""
    alice = source.access.agent(source.access.user("alice"), "key:alice")
    saved: list[str] = []

    def meanwhile(_what: str, _done: int, _of: int) -> None:
        if not saved:
            saved.append(source.memories.save(alice, Draft("late", "walrus", GLOBAL)).memory.memory_id)

    first = move(source.engine, target, Analyser(), meanwhile)
    with pytest.raises(Conflict, match="unfinished copy"):
        opened(pair[1])
    second = move(source.engine, target, Analyser())

    assert (True, False) == (first.behind, second.behind)
    assert rows_of(source.engine) == rows_of(target)


def test_a_target_that_holds_anything_is_refused_and_left_as_it_is(source: Services, pair: Pair, opened: Open) -> None:
    there = opened(pair[1])
    there.access.add_user("bob")
    before = rows_of(there.engine)
    with pytest.raises(Conflict, match="not empty"):
        move(source.engine, there.engine, Analyser())

    assert before == rows_of(there.engine)


def test_an_unfinished_copy_of_another_store_is_refused(source: Services, target: Engine, small_steps: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(source.engine, target, Analyser(), after(20), name="another one")
    with pytest.raises(Conflict, match="another one"):
        move(source.engine, target, Analyser())


def test_half_of_a_store_is_not_moved_on(source: Services, target: Engine, small_steps: None, tmp_path: Path, engine_of: Bare) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(source.engine, target, Analyser(), after(20))
    with pytest.raises(Conflict, match="unfinished copy"):
        move(target, engine_of(tmp_path / "third.db"), Analyser())


def test_two_copies_into_one_target_do_not_mix(source: Services, target: Engine, small_steps: None) -> None:
    """Whoever is overtaken stops."""
    overtaken: list[object] = []

    def overtake(_what: str, done: int, _of: int) -> None:
        if done > 20 and not overtaken:
            overtaken.append(move(source.engine, target, Analyser()))

    with pytest.raises(Conflict, match="somebody else copies"):
        move(source.engine, target, Analyser(), overtake)

    assert rows_of(source.engine) == rows_of(target)


@pytest.mark.parametrize("mutant", ["drops a row", "doubles nothing but changes a letter", "forgets a table"])
def test_a_copy_that_is_not_what_was_read_never_counts(
    source: Services, target: Engine, pair: Pair, opened: Open, monkeypatch: pytest.MonkeyPatch, mutant: str
) -> None:
    """The comparison is a real one: each of these faults in copying is caught, and the target is no store."""
    put = copying._put

    def faulty(tx: Any, table: copying.Table, rows: Any) -> None:
        if table.name == "memory_versions" and mutant == "drops a row":
            rows = rows[1:]
        elif table.name == "memory_versions" and mutant == "forgets a table":
            rows = ()
        elif table.name == "memory_versions":
            rows = [(*row[:-1], row[-1] + "x") for row in rows]
        put(tx, table, rows)

    monkeypatch.setattr(copying, "_put", faulty)
    with pytest.raises(Damaged, match="memory_versions"):
        move(source.engine, target, Analyser())
    with pytest.raises(Conflict, match="unfinished copy"):
        opened(pair[1])


def test_a_damaged_index_is_made_anew_in_the_copy(source: Services, target: Engine, pair: Pair, opened: Open) -> None:
    source.engine.write(lambda tx: tx.run("DELETE FROM ix_block WHERE term = 'tea'"))
    source.engine.write(lambda tx: tx.run("UPDATE ix_scope SET words = words + 1"))
    moved = move(source.engine, target, Analyser())
    there = opened(pair[1])
    alice = there.access.agent(there.access.user("alice"), "key:alice")

    assert () == moved.faults
    assert there.memories.search(alice, reach(alice), "tea", limit=50).total > 20
    check(there)


def test_a_damaged_memory_is_carried_as_it_is_and_named(source: Services, target: Engine) -> None:
    """Moving house mends nothing and hides nothing."""
    source.engine.write(lambda tx: tx.run("UPDATE structured_memories SET content = 'altered' WHERE name = 'n3'"))
    source.engine.write(lambda tx: tx.run("DELETE FROM memory_tags WHERE tag_key = 't4'"))
    moved = move(source.engine, target, Analyser())

    assert rows_of(source.engine) == rows_of(target)
    assert any("(n3) does not match its hash" in fault for fault in moved.faults)
    assert any("(n4) is not found by its tags" in fault for fault in moved.faults)


@pytest.mark.parametrize("number", range(1, len(migrations())))
def test_a_store_of_every_earlier_schema_is_brought_up_to_date_whole(
    number: int, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row that was there is there, as it was, in every column that there was."""
    known = migrations()
    monkeypatch.setattr(migrate_module, "migrations", lambda: known[:number])
    engine = SqliteEngine(store_path)
    migrate_module.migrate(engine)
    columns = types_of(known[:number])
    engine.write(lambda tx: fill_by_type(tx, columns))
    before = {name: sorted(_rows(engine, name, list(types)), key=repr) for name, types in columns.items()}
    monkeypatch.setattr(migrate_module, "migrations", lambda: known)
    migrate_module.migrate(engine)
    after = {name: sorted(_rows(engine, name, list(types)), key=repr) for name, types in columns.items()}
    engine.close()

    assert before == after
    assert all(before.values())


def _rows(engine: Engine, table: str, columns: list[str]) -> list[Any]:
    with engine.read() as tx:
        return tx.rows(f"SELECT {', '.join(columns)} FROM {table}")
