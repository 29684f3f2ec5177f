"""
Allocator of ports on 127.0.0.1 for servers, SIPp and engines of tests and benchmarks.

They are below the system's ephemeral ports. Each process locks port spans until it ends, so that no two get
the same. There are spans of 2,000 ports for eight processes, so a test takes no larger range, and gives the
processes that it starts ports of its own.
Within a process, a port is reused after all others of its span. What counts its ports gets exclusive ones.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

__all__ = ["NoPortLeft", "exclusive_ports", "free_port", "port_range"]

# Single ports and ranges come from parts of their own, in spans of one size. Spans of several sizes at
# random places would leave gaps that no other fits into.
_SINGLES: Final = range(2_000, 12_800)
_RANGES: Final = range(12_800, 28_800)
_EXCLUSIVE: Final = range(28_800, 31_800)
# Each SIPp listens for commands on the first of these that is free.
_SIPP_COMMANDS: Final = range(8_888, 8_949)
# A port is reused after three hundred others: later than tests that share a server need.
_SINGLE_PORTS: Final = 1_200
# The three ports after an allocated one stay free: SIPp uses some of them for media.
_STEP: Final = 4
# Enough for a server and its sandbox with 800 ports each.
_RANGED_PORTS: Final = 2_000
_EXCLUSIVE_PORTS: Final = 1_000


class NoPortLeft(Exception):
    """No port of this process's span can be bound, or other processes have all spans."""


def free_port() -> int:
    """
    Return a port that was just free for UDP and TCP.

    Raises:
        NoPortLeft: All ports of this process's span are in use, or no span is left for it.
    """
    ports = _single_ports()
    for _ in range(_SINGLE_PORTS // _STEP):
        port = next(ports)
        if port not in _SIPP_COMMANDS and _can_be_bound(port):
            return port
    raise NoPortLeft("no port of 127.0.0.1 is free for both UDP and TCP")


def port_range(size: int = 200) -> tuple[int, int]:
    """
    Return the first and last of `size` consecutive ports for RTP; the first is even.

    Successive ranges of at most 600 ports do not overlap. Larger ones may: request such a pair as one range.

    Raises:
        NoPortLeft: No span is left for this process.
    """
    first, last = _span(_RANGES, -(-size // _RANGED_PORTS) * _RANGED_PORTS, _RANGED_PORTS)
    offset = _used.get(first, 0)
    if first + offset + size - 1 > last:
        offset = 0
    _used[first] = offset + size + size % 2
    return first + offset, first + offset + size - 1


_used: dict[int, int] = {}


@contextmanager
def exclusive_ports() -> Iterator[int]:
    """Hold 1,000 ports that nobody else has until the block ends, waiting for them, and yield the first."""
    places = range(_EXCLUSIVE.start, _EXCLUSIVE.stop - _EXCLUSIVE_PORTS + 1, _EXCLUSIVE_PORTS)
    first = next((first for first in places if _lock(first, _EXCLUSIVE_PORTS)), None)
    if first is None:
        first = random.choice(places)
        fcntl.lockf(_locks(), fcntl.LOCK_EX, _EXCLUSIVE_PORTS, first)
    try:
        yield first
    finally:
        fcntl.lockf(_locks(), fcntl.LOCK_UN, _EXCLUSIVE_PORTS, first)


@functools.cache
def _single_ports() -> Iterator[int]:
    first, _ = _span(_SINGLES, _SINGLE_PORTS, _SINGLE_PORTS)
    # A random start: connections of the last run may linger.
    start = random.randrange(0, _SINGLE_PORTS, _STEP)
    return (first + (start + step) % _SINGLE_PORTS for step in count(0, _STEP))


def _can_be_bound(port: int) -> bool:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
    ):
        try:
            udp.bind(("127.0.0.1", port))
            tcp.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@functools.cache
def _span(part: range, size: int, step: int) -> tuple[int, int]:
    """Lock consecutive ports that no other process has."""
    places = range(part.start, part.stop - size + 1, step)
    for first in random.sample(places, len(places)):
        if _own.isdisjoint(range(first, first + size)) and _lock(first, size):
            _own.update(range(first, first + size))
            return first, first + size - 1
    raise NoPortLeft(
        f"other processes have all spans of {size} ports; end some of them, or give it their ports"
    )


_own: set[int] = set()


def _lock(first: int, size: int) -> bool:
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, size, first)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


@functools.cache
def _locks() -> int:
    """Open the file with a byte for each port. Never closed: its locks end with the process."""
    path = Path(tempfile.gettempdir(), f"trunkline-ports-{os.getuid()}.lock")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
