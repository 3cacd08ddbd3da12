"""A fold is worked out before anybody waits for it: what others do meanwhile must not be lost, nor come back."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from pegword.core.caller import GLOBAL, Caller
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.store import blocks, folding
from pegword.store.engine import Tx
from pegword.store.folding import Ready
from pegword.store.packing import unpack, unpack_tail
from tests.conftest import Clock
from tests.store.test_index import TAIL, WORDS, check, small_index  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("small_index")

Meanwhile = Callable[[Services, Caller], object]
DAY_S = 24 * 3_600


def save(services: Services, caller: Caller, number: int, text: str = "", **more: Any) -> str:
    text = text or f"tea {WORDS[number % len(WORDS)]} {WORDS[number % 5]}"
    return services.memories.save(caller, Draft(f"n{number}", text, GLOBAL, **more)).memory.memory_id


def delete(services: Services, caller: Caller, number: int) -> None:
    services.memories.delete(caller, GLOBAL, f"n{number}")


def everything(services: Services) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Count, place and length of every occurrence that the index knows, by term and slot."""
    found: dict[tuple[str, int], tuple[int, int, int]] = {}
    with services.engine.read() as tx:
        dead = {row[0] for row in tx.rows("SELECT slot FROM ix_dead")}
        for term, data in tx.rows("SELECT term, postings FROM ix_block"):
            for slot, *rest in unpack(data).tolist():
                assert (term, slot) not in found
                if slot not in dead:
                    found[term, slot] = tuple(rest)
        for slot, place, length, *packed in tx.rows("SELECT slot, place, length, counts, marks, unspelt FROM ix_tail"):
            for term, count in unpack_tail(*packed).items():
                assert (term, slot) not in found
                found[term, slot] = (count, place, length)
    return found


def fold_beside(services: Services, caller: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile) -> list[bool]:
    """Fold a full tail, when *meanwhile* was done between working it out and doing it; what each look at the blocks was for: True in a
    transaction that writes."""
    save(services, caller, 50, expires_at=clock.now + DAY_S * 1_000_000)
    for number in range(TAIL + 1):
        save(services, caller, number)
    folding.tidy(services.engine, "g")
    clock.pass_s(2 * DAY_S)
    services.housekeeper.sweep()
    for number in range(6, 6 + TAIL - 1):
        save(services, caller, number)
    made_ready, last_blocks = folding._ready, folding._last_blocks
    looks: list[bool] = []

    def ready(engine: Any, key: str) -> Ready | None:
        done = made_ready(engine, key)
        monkeypatch.setattr(folding, "_ready", made_ready)
        meanwhile(services, caller)
        looks.clear()
        return done

    def looked(tx: Tx, key: str, terms: list[str]) -> dict[str, bytes]:
        looks.append(tx.kept_tails is None)
        return last_blocks(tx, key, terms)

    monkeypatch.setattr(folding, "_ready", ready)
    monkeypatch.setattr(folding, "_last_blocks", looked)
    folding.tidy(services.engine, "g")
    return looks


def rewrite(services: Services) -> None:
    """A rebuild by somebody else, up to where it buries the dead."""
    with services.engine.read() as tx:
        gone = np.array(blocks.dead(tx, "g"), np.int64)
    after: str | None = ""
    while after is not None:
        after = services.engine.write(partial(folding._rewrite_some, scope_key="g", after=after, gone=gone))


def bury(services: Services, slots: list[int]) -> None:
    """The rest of that rebuild."""
    services.engine.write(partial(folding._bury, scope_key="g", slots=slots))


def change_and_rebuild(services: Services, caller: Caller) -> None:
    for number in range(3):
        save(services, caller, number, "milk")
    folding.rebuild(services.engine, "g")


def fold_and_refill(services: Services, caller: Caller) -> None:
    folding.tidy(services.engine, "g")
    for number in range(20, 20 + TAIL):
        save(services, caller, number)


MEANWHILE: dict[str, Meanwhile] = {
    "a save": lambda services, caller: save(services, caller, 30),
    "many saves": lambda services, caller: [save(services, caller, number) for number in range(30, 30 + 2 * TAIL)],
    "a change of what is in the tail": lambda services, caller: save(services, caller, 7, "milk"),
    "a deletion of what is in the tail": lambda services, caller: delete(services, caller, 7),
    "a change of what is in blocks": lambda services, caller: save(services, caller, 1, "milk"),
    "a deletion of what is in blocks": lambda services, caller: delete(services, caller, 1),
    "a deletion of what has expired out of blocks": lambda services, caller: delete(services, caller, 50),
    "a rebuild": change_and_rebuild,
    "a fold": lambda services, _: folding.tidy(services.engine, "g"),
    "a fold, and a tail that is full again": fold_and_refill,
    "a re-index": lambda services, _: services.reindexer.run(everything=True),
    "a removal of all": lambda services, caller: [delete(services, caller, number) for number in (*range(5), *range(6, 9), 50)],
}


def check_beside(services: Services, caller: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile) -> None:
    fold_beside(services, caller, clock, monkeypatch, meanwhile)
    check(services)
    found = everything(services)
    services.reindexer.run(everything=True)

    assert everything(services) == found


def check_that_no_word_stays(
    services: Services, caller: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, meanwhile: str, slot: int
) -> None:
    fold_beside(services, caller, clock, monkeypatch, MEANWHILE[meanwhile])
    with services.engine.read() as tx:
        posted = {slot for (data,) in tx.rows("SELECT postings FROM ix_block") for slot in unpack(data)["slot"].tolist()}

    assert len(posted) > TAIL
    assert slot not in posted


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_what_others_do_meanwhile_is_neither_lost_nor_undone(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """The index is to the last posting what it would be if it were made anew."""
    check_beside(services, alice, clock, monkeypatch, MEANWHILE[meanwhile])


DELETIONS = [("a deletion of what is in blocks", 2), ("a deletion of what has expired out of blocks", 0)]


@pytest.mark.parametrize(("meanwhile", "slot"), DELETIONS)
def test_of_what_is_deleted_meanwhile_no_word_stays(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, meanwhile: str, slot: int
) -> None:
    """In no block, not even as a posting of the dead."""
    check_that_no_word_stays(services, alice, clock, monkeypatch, meanwhile, slot)


def test_a_fold_that_nobody_came_before_looks_at_no_block_while_others_wait(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save meanwhile does not matter: its row stays in the tail. A change of a block does."""
    looks = fold_beside(services, alice, clock, monkeypatch, MEANWHILE["a save"])

    assert [] == looks


def test_a_fold_that_somebody_came_before_looks_again(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the transaction in which it writes."""
    looks = fold_beside(services, alice, clock, monkeypatch, MEANWHILE["a deletion of what is in blocks"])

    assert [True] == looks


def check_beside_half_a_rebuild(services: Services, caller: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    dead: list[int] = []

    def half(services: Services, caller: Caller) -> None:
        rewrite(services)
        with services.engine.read() as tx:
            dead.extend(blocks.dead(tx, "g"))

    def with_dead(services: Services, caller: Caller) -> None:
        made_ready = folding._ready
        save(services, caller, 2, "port")
        save(services, caller, 30)

        def ready(engine: Any, key: str) -> Ready | None:
            done = made_ready(engine, key)
            monkeypatch.setattr(folding, "_ready", made_ready)
            half(services, caller)
            return done

        monkeypatch.setattr(folding, "_ready", ready)
        folding.tidy(services.engine, "g")

    fold_beside(services, caller, clock, monkeypatch, with_dead)
    assert dead
    bury(services, dead)
    check(services)


def test_a_fold_in_the_middle_of_a_rebuild_brings_back_nothing(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that was written anew without a dead posting is not written as it was before."""
    check_beside_half_a_rebuild(services, alice, clock, monkeypatch)


# Planted faults


def blind(_tx: Tx, scope_key: str, ready: Ready | None = None) -> bool:
    blocks.hold(_tx, scope_key)
    return folding.fold_some(_tx, scope_key, ready)


class Willing(list[Any]):
    """Rows that are the same as any others."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("meanwhile", ["a deletion of what is in blocks", "a rebuild"])
def test_a_fold_that_does_not_look_at_the_version_is_noticed(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    monkeypatch.setattr(folding, "fold", blind)
    with pytest.raises(AssertionError):
        check_beside(services, alice, clock, monkeypatch, MEANWHILE[meanwhile])


def test_a_fold_that_does_not_look_at_the_tail_is_noticed(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "Ready", lambda tail, puts, version: Ready(Willing(tail), puts, version))
    with pytest.raises(AssertionError):
        check_beside(services, alice, clock, monkeypatch, MEANWHILE["a change of what is in the tail"])


def test_a_rebuild_that_does_not_say_that_it_wrote_is_noticed(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "written", lambda *_: None)
    with pytest.raises(AssertionError):
        check_beside_half_a_rebuild(services, alice, clock, monkeypatch)


def test_a_deletion_that_does_not_say_that_it_wrote_is_noticed(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "written", lambda *_: None)
    with pytest.raises(AssertionError):
        check_that_no_word_stays(services, alice, clock, monkeypatch, *DELETIONS[1])
