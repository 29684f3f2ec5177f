"""Pipecat as it is installed, at the other end of calls that come in by SIP."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fixtures.audio_check import find_tone, level_dbfs, samples_of
from media.audio import tone
from sip import Answered, Ended
from tests.interop.pipecat_agent import PipecatAgent, pipecat_agent
from tests.support.inbound_stage import CALLER, NUMBER, InboundStage, inbound_stage
from tests.support.phone import PhoneCall, eventually

# The first of them may have to install pipecat.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(300)]

DIALECTS = ["exotel", "exotel-16000"]
TONE_HZ = 1000.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent() -> AsyncIterator[PipecatAgent]:
    async with pipecat_agent() as running:
        yield running
        assert await running.complaints() == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InboundStage]:
    async with inbound_stage(tmp_path_factory.mktemp("pipecat"), 24_000) as running:
        yield running


async def connect(stage: InboundStage, agent: PipecatAgent, dialect: str) -> PhoneCall:
    """Have a call come in that the agent answers."""
    name, _, rate = dialect.partition("-")
    query = f"sample-rate={rate}" if rate else ""
    await stage.bind(target="media_stream", stream_url=agent.url("", query), stream_protocol=name)
    await agent.expect_call()
    caller = stage.call()
    await caller.wait(Answered)
    await agent.until(lambda state: state["ready"])
    return caller


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_call(stage: InboundStage, agent: PipecatAgent, dialect: str) -> None:
    caller = await connect(stage, agent, dialect)
    call = await stage.latest()

    # It is taken for what it is, by the stock runner.
    state = await agent.state()
    assert state["dialect"] == dialect.partition("-")[0]
    assert state["call"]["call_id"] == call["call_sid"]
    assert (state["call"]["from"], state["call"]["to"]) == (CALLER, NUMBER)

    # The caller is heard.
    caller.speak(TONE_HZ)
    await agent.heard(0.5)
    assert_tone(await agent.heard(1.0), state["rate_hz"], level=level_dbfs(samples_of(tone(TONE_HZ, 1000))))
    caller.open().send_dtmf("5")
    await agent.until(lambda state: state["keys"] == "5")

    # The agent is heard. Pipecat sends twice as fast as it is played: after a second, no hiccup of the
    # machine can make it late any more.
    await agent.do("tone", hz=TONE_HZ, seconds=6.0)
    await caller.hears(TONE_HZ)
    caller.heard.clear()
    await caller.until(lambda: len(caller.heard) >= 16_000)
    caller.heard.clear()
    await caller.until(lambda: len(caller.heard) >= 24_000)
    assert_tone(bytes(caller.heard[:24_000]), 8000, level=20 * math.log10(8000 / 32768) - 3.0)

    # What it still had to say is not, once it is interrupted: pipecat is far ahead of the caller.
    await agent.do("tone", hz=TONE_HZ, seconds=30.0)
    await caller.hears(TONE_HZ)
    await agent.do("interrupt")
    await caller.hears_silence()

    # Its end is the call's end.
    await agent.do("end")
    await caller.wait(Ended)
    ended = await stage.ended()
    assert (ended["status"], ended["hangup_cause"]) == ("completed", "NORMAL_CLEARING")
    assert ended["hangup_source"] == "stream"
    await agent.until(lambda state: state["over"])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_caller_who_hangs_up(stage: InboundStage, agent: PipecatAgent, dialect: str) -> None:
    caller = await connect(stage, agent, dialect)
    caller.hang_up()
    await agent.until(lambda state: state["disconnected"] and state["over"])
    assert (await stage.ended())["hangup_source"] == "caller"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_transfer_by_message(stage: InboundStage, agent: PipecatAgent, dialect: str) -> None:
    caller = await connect(stage, agent, dialect)
    await agent.do("say", event="transfer", transfer={"to": "+919812345678", "caller_id": NUMBER})
    assert await eventually(lambda: len(stage.phone.calls) > 0 and stage.phone.calls[-1] is not caller)
    callee = stage.phone.calls[-1]
    # The agent is done with the call, and the two parties have each other.
    await agent.until(lambda state: state["disconnected"] and state["over"])
    caller.speak(440.0)
    callee.speak(TONE_HZ)
    await callee.hears(440.0)
    await caller.hears(TONE_HZ)
    callee.hang_up()
    assert (await stage.ended())["status"] == "completed"


def assert_tone(pcm: bytes, rate_hz: int, *, level: float) -> None:
    """The tone, at its level, from one end to the other."""
    samples = samples_of(pcm)
    found = find_tone(samples, rate_hz)
    assert found.frequency_hz == pytest.approx(TONE_HZ, abs=5) and found.share > 0.9, found
    step = rate_hz // 50
    levels = [level_dbfs(samples[at : at + step]) for at in range(0, len(samples) - step + 1, step)]
    assert all(value == pytest.approx(level, abs=1.5) for value in levels), [round(v, 1) for v in levels]
