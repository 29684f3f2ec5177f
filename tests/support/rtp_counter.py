"""A far end that counts the RTP packets it gets, and says nothing itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from sip.aio import InboundSession
from tests.support.phone import PhoneCall
from tests.support.waiting import time_passes

__all__ = ["LENGTH_S", "Counter", "counter"]

LENGTH_S = 100.0
LONGEST_GAP_S = 0.060
# Datagrams are read a little later than they were sent.
_READ_S = 0.015


@dataclass(frozen=True)
class Packet:
    """One RTP packet of the server, with the time at which it came."""

    at_s: float
    sequence: int
    timestamp: int
    ssrc: int


class Counter(asyncio.DatagramProtocol):
    """A far end that sends nothing and keeps the RTP packets that it gets (RFC 3550 5.1)."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
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

    @property
    def sdp(self) -> bytes:
        """A description of the far end."""
        return (
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
            f"m=audio {self.port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=ptime:20\r\na=sendrecv\r\n"
        ).encode()

    def answer(self, call: PhoneCall) -> None:
        assert isinstance(call.session, InboundSession)
        call.session.answer(self.sdp)

    async def check(self, length_s: float = LENGTH_S) -> None:
        """Listen, then check gaps, sequence numbers, timestamps and the SSRC."""
        heard_until_s = asyncio.get_running_loop().time() + length_s
        await time_passes(length_s)
        packets = [packet for packet in self.packets if packet.at_s <= heard_until_s]
        assert packets, "nothing was sent"
        assert heard_until_s - packets[-1].at_s <= LONGEST_GAP_S + _READ_S, "it stopped"
        for before, after in zip(packets, packets[1:], strict=False):
            assert after.at_s - before.at_s <= LONGEST_GAP_S + _READ_S, (before, after)
            assert after.sequence == (before.sequence + 1) % 65536, (before, after)
            assert after.ssrc == before.ssrc, (before, after)
        assert len(packets) > 45 * length_s
        first, last = packets[0], packets[-1]
        units = (last.timestamp - first.timestamp) % 2**32
        assert units / 8000 == pytest.approx(last.at_s - first.at_s, abs=0.1)


@asynccontextmanager
async def counter() -> AsyncIterator[Counter]:
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_datagram_endpoint(Counter, ("127.0.0.1", 0))
    try:
        yield made
    finally:
        transport.close()
