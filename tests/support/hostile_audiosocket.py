"""
A bot of AudioSocket that means harm, as a process of its own.

`python -m tests.support.hostile_audiosocket KIND` is used like `tests.support.hostile_agent`.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from tests.support.hostile_agent import serve, wait

_SECOND = b"\x10" + (16_000).to_bytes(2, "big") + bytes(16_000)


def _opened(sock: socket.socket) -> None:
    """Read until the call is up: its identifier and a second of its audio have come."""
    left = 19 + 50 * 323
    while left > 0:
        data = sock.recv(left)
        if not data:
            raise ConnectionError
        left -= len(data)


def _ignore(sock: socket.socket) -> None:
    with suppress(OSError):
        while sock.recv(65536):
            pass


def _ignoring(sock: socket.socket) -> None:
    threading.Thread(target=_ignore, args=(sock,), daemon=True).start()


def garbage(sock: socket.socket) -> None:
    """Frames of kinds that do not exist."""
    _opened(sock)
    _ignoring(sock)
    for _ in range(400):
        sock.sendall(b"\x42\x00\x03abc")
    wait(60)


def commands(sock: socket.socket) -> None:
    """Keys without end."""
    _opened(sock)
    _ignoring(sock)
    while True:
        sock.sendall(b"\x03\x00\x015")


def half_frame(sock: socket.socket) -> None:
    """The beginning of a frame, and never its end."""
    _opened(sock)
    sock.sendall(b"\x10\xff\xff" + bytes(100))
    _ignore(sock)


def never_reads(sock: socket.socket) -> None:
    """Its socket fills."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    wait(120)


def tiny_frames(sock: socket.socket) -> None:
    """The smallest frames there are, as many as the socket takes."""
    _opened(sock)
    _ignoring(sock)
    while True:
        sock.sendall(b"\x10\x00\x00" * (32 * 1024))


def reset(sock: socket.socket) -> None:
    """The connection is reset."""
    _opened(sock)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_end(sock: socket.socket) -> None:
    """It leaves in the middle of a frame."""
    _opened(sock)
    sock.sendall(b"\x10\x01\x40" + bytes(100))
    sock.shutdown(socket.SHUT_WR)
    _ignore(sock)


def flood(sock: socket.socket) -> None:
    """Forty minutes of audio as fast as it goes, then the hangup, which must still come through."""
    _opened(sock)
    _ignoring(sock)
    for _ in range(2400):
        sock.sendall(_SECOND)
    sock.sendall(bytes(3))
    wait(60)


KINDS: dict[str, Callable[[socket.socket], None]] = {
    kind.__name__: kind
    for kind in (garbage, commands, half_frame, never_reads, tiny_frames, reset, half_end, flood)
}


if __name__ == "__main__":
    serve(KINDS[sys.argv[1]])
