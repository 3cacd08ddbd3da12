"""Threads beside the event loop: where handlers run, so that the loop waits for nobody.

A hop to a thread of the common kind (anyio's, or an executor's) costs up to a tenth of a millisecond, about as much as all else that HTTP
takes; and one thread for each waiting request means that they fight over the interpreter's lock. So these are few, take their work from one
queue, and bring several results back at once.
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
_Job = tuple["asyncio.Future[Any]", Callable[..., Any]]


class Threads:
    """At most *count* threads called *name*, started when there is work. They end with the object, and do not keep the process alive."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._started = 0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done = _Done()
        self._unfinished = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do *work* on one of the threads, in the order of asking; returns or raises what it does.

        A caller that is cancelled goes on at once; *work* is then left out if it has not begun.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._unfinished += 1
        if self._unfinished > self._started < self._count:
            self._start()
        self._jobs.put((future, work))
        try:
            return await future
        finally:
            self._unfinished -= 1

    def _start(self) -> None:
        if not self._started:
            weakref.finalize(self, _end, self._jobs, self._count)
        self._started += 1
        thread = threading.Thread(target=_work, args=(self._jobs, self._done), name=f"{self._name}-{self._started}", daemon=True)
        thread.start()


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


def _work(jobs: "SimpleQueue[_Job | None]", done: _Done) -> None:
    while (job := jobs.get()) is not None:
        future, work = job
        if future.cancelled():
            continue
        try:
            result = work()
        except BaseException as error:
            done.tell(future, None, error)
        else:
            done.tell(future, result, None)
            del result
        del job, future, work  # what was done is not kept alive until there is more to do


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
