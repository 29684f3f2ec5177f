"""A far end that counts what it gets: no gap in its RTP, and one stream by its numbers (RFC 3550 5.1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import pytest

from sip.aio import InboundSession
from tests.support.phone import PhoneCall
from tests.support.waiting import time_passes

__all__ = ["LENGTH_S", "LONGEST_GAP_S", "Counter", "Packet", "answering", "counter", "counters"]

LENGTH_S = 100.0
"""Time for which packets are counted, unless a test says another."""

LONGEST_GAP_S = 0.060
# Datagrams are read a little later than they were sent.
_READ_S = 0.015
_CLOCK_HZ = 8000
_OWN_SSRC = bytes((0, 0, 0, 7))


@dataclass(frozen=True)
class Packet:
    """One RTP packet that came, with the time at which it did."""

    at_s: float
    sequence: int
    timestamp: int
    ssrc: int


class Counter(asyncio.DatagramProtocol):
    """
    A far end that keeps the headers of the RTP packets that it gets, and sends only what a test says.

    Attributes:
        packets: Those that have come, the oldest first.
        port: Its UDP port.
    """

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.port = 0
        self._version = 0
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, _: tuple[str, int]) -> None:
        if data[1] in range(192, 224):
            return  # RTCP (RFC 5761 4).
        self.packets.append(
            Packet(
                asyncio.get_running_loop().time(),
                int.from_bytes(data[2:4], "big"),
                int.from_bytes(data[4:8], "big"),
                int.from_bytes(data[8:12], "big"),
            )
        )

    def sdp(self, direction: str = "sendrecv") -> bytes:
        """The next description of the far end, with telephone events."""
        self._version += 1
        return (
            f"v=0\r\no=- 1 {self._version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
            f"m=audio {self.port} RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\n"
            f"a=rtpmap:101 telephone-event/8000\r\na=ptime:20\r\na={direction}\r\n"
        ).encode()

    def answer(self, call: PhoneCall) -> None:
        """Answer a call that comes to a telephone."""
        assert isinstance(call.session, InboundSession)
        call.session.answer(self.sdp())

    def send(self, port: int, sequence: int, timestamp: int) -> None:
        """Send a packet of 20 ms of PCMU to a port; the numbers are those of its header."""
        head = bytes((0x80, 0)) + sequence.to_bytes(2, "big") + timestamp.to_bytes(4, "big") + _OWN_SSRC
        self._transport.sendto(head + bytes([0x55]) * 160, ("127.0.0.1", port))

    async def check(self, length_s: float = LENGTH_S) -> None:
        """Listen for so long, then check all that has come so far, as `check_until` does."""
        heard_until_s = asyncio.get_running_loop().time() + length_s
        await time_passes(length_s)
        self.check_until(heard_until_s)

    def check_until(self, heard_until_s: float, since_s: float | None = None) -> None:
        """
        Check gaps, sequence numbers, timestamps and the SSRC of what has come until then.

        Args:
            heard_until_s: Time of the loop at which the stream still has to be there.
            since_s: Time of the loop at which it has to begin; without it, at the first packet.
        """
        packets = [packet for packet in self.packets if packet.at_s <= heard_until_s]
        assert packets, "nothing was sent"
        first, last = packets[0], packets[-1]
        assert heard_until_s - last.at_s <= LONGEST_GAP_S + _READ_S, "it stopped"
        assert since_s is None or first.at_s - since_s <= LONGEST_GAP_S + _READ_S, "it began late"
        for before, after in pairwise(packets):
            assert after.at_s - before.at_s <= LONGEST_GAP_S + _READ_S, (before, after)
            assert after.sequence == (before.sequence + 1) % 2**16, (before, after)
            # The packets of an event have one timestamp (RFC 4733 2.2.1); none goes back.
            assert (after.timestamp - before.timestamp) % 2**32 < 2**31, (before, after)
            assert after.ssrc == before.ssrc, (before, after)
        length_s = last.at_s - first.at_s
        assert len(packets) > 45 * length_s
        units = (last.timestamp - first.timestamp) % 2**32
        assert units / _CLOCK_HZ == pytest.approx(length_s, abs=0.1)


@asynccontextmanager
async def counter() -> AsyncIterator[Counter]:
    """A far end."""
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_datagram_endpoint(Counter, ("127.0.0.1", 0))
    try:
        yield made
    finally:
        transport.close()


@asynccontextmanager
async def counters(count: int) -> AsyncIterator[list[Counter]]:
    """So many far ends."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(counter()) for _ in range(count)]


def answering(*fars: Counter) -> Callable[[PhoneCall], None]:
    """Return the handler of a telephone whose calls these far ends answer, one after the other."""
    left = list(fars)
    return lambda call: left.pop(0).answer(call)
