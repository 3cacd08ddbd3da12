"""A scope's index made again while others save, change, delete, fold, rebuild and sweep between any two of its transactions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Visible, reach
from pegword.core.memory import Draft
from pegword.core.text import Analyser
from pegword.services.bundle import Services
from pegword.services.reindexing import Reindexer
from pegword.services.sound import faults_of_index
from pegword.settings import load
from pegword.store import blocks, reindex
from pegword.store.engine import Engine, Tx
from tests.store.test_index import CALLER, SCOPES, WORDS, Bench, check, small_index, steps, texts  # noqa: F401  (a fixture)

ANALYSER, GERMAN = Analyser(), Analyser("german")
ENGLISH_SETTINGS, GERMAN_SETTINGS = load(environment={}), load(environment={"PEGWORD_MEMORY__LANGUAGE": "german"})
EVERYWHERE = Visible(SCOPES)


class Between:
    """An engine before each of whose transactions something happens."""

    def __init__(self, engine: Engine, happens: Callable[[], object]) -> None:
        self._engine = engine
        self._happens = happens

    @contextmanager
    def read(self) -> Iterator[Tx]:
        self._happens()
        with self._engine.read() as tx:
            yield tx

    def write(self, work: Callable[[Tx], Any]) -> Any:
        self._happens()
        return self._engine.write(work)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch, small_index: None) -> None:  # noqa: F811
    """So little in one transaction that a small scope takes many."""
    monkeypatch.setattr(reindex, "READ_AT_ONCE", 4)
    monkeypatch.setattr(reindex, "SLOTS_AT_ONCE", 2)
    monkeypatch.setattr(reindex, "BLOCKS_AT_ONCE", 3)


def sound(services: Services, analyser: Analyser = ANALYSER) -> None:
    """The sums and every posting of the index are those that *analyser* makes of the memories now."""
    check(services)
    with services.engine.read() as tx:
        assert [] == faults_of_index(tx, analyser, lambda *_: None)


def run_between(services: Services, happens: Callable[[], object], analyser: Analyser = ANALYSER) -> None:
    """Make all of the index again; before each transaction of it, *happens*."""
    services.engine.write(reindex.mark_all)
    Reindexer(Between(services.engine, happens), analyser).run()  # type: ignore[arg-type]


@given(
    st.lists(steps.filter(lambda step: step[0] != "restart"), min_size=5, max_size=25),
    st.lists(st.lists(steps.filter(lambda step: step[0] != "restart"), max_size=3), min_size=2, max_size=30),
    st.lists(texts, min_size=1, max_size=2),
)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_happens_between_its_transactions_the_index_is_exact(
    fresh: Callable[[], Path | str], small_steps: None, before: list[Any], between: list[list[Any]], messages: list[str]
) -> None:
    """Every answer on the way and in the end is that of a plain reading of the memories; other re-indexes may come in between."""
    bench = Bench(fresh())
    for step in before:
        bench.take(step)
    left = iter(between)

    def happens() -> None:
        for step in next(left, ()):
            bench.take(step)
        bench.agree(EVERYWHERE, messages)

    run_between(bench.services, happens)
    assert 0 == bench.services.reindexer.pending()
    bench.agree(EVERYWHERE, messages)
    sound(bench.services)
    bench.take(("tidy",))
    bench.agree(EVERYWHERE, messages)
    sound(bench.services)
    bench.services.close()


def fill(services: Services, count: int = 24) -> list[str]:
    """*count* memories in one scope, some of them changed since; their ids."""
    for number in range(count):
        services.memories.save(CALLER, Draft(f"n{number}", f"{WORDS[number % 11]} {WORDS[number % 7]} x{number} tea", GLOBAL))
    for number in range(0, count, 5):
        services.memories.save(CALLER, Draft(f"n{number}", f"{WORDS[number % 11]} anew", GLOBAL))
    services.housekeeper.due(GLOBAL.key)
    services.housekeeper.settle()
    return [memory.memory_id for memory in services.memories.list(CALLER, reach(CALLER), limit=200).memories]


class Dies(BaseException):
    """The process is gone."""


def test_one_that_is_broken_off_anywhere_serves_and_is_finished_by_the_next(fresh: Callable[[], Path | str], small_steps: None) -> None:
    """Before each of its transactions in turn: what is found stays the same, and whoever comes next leaves a sound index."""
    broken_off = 0
    services = open_services(fresh(), ENGLISH_SETTINGS)
    fill(services)
    expected = services.memories.search(CALLER, EVERYWHERE, "tea milk", limit=50).hits
    while True:
        left = iter(range(broken_off))

        def happens(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Dies

        try:
            run_between(services, happens)
        except Dies:
            broken_off += 1
        else:
            break
        assert services.reindexer.pending()
        assert expected == services.memories.search(CALLER, EVERYWHERE, "tea milk", limit=50).hits
        if broken_off % 3 == 0:
            services.reindexer.run()
            sound(services)
    services.close()

    assert broken_off > 20


def everything_at_once(services: Services) -> None:
    """A re-index with a change, a delete, a fold and a rebuild of somebody else's before each of its transactions."""
    ids = iter(fill(services))
    numbers = iter(range(1_000))

    def happens() -> None:
        number = next(numbers)
        services.memories.save(CALLER, Draft(f"n{number % 24}", f"{WORDS[number % 11]} tea y{number}", GLOBAL))
        gone = next(ids, None)
        if gone and services.memories.list(CALLER, reach(CALLER)).total > 3:
            services.memories.delete_by_id(CALLER, gone)
        services.housekeeper.settle()

    run_between(services, happens)
    sound(services)


def test_what_is_changed_and_deleted_meanwhile_is_as_it_was_left(services: Services, small_steps: None) -> None:
    everything_at_once(services)

    assert 0 == services.reindexer.pending()


def test_the_same_test_catches_one_that_keeps_what_is_gone(services: Services, small_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: what was read is written, whatever became of it."""
    monkeypatch.setattr(blocks, "without", lambda postings, _: postings)

    with pytest.raises(AssertionError):
        everything_at_once(services)


@pytest.mark.parametrize("saves", [1, 3])
def test_a_save_under_another_analyser_in_between_is_made_again_too(fresh: Callable[[], Path | str], small_steps: None, saves: int) -> None:
    """Two processes of two languages: the re-index begins anew, and nothing stays indexed in the other language."""
    database = fresh()
    english, german = open_services(database, ENGLISH_SETTINGS), open_services(database, GERMAN_SETTINGS)
    fill(english)
    seen: list[int] = []

    def happens() -> None:
        seen.append(1)
        if len(seen) in range(8, 8 + saves):
            english.memories.save(CALLER, Draft(f"foreign{len(seen)}", "die Häuser am Meer", GLOBAL))

    run_between(german, happens, GERMAN)
    sound(german, GERMAN)

    assert 0 == german.reindexer.pending()
    assert saves == german.memories.search(CALLER, EVERYWHERE, "Haus").total
    english.close()
    german.close()


def test_where_another_analyser_never_stops_saving_it_is_given_up(
    fresh: Callable[[], Path | str], small_steps: None, caplog: pytest.LogCaptureFixture
) -> None:
    """It neither goes on for ever nor says that it is done."""
    database = fresh()
    english, german = open_services(database, ENGLISH_SETTINGS), open_services(database, GERMAN_SETTINGS)
    fill(english)
    run_between(german, lambda: english.memories.save(CALLER, Draft("foreign", f"Meer {english.clock()}", GLOBAL)), GERMAN)

    assert german.reindexer.pending()
    assert any("another analyser" in record.message for record in caplog.records)
    assert 1 == german.memories.search(CALLER, EVERYWHERE, "Meer").total
    english.close()
    german.close()


def most_in_one_transaction(services: Services, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many blocks a re-index writes or deletes at most in one transaction."""
    counts = [0]
    put, drop = blocks.put, blocks.drop

    def counted(tx: Tx, rows: Sequence[Any], work: Callable[[Tx, Sequence[Any]], None]) -> None:
        counts[-1] += len(rows)
        work(tx, rows)

    monkeypatch.setattr(blocks, "put", lambda tx, rows: counted(tx, rows, put))
    monkeypatch.setattr(blocks, "drop", lambda tx, rows: counted(tx, rows, drop))
    services.engine.write(lambda tx: tx.run("UPDATE ix_block SET postings = ?, n = 1", (bytes(8),)))  # so that every one differs
    run_between(services, lambda: counts.append(0))
    sound(services)
    return max(counts)


@pytest.mark.parametrize("count", [40, 120])
def test_no_transaction_of_it_grows_with_the_scope(
    services: Services, small_steps: None, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A save waits for one of them, so each writes little, however much the scope holds."""
    fill(services, count)

    assert most_in_one_transaction(services, monkeypatch) <= 3 * 60


def test_the_same_test_catches_one_that_writes_all_at_once(services: Services, small_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reindex, "BLOCKS_AT_ONCE", 1_000_000)
    fill(services, 120)

    assert most_in_one_transaction(services, monkeypatch) > 3 * 60


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM ix_block", "DELETE FROM ix_tail", "DELETE FROM ix_dead", "DELETE FROM ix_scope",
        "UPDATE ix_scope SET n = 7, words = 1, tail_n = 3, dead_n = 0", "UPDATE ix_scope SET next_slot = 2",
        "INSERT INTO ix_dead SELECT scope_key, slot FROM structured_memories WHERE slot >= 0",
        "UPDATE ix_block SET n = n + 1", "UPDATE ix_block SET term = term || 'x'", "UPDATE structured_memories SET slot = -2, place = 0",
        "UPDATE structured_memories SET length = 1",
    ],
)  # fmt: skip
def test_what_is_damaged_is_made_again_whole(services: Services, small_steps: None, harm: str) -> None:
    """Blocks, tail, the list of the dead, the sums, slots: whatever is wrong with them."""
    fill(services)
    services.memories.save(CALLER, Draft("in the tail", "tea", GLOBAL))
    services.engine.write(lambda tx: tx.run(harm))
    services.reindexer.run(everything=True)

    assert 25 == services.memories.list(CALLER, reach(CALLER)).total
    sound(services)
    with services.engine.read() as tx:
        assert [] == tx.rows("SELECT slot FROM structured_memories WHERE slot < 0")


def test_a_note_of_where_it_began_that_is_none_is_made_anew(services: Services, small_steps: None) -> None:
    fill(services)
    services.engine.write(lambda tx: tx.run("UPDATE ix_scope SET analyser = ?", (f"{ANALYSER.name}>x",)))
    services.reindexer.run()

    assert 0 == services.reindexer.pending()
    sound(services)


@pytest.mark.parametrize("harm", ["term = CAST(term AS BLOB)", "postings = 7", "postings = 'text'"])
def test_blocks_that_are_of_no_type_that_can_be_are_made_again(services: Services, small_steps: None, store_path: Path, harm: str) -> None:
    """SQLite stores any type anywhere."""
    fill(services)
    services.engine.write(lambda tx: tx.run(f"UPDATE ix_block SET {harm}"))
    services.reindexer.run(everything=True)

    sound(services)


def test_a_damaged_block_that_held_what_was_saved_meanwhile_loses_nothing(services: Services, small_steps: None) -> None:
    """It cannot be told what stood in it, so the work begins anew with all that there is."""
    fill(services)
    seen: list[int] = []

    def happens() -> None:
        seen.append(1)
        if len(seen) == 12:
            for number in range(6):
                services.memories.save(CALLER, Draft(f"late{number}", "zebra tea", GLOBAL))
            services.housekeeper.settle()
            services.engine.write(lambda tx: tx.run("UPDATE ix_block SET n = n + 1 WHERE term = 'zebra'"))

    run_between(services, happens)

    assert len(seen) > 12
    sound(services)
    assert 6 == services.memories.search(CALLER, EVERYWHERE, "zebra").total
