"""The C library's allocator has one heap for all threads, and gives back what is free."""

import os
import subprocess
import sys

import pytest

# Threads that allocate at once get heaps of their own by default.
_PROGRAM = """
import ctypes, re, threading
from api.process.allocator import steady_allocator
print(steady_allocator())
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
all_there = threading.Barrier(8)
def allocate():
    all_there.wait()
    for _ in range(200):
        library.malloc(2000)
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(library.fopen(b"/dev/fd/1", b"w"))
print(flush=True)
library.malloc_info(0, stream)
library.fclose(stream)
"""


def _run(**environment: str) -> str:
    known = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", _PROGRAM]
    return subprocess.run(
        command, env={**known, **environment}, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.real_time(reason="a process of its own")
def test_threads_share_one_heap() -> None:
    told = _run()
    if not told.startswith("True"):
        # Another C library (musl) has neither these settings nor this report: nothing is set there.
        pytest.skip("the C library is not glibc")
    assert told.count("<heap nr=") == 1, told


@pytest.mark.real_time(reason="a process of its own")
def test_settings_of_the_environment_win() -> None:
    """Another number of heaps, or another setting of the allocator, stays as it was chosen."""
    told = _run(MALLOC_ARENA_MAX="4")
    assert told.startswith("False")
    assert told.count("<heap nr=") > 1, told
