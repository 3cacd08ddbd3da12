"""What a server keeps of memory that it does not use."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from pegword.http.server import run
from tests.patience import PATIENCE_S

# Eight threads that each hold some memory at once; then as many heaps as the C library says that there are.
PROGRAM = """
import ctypes, os, sys, tempfile, threading
from pegword.http.heap import keep_one_heap
if sys.argv[1] == "one":
    keep_one_heap()
here = threading.Barrier(8)
def hold():
    held = [bytes(2_000 + number) for number in range(2_000)]
    here.wait(60)
threads = [threading.Thread(target=hold) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as told:
    out = ctypes.c_void_p(library.fopen(os.fsencode(told.name), b"w"))
    library.malloc_info(0, out)
    library.fclose(out)
    print(told.read().count(b"<heap nr="))
"""


# Much memory of which nearly all is free again, each piece between two that are still in use; then how many MiB the process has.
HOLES = """
import contextlib, ctypes, resource, sys, time
from pathlib import Path
from pegword.http.heap import giving_back, keep_one_heap
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20
keep_one_heap()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
pieces = [ctypes.c_void_p(library.malloc(size)) for _ in range(2_000) for size in (60_000, 16)]
for piece in pieces:
    ctypes.memset(piece, 1, 16)
for piece in pieces[::2]:
    ctypes.memset(piece, 1, 60_000)
full = resident()
for piece in pieces[::2]:
    library.free(piece)
with giving_back(0.01) if sys.argv[1] == "giving back" else contextlib.nullcontext():
    until = time.monotonic() + float(sys.argv[2])
    while resident() > full - 60 and time.monotonic() < until:
        time.sleep(0.01)
print(full - resident())
"""
GLIBC = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.confstr("CS_GNU_LIBC_VERSION") is None, reason="other C libraries have no such heaps"
)


def told(program: str, *words: str) -> int:
    """The number that *program* prints when nobody has set the C library in another way."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    return int(subprocess.run([sys.executable, "-c", program, *words], env=environment, capture_output=True, text=True, check=True).stdout)


@GLIBC
@pytest.mark.parametrize(("word", "one"), [("one", True), ("as it is", False)])
def test_a_server_has_one_heap_for_all_its_threads(word: str, one: bool) -> None:
    """Each of several would keep what it once had. Without asking there are some: so the count sees them."""
    assert one == (told(PROGRAM, word) == 1)


@GLIBC
@pytest.mark.parametrize(("word", "patience_s", "given"), [("giving back", PATIENCE_S, True), ("as it is", 0.1, False)])
def test_a_server_gives_back_what_is_free_between_what_it_uses(word: str, patience_s: float, given: bool) -> None:
    """Of 115 MiB more than half. Without that it keeps them: so they are seen."""
    assert given == (told(HOLES, word, str(patience_s)) > 60)


@GLIBC
def test_a_server_does_so_until_it_ends() -> None:
    """As long as it takes connections, and no longer."""
    at_work = [who_gives_back()]

    def listening(_: int) -> None:
        at_work.append(who_gives_back())
        os.kill(os.getpid(), signal.SIGTERM)

    run(None, "127.0.0.1", 0, listening=listening)

    assert [0, 1, 0] == [*at_work, who_gives_back()]


def who_gives_back() -> int:
    """How many threads do that; those of other tests come and go."""
    return sum(thread.name == "pegword-heap" for thread in threading.enumerate())
