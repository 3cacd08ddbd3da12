"""What the engine keeps of tails between queries: never another answer than the rows would give, and never more than it may."""

import gc
import tracemalloc

import numpy as np
import pytest

from pegword.core.caller import GLOBAL, Caller, Visible, reach, user_scope
from pegword.core.errors import Invalid
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.store import postings, tails
from pegword.store.engine import Tx
from pegword.store.packing import MARK, pack_tail, sieved
from pegword.store.tails import KeptTails, Tail
from pegword.store.tails import _tail as read
from tests.conftest import Clock, Statements

STATE = (1, 1, 1, 1, 0, 0, 0)


def tail_of(memories: int) -> Tail:
    """The tail of so many memories, eight occurrences each."""
    of_memories, of_marks = np.arange(memories), np.arange(8 * memories)
    marks = of_marks.astype(MARK)
    return Tail(of_memories, of_memories, of_memories, marks, sieved(marks), of_marks.astype(np.uint8), of_marks // 8)


def names(services: Services, caller: Caller, query: str) -> list[str]:
    return sorted(hit.memory.name for hit in services.memories.search(caller, reach(caller), query).hits)


def test_a_second_query_reads_no_tail(services: Services, alice: Caller, statements: Statements) -> None:
    """As long as nothing changes, its rows are read once, whatever is asked for."""
    services.memories.save(alice, Draft("tea", "tea at four", GLOBAL))
    names(services, alice, "tea")
    statements.seen.clear()

    assert ["tea"] == names(services, alice, "four")
    assert [] == [sql for sql in statements.seen if "ix_tail" in sql]


def test_only_the_tail_that_changed_is_read_again(services: Services, alice: Caller, statements: Statements) -> None:
    """A save into one scope leaves what is kept of the others."""
    services.memories.save(alice, Draft("tea", "tea at four", GLOBAL))
    services.memories.save(alice, Draft("mine", "my tea", user_scope(alice)))
    names(services, alice, "tea")
    services.memories.save(alice, Draft("more", "more tea", user_scope(alice)))
    statements.seen.clear()

    assert ["mine", "more", "tea"] == names(services, alice, "tea")
    assert 1 == sum("ix_tail" in sql for sql in statements.seen)
    assert not any("ix_tail" in sql and "scope_key IN (?, ?" in sql for sql in statements.seen)


def test_what_was_taken_back_was_never_kept(services: Services, alice: Caller, clock: Clock) -> None:
    """A write that looks at what it wrote, and fails, leaves nothing of that to others: not even when the next one comes out the same."""
    began = clock.now

    def fails(tx: Tx) -> None:
        services.memories.writing.put(tx, alice, Draft("ghost", "tea", GLOBAL), "save")
        assert 1 == len(postings.fetch(tx, Visible((GLOBAL,)), ["tea"]).postings.term)
        raise Invalid("taken back", field="content")

    with pytest.raises(Invalid):
        services.engine.write(fails)
    clock.now = began
    services.memories.save(alice, Draft("drink", "milk", GLOBAL))

    assert [] == names(services, alice, "tea")
    assert ["drink"] == names(services, alice, "milk")


def test_a_place_that_is_made_anew_is_another(services: Services, alice: Caller) -> None:
    """As many memories as before, in the same slots: what was kept of the old ones finds nothing."""
    for word in ("tea", "milk"):
        services.memories.save(alice, Draft("note", f"{word} at four", GLOBAL))
        assert ["note"] == names(services, alice, word)
        services.engine.write(lambda tx: [tx.run(f"DELETE FROM {table}") for table in ("structured_memories", "ix_tail", "ix_scope")])
    services.memories.save(alice, Draft("note", "sugar at four", GLOBAL))

    assert [] == names(services, alice, "milk")
    assert ["note"] == names(services, alice, "sugar")


def test_those_not_asked_for_longest_go_first() -> None:
    """What is kept stays under its bound."""
    size = tail_of(10).bytes
    kept = KeptTails(bytes_max=3 * size)
    for key in ("a", "b", "c"):
        kept.put(key, STATE, tail_of(10))
    assert kept.get("a", STATE) is not None
    kept.put("d", STATE, tail_of(10))

    assert [True, False, True, True] == [kept.get(key, STATE) is not None for key in ("a", "b", "c", "d")]


def after_many(kept: KeptTails, memories: int) -> int:
    """How many bytes are held after the tails of many scopes, of so many memories each, were read and kept."""
    counts, marks, _ = pack_tail({f"word{number}": 1 for number in range(10)})
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3_000 // memories):
            key = f"workstream:{number:032x}:{number:032x}"
            kept.put(key, (1_000 + number, *STATE[1:]), read([(key, slot, 300 + slot, 1_000, counts, marks) for slot in range(memories)]))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("memories", [1, 10, 100])
def test_the_bound_holds_for_all_that_is_held_however_small_the_tails_are(memories: int) -> None:
    """As it is for a server whose sessions each have a workstream of their own. What Python takes for an object differs a little from one
    version to the next, and other threads of this process are counted too."""
    assert after_many(KeptTails(bytes_max=1 << 19), memories) <= 1.1 * (1 << 19)


def test_to_count_the_numbers_alone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault, which let small tails take six times the bound."""
    monkeypatch.setattr(tails, "BYTES_OF_ONE", 0)

    assert after_many(KeptTails(bytes_max=1 << 19), 1) > 1 << 20


def test_a_tail_that_is_kept_again_is_counted_once() -> None:
    """The one from before makes room."""
    kept = KeptTails(bytes_max=3 * tail_of(10).bytes)
    for number in range(100):
        kept.put("a", (number, *STATE[1:]), tail_of(10))
    kept.put("b", STATE, tail_of(10))

    assert kept.get("a", (99, *STATE[1:])) is not None
    assert kept.get("b", STATE) is not None


def test_a_tail_above_the_bound_is_not_kept() -> None:
    """Nor does it push out more than it must."""
    kept = KeptTails(bytes_max=tail_of(10).bytes)
    kept.put("a", STATE, tail_of(11))

    assert kept.get("a", STATE) is None


def test_a_tail_is_of_one_state_alone() -> None:
    """Any other state of the scope does not get it."""
    kept = KeptTails()
    kept.put("a", STATE, tail_of(1))

    assert [None] * len(STATE) == [kept.get("a", (*STATE[:at], STATE[at] + 1, *STATE[at + 1 :])) for at in range(len(STATE))]


def test_many_scopes_are_read_in_portions(services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """More tails than a statement may name are all found."""
    monkeypatch.setattr(tails, "SCOPES_AT_ONCE", 2)
    scopes = [services.access.ensure_user(f"user{number}") for number in range(5)]
    visible = Visible(tuple(user_scope(services.access.person(user)) for user in scopes))
    for user in scopes:
        caller = services.access.person(user)
        services.memories.save(caller, Draft("note", "tea at four", user_scope(caller)))
    with services.engine.read() as tx:
        found = postings.fetch(tx, visible, ["tea"])

    assert 5 == len(found.postings.term)
