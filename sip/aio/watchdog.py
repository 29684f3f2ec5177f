"""
The thread that serves the UDP sockets while the event loop stands still, seen from the loop.

It needs no interpreter lock: it answers repetitions, opens the transactions of known sources and sends their
100, drops what the guard drops, and keeps for the loop what needs Python.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from sip._wire import KEPT_ADMITTED, KEPT_MESSAGE, KEPT_OUTPUT, KEPT_SENT
from sip.aio.transport import Flow, Transport

if TYPE_CHECKING:
    from sip._wire import Engine, Found
    from sip.aio.transaction_layer import TransactionLayer

logger = logging.getLogger(__name__)

NO_SOCKET = Transport.socket_number
KEPT_PER_TURN = 32
"""Messages handled at a time after a standstill; then timers and other sockets get their turn."""


class Watchdog:
    """The sockets that the thread serves, and what it has kept."""

    def __init__(self, layer: "TransactionLayer", engine: "Engine") -> None:
        self._layer = layer
        self._engine = engine
        self._transports: dict[int, Transport] = {}
        self.note_served = engine.note_served
        """Notes that the loop reads its sockets; True if `catch_up` comes first."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, transport: Transport, descriptor: int) -> int:
        """
        Serve the socket of a transport when the loop does not; returns its number in the engine.

        A loop that drives engines has a clock of its own, by which the thread cannot tell what is late; its
        sockets are left to it, and have the number -1.
        """
        loop = asyncio.get_running_loop()
        if hasattr(loop, "drive_engine"):
            return NO_SOCKET
        if self._loop is None:
            self._loop = loop
            self._loop.add_reader(self._engine.wake_descriptor, self.catch_up)
        number = self._engine.add_socket(descriptor)
        self._transports[number] = transport
        return number

    def set_reading(self, number: int, reading: bool) -> None:
        """Leave a socket to another process, or read it again; it is sent on in either case."""
        if number != NO_SOCKET:
            self._engine.set_reading(number, reading)

    def remove(self, number: int) -> None:
        """Serve a socket no more; it may be closed then."""
        if number != NO_SOCKET:
            self._engine.remove_socket(number)
        self._transports.pop(number, None)

    def close(self) -> None:
        """End the thread."""
        if self._loop is not None:
            self._loop.remove_reader(self._engine.wake_descriptor)
            self._loop = None
        self._engine.stop()

    def catch_up(self) -> bool:
        """
        Handle what the thread has kept, which comes before anything that came later.

        Returns False if some is left for the next turn of the loop, which its descriptor wakes.
        """
        if self._loop is None:
            return True
        kept = self._engine.take_kept(KEPT_PER_TURN)
        for what, found, data, socket, remote, at_s in kept:
            try:
                self._take(what, found, data, self._transports.get(socket), remote, at_s)
            except Exception:  # A defect in one message's handling must not lose the others.
                logger.exception("What was kept for the loop could not be handled", extra={"peer": remote[0]})
        return len(kept) < KEPT_PER_TURN

    def _take(
        self,
        what: int,
        found: "Found",
        data: bytes,
        transport: Transport | None,
        remote: tuple[str, int],
        at_s: float,
    ) -> None:
        if what == KEPT_OUTPUT:
            self._layer.perform([(found[0], found[1], data)])
        elif transport is None:
            return  # It was closed since.
        elif what == KEPT_SENT:
            self._layer.note_sent(data, transport.flow_to(remote), found[1])
        else:
            self._take_late(what, found, data, transport.flow_to(remote), at_s)

    def _take_late(self, what: int, found: "Found", data: bytes, flow: Flow, at_s: float) -> None:
        """Handle a datagram that came while the loop stood still."""
        layer = self._layer
        guard = layer.user.guard
        if guard is not None:
            guard.note_wait(max(0.0, layer.clock.time() - at_s))
        try:
            if what == KEPT_MESSAGE:
                if guard is not None:
                    guard.locate(data, flow)
                layer.take_found(found, data, flow)
            elif what == KEPT_ADMITTED:
                layer.receive_admitted(data, flow, known=False)
            else:
                layer.receive(data, flow)
        finally:
            if guard is not None:
                guard.note_wait(0.0)
