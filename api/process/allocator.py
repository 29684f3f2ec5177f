"""Allocator of the process: one heap for all threads, whose free memory goes back to the system."""

from __future__ import annotations

import ctypes
import os
from typing import Final

__all__ = ["SETTINGS", "steady_allocator"]

_KIB: Final = 1024
_OF_THE_ENVIRONMENT: Final = ("MALLOC_", "GLIBC_TUNABLES")

SETTINGS: Final = {-8: 1, -3: 128 * _KIB, -1: 128 * _KIB}
"""Parameters of glibc's mallopt: M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD."""


def steady_allocator() -> bool:
    """
    Keep the memory of the C library's allocator from growing with threads and the largest block ever freed.

    By default each thread gets a heap of its own, whose free memory serves no other thread, and a large
    block that is freed raises the size from which blocks are returned to the system. Must come before
    threads that allocate. False where the library is not glibc or the environment has settings for it.
    """
    if any(name.startswith(_OF_THE_ENVIRONMENT) for name in os.environ):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return all([library.mallopt(parameter, value) == 1 for parameter, value in SETTINGS.items()])
