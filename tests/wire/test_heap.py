"""What a server keeps of memory that it does not use."""

import os
import subprocess
import sys

import pytest

# Eight threads that each hold some memory at once; then as many heaps as the C library says that there are.
PROGRAM = """
import ctypes, os, sys, tempfile, threading
from pegword.http.server import keep_one_heap
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


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.confstr("CS_GNU_LIBC_VERSION") is None, reason="glibc alone has several")
@pytest.mark.parametrize(("word", "one"), [("one", True), ("as it is", False)])
def test_a_server_has_one_heap_for_all_its_threads(word: str, one: bool) -> None:
    """Each of several would keep what it once had. Without asking there are some: so the count sees them."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    told = subprocess.run([sys.executable, "-c", PROGRAM, word], env=environment, capture_output=True, text=True, check=True).stdout

    assert one == (int(told) == 1)
