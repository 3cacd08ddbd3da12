"""A workstream or a project deleted with its memories: only when asked for, all of it, and nothing else."""

import pytest

from pegword.core.caller import Caller, Visible, scope_of, scopes_of, session_scope
from pegword.core.errors import Conflict, NotFound
from pegword.core.memory import NEVER, Draft
from pegword.services.bundle import Services
from pegword.store import folding, removing
from pegword.store.engine import Engine, Tx
from tests.conftest import Clock

SECRET = "quokka"
TABLES = ("structured_memories", "memory_versions", "memory_tags", "ix_scope", "ix_tail", "ix_block", "ix_dead", "removals")
KEPT_A_DAY = {"ix_scope": "n > 0", "removals": "done = 0"}  # so that no slot is given twice; tests/services/test_slots.py


def left(services: Services, scope_key: str) -> dict[str, int]:
    """The rows of each table that belong to a scope, but for its place in the index and the note that all of it went."""

    def count(tx: Tx, table: str) -> int:
        return int(tx.rows(f"SELECT count(*) FROM {table} WHERE scope_key = ? AND {KEPT_A_DAY.get(table, '1 = 1')}", (scope_key,))[0][0])

    with services.engine.read() as tx:
        counts = {table: count(tx, table) for table in TABLES}
    return {table: count for table, count in counts.items() if count}


def fill(services: Services, caller: Caller, workstream_id: str, count: int = 450) -> str:
    """Save *count* memories, some of them twice, one of them expired; the key of their scope."""
    scope = scope_of(caller, "workstream", workstream_id)
    for number in range(count):
        services.memories.save(caller, Draft(f"note_{number}", f"{SECRET} number {number}", scope, tags=("red",)))
    for number in range(0, count, 9):
        services.memories.save(caller, Draft(f"note_{number}", f"{SECRET} changed {number}", scope))
    services.memories.save(caller, Draft("old", f"{SECRET} old", scope, expires_at=services.clock() + 1))
    services.turns.turn(caller, services.sessions.create(caller, workstream_id=workstream_id), [{"role": "user", "content": SECRET}])
    services.housekeeper.settle()
    services.housekeeper.sweep()
    return scope.key


def test_a_workstream_goes_with_all_that_is_in_it_and_nothing_else(services: Services, alice: Caller, bob: Caller) -> None:
    """Rows, versions, tags, index and receipts; the namesakes of others and the neighbours stay, and are found."""
    key = fill(services, alice, "ws1")
    others = [fill(services, caller, at, 20) for caller, at in ((alice, "ws2"), (bob, "ws1"))]
    before = [left(services, other) for other in others]
    steps: list[tuple[int, int]] = []
    removed = services.removing.workstream(alice, "ws1", with_memories=True, progress=lambda *step: steps.append(step))

    assert (451, (451, 451), {}) == (removed.memories, steps[-1], left(services, key))
    assert len(steps) > 2
    assert before == [left(services, other) for other in others]
    for caller, at in ((alice, "ws2"), (bob, "ws1")):
        assert 20 == services.memories.search(caller, scopes_of(caller, "workstream", at), SECRET).total
    with services.engine.read() as tx:
        named = tx.rows("SELECT count(*) FROM receipts WHERE body LIKE ?", (f"%{key}%",))
    assert [(0,)] == named


def test_it_is_deleted_with_its_memories_only_when_that_is_said(services: Services, alice: Caller) -> None:
    """Otherwise nothing happens, its sessions stay open, and the answer says how many there are."""
    fill(services, alice, "ws1", 3)
    session = services.sessions.list(alice)[0]
    with pytest.raises(Conflict, match="the workstream holds 4 memories; ask for them to be deleted with it"):
        services.removing.workstream(alice, "ws1")

    assert not services.sessions.get(alice, session.session_id).closed
    services.removing.workstream(alice, "ws1", with_memories=True)
    assert services.sessions.get(alice, session.session_id).closed


def test_an_empty_workstream_is_just_closed_and_none_is_absent(services: Services, alice: Caller, bob: Caller) -> None:
    session = services.sessions.create(alice, workstream_id="ws1")
    for caller, at in ((bob, "ws1"), (alice, "ws2")):
        with pytest.raises(NotFound, match="you have no workstream"):
            services.removing.workstream(caller, at, with_memories=True)
    assert 0 == services.removing.workstream(alice, "ws1").memories
    assert services.sessions.get(alice, session.session_id).closed


class _Broken(Exception):
    """The process ends here."""


def _break_off(services: Services, alice: Caller) -> None:
    """Begin to delete ws1, and end after the first step."""

    def dies(*_: int) -> None:
        raise _Broken

    with pytest.raises(_Broken):
        services.removing.workstream(alice, "ws1", with_memories=True, progress=dies)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("by_itself", [False, True])
def test_what_was_broken_off_goes_on(services: Services, alice: Caller, by_itself: bool) -> None:
    """With the same call again, or by itself when the next process starts."""
    key = fill(services, alice, "ws1")
    _break_off(services, alice)
    assert 451 - removing.REMOVED_AT_ONCE == left(services, key)["structured_memories"]
    if by_itself:
        services.housekeeper.start()
        services.housekeeper.close()
    else:
        services.removing.workstream(alice, "ws1", with_memories=True)

    assert {} == left(services, key)


def test_what_is_saved_meanwhile_stays(services: Services, alice: Caller, clock: Clock) -> None:
    """Deleted is what was there when it was asked for: an answered save is never lost to a removal that goes on later."""
    key = fill(services, alice, "ws1")
    scope = scope_of(alice, "workstream", "ws1")
    _break_off(services, alice)
    survivors = [services.memories.save(alice, Draft(name, f"fresh {SECRET}", scope)).memory for name in ("note_440", "new")]
    services.memories.save(alice, Draft("brief", "x", scope, expires_at=clock.now + 10_000_000))
    clock.pass_s(20)
    services.housekeeper.sweep()
    services.removing.resume()

    assert {m.name for m in survivors} == {m.name for m in services.memories.list(alice, Visible((scope,))).memories}
    assert 2 == services.memories.search(alice, Visible((scope,)), f"fresh {SECRET}").total
    assert 0 == services.memories.search(alice, Visible((scope,)), "changed number").total
    assert "x" == services.memories.get(alice, scope, "brief").content
    with services.engine.read() as tx:
        assert [] == tx.rows("SELECT term FROM ix_block WHERE scope_key = ? AND term = 'number'", (key,))
        assert [] == removing.pending(tx)


def test_who_asks_anew_while_an_earlier_removal_ends_is_not_forgotten(
    services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was saved in between goes as well: whoever comes to the end first looks whether more is to go."""
    key = fill(services, alice, "ws1", 9)
    scope, rebuild = scope_of(alice, "workstream", "ws1"), folding.rebuild

    def meanwhile(engine: Engine, scope_key: str) -> None:
        rebuild(engine, scope_key)
        monkeypatch.setattr(folding, "rebuild", rebuild)
        services.memories.save(alice, Draft("late", SECRET, scope))
        services.engine.write(lambda tx: removing.ask(tx, key, services.clock()))

    monkeypatch.setattr(folding, "rebuild", meanwhile)
    services.removing.workstream(alice, "ws1", with_memories=True)
    removing.run(services.engine, key, lambda _: None)

    assert {} == left(services, key)


def test_a_project_is_gone_for_everybody_from_the_first_step(services: Services, alice_herself: Caller, bob: Caller) -> None:
    """Even where the removal breaks off: its members have it no more, its owner can go on, and its id is nobody's afterwards."""
    at = services.sharing.create(alice_herself, "project", "Harbour", {"bob": True}).scope.id
    session = services.sessions.create(bob, project_id=at)
    scope = session_scope(bob, session, "project")
    services.memories.save(bob, Draft("plan", SECRET, scope, expires_at=NEVER), session)

    def dies(*_: int) -> None:
        raise _Broken

    with pytest.raises(_Broken):
        services.removing.shared(alice_herself, "project", at, with_memories=True, progress=dies)
    assert "" == services.sessions.get(bob, session.session_id).project_id
    for caller in (bob, alice_herself):
        with pytest.raises(NotFound, match="Project not found"):
            services.sharing.get(caller, "project", at)
    services.removing.shared(alice_herself, "project", at, with_memories=True)
    with pytest.raises(NotFound, match="Project not found"):
        services.removing.shared(alice_herself, "project", at, with_memories=True)
    with services.engine.read() as tx:
        assert [(0,)] == tx.rows("SELECT count(*) FROM scope_members")
    assert {} == left(services, scope.key)
