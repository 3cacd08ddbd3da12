"""What is done after an answer: nothing that waits is lost without need."""

import pytest

from pegword.core.errors import Busy
from pegword.services.bundle import Services
from pegword.store.engine import Tx
from tests.conftest import Clock


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
