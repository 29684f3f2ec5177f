"""
Handover between two processes on the same addresses: the new one reads, and forwards to the previous one.

The previous process hands over its sockets and stops reading them, but still sends on them, so its peers see
no change. The new process keeps messages of its own transactions and sessions, and new calls. It forwards
everything else, including messages that the previous process will refuse as unknown too.
"""

import json
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sip.aio.transaction_io import Key
from sip.aio.transport import Address, Flow, Listen, Transport
from sip.message.message import Message, Response

if TYPE_CHECKING:
    from sip.aio.guard import Guard
    from sip.aio.recovery import RecoveredDialogs
    from sip.aio.transaction_layer import TransactionLayer

SendFrame = Callable[[bytes], None]

_MAX_FLOWS = 4096
"""Connections kept for messages of the previous process; the oldest are dropped."""


def listener_name(listen: Listen) -> str:
    """Return the name of a local address, the same in both processes."""
    return f"{listen.transport}:{listen.host}:{listen.port}"


@dataclass(frozen=True, slots=True)
class HandedOverState:
    """State of the previous process: its sockets by name, the Call-IDs of its calls and its trusted hosts."""

    sockets: dict[str, socket.socket]
    call_ids: list[str]
    hosts: list[str]


class PreviousProcess:
    """The previous process, seen by the new one; `send` sends it a frame, `owns` finds our own messages."""

    def __init__(self, owns: Callable[[Message], bool], call_ids: Collection[str], send: SendFrame) -> None:
        self._owns = owns
        self._call_ids = frozenset(call_ids)
        self._send = send
        self._flows: dict[int, Flow] = {}
        self.forwarded = 0
        """Count of forwarded messages."""

    def forwards(self, message: Message, data: bytes, flow: Flow) -> bool:
        """Forward a message of no transaction of ours to the previous process; False if it belongs to us."""
        if self._owns(message) or self._starts_call(message):
            return False
        number = self._number_of(flow) if flow.reliable else 0
        header = json.dumps([listener_name(flow.transport.address), *flow.remote, number])
        self._send(header.encode() + b"\n" + data)
        self.forwarded += 1
        return True

    def answer(self, frame: bytes) -> None:
        """Send a message of the previous process on our connection; ValueError if the frame is malformed."""
        number, _, data = frame.partition(b"\n")
        flow = self._flows.get(int(number))
        if flow is not None and not flow.closed:
            flow.send(data)

    def _starts_call(self, message: Message) -> bool:
        """True for a request outside dialogs with a new Call-ID: the previous process starts nothing new."""
        if isinstance(message, Response) or message.to.tag is not None or message.method == "CANCEL":
            return False
        return message.call_id not in self._call_ids

    def _number_of(self, flow: Flow) -> int:
        number = id(flow)
        if number not in self._flows and len(self._flows) >= _MAX_FLOWS:
            del self._flows[next(iter(self._flows))]
        self._flows[number] = flow
        return number


class _ForwardedFlow(Flow):
    """Flow to a peer whose connection the new process holds."""

    __slots__ = ("_number", "_send")

    reliable = True

    def __init__(self, transport: Transport, remote: Address, number: int, send: SendFrame) -> None:
        super().__init__(transport, remote)
        self._number = number
        self._send = send

    def send(self, data: bytes) -> bool:
        """Send the data through the new process."""
        self._send(f"{self._number}\n".encode() + data)
        return True


class SocketSharing:
    """
    Handover of one user agent, first in the role of the new process, later of the previous one.

    `sessions` and `invites` are its tables: their entries belong to this process.
    """

    def __init__(self, sessions: Mapping[tuple[str, str], object], invites: Mapping[Key, int]) -> None:
        self._sessions = sessions
        self._invites = invites
        self._handed: HandedOverState | None = None
        self._send: SendFrame | None = None
        self._layer: TransactionLayer
        self._recovered: RecoveredDialogs
        self._guard: Guard | None = None

    # The new process.

    def inherit(self, handed: HandedOverState, send: SendFrame) -> None:
        """Use the sockets of a previous process and forward its messages; call this before the start."""
        self._handed, self._send = handed, send

    def start(self, layer: "TransactionLayer", recovered: "RecoveredDialogs", guard: "Guard | None") -> None:
        """Start with the parts of the user agent, before it opens its transports."""
        self._layer, self._recovered, self._guard = layer, recovered, guard
        if self._handed is None or self._send is None:
            return
        if guard is not None:
            for host in self._handed.hosts:
                guard.protection.trust(host, layer.clock.time())
        layer.set_previous(PreviousProcess(self._owns, self._handed.call_ids, self._send))

    def inherited(self, listen: Listen) -> socket.socket | None:
        """Return the previous process's socket for an address, or None."""
        return None if self._handed is None else self._handed.sockets.get(listener_name(listen))

    def answer(self, frame: bytes) -> None:
        """Send a message of the previous process on our connection."""
        if self._layer.previous is not None:
            self._layer.previous.answer(frame)

    def end(self) -> int:
        """Stop forwarding after the previous process exited; returns the count of forwarded messages."""
        previous = self._layer.previous
        self._layer.set_previous(None)
        return 0 if previous is None else previous.forwarded

    def _owns(self, message: Message) -> bool:
        if isinstance(message, Response):
            return (message.call_id, message.from_.tag or "") in self._sessions
        tag = message.to.tag
        return tag is not None and ((message.call_id, tag) in self._sessions or self._recovered.ends(message))

    # The previous process.

    def hand_over(self) -> HandedOverState:
        """Stop reading, and return what another process needs to read in our place."""
        transports = self._layer.transports
        sockets = {listener_name(transport.address): transport.pause() for transport in transports}
        call_ids = {call_id for call_id, _ in self._sessions} | {str(key[0]) for key in self._invites}
        return HandedOverState(
            sockets, list(call_ids), [] if self._guard is None else list(self._guard.protection.trusted)
        )

    async def resume_reading(self) -> None:
        """Resume reading: the other process did not start."""
        for transport in self._layer.transports:
            await transport.resume()

    def receive(self, frame: bytes, answer: SendFrame) -> None:
        """
        Handle a message that the new process forwards; `answer` sends frames for its connections.

        Raises:
            ValueError: The frame was not made by `PreviousProcess.forwards`.
        """
        header, _, data = frame.partition(b"\n")
        fields: Any = json.loads(header)
        if not isinstance(fields, list):
            raise ValueError("the frame header is not a list")
        name, host, port, number = fields
        if not (isinstance(port, int) and 0 <= port <= 65535 and isinstance(number, int)):
            raise ValueError("the frame address is malformed")
        for transport in self._layer.transports:
            if listener_name(transport.address) == name:
                remote = (str(host), port)
                flow = _ForwardedFlow(transport, remote, number, answer) if transport.reliable else None
                self._layer.receive(data, flow or transport.flow_to(remote))
