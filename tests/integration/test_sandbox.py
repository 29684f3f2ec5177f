"""Two sandbox carriers call each other: every number does what it promises, and nothing is left over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fixtures.audio_check import best_match, find_tone, read_stereo, samples_of
from fixtures.carrier import PROMPTS_DIRECTORY, SandboxCarrier
from fixtures.carrier_call import SandboxCall
from fixtures.scripts import Hangup, Pause, PlayPrompt, PlayTone, Script, SendDigits
from media.audio import PromptLibrary
from sip import Destination
from sip.aio import Listen
from tests.support.ports import port_range

PATIENCE_S = 40.0
ECHO, SPEECH, BUSY, SILENT, OVERLOADED, DIGITS, TONE, SHORT = (f"+91980000000{n}" for n in range(1, 9))


@pytest.fixture
async def carriers(tmp_path: Path) -> AsyncIterator[tuple[SandboxCarrier, SandboxCarrier]]:
    """A caller and a callee; the callee records what it hears."""
    listen = Listen("udp", "127.0.0.1", 0, None)
    caller = SandboxCarrier(listen, rtp_ports=port_range(100), record_directory=tmp_path)
    callee = SandboxCarrier(listen, rtp_ports=port_range(100))
    await caller.start()
    await callee.start()
    caller.target = Destination("udp", *callee.address)
    yield caller, callee
    await caller.stop()
    await callee.stop()
    assert (caller.active, callee.active) == (0, 0)


async def place(caller: SandboxCarrier, number: str, script: str | Script) -> SandboxCall:
    return await asyncio.wait_for(caller.place_call(number, script), PATIENCE_S)


@pytest.mark.parametrize(
    ("number", "status"), [(BUSY, 486), (OVERLOADED, 503), ("+919811111111", 404), ("anonymous", 404)]
)
async def test_refusing_numbers(
    carriers: tuple[SandboxCarrier, SandboxCarrier], number: str, status: int
) -> None:
    call = await place(carriers[0], number, "listen")
    assert call.heard.statuses[-1] == status
    assert call.heard.ended_by == "remote"


async def test_the_echo_number_sends_back_what_it_hears(
    carriers: tuple[SandboxCarrier, SandboxCarrier],
) -> None:
    call = await place(carriers[0], ECHO, (PlayPrompt("en/welcome"), Pause(0.5), Hangup()))
    assert 180 in call.heard.statuses and call.heard.statuses[-1] == 200
    assert call.heard.recording is not None
    received, _, rate = read_stereo(call.heard.recording)
    prompt = samples_of(PromptLibrary(PROMPTS_DIRECTORY).get("en/welcome"))
    assert best_match(prompt, received, rate).correlation > 0.9


async def test_the_tone_number_sends_a_kilohertz(carriers: tuple[SandboxCarrier, SandboxCarrier]) -> None:
    call = await place(carriers[0], TONE, (Pause(1.0), Hangup()))
    assert call.heard.recording is not None
    found = find_tone(*read_stereo(call.heard.recording)[::2])
    assert found.frequency_hz == pytest.approx(1000, abs=3) and found.share > 0.9


async def test_the_speech_number_speaks(carriers: tuple[SandboxCarrier, SandboxCarrier]) -> None:
    call = await place(carriers[0], SPEECH, (Pause(2.5), Hangup()))
    assert call.heard.recording is not None
    received, _, rate = read_stereo(call.heard.recording)
    speech = samples_of(PromptLibrary(PROMPTS_DIRECTORY).get("en/speech-sample"))
    assert best_match(speech[:rate], received, rate).correlation > 0.9


async def test_the_keying_number_presses_keys(carriers: tuple[SandboxCarrier, SandboxCarrier]) -> None:
    call = await place(carriers[0], DIGITS, (Pause(3.0), Hangup()))
    assert call.heard.digits == "123#"


async def test_the_short_number_hangs_up_itself(carriers: tuple[SandboxCarrier, SandboxCarrier]) -> None:
    call = await place(carriers[0], SHORT, "listen")
    assert (call.heard.statuses[-1], call.heard.ended_by) == (200, "remote")


async def test_a_caller_can_give_up_on_the_silent_number(
    carriers: tuple[SandboxCarrier, SandboxCarrier],
) -> None:
    caller, callee = carriers
    call = caller.call(SILENT, "listen")
    async with asyncio.timeout(PATIENCE_S):
        await call.sees(180)
        call.hangup()
        await call.finished()
        [far] = callee.calls
        await far.finished()
    assert far.heard.reason == "cancelled"


async def test_the_callee_hears_keys_and_tones(carriers: tuple[SandboxCarrier, SandboxCarrier]) -> None:
    caller, callee = carriers
    await place(caller, SPEECH, (SendDigits("42#"), PlayTone(440.0, 0.5), Hangup()))
    [far] = callee.calls
    await asyncio.wait_for(far.finished(), PATIENCE_S)
    assert far.heard.digits == "42#"
    assert far.heard.packets > 0


async def test_stopping_ends_the_calls_that_are_up(tmp_path: Path) -> None:
    listen = Listen("udp", "127.0.0.1", 0, None)
    caller = SandboxCarrier(listen, rtp_ports=port_range(100))
    callee = SandboxCarrier(listen, rtp_ports=port_range(100))
    await caller.start()
    await callee.start()
    caller.target = Destination("udp", *callee.address)
    call = caller.call(ECHO, "listen")
    async with asyncio.timeout(PATIENCE_S):
        await call.sees(200)
        await callee.stop()
        await call.finished()
        await caller.stop()
    assert call.heard.ended_by == "remote"


async def test_a_call_needs_a_target_and_a_known_script() -> None:
    carrier = SandboxCarrier(Listen("udp", "127.0.0.1", 0, None), rtp_ports=port_range(100))
    with pytest.raises(ValueError, match="target"):
        carrier.call(ECHO)
    carrier.target = Destination("udp", "127.0.0.1", 5060)
    with pytest.raises(ValueError, match="no caller's script"):
        carrier.call(ECHO, "dance")
