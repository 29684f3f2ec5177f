"""Parties of the sandbox, called and calling, send RTP from their answer to their end, whatever they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from callcontrol.calls.sandbox import PartyCallRequest
from fixtures.carrier import SandboxCarrier
from fixtures.scripts import CALLER_SCRIPTS, SCRIPTS, Answer, Echo, Hangup, Pause, Script
from media.aio import MediaEngine
from media.sdp import SessionDescription
from sip import Answered, Confirmed, Destination, Ended, Progress
from sip.aio import Listen
from tests.support.phone import Phone, PhoneCall, engine_settings
from tests.support.ports import port_range
from tests.support.rtp_counter import LENGTH_S, Counter, counter
from tests.support.waiting import time_passes

CALLED = "+918047491899"
ECHO, LISTENS = "+919800000001", "+919800000009"
# What the scripts do, each step once, without those that last until the call ends.
ALL = tuple(
    step
    for script in CALLER_SCRIPTS.values()
    for step in script
    if not isinstance(step, Hangup) and step not in (Echo(), Pause())
)
ANSWERING = [number for number, script in SCRIPTS.items() if Answer() in script]
STAYING = [number for number in ANSWERING if Hangup() not in SCRIPTS[number]]


@asynccontextmanager
async def sandbox_and_phone() -> AsyncIterator[tuple[SandboxCarrier, Phone]]:
    """A sandbox carrier, and a telephone that it calls and that calls it."""
    sandbox = SandboxCarrier(Listen("udp", "127.0.0.1", 0, None), rtp_ports=port_range(100))
    # Far ends only count: the telephone needs no RTP of its own.
    phone = Phone(MediaEngine(engine_settings(4)))
    await sandbox.start()
    await phone.start()
    sandbox.target = Destination("udp", "127.0.0.1", phone.port)
    try:
        yield sandbox, phone
    finally:
        await phone.close()
        await sandbox.stop()
    assert sandbox.active == 0


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def answered(
    phone: Phone, sandbox: SandboxCarrier, number: str, far: Counter
) -> tuple[PhoneCall, float]:
    """A call to a number of the sandbox, and the time of its answer; no RTP came while it only rang."""
    call = phone.call(number, sandbox.address[1], body=far.sdp())
    await call.wait(Progress)
    assert not far.packets
    await call.wait(Answered)
    return call, now_s()


async def check(far: Counter, answered_s: float, length_s: float = LENGTH_S) -> None:
    """Count for so long; the RTP began with the answer, if not before as early media."""
    await time_passes(length_s)
    far.check_until(now_s(), answered_s)


def some(values: Iterable[str], count: int) -> list[ParameterSet]:
    """Mark all values as long but for some: the first, or the last where the count is negative."""
    every = list(values)
    kept = every[:count] if count > 0 else every[count:]
    long = pytest.mark.long("other parties send alike")
    return [pytest.param(value, marks=() if value in kept else long) for value in every]


def test_every_number_that_answers_is_tried() -> None:
    """The one that hangs up by itself is counted until then."""
    assert set(ANSWERING) - set(STAYING) == {"+919800000008"}
    assert {ECHO, LISTENS} < set(STAYING)


@pytest.mark.parametrize("number", some(STAYING, 2))
async def test_a_party_that_is_called_sends_rtp_throughout(number: str) -> None:
    async with sandbox_and_phone() as (sandbox, phone), counter() as far:
        call, answered_s = await answered(phone, sandbox, number, far)
        await check(far, answered_s)
        call.hang_up()
        await call.wait(Ended)


async def test_a_party_that_hangs_up_sends_rtp_until_then() -> None:
    async with sandbox_and_phone() as (sandbox, phone), counter() as far:
        call, answered_s = await answered(phone, sandbox, "+919800000008", far)
        await call.wait(Ended)
        far.check_until(now_s(), answered_s)


async def test_an_echo_of_nothing_is_silence_and_that_of_a_party_with_pauses_has_none() -> None:
    """Its own packets come back to a party as it sends them, and silence when it sends none."""
    async with sandbox_and_phone() as (sandbox, phone), counter() as far:
        call, answered_s = await answered(phone, sandbox, ECHO, far)
        accepted = await call.wait(Answered)
        assert isinstance(accepted, Answered)
        port = SessionDescription.parse(accepted.body).media[0].port
        for talks in range(10):
            for packet in range(50):
                far.send(port, 50 * talks + packet, 160 * (100 * talks + packet))
                await time_passes(0.020)
            await time_passes(1.0)
        await check(far, answered_s, LENGTH_S / 5)
        call.hang_up()
        await call.wait(Ended)


def request(**changes: Any) -> PartyCallRequest:
    return PartyCallRequest(to=CALLED, hangup_after_s=2 * LENGTH_S, **changes)


CALLERS: dict[str, PartyCallRequest | Script] = {
    **{f"as {number} when called": request(from_=number) for number in STAYING},
    "after digits and waits": request(from_=LISTENS, send_digits="w1WW23wwww4"),
    "listen": request(behaviour="listen"),
    "echo": request(behaviour="echo"),
    "all behaviours, one after the other": (*ALL, Pause()),
}


@pytest.mark.parametrize("name", some(CALLERS, -3))
async def test_a_party_that_calls_sends_rtp_throughout(name: str) -> None:
    async with sandbox_and_phone() as (sandbox, phone), counter() as far:
        phone.on_call = far.answer
        way = CALLERS[name]
        party = sandbox.place(way) if isinstance(way, PartyCallRequest) else sandbox.call(CALLED, way)
        call = await phone.next_call()
        await call.wait(Confirmed)
        await check(far, now_s())
        party.hangup()
        await call.wait(Ended)


@pytest.mark.parametrize("behaviour", ["speech", "tone", "digits"])
async def test_a_party_that_calls_and_hangs_up_sends_rtp_until_then(behaviour: Any) -> None:
    async with sandbox_and_phone() as (sandbox, phone), counter() as far:
        phone.on_call = far.answer
        sandbox.place(request(behaviour=behaviour))
        call = await phone.next_call()
        await call.wait(Confirmed)
        answered_s = now_s()
        await call.wait(Ended)
        far.check_until(now_s(), answered_s)


async def test_a_party_whose_call_rings_sends_nothing_before_the_answer() -> None:
    async with sandbox_and_phone() as (sandbox, phone), counter() as far:
        phone.on_call = PhoneCall.ring
        party = sandbox.place(request(from_=LISTENS))
        call = await phone.next_call()
        await time_passes(10.0)
        assert not far.packets
        far.answer(call)
        await call.wait(Confirmed)
        await check(far, now_s())
        party.hangup()
        await call.wait(Ended)
