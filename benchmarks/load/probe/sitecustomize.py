"""
Memory of a server, looked at from inside it: Python runs this at its start when it is on `PYTHONPATH`.

A thread answers each connection to the Unix socket `TRUNKLINE_MEMORY_PROBE` with one JSON object. Nothing
runs in between, so that a server that is not asked is the server without it. `TRUNKLINE_MEMORY_TRACE` is how
many frames tracemalloc keeps of each allocation, which slows the server down.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import json
import os
import re
import socket
import sys
import tempfile
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

_MALLINFO = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
_MOST_TYPES = 200


class _MallInfo(ctypes.Structure):
    """mallinfo2 of glibc, in bytes."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _MALLINFO)


def _allocator() -> dict[str, int]:
    """Bytes that malloc has from the system, has given out, and holds free, over all its arenas."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return {}
    libc.mallinfo2.restype = _MallInfo
    found = libc.mallinfo2()
    return {
        name: int(getattr(found, name)) for name in ("arena", "hblkhd", "uordblks", "fordblks", "keepcost")
    }


def _arenas() -> dict[str, int]:
    """Arenas of malloc, what they have from the system, and what is free in them, as malloc_info tells."""
    libc = ctypes.CDLL(None)
    with tempfile.NamedTemporaryFile("r") as told:
        libc.fopen.restype = ctypes.c_void_p
        stream = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        text = told.read()
    free = sum(int(size) for size in re.findall(r'<total type="(?:fast|rest)"[^>]*size="(\d+)"', text)[:-2])
    system = [int(size) for size in re.findall(r'<system type="current" size="(\d+)"', text)][:-1]
    return {
        "count": len(system),
        "system_bytes": sum(system),
        "largest_bytes": max(system),
        "free_bytes": free,
    }


def _python_memory() -> dict[str, Any]:
    """Arenas of pymalloc: `sys._debugmallocstats` writes of them to the standard error alone."""
    with tempfile.TemporaryFile("w+b") as told:
        kept = os.dup(2)
        try:
            os.dup2(told.fileno(), 2)
            sys._debugmallocstats()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        told.seek(0)
        text = told.read().decode()
    found: dict[str, Any] = {}
    for line in text.splitlines():
        if match := re.match(r"(?:# )?(.*?)\s+=\s+([\d,]+)$", line):
            found[match[1]] = int(match[2].replace(",", ""))
    classes = re.findall(r"^ +\d+ +(\d+) +(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)
    found["classes"] = {size: (int(pools), int(used), int(free)) for size, pools, used, free in classes}
    return found


def _sqlite_bytes() -> int:
    """Memory of SQLite: page caches, schemas and statements of all connections."""
    try:
        library = ctypes.CDLL("libsqlite3.so.0")
    except OSError:
        return 0
    library.sqlite3_memory_used.restype = ctypes.c_int64
    return int(library.sqlite3_memory_used())


def _mappings() -> dict[str, int]:
    """Resident KiB by kind of mapping."""
    found: Counter[str] = Counter()
    kind = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            name = line.split(maxsplit=5)[5] if len(line.split(maxsplit=5)) > 5 else ""
            kind = (
                name
                if name.startswith("[")
                else "library"
                if ".so" in name
                else "file"
                if name
                else "anonymous"
            )
        elif first == "Rss:":
            found[kind] += int(rest.split()[0])
    return dict(found)


def _caches() -> dict[str, tuple[int, int | None]]:
    """Entries and limit of each cached function of a module."""
    found = {}
    for name, module in list(sys.modules.items()):
        for attribute, value in list(vars(module).items()) if hasattr(module, "__dict__") else ():
            if isinstance(value, functools._lru_cache_wrapper) and getattr(value, "__module__", name) == name:
                info = value.cache_info()
                if info.currsize:
                    found[f"{name}.{attribute}"] = (info.currsize, info.maxsize)
    return found


def _objects() -> dict[str, tuple[int, int]]:
    """Objects that the collector knows, by type: how many, and their own bytes."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    gc.collect()
    for item in gc.get_objects():
        kind = type(item)
        name = f"{kind.__module__}.{kind.__qualname__}"
        counts[name] += 1
        sizes[name] += sys.getsizeof(item, 0)
    return {name: (count, sizes[name]) for name, count in counts.most_common(_MOST_TYPES)}


def _attributes(item: Any) -> list[tuple[str, Any]]:
    """Attributes of an object, by its dictionary and its slots; nothing of the object's own runs."""
    names = [name for kind in type(item).__mro__ for name in vars(kind).get("__slots__", ()) or ()]
    found = []
    for name in names:
        try:
            found.append((name, object.__getattribute__(item, name)))
        except (AttributeError, TypeError):
            continue
    try:
        values = object.__getattribute__(item, "__dict__")
    except (AttributeError, TypeError):
        return found
    return found + (list(values.items()) if isinstance(values, dict) else [])


def _containers() -> list[tuple[str, int, str]]:
    """The largest containers, each with the type of whoever refers to it: what has no bound is among them."""
    gc.unfreeze()  # What was there at the start grows as well; the collector pauses longer from now on.
    everything = gc.get_objects()
    large = [item for item in everything if isinstance(item, dict | list | set | tuple) and len(item) > 300]
    known = {id(item) for item in large}
    owners: dict[int, str] = {}
    for item in everything:
        for name, value in _attributes(item):
            if id(value) in known:
                owners[id(value)] = f"{type(item).__module__}.{type(item).__qualname__}.{name}"
    found = [(type(item).__name__, len(item), owners.get(id(item), "")) for item in large]
    return sorted(found, key=lambda entry: -entry[1])[:80]


def _sites() -> dict[str, tuple[int, int]]:
    """Bytes and blocks by the lines that allocated them."""
    if not tracemalloc.is_tracing():
        return {}
    statistics = tracemalloc.take_snapshot().statistics("traceback")
    return {
        " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(entry.traceback)): (
            entry.size,
            entry.count,
        )
        for entry in statistics[:2000]
    }


def look(deep: bool) -> dict[str, Any]:
    """Everything that is known; objects and sites only when asked for, which takes seconds."""
    found: dict[str, Any] = {
        "mappings_kib": _mappings(),
        "malloc": _allocator(),
        "arenas": _arenas(),
        "python": _python_memory(),
        "python_blocks": sys.getallocatedblocks(),
        "sqlite_bytes": _sqlite_bytes(),
        "caches": _caches(),
        "threads": threading.active_count(),
    }
    if deep:
        found |= {"objects": _objects(), "containers": _containers(), "sites": _sites()}
    return found


def _serve(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(1)
        while True:
            connection, _ = listener.accept()
            with connection:
                asked = connection.recv(64)
                connection.sendall(json.dumps(look(asked == b"deep")).encode())


# Commands of the same environment are not servers.
if (path := os.environ.get("TRUNKLINE_MEMORY_PROBE")) and b"serve" in Path("/proc/self/cmdline").read_bytes():
    if frames := int(os.environ.get("TRUNKLINE_MEMORY_TRACE", "0")):
        tracemalloc.start(frames)
    threading.Thread(target=_serve, args=(path,), name="memory probe", daemon=True).start()
