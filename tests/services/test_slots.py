"""A place that was deleted whole and is filled again: nothing that was made of the old memories is ever taken for one of the new."""

from collections.abc import Callable
from typing import Any

import pytest

from pegword.core.caller import Caller, Session, Visible, scope_of
from pegword.core.memory import Draft
from pegword.core.text import Analyser
from pegword.services.bundle import Services
from pegword.services.sound import faults_of_index
from pegword.store import folding, removing
from pegword.store.engine import Tx
from tests.conftest import Clock

SAID = [{"role": "user", "content": "Where does the quokka sleep?"}]
WS = Session("ws1")


def fill(services: Services, caller: Caller, text: str, count: int = 30) -> None:
    """Save *count* memories about a quokka in the workstream, always under the same names."""
    scope = scope_of(caller, "workstream", "ws1")
    for n in range(count):
        services.memories.save(caller, Draft(f"note_{n}", f"The quokka {text} {n}", scope))


def refill(services: Services, caller: Caller, text: str = "moved", count: int = 30) -> None:
    """Delete the whole workstream, and fill it again."""
    services.removing.workstream(caller, "ws1", with_memories=True)
    fill(services, caller, text, count)


def slots(services: Services, caller: Caller) -> list[int]:
    key = scope_of(caller, "workstream", "ws1").key
    with services.engine.read() as tx:
        return [row[0] for row in tx.rows("SELECT slot FROM structured_memories WHERE scope_key = ? ORDER BY slot", (key,))]


def ids(services: Services, caller: Caller) -> set[str]:
    return {m.memory_id for m in services.memories.list(caller, Visible((scope_of(caller, "workstream", "ws1"),)), limit=200).memories}


def check_receipts(services: Services, alice: Caller) -> None:
    """A turn's receipt is written after its answer, and its lower ranks are kept as slots until then."""
    fill(services, alice, "sleeps")
    turn = services.turns.turn(alice, WS, SAID)
    old = ids(services, alice)
    refill(services, alice)
    services.housekeeper.settle()
    explained = services.turns.explain(alice, turn.receipt, WS)

    assert not old & ids(services, alice)
    assert [] == [c.name for c in explained.considered if c.memory_id in ids(services, alice)]
    with services.engine.read() as tx:
        assert [] == tx.rows("SELECT memory_id FROM receipts WHERE memory_id <> ''")


def test_a_receipt_that_waits_names_none_of_the_new_memories(services: Services, alice: Caller) -> None:
    check_receipts(services, alice)


class _HeldUp:
    """An engine whose process is held up before its *at*-th write, while others do something."""

    def __init__(self, engine: Any, meanwhile: Callable[[], None], at: int) -> None:
        self._engine, self._meanwhile, self.left = engine, meanwhile, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def write(self, work: Callable[[Tx], Any]) -> Any:
        self.left -= 1
        if self.left == 0:
            self._meanwhile()
        return self._engine.write(work)


def check_rebuild(services: Services, alice: Caller, at: int) -> None:
    """A rebuild goes on with the slots that were dead when it began."""
    key = scope_of(alice, "workstream", "ws1").key

    def folded(text: str, count: int) -> None:
        fill(services, alice, text, count)
        while services.engine.write(lambda tx: folding.fold_some(tx, key)):
            pass

    def meanwhile() -> None:
        services.removing.workstream(alice, "ws1", with_memories=True)
        for text, count in (("runs", 140), ("jumps", 140), ("hides", 10)):
            folded(text, count)

    for text in ("sleeps", "eats"):
        folded(text, 140)
    engine = _HeldUp(services.engine, meanwhile, at)
    folding.rebuild(engine, key)  # type: ignore[arg-type]
    if engine.left > 0:
        pytest.fail("the rebuild was not held up")

    with services.engine.read() as tx:
        faults = faults_of_index(tx, Analyser("english"), lambda *_: None)
    visible = Visible((scope_of(alice, "workstream", "ws1"),))
    assert [] == faults
    assert (140, 10, 0) == tuple(services.memories.search(alice, visible, word).total for word in ("quokka", "hides", "sleeps"))


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_rebuild_that_was_held_up_takes_no_new_memory_for_a_dead_one(
    services: Services, alice: Caller, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "REBUILD_BLOCKS_MAX", 3)
    check_rebuild(services, alice, at)


def test_pointers_and_the_index_of_a_session_are_of_the_new_memories(services: Services, alice: Caller) -> None:
    """What a kept index named is gone with it: nothing is pointed at that the model was not given by name, and no old text comes back."""
    session = services.sessions.create(alice, workstream_id="ws1")
    for conversation in (session, WS):
        fill(services, alice, "sleeps")
        before = services.turns.turn(alice, conversation, SAID, mode="index")
        services.removing.workstream(alice, "ws1", with_memories=True)
        services.sessions.resume(alice, session.session_id)
        conversation = services.sessions.get(alice, session.session_id) if conversation.session_id else conversation
        fill(services, alice, "moved")
        after = services.turns.turn(alice, conversation, SAID, mode="index")
        new = ids(services, alice)
        index = services.turns.turn(alice, conversation, SAID, mode="index").index

        assert any(shown.pointer for shown in before.shown)
        assert {shown.memory.memory_id for shown in after.shown} <= new
        assert all(shown.memory.name in (after.index or "") for shown in after.shown if shown.pointer)
        assert "sleeps" not in after.text
        assert after.index == index
        services.removing.workstream(alice, "ws1", with_memories=True)
        services.sessions.resume(alice, session.session_id)


def test_versions_begin_anew_and_the_first_save_is_in_nobodys_company(services: Services, alice: Caller) -> None:
    """However shortly after, and by the same credential in the same sitting."""
    fill(services, alice, "sleeps", 5)
    refill(services, alice, "moved", 3)
    with services.engine.read() as tx:
        places = tx.rows("SELECT place, version FROM structured_memories ORDER BY slot")
        history = tx.rows("SELECT content FROM memory_versions ORDER BY content")

    assert [(0, 1), (1, 1), (2, 1)] == places
    assert [(f"The quokka moved {n}",) for n in range(3)] == history


def test_slots_go_on_and_the_note_goes_after_a_day(services: Services, alice: Caller, clock: Clock) -> None:
    """What has stayed empty is then forgotten altogether; what was filled again stays as it is."""
    key = scope_of(alice, "workstream", "ws1").key
    fill(services, alice, "sleeps", 5)
    services.removing.workstream(alice, "ws1", with_memories=True)
    clock.pass_s(24 * 3_600 - 10)
    services.housekeeper.sweep()
    fill(services, alice, "moved", 3)
    assert [5, 6, 7] == slots(services, alice)

    clock.pass_s(20)
    services.housekeeper.sweep()
    fill(services, alice, "stays", 1)
    assert [6, 7, 8] == slots(services, alice)
    assert 3 == services.memories.search(alice, Visible((scope_of(alice, "workstream", "ws1"),)), "quokka").total

    services.removing.workstream(alice, "ws1", with_memories=True)
    clock.pass_s(24 * 3_600 + 1)
    services.housekeeper.sweep()
    with services.engine.read() as tx:
        assert [] == tx.rows("SELECT scope_key FROM ix_scope WHERE scope_key = ?", (key,)) + tx.rows("SELECT scope_key FROM removals")
    fill(services, alice, "returns", 1)
    assert [0] == slots(services, alice)


@pytest.mark.parametrize("check", [check_receipts, lambda services, alice: check_rebuild(services, alice, 2)], ids=["receipts", "rebuild"])
def test_slots_that_begin_anew_at_once_are_noticed(
    services: Services, alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch, check: Callable[[Services, Caller], None]
) -> None:
    """Planted: a scope is forgotten as soon as it is empty."""
    run = removing.run

    def forgetful(engine: Any, scope_key: str, progress: Callable[[int], None]) -> None:
        run(engine, scope_key, progress)
        removing.forget_done(engine, clock.now + 1)

    monkeypatch.setattr(folding, "REBUILD_BLOCKS_MAX", 3)
    monkeypatch.setattr(removing, "run", forgetful)
    with pytest.raises(AssertionError):
        check(services, alice)
