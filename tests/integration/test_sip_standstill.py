"""The event loop stands still: peers over real sockets are answered all the same, and nothing is lost."""

import contextlib
import re
import selectors
import socket
import threading
import time
from collections.abc import AsyncIterator

import pytest

from sip import parse_message
from sip.aio import Guard, InboundSession, Listen, UserAgent, UserAgentSettings
from sip.aio.udp import UdpTransport
from sip.message.message import Request, Response
from sip.protection.rate_limits import ProtectionSettings
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.real_time(reason="the thread that serves the sockets goes by the system's clock")

T1_S = 0.5
"""Wait of a peer before it repeats an INVITE (RFC 3261 17.1.1.2)."""
SPACING_S = 0.01
BEFORE = 20
"""Calls before the loop stands still."""
_BRANCH = re.compile(rb"branch=z9hG4bK-(\d+)")


class Caller(threading.Thread):
    """A peer in a thread of its own: one call after the other, each repeated as RFC 3261 has it."""

    def __init__(self, target: tuple[str, int], calls: int) -> None:
        super().__init__(daemon=True)
        self.repeated = 0
        self.begun = 0
        self.refused: set[int] = set()
        self.trying: set[int] = set()
        self._calls = calls
        self._target = target
        self._due: dict[int, float] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)

    def run(self) -> None:
        began = time.monotonic()
        with self._socket, selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            while len(self.refused) < self._calls and time.monotonic() < began + PATIENCE_S:
                now = time.monotonic()
                while self.begun < self._calls and began + self.begun * SPACING_S <= now:
                    self._begin(self.begun, now)
                    self.begun += 1
                for call, due in list(self._due.items()):
                    if due <= now:
                        self.repeated += 1
                        self._begin(call, now)
                if selector.select(SPACING_S / 4):
                    self._read()

    def _begin(self, call: int, now: float) -> None:
        self._due[call] = now + T1_S
        self._send("INVITE", call, "<sip:b@127.0.0.1>")

    def _send(self, method: str, call: int, to: str) -> None:
        host, port = self._socket.getsockname()
        self._socket.sendto(
            f"{method} sip:b@127.0.0.1 SIP/2.0\r\n"
            f"Via: SIP/2.0/UDP {host}:{port};branch=z9hG4bK-{call};rport\r\n"
            f"Max-Forwards: 70\r\nFrom: <sip:a@127.0.0.1>;tag={call}\r\nTo: {to}\r\nCall-ID: {call}\r\n"
            f"CSeq: 1 {method}\r\nContact: <sip:a@{host}:{port}>\r\nContent-Length: 0\r\n\r\n".encode(),
            self._target,
        )

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                data = self._socket.recv(65535)
                found = _BRANCH.search(data)
                assert found is not None
                call = int(found[1])
                self._due.pop(call, None)
                response = parse_message(data)
                assert isinstance(response, Response)
                if response.status == 100:
                    self.trying.add(call)
                elif response.status >= 300:
                    self.refused.add(call)
                    self._send("ACK", call, response.headers.get("To") or "")


class Refuser:
    """A user agent that refuses every call."""

    def __init__(self, guard: Guard | None = None) -> None:
        self.requests: list[Request] = []
        self.traced: list[tuple[str, bytes]] = []
        self.ua = UserAgent(
            [Listen("udp", "127.0.0.1", 0)],
            UserAgentSettings(),
            on_invite=self._refuse,
            on_message=lambda *noted: self.traced.append((noted[1], noted[4])),
            guard=guard,
        )

    def _refuse(self, session: InboundSession) -> None:
        self.requests.append(session.request)
        session.reject(486)


@contextlib.asynccontextmanager
async def refusing(guard: Guard | None = None) -> AsyncIterator[Refuser]:
    refuser = Refuser(guard)
    await refuser.ua.start()
    try:
        yield refuser
    finally:
        await refuser.ua.close()


def stand_still(duration_s: float) -> None:
    """Stop the loop, as a callback does that takes long: nothing else shows what happens meanwhile."""
    time.sleep(duration_s)  # noqa: TID251


async def calls_over_a_standstill(refuser: Refuser, duration_s: float) -> Caller:
    calls = BEFORE + int(duration_s / SPACING_S) + BEFORE
    caller = Caller(("127.0.0.1", refuser.ua.addresses[0].port), calls)
    caller.start()
    await until(lambda: caller.begun >= BEFORE)
    [transport] = refuser.ua.layer.transports
    # An ICMP error in the socket is in nobody's way.
    transport.flow_to(("127.0.0.1", free_port())).send(b"x")
    stand_still(duration_s)
    await until(lambda: not caller.is_alive())
    return caller


@pytest.mark.parametrize("duration_s", [0.5, 1.2])
async def test_no_peer_repeats_its_call_while_the_loop_stands_still(duration_s: float) -> None:
    """At 100 calls a second; each gets its 100, and the loop handles it once when it goes on."""
    async with refusing() as refuser:
        caller = await calls_over_a_standstill(refuser, duration_s)
        assert caller.repeated == 0
        assert len(caller.refused) == caller.begun == len(refuser.requests)
        assert [int(request.call_id) for request in refuser.requests] == list(range(caller.begun))
        assert len(caller.trying) >= duration_s / SPACING_S / 2
        directions = [
            direction for direction, message in refuser.traced if message.startswith(b"SIP/2.0 100 ")
        ]
        assert directions == ["out"] * len(caller.trying), "the trace shows what was sent meanwhile"


async def test_without_the_watchdog_peers_repeat_their_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a loop on its own: this is what the test above would find."""
    made = UdpTransport.__init__
    monkeypatch.setattr(
        UdpTransport, "__init__", lambda self, listen, receive, *_: made(self, listen, receive)
    )
    async with refusing() as refuser:
        caller = await calls_over_a_standstill(refuser, 1.2)
        assert caller.repeated > 0
        assert len(caller.refused) == caller.begun == len(refuser.requests)


async def test_a_banned_source_is_dropped_while_the_loop_stands_still() -> None:
    guard = Guard(ProtectionSettings(), lambda host: host == "127.0.0.1")
    async with refusing(guard) as refuser:
        target = ("127.0.0.1", refuser.ua.addresses[0].port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as scanner:
            scanner.bind(("127.0.0.9", 0))
            scanner.sendto(b"OPTIONS sip:b SIP/2.0\r\nUser-Agent: sipvicious\r\n\r\n", target)
            await until(lambda: "127.0.0.9" in guard.banned)
            for _ in range(200):
                scanner.sendto(b"INVITE sip:b SIP/2.0\r\n\r\n", target)
        deadline = time.monotonic() + PATIENCE_S
        while guard.rejected["banned"] < 200 and time.monotonic() < deadline:
            stand_still(0.05)
        assert guard.rejected == {"scanner": 1, "banned": 200}
        assert refuser.traced == []


async def test_a_socket_that_was_handed_over_is_left_to_its_next_reader() -> None:
    """The process that hands over sends on its sockets, and reads them again only when it gets them back."""
    async with refusing() as refuser:
        target = ("127.0.0.1", refuser.ua.addresses[0].port)
        first = Caller(target, 1)
        first.start()
        # Its last datagram is read here, not by the next reader.
        await until(lambda: any(message.startswith(b"ACK ") for _, message in refuser.traced))
        [handed] = refuser.ua.sharing.hand_over().sockets.values()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            for data in (b"one", b"two"):
                peer.sendto(data, target)
            stand_still(0.3)
            assert handed.recv(100) == b"one"
            assert handed.recv(100) == b"two"
        await refuser.ua.sharing.resume_reading()
        caller = await calls_over_a_standstill(refuser, 0.5)
        assert caller.repeated == 0
        assert len(caller.refused) == caller.begun


async def test_after_a_standstill_the_thread_leaves_the_sockets_to_the_loop() -> None:
    async with refusing() as refuser:
        await calls_over_a_standstill(refuser, 0.5)
        traced = len(refuser.traced)
        caller = Caller(("127.0.0.1", refuser.ua.addresses[0].port), BEFORE)
        caller.start()
        await until(lambda: not caller.is_alive())
        assert caller.repeated == 0
        assert len(caller.refused) == BEFORE
        assert len(refuser.traced) > traced
