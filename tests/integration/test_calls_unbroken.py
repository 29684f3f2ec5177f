"""Legs that are never without RTP: a far end that counts packets while nothing is said for 100 s."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from callcontrol.calls.plan import Announce, Gather, JoinConference, Pause, Plan, Play, RecordMessage, Step
from callcontrol.calls.requests import CallMetadata
from callcontrol.masking.steps.connect import masked_plan
from media.audio import Clip, tone
from sip import Answered
from sip.aio import InboundSession
from tests.support.agent_bot import Bot, raw_server
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID, CALLEE, OWN_NUMBER
from tests.support.phone import PhoneCall, engine_settings
from tests.support.waiting import time_passes
from tests.support.world import WEBHOOK, World, running

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


@asynccontextmanager
async def world_of(directory: Path) -> AsyncIterator[World]:
    """A server as it is started, but that no silence ends a call."""
    media = engine_settings(continuous=True)
    async with running(directory, media=media, media_timeout_s=0.0) as world:
        yield world


async def up(world: World, far: Counter, *steps: Step) -> PhoneCall:
    """A call to a far end that answers."""
    world.phone.on_call = far.answer
    await world.control.place(
        ACCOUNT_SID, Plan(steps, dial=make_party()), CallMetadata(status_webhook_url=WEBHOOK)
    )
    return await world.phone.next_call()


async def pauses(world: World, far: Counter) -> PhoneCall:
    return await up(world, far, Pause(2 * LENGTH_S))


async def gathers(world: World, far: Counter) -> PhoneCall:
    gather = Gather((Play("prompt:beep"), Pause(2.0)), timeout_s=60.0)
    return await up(world, far, gather, gather)


async def records(world: World, far: Counter) -> PhoneCall:
    return await up(world, far, *[RecordMessage(silence_s=60.0)] * 2)


async def announces(world: World, far: Counter) -> PhoneCall:
    """As a voice OTP is spoken, with silence between the repetitions and after them."""
    return await up(world, far, Announce((Clip(tone(440.0, 1000)),), 5), Pause(2 * LENGTH_S))


async def confers_alone(world: World, far: Counter) -> PhoneCall:
    return await up(world, far, JoinConference("sales"))


@pytest.mark.parametrize("situation", [pauses, gathers, records, announces, confers_alone])
async def test_a_leg_that_waits_gets_rtp_without_a_gap(
    situation: Callable[[World, Counter], Awaitable[PhoneCall]], tmp_path: Path
) -> None:
    async with world_of(tmp_path) as world, counter() as far:
        call = await situation(world, far)
        await far.check()
        call.hang_up()
        await world.ended()


async def test_both_silent_parties_of_a_bridge_get_rtp_without_a_gap(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world, counter() as far, counter() as other:
        world.forward()
        world.phone.on_call = other.answer
        call = world.phone.call(OWN_NUMBER, world.port, body=far.sdp)
        await call.wait(Answered)
        await asyncio.gather(far.check(), other.check())
        call.hang_up()
        await world.ended()


async def test_a_party_that_waits_for_another_gets_rtp_without_a_gap(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world, counter() as far:

        def called(call: PhoneCall) -> None:
            if call.request.uri.user == CALLEE:
                far.answer(call)
            else:
                call.ring()

        world.phone.on_call = called
        plan = masked_plan(CALLEE, "+919812345678", OWN_NUMBER, max_duration_s=None, record=False)
        await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
        first = await world.phone.next_call()
        await world.phone.next_call(2)
        # The second party rings for at most a minute.
        await far.check(55.0)
        first.hang_up()
        await world.ended()


async def test_a_party_whose_agent_says_nothing_gets_rtp_without_a_gap(tmp_path: Path) -> None:
    async with Bot(Bot.until_closed).running() as bot, world_of(tmp_path) as world, counter() as far:
        world.phone.on_call = far.answer
        await world.place(stream_url=bot.url)
        call = await world.phone.next_call()
        await far.check()
        call.hang_up()
        await world.ended()


async def test_a_party_that_waits_for_its_agent_gets_rtp_without_a_gap(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def says_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    async with raw_server(says_nothing) as port, world_of(tmp_path) as world, counter() as far:
        world.phone.on_call = far.answer
        await world.place(stream_url=f"ws://127.0.0.1:{port}/ws")
        call = await world.phone.next_call()
        # The agent has a few seconds to accept the connection.
        await far.check(3.0)
        call.hang_up()
        await world.ended()
        released.set()
