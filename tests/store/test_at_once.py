"""Many writers at once, on two opened stores: whatever they do to each other, the index agrees with the rows and nobody is refused."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Session, Visible, reach, scope_of, user_scope
from pegword.core.errors import Busy, NotFound, VersionMismatch
from pegword.core.memory import Draft, Memory
from pegword.core.transfer import Line
from pegword.services.bundle import Services
from pegword.services.once import Asked, Kept, once
from pegword.services.transfer import Transfer
from pegword.services.writing import Changes, draft_of
from pegword.settings import load
from pegword.store import blocks, folding, memory_rows
from pegword.store.engine import MANY_ROWS, Tx
from pegword.store.postgres import PostgresTx
from tests import postgres
from tests.patience import PATIENCE_S
from tests.store.test_index import WORDS, check, small_index  # noqa: F401  (a fixture)

CALLER = Caller("u1", "alice", "key:1")
SCOPES = (GLOBAL, user_scope(CALLER))
STEPS, THREADS, NAMES = 60, 6, 12
SECOND_US = 1_000_000


@pytest.fixture
def stores(unhurried: None, database: Path | str) -> Iterator[tuple[Services, ...]]:
    """The same database opened twice, as two processes have it."""
    opened = tuple(open_services(database, load(environment={})) for _ in range(2))
    for store in opened:
        store.housekeeper.start()
    yield opened
    for store in opened:
        store.close()


def steps(store: Services, chance: random.Random) -> list[tuple[int, str, Callable[[], object]]]:
    """What a writer does, each with its weight."""
    scope, name = chance.choice(SCOPES), f"n{chance.randrange(NAMES)}"
    text = " ".join(chance.choice(WORDS) for _ in range(6))
    soon = store.clock() + SECOND_US // 4

    def change() -> None:
        memory = store.memories.get(CALLER, scope, name)
        store.memories.update(CALLER, memory.memory_id, Changes(description=text))

    return [
        (50, "save", lambda: store.memories.save(CALLER, Draft(name, text, scope, tags=("a",)))),
        (5, "expire", lambda: store.memories.save(CALLER, Draft(name, text, scope, expires_at=soon))),
        (10, "delete", lambda: store.memories.delete(CALLER, scope, name)),
        (10, "change", change),
        (15, "turn", lambda: store.turns.turn(CALLER, Session(), [{"role": "user", "content": text}])),
        (4, "sweep", store.housekeeper.sweep),
        (4, "settle", store.housekeeper.settle),
        (2, "reindex", lambda: store.reindexer.run(everything=True)),
    ]


def joined(threads: Sequence[threading.Thread]) -> None:
    """Wait until all of *threads* have ended."""
    for thread in threads:
        thread.join(5 * PATIENCE_S)
        assert not thread.is_alive()


def write_at_random(store: Services, seed: int, done: Counter[str], failures: list[BaseException]) -> None:
    """*STEPS* steps; what goes wrong but for a memory that somebody else deleted is a failure."""
    chance = random.Random(seed)
    for _ in range(STEPS):
        choice = steps(store, chance)
        _, name, step = chance.choices(choice, [weight for weight, *_ in choice])[0]
        try:
            step()
        except NotFound:
            continue
        except BaseException as error:
            failures.append(error)
            return
        done[name] += 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("small_index")
def test_many_writers_leave_an_exact_index(stores: tuple[Services, ...], seed: int) -> None:
    """Saves, changes, deletes, sweeps, folds, rebuilds, re-indexes and receipts of two processes, all at once, in two scopes."""
    done: Counter[str] = Counter()
    failures: list[BaseException] = []
    threads = [
        threading.Thread(target=write_at_random, args=(stores[number % 2], seed * 100 + number, done, failures))
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    joined(threads)

    assert [] == failures
    assert done["save"] > STEPS
    for store in stores:
        store.housekeeper.settle()
    check(stores[0])
    listed = stores[0].memories.list(CALLER, reach(CALLER)).memories
    for memory in (m for m in listed if not m.expires_at):
        word = memory.content.split()[0]
        assert memory.memory_id in {hit.memory.memory_id for hit in stores[1].memories.search(CALLER, reach(CALLER), word, limit=50).hits}


def test_every_writer_of_one_name_makes_a_version_of_its_own(stores: tuple[Services, ...]) -> None:
    """One memory, saved by many at once: as many versions as changes, none twice, none lost."""
    texts = [[f"text {writer} {number}" for number in range(10)] for writer in range(THREADS)]

    def write(writer: int) -> None:
        for text in texts[writer]:
            stores[writer % 2].memories.save(CALLER, Draft("one", text, GLOBAL))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    joined(threads)
    memory = stores[0].memories.get(CALLER, GLOBAL, "one")
    versions = stores[0].memories.versions(CALLER, memory.memory_id).versions

    assert list(range(THREADS * 10, 0, -1)) == [version.version for version in versions]
    assert {text for mine in texts for text in mine} == {version.content for version in versions}


def test_of_many_who_change_parts_of_one_memory_nobody_takes_back_what_another_said(stores: tuple[Services, ...]) -> None:
    """A change of one field leaves the others as they stand when it is made, not as they were when it was asked for."""
    memory_id = stores[0].memories.save(CALLER, Draft("one", "text", GLOBAL)).memory.memory_id
    failures: list[BaseException] = []

    def change(writer: int, changes: Callable[[int], Changes]) -> None:
        try:
            for number in range(10):
                stores[writer % 2].memories.update(CALLER, memory_id, changes(number))
        except BaseException as error:
            failures.append(error)

    kinds: list[Callable[[int], Changes]] = [
        lambda number: Changes(content=f"content {number}"),
        lambda number: Changes(description=f"description {number}"),
        lambda number: Changes(tags=(f"tag {number}",)),
    ]
    threads = [threading.Thread(target=change, args=(number, kind)) for number, kind in enumerate(kinds)]
    for thread in threads:
        thread.start()
    joined(threads)
    memory = stores[0].memories.get_by_id(CALLER, memory_id)

    assert [] == failures
    assert ("content 9", "description 9", ("tag 9",), 31) == (memory.content, memory.description, memory.tags, memory.version)


@pytest.mark.parametrize("again", [False, True])
def test_a_change_of_what_was_deleted_meanwhile_makes_nothing(
    postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """It is absent, also where another memory has its name by then, at the version that it had."""
    postgres_database.empty()
    store, other = (open_services(postgres_database.url, load(environment={})) for _ in range(2))
    memory = store.memories.save(CALLER, Draft("one", "mine", GLOBAL)).memory

    def while_others(memory: Memory, changes: Changes) -> Draft:
        monkeypatch.undo()
        other.memories.delete(CALLER, GLOBAL, "one")
        if again:
            other.memories.save(CALLER, Draft("one", "another", GLOBAL))
        return draft_of(memory, changes)

    monkeypatch.setattr("pegword.services.memories.draft_of", while_others)
    with pytest.raises(NotFound):
        store.memories.update(CALLER, memory.memory_id, Changes(description="told"))

    listed = store.memories.list(CALLER, reach(CALLER)).memories
    assert ["another"] * again == [m.content for m in listed]
    assert all(m.description == "" for m in listed)
    for opened in (store, other):
        opened.close()


def test_of_many_who_create_one_name_one_creates_it(stores: tuple[Services, ...]) -> None:
    """The others change it; and of those that say it must not exist, the others are refused."""
    outcomes: list[str] = []

    def create(number: int) -> None:
        outcomes.append(stores[number % 2].memories.save(CALLER, Draft("one", f"by {number}", GLOBAL)).outcome)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    joined(threads)

    assert ["created"] + ["updated"] * (THREADS - 1) == sorted(outcomes)


@pytest.mark.usefixtures("unhurried", "small_index")
def test_the_same_test_catches_an_engine_whose_writers_do_not_wait_for_each_other(
    postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: no writer is ever alone. The test above can fail.

    Whether two writers meet is chance: of ten rounds all showed it where there are two processors, eight where there is one; of forty,
    one will.
    """
    monkeypatch.setattr(PostgresTx, "alone", lambda *_: None)
    monkeypatch.setattr(PostgresTx, "beside", lambda *_: None)
    postgres_database.empty()
    stores = tuple(open_services(postgres_database.url, load(environment={})) for _ in range(2))
    for seed in range(40):
        try:
            test_many_writers_leave_an_exact_index(stores, seed)
        except AssertionError:
            break
    else:
        pytest.fail("nobody noticed")
    for store in stores:
        store.engine.close()


@pytest.mark.usefixtures("unhurried")
def test_saves_go_on_beside_what_writes_blocks(
    postgres_database: postgres.Database,
    small_index: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A save of another memory does not wait for a fold; one that changes a memory which is being folded does, and leaves it dead."""
    postgres_database.empty()
    store = open_services(postgres_database.url, load(environment={}))
    for number in range(4):
        store.memories.save(CALLER, Draft(f"n{number}", "tea", GLOBAL))
    outcomes: list[str] = []

    def save(name: str) -> None:
        outcomes.append(store.memories.save(CALLER, Draft(name, "milk", GLOBAL)).outcome)

    another, the_same = (threading.Thread(target=save, args=(name,)) for name in ("another", "n1"))
    put = blocks.put
    seen: list[str] = []

    def put_slowly(tx: Tx, rows: Sequence[blocks.BlockRow]) -> None:
        put(tx, rows)
        the_same.start()
        another.start()
        another.join(PATIENCE_S)
        seen.extend(outcomes)

    monkeypatch.setattr(blocks, "put", put_slowly)
    assert store.engine.write(lambda tx: folding.fold(tx, GLOBAL.key))
    the_same.join(PATIENCE_S)

    assert ["created"] == seen
    assert ["created", "updated"] == outcomes
    check(store)
    with store.engine.read() as tx:
        assert [(1,)] == tx.rows("SELECT slot FROM ix_dead")
    store.close()


@pytest.mark.usefixtures("unhurried")
def test_what_tells_of_a_memory_waits_for_who_deletes_it(postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receipt that is written while a memory is being deleted does not name it."""
    postgres_database.empty()
    store = open_services(postgres_database.url, load(environment={}))
    memory = store.memories.save(CALLER, Draft("one", "walrus tea", GLOBAL)).memory
    turn = store.turns.turn(CALLER, Session(), [{"role": "user", "content": "walrus"}])
    delete = memory_rows.delete
    writer = threading.Thread(target=store.housekeeper.settle)

    def delete_slowly(tx: Tx, memory: Memory) -> bool:
        deleted = delete(tx, memory)
        writer.start()
        writer.join(0.5)
        return deleted

    monkeypatch.setattr(memory_rows, "delete", delete_slowly)
    store.memories.delete_by_id(CALLER, memory.memory_id)
    writer.join(PATIENCE_S)
    with store.engine.read() as tx:
        named = [row[0] for row in tx.rows("SELECT memory_id FROM receipts WHERE receipt_id = ?", (turn.receipt,))]
    store.close()

    assert [memory.memory_id] == [shown.memory.memory_id for shown in turn.shown]
    assert [""] == named


def test_a_delete_of_what_was_changed_meanwhile_deletes_it_as_it_is_then(
    postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the change stays in the index; and a delete that expects the version before is refused."""
    postgres_database.empty()
    store, other = (open_services(postgres_database.url, load(environment={})) for _ in range(2))
    ids = [store.memories.save(CALLER, Draft(name, "walrus tea", GLOBAL)).memory.memory_id for name in ("one", "two")]
    delete = memory_rows.delete

    def deleted_later(tx: Tx, memory: Memory) -> bool:
        monkeypatch.setattr(memory_rows, "delete", delete)
        other.memories.save(CALLER, Draft(memory.name, "zebra milk", GLOBAL))
        return delete(tx, memory)

    monkeypatch.setattr(memory_rows, "delete", deleted_later)
    store.memories.delete_by_id(CALLER, ids[0])
    monkeypatch.setattr(memory_rows, "delete", deleted_later)
    with pytest.raises(VersionMismatch):
        store.memories.delete_by_id(CALLER, ids[1], expected_version=1)

    assert ["two"] == [memory.name for memory in store.memories.list(CALLER, reach(CALLER)).memories]
    assert 1 == store.memories.search(CALLER, reach(CALLER), "zebra").total
    check(store)
    for opened in (store, other):
        opened.close()


def changes_elsewhere_during_an_import(url: str) -> list[str]:
    """What others get done between the last line of an import that is done once and its end. They do not wait for a lock for ever, so that
    they are done, or have given up, before it ends."""
    store, other = (open_services(url, load(environment={})) for _ in range(2))
    mine, theirs = user_scope(CALLER), scope_of(CALLER, "workstream", "elsewhere")
    for number in range(3):
        store.memories.save(CALLER, Draft(f"n{number}", "walrus tea", theirs))
    imported = [Line(number, f"line{number}", "text", "user", "") for number in range(1, 251)]
    done: list[str] = []
    meanwhile: list[str] = []

    def others() -> None:
        other.turns.turn(CALLER, Session("elsewhere"), [{"role": "user", "content": "walrus"}])
        other.memories.get(CALLER, theirs, "n1")
        other.housekeeper.settle()
        with other.engine.read() as tx:
            done.extend(name for name, accesses in tx.rows("SELECT name, access_count FROM structured_memories ORDER BY name") if accesses)
        other.memories.save(CALLER, Draft("gone", "expires", theirs, expires_at=other.clock() - 1))
        with suppress(Busy):
            other.housekeeper.sweep()
        with other.engine.read() as tx:
            done.extend(name for (name,) in tx.rows("SELECT name FROM structured_memories WHERE slot = -1"))

    def work(on: Services) -> Kept:
        report = on.transfer.bring(CALLER, imported, at_once=1_000)
        thread = threading.Thread(target=others)
        thread.start()
        thread.join(PATIENCE_S)
        meanwhile.extend(done)
        return Kept(200, (), str(report.counts["created"]).encode())

    answer = once(store, Asked("import", "all of it", "write"), work)
    assert b"250" == answer.body
    assert 250 == store.memories.list(CALLER, Visible((mine,))).total
    check(store)
    for opened in (store, other):
        opened.close()
    return meanwhile


def test_an_import_that_is_done_once_keeps_nobody_waiting_elsewhere(postgres_database: postgres.Database) -> None:
    """Receipts, access counts and sweeps of other scopes go on while its transaction is open."""
    postgres_database.empty()

    assert ["n0", "n1", "n2", "gone"] == changes_elsewhere_during_an_import(postgres_database.url)


def test_the_same_test_catches_an_import_that_holds_the_rows_of_all(
    postgres_database: postgres.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_some = Transfer._bring_some

    def greedy(self: Transfer, tx: Tx, *arguments: Any) -> Any:
        tx.alone(MANY_ROWS)
        return bring_some(self, tx, *arguments)

    monkeypatch.setattr(Transfer, "_bring_some", greedy)
    postgres_database.empty()

    assert ["n0", "n1", "n2", "gone"] != changes_elsewhere_during_an_import(postgres_database.url)
