"""The index finds exactly what a plain reading of the stored memories finds, whatever was done to it before."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Scope, Visible, reach, scope_of, user_scope
from pegword.core.memory import Draft
from pegword.core.text import Analyser
from pegword.services.bundle import Services
from pegword.services.finding import find
from pegword.settings import load
from pegword.store import blocks, folding, postings
from pegword.store.engine import Tx
from pegword.store.memory_rows import Filters, newest
from pegword.store.packing import unpack
from tests.conftest import Clock, url_of
from tests.core.brute_force import Held, brute_force
from tests.patience import PATIENCE_S

ANALYSER = Analyser()
CALLER = Caller("u1", "alice", "key:1")
SCOPES = (GLOBAL, user_scope(CALLER), scope_of(CALLER, "workstream", "w1"), scope_of(CALLER, "workstream", "w2"))
WORDS = ("tea", "milk", "honey", "lemon", "kettle", "cup", "port", "replica", "staging", "café", "猫")
TAIL, BLOCK, DEAD = 4, 3, 2

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
scopes = st.integers(0, len(SCOPES) - 1)
names = st.integers(0, 7)
steps = st.one_of(
    st.tuples(st.just("save"), scopes, names, texts, st.sampled_from(["", "monday", "tuesday"])),
    st.tuples(st.just("save"), scopes, names, texts, st.just("")),
    st.tuples(st.just("delete"), scopes, names),
    st.tuples(st.just("tidy")),
    st.tuples(st.just("pass"), st.sampled_from([1.0, 3_000.0])),
    st.tuples(st.just("expire"), scopes, names),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("reindex")),
    st.tuples(st.just("restart")),
)


@pytest.fixture
def small_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tails, blocks and graves so small that a few saves fill them."""
    for module in (folding, postings):
        monkeypatch.setattr(module, "TAIL_MAX", TAIL)
        monkeypatch.setattr(module, "needs_rebuild", lambda dead_n, _: dead_n > DEAD)
    monkeypatch.setattr(folding, "BLOCK_POSTINGS_MAX", BLOCK)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", BLOCK * 8)
    monkeypatch.setattr(folding, "REBUILD_BLOCKS_MAX", 5)


class Bench:
    """A store that steps are taken on."""

    def __init__(self, database: Path | str) -> None:
        self.database = database
        self.clock = Clock()
        self.open()

    def open(self) -> None:
        self.services = open_services(self.database, load(environment={}), clock=self.clock)

    def take(self, step: tuple[Any, ...]) -> None:
        services = self.services
        match step:
            case ("save", scope, name, text, sitting):
                services.memories.save(CALLER, Draft(f"n{name}", text, SCOPES[scope], sitting=sitting))
            case ("expire", scope, name):
                soon = self.clock.now + 1_000_000
                services.memories.save(CALLER, Draft(f"n{name}", "tea that goes cold", SCOPES[scope], expires_at=soon))
            case ("delete", scope, name):
                for memory in services.memories.list(CALLER, Visible((SCOPES[scope],)), include_expired=True).memories:
                    if memory.name == f"n{name}":
                        services.memories.delete_by_id(CALLER, memory.memory_id)
            case ("tidy",):
                for scope in SCOPES:
                    folding.tidy(services.engine, scope.key)
            case ("pass", seconds):
                self.clock.pass_s(seconds)
            case ("sweep",):
                services.housekeeper.sweep()
                services.housekeeper.settle()
            case ("reindex",):
                services.reindexer.run(everything=True)
            case ("restart",):
                services.close()
                self.open()

    def agree(self, visible: Visible, messages: list[str]) -> None:
        """Compare what is found with a plain reading of every stored memory."""
        filters = Filters(self.clock.now, include_expired=True)
        with self.services.engine.read() as tx:
            found = find(tx, ANALYSER, visible, messages, filters=filters, limit=500)
            stored = [m for m in newest(tx, visible, filters, 10_000) if m.slot >= 0]
        keys = [scope.key for scope in SCOPES]
        held = {}
        for memory in stored:
            number = keys.index(memory.scope.key) * 1_000_000 + memory.slot
            document = ANALYSER.document(memory.content, (memory.name, memory.description, *memory.tags))
            held[memory.memory_id] = Held(number, number - memory.place, document.counts, document.length)
        scores = dict(brute_force(list(held.values()), [ANALYSER.distinct(text) for text in messages]))
        expected = {m.memory_id: scores[held[m.memory_id].document] for m in stored if scores.get(held[m.memory_id].document)}
        order = sorted(
            (m for m in stored if m.memory_id in expected),
            key=lambda m: (-expected[m.memory_id], -m.updated, -m.slot, m.memory_id),
        )

        assert expected == pytest.approx({hit.memory.memory_id: hit.score for hit in found.hits}, abs=1e-6)
        assert [m.memory_id for m in order] == [hit.memory.memory_id for hit in found.hits]
        assert len(expected) == found.total


@given(
    st.lists(steps, min_size=5, max_size=45),
    st.lists(texts, min_size=1, max_size=3),
    st.sets(scopes, min_size=1).map(sorted),
)
@settings(max_examples=int(os.environ.get("PEGWORD_EXAMPLES", "80")), deadline=None, suppress_health_check=list(HealthCheck))
def test_the_index_agrees_with_a_plain_reading(
    fresh: Callable[[], Path | str], small_index: None, taken: list[tuple[Any, ...]], messages: list[str], seen: list[int]
) -> None:
    """Equal ids, equal order, scores equal to 1e-6, after any saves, changes, deletes, folds, rebuilds, sweeps and restarts."""
    bench = Bench(fresh())
    visible = Visible(tuple(SCOPES[number] for number in seen))
    for number, step in enumerate(taken):
        bench.take(step)
        if number % 7 == 6:
            bench.agree(visible, messages)
    bench.agree(visible, messages)
    bench.take(("tidy",))
    bench.agree(visible, messages)
    check(bench.services)
    bench.services.close()


def check(services: Services) -> None:
    """The index against the rows it is made from: counts, lengths, slots, and no posting of a memory that is not there."""
    with services.engine.read() as tx:
        live: dict[str, dict[int, int]] = {}
        for key, slot, length in tx.rows("SELECT scope_key, slot, length FROM structured_memories WHERE slot >= 0"):
            live.setdefault(key, {})[slot] = length
        for key, n, words, tail_n, dead_n in tx.rows("SELECT scope_key, n, words, tail_n, dead_n FROM ix_scope"):
            mine = live.get(key, {})
            tail = {row[0] for row in tx.rows("SELECT slot FROM ix_tail WHERE scope_key = ?", (key,))}
            dead = {row[0] for row in tx.rows("SELECT slot FROM ix_dead WHERE scope_key = ?", (key,))}
            posted = set()
            for first, n_block, data in tx.rows("SELECT first_slot, n, postings FROM ix_block WHERE scope_key = ?", (key,)):
                block = unpack(data)["slot"].tolist()
                assert (first, n_block) == (block[0], len(block))
                assert block == sorted(set(block))
                posted |= set(block)
            assert (n, words) == (len(mine), sum(mine.values()))
            assert (tail_n, dead_n) == (len(tail), len(dead))
            assert posted - dead <= set(mine)
            assert tail <= set(mine)
            assert not tail & posted


def test_a_fold_and_a_rebuild_change_no_answer(services: Services, alice: Caller, small_index: None) -> None:
    """The same query before and after: the same ids, the same scores."""
    for number in range(40):
        services.memories.save(alice, Draft(f"n{number % 25}", f"{WORDS[number % 11]} {WORDS[number % 7]} tea", GLOBAL))
    before = services.memories.search(alice, reach(alice), "tea milk port", limit=50)
    with services.engine.read() as tx:
        assert ["g"] == folding.due(tx)
    folding.tidy(services.engine, "g")
    after = services.memories.search(alice, reach(alice), "tea milk port", limit=50)
    with services.engine.read() as tx:
        assert [(0,)] == tx.rows("SELECT count(*) FROM ix_dead")
        assert tx.rows("SELECT count(*) FROM ix_tail")[0][0] < TAIL

    assert [(h.memory.memory_id, h.score) for h in before.hits] == [(h.memory.memory_id, h.score) for h in after.hits]
    check(services)


def test_a_rebuild_beside_another_one_leaves_no_posting_of_the_dead(
    services: Services, alice: Caller, small_index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that knows fewer of the dead closes up blocks that another is in the middle of: what that one buries stands in no block."""
    monkeypatch.setattr(folding, "REBUILD_BLOCKS_MAX", 2)
    for number in range(10 * TAIL):
        services.memories.save(alice, Draft(f"n{number}", "tea", GLOBAL))
    while services.engine.write(lambda tx: folding.fold(tx, "g")):
        pass
    for number in (*range(1, 2 * BLOCK + 1), 8 * TAIL):
        services.memories.save(alice, Draft(f"n{number}", "milk", GLOBAL))
    known = np.array([8 * TAIL])
    write = services.engine.write

    def close_up(tx: Tx) -> None:
        rows = tx.rows("SELECT term, first_slot, postings FROM ix_block WHERE scope_key = 'g' AND term = 'tea' ORDER BY first_slot")
        blocks.rewrite(tx, "g", rows, known, closed_up=True)

    def written(work: Callable[[Tx], Any]) -> Any:
        done = write(work)
        if done is not None and "tea" in done:
            write(close_up)
        return done

    monkeypatch.setattr(services.engine, "write", written)
    folding.rebuild(services.engine, "g")
    monkeypatch.setattr(services.engine, "write", write)

    with services.engine.read() as tx:
        assert [(0,)] == tx.rows("SELECT count(*) FROM ix_dead")
    check(services)


def test_a_newer_analyser_indexes_again_and_serves_meanwhile(services: Services, database: Path | str, alice: Caller) -> None:
    """Saving goes on during the re-index, a broken-off one goes on where it was, and in the end every memory is found anew."""
    for number in range(30):
        services.memories.save(alice, Draft(f"n{number}", "die Häuser am Meer", GLOBAL if number % 2 else user_scope(alice)))
    services.close()
    german = load(environment={"PEGWORD_MEMORY__LANGUAGE": "german"})
    opened = open_services(database, german)
    assert 30 == opened.reindexer.pending()
    assert 30 == opened.memories.search(alice, reach(alice), "Meer").total  # the old index serves
    told: list[tuple[int, int]] = []

    def broken_off(done: int, total: int) -> None:
        told.append((done, total))
        if done > 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened.reindexer.run(broken_off)
    left = opened.reindexer.pending()
    opened.memories.save(alice, Draft("late", "ein Haus", GLOBAL))
    opened.reindexer.run()

    assert 0 < left < 30
    assert (15, 30) == told[0]
    assert 0 == opened.reindexer.pending()
    assert 31 == opened.memories.search(alice, reach(alice), "Haus").total
    check(opened)
    opened.close()


def test_a_reindex_of_everything_that_is_broken_off_goes_on(services: Services, alice: Caller) -> None:
    """What is left of it is what has to be done, for a running server too; the scopes that are done are not done again."""
    for number in range(30):
        services.memories.save(alice, Draft(f"n{number}", "tea", scope_of(alice, "workstream", f"w{number % 5}")))
    services.engine.write(lambda tx: tx.run("UPDATE ix_scope SET words = words + 1"))

    def broken_off(done: int, _: int) -> None:
        if done > 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        services.reindexer.run(broken_off, everything=True)
    assert 30 == services.memories.search(alice, reach(alice), "tea").total  # the old index serves
    left = services.reindexer.pending()
    assert left == services.reindexer.run()

    assert 0 < left < 30
    assert 0 == services.reindexer.pending()
    check(services)


def test_what_is_saved_during_a_reindex_is_in_the_new_index(services: Services, alice: Caller) -> None:
    """A save, a change and a delete come between the reading of a scope and the switch to its new index."""
    saved = [services.memories.save(alice, Draft(f"n{number}", "old tea", GLOBAL)).memory for number in range(5)]

    def meanwhile(_: int, __: int) -> None:
        services.memories.save(alice, Draft("new", "fresh tea", GLOBAL))
        services.memories.save(alice, Draft("n0", "changed tea", GLOBAL))
        services.memories.delete_by_id(alice, saved[1].memory_id)

    services.reindexer.run(meanwhile, everything=True)

    assert ["n0", "n2", "n3", "n4", "new"] == sorted(hit.memory.name for hit in services.memories.search(alice, reach(alice), "tea").hits)
    assert 0 == services.memories.search(alice, Visible((GLOBAL,)), "nothing").total
    check(services)


_OTHER_PROCESS = """
import sys
from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, reach
from pegword.core.memory import Draft
from pegword.settings import database_of, load
services = open_services(database_of(sys.argv[1]), load(environment={}))
caller = Caller("u1", "alice", "key:2")
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "save":
        services.memories.save(caller, Draft(rest, "saved over there: " + rest, GLOBAL))
        print("saved", flush=True)
    else:
        print(",".join(sorted(h.memory.name for h in services.memories.search(caller, reach(caller), rest).hits)), flush=True)
services.close()
"""


@pytest.fixture
def other(database: Path | str, services: Services) -> Iterator[Any]:
    """A second process on the same database."""
    process = subprocess.Popen(
        [sys.executable, "-c", _OTHER_PROCESS, url_of(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def ask(line: str) -> str:
        stdin.write(line + "\n")
        stdin.flush()
        return stdout.readline().strip()

    yield ask
    stdin.close()
    process.wait(PATIENCE_S)
    stdout.close()


def test_what_one_process_saves_the_other_finds_at_once(services: Services, other: Any) -> None:
    """Nothing is cached that a commit of somebody else could make untrue; folds of one serve the other."""
    for number in range(0, 300, 2):
        services.memories.save(CALLER, Draft(f"a{number}", f"here q{number}", GLOBAL))
        assert "saved" == other(f"save b{number}")
        if number % 50 == 0:
            services.housekeeper.settle()
            assert f"a{number}" == other(f"find q{number}")
            assert [f"b{number}"] == [h.memory.name for h in services.memories.search(CALLER, reach(CALLER), f"b{number}").hits]
    check(services)


def test_sittings_end_with_another_author_a_long_gap_or_another_name(services: Services, clock: Clock) -> None:
    """A run of saves by one credential; a named sitting is not ended by time; after 255 the next one begins."""
    other = Caller("u1", "alice", "key:2")

    def place(name: str, caller: Caller = CALLER, sitting: str = "") -> int:
        return services.memories.save(caller, Draft(name, f"text of {name}", GLOBAL, sitting=sitting)).memory.place

    assert [0, 1, 2] == [place("a"), place("b"), place("c")]
    clock.pass_s(29 * 60)
    assert 3 == place("d")
    clock.pass_s(31 * 60)
    assert 0 == place("e")
    assert 0 == place("f", other)
    assert 0 == place("g")
    assert [0, 1] == [place("h", sitting="monday"), place("i", sitting="monday")]
    clock.pass_s(3_600 * 24)
    assert 2 == place("j", sitting="monday")
    assert 0 == place("k", sitting="tuesday")
    run = [place(f"long{number}", sitting="long") for number in range(300)]
    assert [*range(256), *range(44)] == run


def test_scopes_of_others_are_not_even_read(services: Services, alice: Caller, statements: Any) -> None:
    """Every statement of a search names the scopes that it may look at."""
    services.memories.save(alice, Draft("n", "tea", GLOBAL))
    statements.seen.clear()
    services.memories.search(alice, reach(alice), "tea", kind="project", tag="x")

    assert statements.seen
    assert all("scope_key" in sql for sql in statements.seen)


def test_scope_keys_are_their_own_range(services: Services) -> None:
    """A user id that begins like another's opens nothing of it."""
    short, long = Caller("u", "short", "key:1"), Caller("u1", "long", "key:2")
    services.memories.save(long, Draft("n", "tea", Scope("workstream", "w", "u1")))

    assert 0 == services.memories.search(short, reach(short), "tea").total
