"""SIP over UDP."""

import asyncio
import contextlib
import errno
import logging
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable

from sip.aio.icmp import IcmpError, enable_errors, read_errors
from sip.aio.transport import Address, Flow, Listen, Transport
from sip.aio.watchdog import Watchdog
from sip.message.native import wire
from sip.protection.rate_limits import Protection

logger = logging.getLogger(__name__)

DATAGRAMS_PER_WAKE = 32
"""Datagrams read at a time; then timers and other sockets get their turn."""
DROPS_PER_WAKE = 8
"""Full reads in a row, as long as nothing in them passes."""
MAX_UNSENT = 1024
"""Datagrams queued while the socket's buffer is full; beyond it they are dropped."""
TIMESTAMPS = 35
"""SO_TIMESTAMPNS of Linux, missing in the socket module: arrival time of a datagram."""
LONGEST_WAIT_S = 60.0
"""No datagram waits this long: its sender has given up, and the buffer would have overflowed."""
MEMORY_INFO = 55
"""SO_MEMINFO of Linux, missing too: memory use of a socket, and datagrams dropped for lack of it."""
MEMORY_FIELDS = struct.Struct("=9I")
BUFFER_BYTES = 4 * 1024 * 1024
_NOT_NOW = frozenset((errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR))


ReceiveAdmitted = Callable[[bytes, Flow, bool], None]
"""Called with each datagram that is let pass, and whether its source is known."""


class _UdpFlow(Flow):
    """Flow to one remote address; every datagram makes one."""

    __slots__ = ()

    transport: "UdpTransport"

    def __init__(self, transport: "UdpTransport", remote: Address) -> None:
        self.transport = transport
        self.remote = remote
        self.origin = None

    def send(self, data: bytes) -> bool:
        transport, remote = self.transport, self.remote
        if transport.unsent:
            return transport.queue(data, remote)
        refused = wire.send_datagram(transport.descriptor, data, remote[0], remote[1])
        return refused == 0 or (refused in _NOT_NOW and transport.queue(data, remote))


class UdpTransport(Transport):
    """
    One UDP socket, read and written without an asyncio protocol.

    What `protection` drops never becomes an object; without it every source is known. `on_wait` is called
    with the seconds that a datagram had waited, when datagrams wait. A `watchdog` reads the socket while the
    loop stands still. `on_error` is called with each ICMP error of a datagram.

    The native module reads many datagrams with one system call and keeps the interpreter lock. The socket
    module releases it on every call, and other threads take it in the middle of a message.

    The loop watches an epoll descriptor in place of the socket: uvloop stops watching a descriptor that polls
    as broken, as a socket with an ICMP error does.
    """

    name = "udp"
    reliable = False

    def __init__(
        self,
        listen: Listen,
        receive: ReceiveAdmitted,
        on_wait: Callable[[float], None] | None = None,
        watchdog: Watchdog | None = None,
        protection: Protection | None = None,
        on_error: Callable[[IcmpError], None] | None = None,
    ) -> None:
        self.address = listen
        self._reader = wire.DatagramReader(None if protection is None else protection.sources)
        self._asks = None if protection is None else protection.asks
        self._watchdog = watchdog
        self._receive = receive
        self._on_wait = on_wait
        self._on_error = on_error
        self._socket: socket.socket | None = None
        self.descriptor = -1
        """Descriptor of the socket; -1 while there is none."""
        self.unsent: deque[tuple[bytes, Address]] = deque(maxlen=MAX_UNSENT)
        """Datagrams that wait for room in the socket's buffer, with their targets."""
        self._behind = False
        self._reads = True
        self._loop: asyncio.AbstractEventLoop
        self._poll: select.epoll

    async def open(self, inherited: socket.socket | None = None) -> None:
        """Bind the socket, or read from that of another process."""
        listen = self.address
        self._loop = asyncio.get_running_loop()
        sock = inherited or _bound(listen)
        self._socket, self.descriptor = sock, sock.fileno()
        self.address = Listen(self.name, listen.host, sock.getsockname()[1], listen.advertise)
        self._poll = select.epoll()
        self._poll.register(self.descriptor, 0)
        self._watch()
        if self._watchdog is not None:
            self.socket_number = self._watchdog.add(self, self.descriptor)

    def pause(self) -> socket.socket:
        """Stop reading; waiting and later datagrams go to the next reader of the socket."""
        assert self._socket is not None
        self._reads = False
        self._watch()
        if self._watchdog is not None:
            self._watchdog.set_reading(self.socket_number, False)
            while not self._watchdog.catch_up():
                pass  # Nobody else gets what was read.
        return self._socket

    async def resume(self) -> None:
        """Resume reading."""
        if self._socket is not None:
            self._reads = True
            self._watch()
            if self._watchdog is not None:
                self._watchdog.set_reading(self.socket_number, True)

    def close(self) -> None:
        """Close the socket."""
        sock, self._socket = self._socket, None
        self.descriptor = -1
        self.unsent.clear()
        if sock is not None:
            if self._watchdog is not None:
                self._watchdog.remove(self.socket_number)
            self._loop.remove_reader(self._poll.fileno())
            self._poll.close()
            sock.close()

    def flow_to(self, remote: Address, name: str | None = None) -> Flow:
        """Return the flow to a remote address."""
        return _UdpFlow(self, remote)

    def queue(self, data: bytes, remote: Address) -> bool:
        """Send one datagram as soon as the socket's buffer has room for it."""
        self.unsent.append((data, remote))
        if len(self.unsent) == 1:
            self._watch()
        return True

    def receive_buffer(self) -> tuple[int, int, int]:
        """Return the bytes of unread datagrams, their limit, and the datagrams dropped beyond it."""
        if self._socket is None:
            return 0, 0, 0
        try:
            found = self._socket.getsockopt(socket.SOL_SOCKET, MEMORY_INFO, MEMORY_FIELDS.size)
            waiting, limit, *_, lost = MEMORY_FIELDS.unpack(found)
        except (OSError, struct.error):
            return 0, 0, 0  # This system does not report it.
        return waiting, limit, lost

    def _watch(self) -> None:
        """Watch for what there is to be done: reading, and sending what is queued."""
        events = (select.EPOLLIN if self._reads else 0) | (select.EPOLLOUT if self.unsent else 0)
        self._poll.modify(self.descriptor, events)
        if events:
            self._loop.add_reader(self._poll.fileno(), self._ready)
        else:
            self._loop.remove_reader(self._poll.fileno())

    def _ready(self) -> None:
        if self.unsent:
            self._send_queued()
        if not self._reads:
            return
        watchdog = self._watchdog
        if watchdog is not None and watchdog.note_served(self._loop.time()) and not watchdog.catch_up():
            return
        late, self._behind = self._behind, False
        self._behind = self._read_many(late=late)
        if late and self._on_wait is not None:
            self._on_wait(0.0)  # Later datagrams may have arrived just now.

    def _read_many(self, *, late: bool) -> bool:
        """Read the waiting datagrams; True if there may be more."""
        for turn in range(DROPS_PER_WAKE):
            count = self._reader.receive(self.descriptor, DATAGRAMS_PER_WAKE)
            if late and turn == 0:
                self._note_wait()
            if count == 0:
                self._take_errors()  # An error, or no datagram: errors alone have woken us.
                return False
            self._take_read(count)
            if count < DATAGRAMS_PER_WAKE:
                return False
            if self._reader.dropped < count:
                break
        return True

    def _take_read(self, count: int) -> None:
        now = self._loop.time()
        for _ in range(count):
            peer: Address | None = None
            try:
                arrived = self._reader.next(self._asks, now)
                if arrived is None or self._socket is None:
                    return
                data, peer, known = arrived
                self._receive(data, _UdpFlow(self, peer), known)
            except Exception:  # A defect in one datagram's handling must not lose the others.
                host = None if peer is None else peer[0]
                logger.exception("A datagram could not be handled", extra={"peer": host})

    def _take_errors(self) -> None:
        if self._socket is None:
            return  # A datagram's handling has closed it.
        for error in read_errors(self._socket):
            if self._on_error is None:
                continue
            try:
                self._on_error(error)
            except Exception:  # A defect in one error's handling must not leave the others in the queue.
                logger.exception("An ICMP error could not be handled", extra={"peer": error.remote[0]})

    def _note_wait(self) -> None:
        """Report how long the first of the datagrams read waited behind a full batch."""
        arrived_at_s = self._reader.arrived_at_s
        if arrived_at_s is not None and self._on_wait is not None:
            waited_s = time.time() - arrived_at_s
            # Otherwise the clock was set while it waited, and its age is wrong.
            if 0.0 <= waited_s < LONGEST_WAIT_S:
                self._on_wait(waited_s)

    def _send_queued(self) -> None:
        while self.unsent:
            data, remote = self.unsent[0]
            if wire.send_datagram(self.descriptor, data, remote[0], remote[1]) in _NOT_NOW:
                return
            self.unsent.popleft()  # Refused datagrams are dropped.
        self._watch()


def _bound(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        with contextlib.suppress(OSError):  # The system may cap it.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            sock.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)
        if family == socket.AF_INET6:
            # One IP version per socket: the Via of a request must name an address of the peer's version.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        enable_errors(sock)
        sock.bind((listen.host, listen.port))
    except OSError:
        sock.close()
        raise
    return sock
