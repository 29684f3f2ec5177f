"""
Send and receive datagrams on a non-blocking socket, with the native module where it was built.

The native module reads all waiting datagrams with one system call and keeps the interpreter lock. The socket
module releases the lock on every call, and other threads take it in the middle of a message.
"""

import errno
import socket

from sip.aio.transport import Address
from sip.message import native as acceleration

__all__ = ["receive_datagrams", "receive_in_python", "send_datagram", "send_in_python"]

_NOT_NOW = frozenset((errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR))
_MAX_BYTES = 65535


def receive_datagrams(sock: socket.socket, most: int) -> list[tuple[bytes, Address]]:
    """Read up to `most` (at most 32) waiting datagrams, each with its source."""
    if acceleration.wire is None:
        return receive_in_python(sock, most)
    try:
        return acceleration.wire.receive_datagrams(sock.fileno(), most)
    except OSError:
        return []  # An ICMP error of an earlier datagram; waiting datagrams are read next time.


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
    """Send one datagram; False if the system refused it, None if the socket's buffer is full."""
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
