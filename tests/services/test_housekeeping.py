"""What is done after an answer: nothing that waits is lost without need."""

import threading
import time
from functools import partial

import pytest

from pegword.core.caller import GLOBAL, Caller, Session
from pegword.core.errors import Busy, Unavailable
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.services.housekeeping import InScopes
from pegword.store import session_index_rows
from pegword.store.engine import Tx
from pegword.store.session_index_rows import Kept
from tests.conftest import Clock, Statements
from tests.patience import PATIENCE_S


def test_what_the_database_does_not_take_now_waits(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock held by somebody else puts work off; it does not throw it away."""
    done: list[int] = []
    for number in range(250):
        services.housekeeper.later(lambda _, number=number: done.append(number))  # type: ignore[misc]
    services.housekeeper.due("g")
    with monkeypatch.context() as patched:
        patched.setattr(type(services.engine), "write", lambda *_: (_ for _ in ()).throw(Busy("held")))
        services.housekeeper.settle()
    assert [] == done
    services.housekeeper.settle()

    assert list(range(250)) == done


def test_one_failing_work_takes_no_other_with_it(services: Services) -> None:
    def poisoned(_: Tx) -> None:
        raise ValueError("poison")

    done: list[int] = []
    for number in range(40):
        services.housekeeper.later(poisoned if number == 20 else lambda _, number=number: done.append(number))  # type: ignore[misc]
    services.housekeeper.settle()

    assert set(range(40)) - {20} == set(done)


def test_only_so_much_waits(services: Services) -> None:
    """More than the limit is dropped, oldest first."""
    done: list[int] = []
    for number in range(1_500):
        services.housekeeper.later(lambda _, number=number: done.append(number))  # type: ignore[misc]
    services.housekeeper.settle()

    assert list(range(500, 1_500)) == done


def _patched_beside(services: Services, monkeypatch: pytest.MonkeyPatch, held: list[str]) -> None:
    """Let *held* be told of every scope that is held beside others."""
    monkeypatch.setattr(services.engine.write(type), "beside", lambda _, *names: held.extend(f"beside {n}" for n in names))


def test_works_that_share_a_transaction_hold_all_scopes_before_the_first_is_done(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order: so that nobody who has a scope waits for a row while the row's holder waits for the scope."""
    done: list[str] = []
    _patched_beside(services, monkeypatch, done)
    services.housekeeper.later(lambda _: done.append("row"))
    services.housekeeper.later(InScopes(lambda _: done.append("second"), ("w:2",)))
    services.housekeeper.later(InScopes(lambda _: done.append("third"), ("g", "w:2")))
    services.housekeeper.settle()

    assert ["beside g", "beside w:2", "beside told of g", "beside told of w:2", "row", "second", "third"] == done


def test_what_reads_and_turns_leave_to_be_done_holds_scopes_before_rows(
    services: Services, alice: Caller, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An access is counted in the transaction that keeps the receipt of a later turn."""
    memory = services.memories.save(alice, Draft("a", "the deploy", GLOBAL)).memory
    services.housekeeper.settle()
    services.memories.get_by_id(alice, memory.memory_id)
    services.turns.turn(alice, Session(), [{"role": "user", "content": "deploy"}])
    statements.seen.clear()
    _patched_beside(services, monkeypatch, statements.seen)
    services.housekeeper.settle()
    order = [sql.split()[0] for sql in statements.seen if sql.startswith(("beside", "UPDATE structured_memories"))]

    assert ["beside", "beside", "UPDATE"] == order[:3]


def test_a_log_that_could_not_be_cut_is_cut_later(services: Services, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Deleted text does not stay in it because one attempt failed, in whatever way."""
    asked: list[str] = []

    def fails(_: object) -> bool:
        asked.append("failed")
        raise Busy("held")

    services.housekeeper.deleted()
    with monkeypatch.context() as patched:
        patched.setattr(type(services.engine), "checkpoint", fails)
        services.housekeeper.settle()
    monkeypatch.setattr(type(services.engine), "checkpoint", lambda _: bool(asked.append("done")) or True)
    services.housekeeper.settle()
    services.housekeeper.settle()

    assert ["failed", "done"] == asked


def test_who_waits_for_work_waits_until_it_is_committed(services: Services, clock: Clock) -> None:
    """Whatever else waits, before it and after it."""
    services.housekeeper.start()
    for number in range(30):
        work = partial(
            session_index_rows.keep, index_key=f"k{number}", kept=Kept(f"i{number}", "b", clock.now, "text", {}, True), instead_of=""
        )
        for _ in range(5):
            services.housekeeper.later(lambda _: None)
        services.housekeeper.done_within(work, PATIENCE_S)
        with services.engine.read() as tx:
            kept = session_index_rows.get(tx, f"k{number}", 1)

        assert kept is not None


@pytest.mark.parametrize("error", [Busy("held"), Unavailable("the file can only be read")])
def test_who_waits_for_work_that_the_database_does_not_take_goes_on_at_once(
    services: Services, monkeypatch: pytest.MonkeyPatch, error: Unavailable
) -> None:
    """A store that can only be read makes no turn slow; the work stays."""
    done: list[str] = []
    services.housekeeper.start()
    with monkeypatch.context() as patched:
        patched.setattr(type(services.engine), "write", lambda *_: (_ for _ in ()).throw(error))
        started = time.monotonic()
        services.housekeeper.done_within(lambda _: done.append("done"), 10 * PATIENCE_S)
        waited = time.monotonic() - started
    services.housekeeper.flush(PATIENCE_S)

    assert waited < PATIENCE_S
    assert ["done"] == done


def test_who_waits_waits_no_longer_than_said(services: Services) -> None:
    gate = threading.Event()
    services.housekeeper.start()
    services.housekeeper.later(lambda _: gate.wait(PATIENCE_S) and None)
    services.housekeeper.done_within(lambda _: None, 0.01)
    waits = bool(services.housekeeper._waiting)
    gate.set()

    assert waits
