"""Parties of the sandbox are never without RTP, whatever they do and whatever they hear."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fixtures.carrier import SandboxCarrier
from fixtures.scripts import Pause, PlayPrompt, Script, SendDigits
from media.aio import MediaEngine
from sip import Answered, Confirmed, Destination
from sip.aio import Listen
from tests.support.phone import Phone, engine_settings
from tests.support.ports import port_range
from tests.support.rtp_counter import counter

ECHO, SPEECH, DIGITS, TONE, LISTENS, MACHINE, EARLY, PERSON = (
    f"+9198000000{number:02}" for number in (1, 2, 6, 7, 9, 10, 11, 12)
)


@asynccontextmanager
async def sandbox_and_phone() -> AsyncIterator[tuple[SandboxCarrier, Phone]]:
    """A sandbox carrier, and a user agent whose media is a counter."""
    carrier = SandboxCarrier(Listen("udp", "127.0.0.1", 0, None), rtp_ports=port_range(100))
    phone = Phone(MediaEngine(engine_settings(8)))
    await carrier.start()
    await phone.start()
    carrier.target = Destination("udp", "127.0.0.1", phone.port)
    try:
        yield carrier, phone
    finally:
        await carrier.stop()
        await phone.close()


@pytest.mark.parametrize("number", [ECHO, SPEECH, DIGITS, TONE, LISTENS, MACHINE, EARLY, PERSON])
async def test_a_party_that_is_called_sends_rtp_without_a_gap(number: str) -> None:
    async with sandbox_and_phone() as (carrier, phone), counter() as far:
        call = phone.call(number, carrier.address[1], body=far.sdp)
        await call.wait(Answered)
        await far.check()
        call.hang_up()


@pytest.mark.parametrize(
    "script", ["echo", "listen", (PlayPrompt("en/speech-sample"), SendDigits("1"), Pause())]
)
async def test_a_party_that_calls_sends_rtp_without_a_gap(script: str | Script) -> None:
    async with sandbox_and_phone() as (carrier, phone), counter() as far:
        phone.on_call = far.answer
        carrier.call("+918047000001", script)
        call = await phone.next_call()
        await call.wait(Confirmed)
        await far.check()
        call.hang_up()
