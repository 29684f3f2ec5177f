"""
Two processes at the same addresses: the newer one hears everything, and passes on what belongs to the elder.

The elder hands over its sockets and reads them no more, but goes on sending by them: what its peers hear of
their calls does not change. A message of the newer one's own transactions and sessions is its own, and a call
that begins; everything else is the elder's, down to the refusal of what it does not know either.
"""

import json
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sip.aio.transport import Address, Flow, Listen, Transport
from sip.message.message import Message, Response
from sip.transactions.table import Key

if TYPE_CHECKING:
    from sip.aio.endpoint import Endpoint
    from sip.aio.guard import Guard
    from sip.aio.recovery import FormerSessions

__all__ = ["Elder", "HandedOver", "SendFrame", "Sharing", "listener_name"]

SendFrame = Callable[[bytes], None]

_MAX_FLOWS = 4096
"""Connections that answers of the elder find; the oldest are forgotten."""


def listener_name(listen: Listen) -> str:
    """What both processes call one local address."""
    return f"{listen.transport}:{listen.host}:{listen.port}"


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What the elder hands over: its sockets by name, the calls that are its own, and whom it vouches for."""

    sockets: dict[str, socket.socket]
    call_ids: list[str]
    hosts: list[str]


class Elder:
    """The elder process, as the newer one sees it; `send` brings it a frame, `owns` says what is not its."""

    def __init__(self, owns: Callable[[Message], bool], call_ids: Collection[str], send: SendFrame) -> None:
        self._owns = owns
        self._call_ids = frozenset(call_ids)
        self._send = send
        self._flows: dict[int, Flow] = {}
        self.passed = 0
        """Messages that were passed on."""

    def takes(self, message: Message, data: bytes, flow: Flow) -> bool:
        """Pass a message on if it is the elder's; False when it is for this process."""
        if self._owns(message) or self._begins(message):
            return False
        number = self._number_of(flow) if flow.reliable else 0
        header = json.dumps([listener_name(flow.transport.address), *flow.remote, number])
        self._send(header.encode() + b"\n" + data)
        self.passed += 1
        return True

    def answer(self, frame: bytes) -> None:
        """Send what the elder answers on a connection that is ours; ValueError when it cannot be read."""
        number, _, data = frame.partition(b"\n")
        flow = self._flows.get(int(number))
        if flow is not None and not flow.closed:
            flow.send(data)

    def _begins(self, message: Message) -> bool:
        """Whether a message begins something: the elder begins nothing any more, but may repeat itself."""
        if isinstance(message, Response) or message.to.tag is not None or message.method == "CANCEL":
            return False
        return message.call_id not in self._call_ids

    def _number_of(self, flow: Flow) -> int:
        number = id(flow)
        if number not in self._flows and len(self._flows) >= _MAX_FLOWS:
            del self._flows[next(iter(self._flows))]
        self._flows[number] = flow
        return number


class _PassedFlow(Flow):
    """The way back to a peer whose connection the newer process has."""

    __slots__ = ("_number", "_send")

    reliable = True

    def __init__(self, transport: Transport, remote: Address, number: int, send: SendFrame) -> None:
        super().__init__(transport, remote)
        self._number = number
        self._send = send

    def send(self, data: bytes) -> bool:
        """Have the newer process send it."""
        self._send(f"{self._number}\n".encode() + data)
        return True


class Sharing:
    """
    One user agent's part in sharing its addresses, as the newer process, then as the elder.

    `sessions` and `invites` are its tables: what is in them is its own.
    """

    def __init__(self, sessions: Mapping[tuple[str, str], object], invites: Mapping[Key, Key]) -> None:
        self._sessions = sessions
        self._invites = invites
        self._handed: HandedOver | None = None
        self._send: SendFrame | None = None
        self._endpoint: Endpoint
        self._former: FormerSessions
        self._guard: Guard | None = None

    # The newer process.

    def inherit(self, handed: HandedOver, send: SendFrame) -> None:
        """Use the sockets of an elder process and pass on to it what is its own; before the start."""
        self._handed, self._send = handed, send

    def start(self, endpoint: "Endpoint", former: "FormerSessions", guard: "Guard | None") -> None:
        """Take the parts of the user agent, which is about to open its transports."""
        self._endpoint, self._former, self._guard = endpoint, former, guard
        if self._handed is None or self._send is None:
            return
        if guard is not None:
            for host in self._handed.hosts:
                guard.vouch(host)
        endpoint.elder = Elder(self._owns, self._handed.call_ids, self._send)

    def inherited(self, listen: Listen) -> socket.socket | None:
        """The elder's socket for an address, if it had that too."""
        return None if self._handed is None else self._handed.sockets.get(listener_name(listen))

    def answer(self, frame: bytes) -> None:
        """Send what the elder answers on a connection that is ours."""
        if self._endpoint.elder is not None:
            self._endpoint.elder.answer(frame)

    def end(self) -> int:
        """The elder is gone: whatever comes is for this process; how many messages were passed on."""
        elder, self._endpoint.elder = self._endpoint.elder, None
        return 0 if elder is None else elder.passed

    def _owns(self, message: Message) -> bool:
        if self._endpoint.has_transaction(message):
            return True
        if isinstance(message, Response):
            return (message.call_id, message.from_.tag or "") in self._sessions
        tag = message.to.tag
        return tag is not None and ((message.call_id, tag) in self._sessions or self._former.obeys(message))

    # The elder process.

    def hand_over(self) -> HandedOver:
        """Hear no more, and give another process what it needs to hear in our place."""
        transports = self._endpoint.transports
        sockets = {listener_name(transport.address): transport.pause() for transport in transports}
        call_ids = {call_id for call_id, _ in self._sessions} | {str(key[0]) for key in self._invites}
        return HandedOver(sockets, list(call_ids), [] if self._guard is None else list(self._guard.known))

    async def take_back(self) -> None:
        """Hear again: the other process did not come up."""
        for transport in self._endpoint.transports:
            await transport.resume()

    def receive(self, frame: bytes, answer: SendFrame) -> None:
        """
        Take a message that the newer process passes on; `answer` takes what goes on its connections.

        Raises:
            ValueError: It is not what `Elder.takes` makes.
        """
        header, _, data = frame.partition(b"\n")
        fields: Any = json.loads(header)
        if not isinstance(fields, list):
            raise ValueError("its header is no list")
        name, host, port, number = fields
        if not (isinstance(port, int) and 0 <= port <= 65535 and isinstance(number, int)):
            raise ValueError("its address is none")
        for transport in self._endpoint.transports:
            if listener_name(transport.address) == name:
                remote = (str(host), port)
                flow = _PassedFlow(transport, remote, number, answer) if transport.reliable else None
                self._endpoint.receive(data, flow or transport.flow_to(remote))
