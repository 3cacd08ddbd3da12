"""The threads that handlers run on: few, in order, and each result to whom it belongs."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pegword.core.errors import Busy, Unavailable
from pegword.http.threads import Threads, Together
from tests.patience import PATIENCE_S

COUNT = 3
WAIT_S = PATIENCE_S


def failing(number: int) -> Callable[[], int]:
    """Work that returns its *number*, or raises it when that is odd."""

    def work() -> int:
        if number % 2:
            raise LookupError(number)
        return number

    return work


def test_each_caller_gets_what_its_own_work_returned_or_raised() -> None:
    """Results come back several at once, and none is mistaken for another's."""

    async def ask() -> list[int | BaseException]:
        threads = Threads("test", COUNT)
        return await asyncio.gather(*(threads.run(failing(number)) for number in range(200)), return_exceptions=True)

    told = [answer.args[0] if isinstance(answer, LookupError) else answer for answer in asyncio.run(ask())]

    assert list(range(200)) == told


def test_no_more_work_is_done_at_once_than_there_are_threads() -> None:
    """All of them meet at a barrier, and nobody is there beside them."""
    together = threading.Barrier(COUNT)
    inside: set[int] = set()
    most = []

    def work() -> None:
        inside.add(threading.get_ident())
        most.append(len(inside))
        together.wait(WAIT_S)
        inside.discard(threading.get_ident())
        together.wait(WAIT_S)

    async def ask() -> None:
        threads = Threads("test", COUNT)
        await asyncio.gather(*(threads.run(work) for _ in range(4 * COUNT)))

    asyncio.run(ask())

    assert max(most) == COUNT


def test_work_is_begun_in_the_order_of_asking() -> None:
    """Nobody waits longer than those who asked later."""
    begun: list[int] = []

    async def ask() -> None:
        threads = Threads("test", 1)
        await asyncio.gather(*(threads.run(lambda number=number: begun.append(number)) for number in range(50)))

    asyncio.run(ask())

    assert list(range(50)) == begun


def test_who_is_cancelled_goes_on_at_once_and_what_had_not_begun_is_left_out() -> None:
    """The work that runs is finished, for it cannot be stopped; the one behind it is never begun."""
    begun, leave = threading.Event(), threading.Event()
    done: list[str] = []

    def first() -> None:
        begun.set()
        assert leave.wait(WAIT_S)
        done.append("first")

    async def ask() -> None:
        threads = Threads("test", 1)
        tasks = [asyncio.create_task(threads.run(first)), asyncio.create_task(threads.run(lambda: done.append("second")))]
        await asyncio.to_thread(begun.wait, WAIT_S)
        for task in tasks:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        leave.set()
        await threads.run(lambda: done.append("third"))

    asyncio.run(ask())

    assert ["first", "third"] == done


def test_one_works_at_a_time_where_one_is_named_for_as_long_as_none_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is quick is done by one thread, one after the other, however many may be started."""
    monkeypatch.setattr("pegword.http.threads.SLOW_S", WAIT_S)
    inside: set[int] = set()
    most = []

    def work() -> int:
        inside.add(threading.get_ident())
        most.append(len(inside))
        inside.discard(threading.get_ident())
        return threading.get_ident()

    async def ask() -> list[int]:
        threads = Threads("test", COUNT, at_once=1)
        return await asyncio.gather(*(threads.run(work) for _ in range(200)))

    assert 1 == len(set(asyncio.run(ask())))
    assert max(most) == 1


def test_who_is_slow_gives_the_place_away_to_those_who_wait() -> None:
    """Nobody waits for the end of what is long, and all is done in the end, also what came when every thread was slow."""
    leave = threading.Event()
    begun = threading.Semaphore(0)

    def slow() -> str:
        begun.release()
        assert leave.wait(WAIT_S)
        return "slow"

    async def ask() -> list[str]:
        threads = Threads("test", COUNT, at_once=1)
        slow_ones = [asyncio.create_task(threads.run(slow)) for _ in range(COUNT - 1)]
        await asyncio.sleep(0)  # so that they come first
        assert await threads.run(lambda: "quick") == "quick"
        slow_ones.append(asyncio.create_task(threads.run(slow)))
        for _ in range(COUNT):
            assert await asyncio.to_thread(begun.acquire, timeout=WAIT_S)
        last = asyncio.create_task(threads.run(lambda: "last"))
        await asyncio.sleep(0)
        leave.set()
        return [*await asyncio.gather(*slow_ones), await last]

    assert ["slow"] * COUNT + ["last"] == asyncio.run(ask())


def test_who_was_slow_stands_back_until_there_is_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the slow ones are done, one works at a time again."""
    leave = threading.Event()
    inside: set[int] = set()
    most = []

    def work() -> None:
        inside.add(threading.get_ident())
        time.sleep(0.001)  # so that another, were there one, would come in
        most.append(len(inside))
        inside.discard(threading.get_ident())

    async def ask() -> None:
        threads = Threads("test", COUNT, at_once=1)
        slow = asyncio.create_task(threads.run(lambda: leave.wait(WAIT_S)))
        await asyncio.sleep(0)  # so that it comes first
        await threads.run(lambda: None)
        monkeypatch.setattr("pegword.http.threads.SLOW_S", WAIT_S)  # from here on nobody is, however busy the machine
        leave.set()
        assert await slow
        await asyncio.gather(*(threads.run(work) for _ in range(50)))

    asyncio.run(ask())

    assert max(most) == 1


def test_the_threads_end_with_the_object() -> None:
    """A server that is built and dropped leaves no thread behind."""

    async def ask() -> list[threading.Thread]:
        threads = Threads("ends", COUNT)
        here = threading.Barrier(COUNT)
        await asyncio.gather(*(threads.run(lambda: here.wait(WAIT_S)) for _ in range(COUNT)))
        return [thread for thread in threading.enumerate() if thread.name.startswith("ends-")]

    started = asyncio.run(ask())
    gc.collect()
    for thread in started:
        thread.join(WAIT_S)

    assert COUNT == len(started)
    assert [] == [thread for thread in started if thread.is_alive()]


def test_a_loop_that_is_closed_does_not_end_the_thread() -> None:
    """Work that outlives its loop tells nobody, and the next loop is served."""
    begun, leave = threading.Event(), threading.Event()
    threads = Threads("test", 1)

    def outlives() -> None:
        begun.set()
        leave.wait(WAIT_S)

    async def give_up() -> None:
        task = asyncio.create_task(threads.run(outlives))
        await asyncio.to_thread(begun.wait, WAIT_S)
        task.cancel()

    asyncio.run(give_up())
    leave.set()

    async def ask() -> str:
        return await threads.run(lambda: "served")

    assert asyncio.run(ask()) == "served"


class Held:
    """What is handed to a thread that does everything at once: the first time it waits until it is let go."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.sizes: list[int] = []
        self.begun, self.leave = threading.Event(), threading.Event()
        self._trouble = trouble

    def __call__(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        self.sizes.append(len(works))
        self.begun.set()
        assert self.leave.wait(WAIT_S)
        if self._trouble:
            raise self._trouble
        return [outcome(work) for work in works]


def outcome(work: Callable[[], Any]) -> Any:
    """What *work* returns or raises."""
    try:
        return work()
    except LookupError as error:
        return error


async def behind_the_first(held: Held, together: Together, count: int) -> list[Any]:
    """Ask for one piece of work, then, while that is done, for *count* more; what each told."""
    first = asyncio.create_task(together.run(failing(0)))
    await asyncio.to_thread(held.begun.wait, WAIT_S)
    others = [asyncio.create_task(together.run(failing(number))) for number in range(1, count + 1)]
    await asyncio.sleep(0)
    held.leave.set()
    return await asyncio.gather(first, *others, return_exceptions=True)


def test_what_comes_while_work_is_done_is_done_together() -> None:
    """At most so many in one go, and each hears of its own."""
    held = Held()
    told = asyncio.run(behind_the_first(held, Together("test", held, 4), 10))

    assert [1, 4, 4, 2] == held.sizes
    assert list(range(11)) == [answer.args[0] if isinstance(answer, LookupError) else answer for answer in told]


@pytest.mark.parametrize(("trouble", "rounds"), [(Busy("held"), [1]), (Unavailable("gone"), [1, 4, 4, 2])])
def test_who_waited_behind_a_busy_database_hears_it_too(trouble: Exception, rounds: list[int]) -> None:
    """They do not start a wait of their own; any other trouble is that of those whose work it undid."""
    held = Held(trouble)
    told = asyncio.run(behind_the_first(held, Together("test", held, 4), 10))

    assert [trouble] * 11 == told
    assert rounds == held.sizes


def test_who_is_cancelled_in_line_is_left_out() -> None:
    """Nothing is done for nobody."""
    held = Held()

    async def ask() -> list[Any]:
        together = Together("test", held, 4)
        first = asyncio.create_task(together.run(failing(0)))
        await asyncio.to_thread(held.begun.wait, WAIT_S)
        others = [asyncio.create_task(together.run(failing(number))) for number in (2, 4)]
        await asyncio.sleep(0)
        others[0].cancel()
        await asyncio.sleep(0)
        held.leave.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    told = asyncio.run(ask())

    assert [1, 1] == held.sizes
    assert (0, 4) == (told[0], told[2])


def test_a_line_ends_with_its_object() -> None:
    """Its thread leaves."""

    async def ask() -> list[threading.Thread]:
        together = Together("line-ends", lambda works: [work() for work in works], 4)
        await together.run(lambda: None)
        return [thread for thread in threading.enumerate() if thread.name == "line-ends"]

    (started,) = asyncio.run(ask())
    gc.collect()
    started.join(WAIT_S)

    assert not started.is_alive()
