"""What the C library keeps of a server's memory that the server does not use. For glibc; elsewhere nothing here does anything.

Call both before there are other threads.
"""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

GIVE_BACK_EVERY_S = 30.0

_M_ARENA_MAX = -8  # of glibc's malloc.h
_NONE_THERE = (AttributeError, OSError, TypeError)  # what asking another C library, or none, ends in


def keep_one_heap() -> None:
    """Make the C library serve all threads of this process from one heap.

    It gives each thread a heap of its own, so that they need not wait for one another, and each keeps what it once had: under load a
    server grew for hours, though what it used stayed the same. Here few threads allocate at once, since one of them runs at a time.
    """
    with contextlib.suppress(*_NONE_THERE):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


@contextlib.contextmanager
def giving_back(every_s: float = GIVE_BACK_EVERY_S) -> Iterator[None]:
    """Meanwhile, give what is free in the heap back to the system every so many seconds.

    By itself the C library gives back what is free at the heap's end alone. What SQLite keeps of pages comes and goes in megabytes, and
    what stays a little longer settles between: under load half of the heap was free. Threads wait for it some milliseconds at most.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except _NONE_THERE:
        yield
        return
    over = threading.Event()

    def keep_trimming() -> None:
        while not over.wait(every_s):
            trim(0)

    thread = threading.Thread(target=keep_trimming, name="pegword-heap", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
