"""A cut of the network at one UDP socket of this process: the kernel drops all that comes to it."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = ["nothing_arrives"]

# Numbers of Linux that the module of sockets has no names for.
_ATTACH_FILTER: Final = 26
_DETACH_FILTER: Final = 27
_RETURN: Final = 0x06


@contextmanager
def nothing_arrives(udp_port: int) -> Iterator[None]:
    """Drop all that comes to the socket of a port, whoever of this process reads it, until the block ends."""
    # A program of one instruction: of each datagram, keep no byte.
    program = ctypes.create_string_buffer(struct.pack("HBBI", _RETURN, 0, 0, 0))
    with _socket_of(udp_port) as cut:
        cut.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
        try:
            yield
        finally:
            cut.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)


def _socket_of(udp_port: int) -> socket.socket:
    """Find a bound UDP socket among our descriptors; the caller closes what is returned, a copy."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            if not entry.is_socket():
                continue
            copy = socket.socket(fileno=os.dup(int(entry.name)))
            if copy.type == socket.SOCK_DGRAM and copy.family != socket.AF_UNIX:
                if copy.getsockname()[1] == udp_port:
                    return copy
            copy.close()
    raise LookupError(f"no UDP socket of this process is bound to port {udp_port}")
