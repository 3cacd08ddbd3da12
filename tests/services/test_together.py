"""Several callers' changes in one transaction: each as if it were alone."""

from collections.abc import Callable
from typing import Any

import pytest

from pegword.core.caller import GLOBAL, Caller, Visible
from pegword.core.errors import StorageFull, Unavailable, VersionMismatch
from pegword.core.memory import Draft, Memory
from pegword.services.bundle import Services
from pegword.services.once import Asked, Kept, once
from pegword.services.together import together
from pegword.store.postings import TAIL_MAX
from tests.conftest import Statements

Work = Callable[[Services], Memory]


def saving(caller: Caller, name: str, content: str = "We deploy on Tuesdays.", **more: Any) -> Work:
    """Work that saves a memory."""
    return lambda services: services.memories.save(caller, Draft(name, content, GLOBAL, **more)).memory


def stored(services: Services, caller: Caller) -> dict[str, int]:
    """The version of every memory, by name."""
    return {memory.name: memory.version for memory in services.memories.list(caller, Visible((GLOBAL,))).memories}


def test_each_gets_its_own_outcome_and_what_failed_takes_nobody_with_it(services: Services, alice: Caller, bob: Caller) -> None:
    """In their order; who expects another version hears that, and the others are saved."""
    works = [saving(alice, "a"), saving(bob, "a", "On Fridays.", expected_version=7), saving(bob, "b")]
    first, second, third = together(services, works)

    assert isinstance(second, VersionMismatch)
    assert ("a", 1) == (first.name, second.current)  # type: ignore[union-attr]
    assert "b" == third.name  # type: ignore[union-attr]
    assert {"a": 1, "b": 1} == stored(services, alice)


def test_what_is_done_once_among_them_asks_for_nothing_before_the_commit(
    services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is cut when the deleted text is deleted, not while it may still come back."""
    told: list[str] = []
    services.memories.save(alice, Draft("a", "We deploy on Tuesdays.", GLOBAL))
    write = services.engine.write

    def noted(work: Callable[[Any], Any]) -> Any:
        result = write(work)
        told.append("committed")
        return result

    def delete(inner: Services) -> Kept:
        inner.memories.delete(alice, GLOBAL, "a")
        return Kept(200, (), b"gone")

    monkeypatch.setattr(services.housekeeper, "deleted", lambda: told.append("asked"))
    monkeypatch.setattr(services.engine, "write", noted)
    gone: list[Callable[[Services], Any]] = [lambda on: once(on, Asked("id", "print"), delete)] * 2
    first, second, _ = together(services, [*gone, saving(alice, "b")])

    assert ["committed", "asked"] == told
    assert (200, (), b"gone") == (first.status, first.headers, first.body) == (second.status, second.headers, second.body)


def test_what_one_wrote_before_it_failed_is_undone(services: Services, alice: Caller) -> None:
    """A save that fails in its middle leaves neither a row nor a posting."""

    def breaks(on: Services) -> Memory:
        def half(tx: Any) -> Memory:
            saved, _ = on.memories.writing.put(tx, alice, Draft("half", "never", GLOBAL), "save")
            raise VersionMismatch(saved.memory.name, current=1)

        return on.engine.write(half)

    together(services, [saving(alice, "a"), breaks, saving(alice, "b")])

    assert {"a": 1, "b": 1} == stored(services, alice)
    assert 0 == services.memories.search(alice, Visible((GLOBAL,)), "never").total


def test_the_later_sees_what_the_earlier_did(services: Services, alice: Caller) -> None:
    """As if they had come one after the other."""
    outcomes = together(services, [saving(alice, "a"), saving(alice, "a", "On Fridays.", expected_version=1)])

    assert [1, 2] == [memory.version for memory in outcomes if isinstance(memory, Memory)]


def test_nothing_is_told_and_nothing_is_there_when_the_transaction_is_not_committed(
    services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the commit is everybody's."""
    write = services.engine.write

    def fails(work: Callable[[Any], Any]) -> Any:
        def undone(tx: Any) -> None:
            work(tx)
            raise Unavailable("the disk is gone")

        return write(undone)

    with monkeypatch.context() as patched:
        patched.setattr(services.engine, "write", fails)
        with pytest.raises(Unavailable, match="the disk is gone"):
            together(services, [saving(alice, "a"), saving(alice, "b")])

    assert {} == stored(services, alice)


@pytest.mark.parametrize("trouble", [StorageFull("the disk is full"), RuntimeError("a fault of ours")])
def test_when_the_database_fails_one_of_them_each_is_done_by_itself(services: Services, alice: Caller, trouble: Exception) -> None:
    """Nobody hears of another's trouble, and nothing is done twice."""

    def fails(on: Services) -> Memory:
        saving(alice, "half")(on)
        raise trouble

    outcomes = together(services, [saving(alice, "a"), fails, saving(alice, "b")])

    assert trouble is outcomes[1]
    assert {"a": 1, "half": 1, "b": 1} == stored(services, alice)


def test_what_is_to_be_done_later_is_handed_on(services: Services, alice: Caller) -> None:
    """A tail that they filled together is folded."""
    together(services, [saving(alice, f"m{number}") for number in range(TAIL_MAX)])
    services.housekeeper.settle()

    with services.engine.read() as tx:
        assert [(0,)] == tx.rows("SELECT tail_n FROM ix_scope")


def test_alone_it_takes_no_statement_more(services: Services, alice: Caller, statements: Statements) -> None:
    """One change is a transaction of its own, as ever."""
    statements.seen.clear()
    together(services, [saving(alice, "a")])

    assert [] == [sql for sql in statements.seen if "SAVEPOINT" in sql]


def test_who_cannot_be_served_without_touching_the_transaction_keeps_that_to_themselves(
    services: Services, alice: Caller, statements: Statements
) -> None:
    """Such as one who stood in line for too long: the others' transaction goes on."""
    refusal = Unavailable("too late")

    def refused(_: Services) -> Memory:
        raise refusal

    statements.seen.clear()
    outcomes = together(services, [saving(alice, "a"), refused, saving(alice, "b")])

    assert refusal is outcomes[1]
    assert {"a": 1, "b": 1} == stored(services, alice)
    assert 2 == sum("INSERT INTO structured_memories" in sql for sql in statements.seen)
