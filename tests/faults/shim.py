"""Faults inside a server's process: a preloaded library that a test steers while the server runs."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

import pytest

__all__ = ["Shim"]

_SOURCE: Final = Path(__file__).with_name("shim.c")
_LAYOUT: Final = struct.Struct("iiiiq232s")


class Shim:
    """
    The library and what it does now; `environment` has a server use it.

    Nothing fails and nothing is late until `set` says so.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler is installed to build the library with")
        folder.mkdir(parents=True, exist_ok=True)
        library, steering = folder / "shim.so", folder / "shim.control"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, _SOURCE, "-ldl"],
            check=True,
        )
        steering.write_bytes(bytes(_LAYOUT.size))
        with steering.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _LAYOUT.size)
        self.environment = {"LD_PRELOAD": str(library), "FAULT_SHIM": str(steering)}

    def set(
        self, path: str = "", *, errno: int = 0, sync_ms: int = 0, write_ms: int = 0, clock_s: int = 0
    ) -> None:
        """
        Make writes to files whose path contains `path` fail or block, and set the wall clock off.

        Without arguments everything is as it was.
        """
        # The path last when it begins, and first when it ends: the library looks at it before the others.
        if not path:
            self._map[24:] = bytes(_LAYOUT.size - 24)
        self._map[:] = _LAYOUT.pack(errno, sync_ms, write_ms, 0, clock_s, path.encode())

    def close(self) -> None:
        """Close the steering file."""
        self._map.close()
