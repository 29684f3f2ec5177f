"""
The builds of the native tests: ``python -m tests.native.builds plain``.

``plain`` lies in the folder in which the Python modules are built, and shares their libraries. The others are
built with the sanitizers that they are named after.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

__all__ = ["PLAIN", "SANITIZED", "THREADS", "BuildFailed", "build", "folder"]

PLAIN: Final = "plain"
SANITIZED: Final = "address,undefined"
THREADS: Final = "thread"
_ROOT: Final = Path(__file__).resolve().parents[2]
_TARGETS: Final = {
    PLAIN: ("engine_tests", "wire_tests"),
    SANITIZED: ("all",),
    THREADS: ("engine_tests", "wire_tests"),
}


class BuildFailed(Exception):
    """A build of the native tests failed; the message is what the compiler said."""


def folder(kind: str) -> Path:
    """Path of the build `kind`; CMake keeps the layout of the sources below it."""
    if kind != PLAIN:
        return _ROOT / "build" / "sanitized" / kind
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return _ROOT / "build" / f"{version}-{version}-{system}"


def build(kind: str) -> None:
    """
    Build what has changed since the last time. One process builds at a time; the others find it done.

    Raises:
        BuildFailed: A source does not compile, or `kind` is the plain build and `make setup` has not run.
    """
    path = folder(kind)
    path.mkdir(parents=True, exist_ok=True)
    with (path / ".tests.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if kind != PLAIN:
            options = {"BUILD_TYPE": "RelWithDebInfo", "MAKE_PROGRAM": Path(sys.prefix, "bin", "ninja")}
            product = {"TESTS": "ON", "SANITIZE": kind, "FUZZ": "ON" if kind == SANITIZED else "OFF"}
            _run(
                *("cmake", "-S", _ROOT, "-B", path, "-G", "Ninja"),
                *(f"-DCMAKE_{name}={value}" for name, value in options.items()),
                *(f"-DTRUNKLINE_{name}={value}" for name, value in product.items()),
            )
        elif not (path / "CMakeCache.txt").exists():
            raise BuildFailed(f"there is no build in {path}; run make setup")
        else:
            # `make setup` may have configured it before the library of the tests was installed.
            _run("cmake", "-S", _ROOT, "-B", path)
        _run("cmake", "--build", path, "--parallel", str(os.cpu_count() or 1), "--target", *_TARGETS[kind])


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode != 0:
        raise BuildFailed(done.stdout[-20_000:])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            build(name)
        except BuildFailed as error:
            raise SystemExit(f"the native tests ({name}) were not built:\n{error}") from None
