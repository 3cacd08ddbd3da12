"""Places are given in the order in which they are asked for: nobody waits while others come by."""

import threading

import pytest

from pegword.store.places import Places
from tests.patience import PATIENCE_S, until


def waiting(places: Places, count: int, order: list[int]) -> list[threading.Thread]:
    """*count* threads that wait for a place, one behind the other; each notes its number in *order* and gives the place back."""

    def wait(number: int) -> None:
        assert places.take(PATIENCE_S)
        order.append(number)
        places.give_back()

    threads = []
    for number in range(count):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        until(lambda number=number: len(places._waiting) == number + 1)  # type: ignore[misc]
    return threads


def test_who_gives_a_place_back_and_asks_again_stands_behind_those_who_wait() -> None:
    """However fast they are."""
    places, order = Places(1), list[int]()
    assert places.take(0)
    threads = waiting(places, 3, order)
    places.give_back()
    assert places.take(PATIENCE_S)
    mine = list(order)
    places.give_back()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert [0, 1, 2] == mine == order


def test_there_are_as_many_as_were_made_whoever_left_the_line() -> None:
    """Who waited in vain takes no place away."""
    places = Places(2)
    assert [True, True, False, False] == [places.take(0.01) for _ in range(4)]
    places.give_back()
    assert [True, False] == [places.take(0.01) for _ in range(2)]
    for _ in range(2):
        places.give_back()

    assert [True, True, False] == [places.take(0.01) for _ in range(3)]


@pytest.mark.parametrize("given", [False, True], ids=["in the line", "just given"])
def test_who_is_interrupted_while_waiting_takes_no_place_away(monkeypatch: pytest.MonkeyPatch, given: bool) -> None:
    """Ctrl-C comes where it waits: before the place is given, or when it has just been."""
    places = Places(1)
    assert places.take(0)

    class Interrupted:
        def acquire(self, timeout: float = -1) -> bool:
            if timeout < 0:
                return True
            if given:
                places.give_back()
            raise KeyboardInterrupt

        def release(self) -> None:
            """The place is given."""

    with monkeypatch.context() as patched:
        patched.setattr("pegword.store.places.threading.Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            places.take(1)
    if not given:
        places.give_back()

    assert [True, False] == [places.take(0) for _ in range(2)]
    assert not places._waiting
