"""
ICMP errors of requests sent over UDP (RFC 3261 18.4), and the end of an attempt at a dead port.

Linux keeps the errors of an unconnected socket in its error queue, each with the destination and the start of
the datagram. While one is in there, or pending, the socket polls as broken, so the queue must be emptied.
"""

import logging
import os
import re
import socket
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sip.aio.transport import Address, Flow

if TYPE_CHECKING:
    from sip.aio.transaction_io import ClientTransaction
    from sip.aio.transaction_layer import TransactionLayer

logger = logging.getLogger(__name__)

ERRORS_PER_WAKE = 32
QUOTED_BYTES = 1024
"""Start of the datagram that is kept of an error; the branch is within it."""
IP_RECVERR = 11
IPV6_RECVERR = 25
"""Missing in the socket module: report the ICMP errors of an unconnected socket."""
_EXTENDED_ERROR = struct.Struct("=IBBB")
"""Start of Linux' sock_extended_err: errno, origin, type and code."""
_CONTROL_BYTES = 512
_ICMP, _ICMPV6 = 2, 3
_UNREACHABLE = {_ICMP: frozenset((3, 12)), _ICMPV6: frozenset((1, 4))}
"""ICMP types of RFC 3261 18.4 by origin: destination unreachable, and parameter problem."""
_FRAGMENTATION_NEEDED = (_ICMP, 3, 4)
_REQUEST_START = re.compile(rb"([A-Z]+) [^\r\n]+\r\nVia: [^\r\n]*?;branch=([^;,\s]+)[;,\s]")
"""Start line and top Via, as our requests begin."""


class IcmpError(NamedTuple):
    """Error of a datagram: its destination, its first bytes, and the reason as the system words it."""

    remote: Address
    quoted: bytes
    reason: str


def enable_errors(sock: socket.socket) -> None:
    """Ask the system to keep the ICMP errors of a UDP socket."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)


def read_errors(sock: socket.socket) -> Iterator[IcmpError]:
    """Read up to `ERRORS_PER_WAKE` errors of the queue; those that say nothing of the peer are dropped."""
    for _ in range(ERRORS_PER_WAKE):
        try:
            quoted, control, _, remote = sock.recvmsg(QUOTED_BYTES, _CONTROL_BYTES, socket.MSG_ERRQUEUE)
        except OSError:
            return  # The queue is empty.
        reason = _reason_of(control)
        if reason is not None and remote:
            yield IcmpError((remote[0], remote[1]), quoted, reason)


def _reason_of(control: list[tuple[int, int, bytes]]) -> str | None:
    for level, kind, data in control:
        if (level, kind) not in ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)):
            continue
        errno, origin, icmp_type, code = _EXTENDED_ERROR.unpack_from(data)
        if icmp_type in _UNREACHABLE.get(origin, ()) and (origin, icmp_type, code) != _FRAGMENTATION_NEEDED:
            return os.strerror(errno)
    return None


def take_error(layer: "TransactionLayer", error: IcmpError) -> None:
    """
    End the client transactions of a destination when the request of one of them was repeated in vain.

    The quoted branch, which nobody can guess, proves that the error is about our request. The first error
    may be that of a peer that restarts: the request is repeated. The next one is about the port, so the
    other requests there end as well: the system sends few errors a second, and not one for each of many
    simultaneous calls. One that was not repeated yet goes on: the peer may be back for it, and whoever sees
    a branch further on, behind a proxy, can forge errors. Only requests that open a dialog, or need none,
    end like that, and only while no response has come.
    """
    found = _REQUEST_START.match(error.quoted)
    quoted = None if found is None else layer.wanted_client(found[1], found[2])
    if quoted is None or not _ends_by_error(quoted, quoted.flow, error):
        return
    if quoted.refusal is None or not quoted.repeated:
        quoted.refusal = error.reason
        return
    for transaction in layer.wanted_clients():
        # The end of one may have ended another.
        if not _ends_by_error(transaction, quoted.flow, error) or not layer.is_wanted(transaction):
            continue
        transaction.refusal = error.reason
        if transaction.repeated:
            logger.info(
                "%s:%d does not receive %s: %s",
                *error.remote,
                transaction.request.method,
                error.reason,
                extra={"call_id": transaction.call_id},
            )
            layer.fail_transport(transaction)


def _ends_by_error(transaction: "ClientTransaction", quoted: Flow, error: IcmpError) -> bool:
    """Return True for requests that an error of one on the flow `quoted` is about as well."""
    flow = transaction.flow
    # Another socket of ours may have another way to the peer.
    if flow.remote != error.remote or flow.transport is not quoted.transport or flow.reliable:
        return False
    # Within a dialog only silence is a sign that the peer is gone (RFC 3261 12.2.1.2).
    return transaction.user is not None and transaction.request.to.tag is None
