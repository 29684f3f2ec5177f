"""
Datagrams out of and into a socket that does not block: natively where that was built.

Natively one system call reads all that is there, and the interpreter lock is kept: the socket module gives it
away for every call, and other threads take it in the middle of a message.
"""

import errno
import socket

from sip.aio.transport import Address
from sip.message import native as acceleration

__all__ = ["receive_datagrams", "receive_in_python", "send_datagram", "send_in_python"]

_NOT_NOW = frozenset((errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR))
_MAX_BYTES = 65535


def receive_datagrams(sock: socket.socket, most: int) -> list[tuple[bytes, Address]]:
    """Read up to `most` (32 at most) datagrams that are there, each with its source."""
    if acceleration.wire is None:
        return receive_in_python(sock, most)
    try:
        return acceleration.wire.receive_datagrams(sock.fileno(), most)
    except OSError:
        return []  # News of an earlier datagram that nobody took; what is there is read next time.


def receive_in_python(sock: socket.socket, most: int) -> list[tuple[bytes, Address]]:
    """Read datagrams without the native module."""
    received: list[tuple[bytes, Address]] = []
    for _ in range(most):
        try:
            data, source = sock.recvfrom(_MAX_BYTES)
        except (BlockingIOError, InterruptedError):
            break
        except OSError:
            continue  # As above.
        received.append((data, (source[0], source[1])))
    return received


def send_datagram(sock: socket.socket, data: bytes, remote: Address) -> bool | None:
    """Send one datagram; False when the system refused it, None when it has no room at the moment."""
    if acceleration.wire is None:
        return send_in_python(sock, data, remote)
    refused = acceleration.wire.send_datagram(sock.fileno(), data, remote[0], remote[1])
    return True if refused == 0 else None if refused in _NOT_NOW else False


def send_in_python(sock: socket.socket, data: bytes, remote: Address) -> bool | None:
    """Send one datagram without the native module."""
    try:
        sock.sendto(data, remote)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return False
    return True
