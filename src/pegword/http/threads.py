"""Threads beside the event loop: where handlers run, so that the loop waits for nobody.

A hop to a thread of the common kind (anyio's, or an executor's) costs up to a tenth of a millisecond, about as much as all else that HTTP
takes; and one thread for each waiting request means that they fight over the interpreter's lock: of eight that read from a database in
this process, each took twice the time that one takes alone. So these are few, take their work from one queue, bring several results back at
once, and where the work is this process's own, one of them works at a time for as long as none is slow.
"""

import asyncio
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from pegword.core.errors import Busy
from pegword.http.failures import Overloaded

T = TypeVar("T")
SLOW_S = 0.02
_Job = tuple["asyncio.Future[Any]", Callable[..., Any]]


class Threads:
    """At most *count* threads called *name*, started when there is work. They end with the object, and do not keep the process alive.

    At most *at_once* of them are at work (default: all), but one whose work has taken longer than `SLOW_S` while other work waits does not
    count any more: another takes its place, and it stands back when it is done.
    """

    def __init__(self, name: str, count: int, at_once: int | None = None) -> None:
        self._name = name
        self._count = count
        self._started = 0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._places = _Places(at_once or count)
        self._done = _Done()
        self._unfinished = 0
        self._watched_by: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Do *work* on one of the threads, in the order of asking; returns or raises what it does.

        A caller that is cancelled goes on at once; *work* is then left out if it has not begun.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._unfinished += 1
        if self._unfinished > self._started < self._places.count:
            self._start()
        self._jobs.put((future, work))
        if self._watched_by is not loop and self._places.count < self._count:
            self._watch(loop)
        try:
            return await future
        finally:
            self._unfinished -= 1

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look again, as long as something waits, whether somebody is slow."""
        self._watched_by = loop
        loop.call_later(SLOW_S, self._look)

    def _look(self) -> None:
        loop, self._watched_by = self._watched_by, None
        if loop is None or self._jobs.empty():
            return
        for _ in range(self._places.give_away(time.monotonic() - SLOW_S)):
            if self._started < self._count:
                self._start()
        self._watch(loop)

    def _start(self) -> None:
        if not self._started:
            weakref.finalize(self, _end, self._jobs, self._count)
        self._started += 1
        arguments = (self._jobs, self._done, self._places)
        threading.Thread(target=_work, args=arguments, name=f"{self._name}-{self._started}", daemon=True).start()


class _Places:
    """*count* places for threads at work. Who has one keeps it from one piece of work to the next, unless it was given away meanwhile."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = threading.Semaphore(count)
        self._begun: dict[int, float] = {}  # by the thread that has a place and is at work: since when

    def take(self) -> None:
        """Wait for a place."""
        self._free.acquire()

    def leave(self) -> None:
        """Give the place of this thread back."""
        self._free.release()

    def begin(self) -> None:
        """This thread, which has a place, begins a piece of work."""
        self._begun[threading.get_ident()] = time.monotonic()

    def end(self) -> bool:
        """This thread has done its piece of work; whether it still has its place."""
        return self._begun.pop(threading.get_ident(), None) is not None

    def give_away(self, before: float) -> int:
        """Free the places of those whose work began earlier than *before*, in seconds of the monotonic clock; how many that were."""
        slow = [thread for thread, since in list(self._begun.items()) if since < before]
        given = sum(self._begun.pop(thread, None) is not None for thread in slow)  # one that ended just now keeps its own
        for _ in range(given):
            self._free.release()
        return given


class Together:
    """One thread called *name* that does all that waits at once, at most *at_once_max* in one go.

    *do* is given what waits and returns a result or an exception for each; raised, an exception is everybody's. A `Busy` is also that of
    those who came meanwhile: they have waited for the database too, and start no wait of their own behind that one.
    """

    def __init__(self, name: str, do: Callable[[list[Callable[..., Any]]], Sequence[Any]], at_once_max: int) -> None:
        self._name = name
        self._do = do
        self._at_once_max = at_once_max
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._started = False

    async def run(self, work: Callable[..., T]) -> T:
        """Have *work* done together with what else waits, in the order of asking; returns or raises what it does.

        A caller that is cancelled goes on at once; *work* is then left out if it has not begun.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._started:
            self._started = True
            weakref.finalize(self, _end, self._jobs, 1)
            arguments = (self._jobs, self._do, self._at_once_max)
            threading.Thread(target=_work_together, args=arguments, name=self._name, daemon=True).start()
        self._jobs.put((future, work))
        return await future


class Line:
    """Threads with a line before them that does not grow for ever: more than *in_work_max* are refused at once, and who has stood in it for
    longer than *wait_s* is refused before being begun. *what* names those who stand there, *undone* says what a refusal leaves undone."""

    def __init__(self, threads: Threads, in_work_max: int, wait_s: float, what: str, undone: str = "") -> None:
        self.in_work = 0
        self.in_work_max = in_work_max
        self._threads = threads
        self._wait_s = wait_s
        self._what = what
        self._undone = undone

    async def run(self, work: Callable[..., T], by: Together | None = None) -> T:
        """Have *work* done when its turn has come, on the threads or *by* one that does much together. Raises `Overloaded`."""
        if self.in_work >= self.in_work_max:
            raise Overloaded(f"as many {self._what} wait as may; {self._undone}try again", retry_after_s=1)
        last = time.monotonic() + self._wait_s

        def in_time(*given: Any) -> T:
            if time.monotonic() > last:
                raise Overloaded(f"{self._what} wait too long for their turn; {self._undone}try again", retry_after_s=5)
            return work(*given)

        self.in_work += 1
        try:
            return await (by or self._threads).run(in_time)
        finally:
            self.in_work -= 1


class _Done:
    """Results on their way back to the loop: it is woken once for all that are there."""

    def __init__(self) -> None:
        self._results: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._woken = False

    def tell(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        """Hand a result over. From any thread."""
        self._results.append((future, result, error))
        if self._woken:
            return
        self._woken = True
        try:
            future.get_loop().call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop is closed: nobody waits
            self._woken = False

    def _deliver(self) -> None:
        self._woken = False  # first: what comes from here on wakes the loop again
        while self._results:
            future, result, error = self._results.popleft()
            if future.done():  # cancelled meanwhile
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


def _work(jobs: "SimpleQueue[_Job | None]", done: _Done, places: _Places) -> None:
    places.take()
    while (job := jobs.get()) is not None:
        future, work = job
        if future.cancelled():
            continue
        places.begin()
        try:
            result = work()
        except BaseException as error:
            done.tell(future, None, error)
        else:
            done.tell(future, result, None)
            del result
        del job, future, work  # what was done is not kept alive until there is more to do
        if not places.end():
            places.take()
    places.leave()


def _work_together(jobs: "SimpleQueue[_Job | None]", do: Callable[[list[Callable[..., Any]]], Sequence[Any]], at_once_max: int) -> None:
    done = _Done()
    while (first := jobs.get()) is not None:
        taken = [job for job in (first, *_waiting(jobs, at_once_max - 1)) if not job[0].cancelled()]
        try:
            outcomes = do([work for _, work in taken])
        except BaseException as error:
            if isinstance(error, Busy):
                taken += _waiting(jobs, sys.maxsize)
            outcomes = [error] * len(taken)
        for (future, _), outcome in zip(taken, outcomes, strict=True):
            failed = isinstance(outcome, BaseException)
            done.tell(future, None if failed else outcome, outcome if failed else None)
        del first, taken, outcomes


def _waiting(jobs: "SimpleQueue[_Job | None]", most: int) -> list[_Job]:
    """What waits in line, at most so many; the end of the line stays in it."""
    taken: list[_Job] = []
    with suppress(Empty):
        while len(taken) < most:
            job = jobs.get_nowait()
            if job is None:
                jobs.put(None)
                break
            taken.append(job)
    return taken


def _end(jobs: "SimpleQueue[_Job | None]", count: int) -> None:
    for _ in range(count):
        jobs.put(None)
