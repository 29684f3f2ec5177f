"""Pipecat as it is installed, at the other end of calls that come in by SIP."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from fixtures.audio_check import find_tone, level_dbfs, samples_of
from media.audio import tone
from sip import Answered, Ended
from tests.interop.pipecat_agent import PipecatAgent, pipecat_agent
from tests.support.inbound_stage import CALLER, NUMBER, InboundStage, inbound_stage
from tests.support.phone import PhoneCall, eventually

# The first of them may have to install pipecat.
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.long(reason="starts programs of pipecat, which take seconds to import"),
    pytest.mark.timeout(300),
]

TONE_HZ = 1000.0
SECONDS = 8
"""Longest time to listen to a correct tone, in seconds."""
TRANSFERRED = "+919812345678"


@dataclass(frozen=True)
class Spoken:
    """Binding of a number, and its meaning for the agent."""

    protocol: str
    rate_hz: int = 8000
    encoding: str | None = None
    detected: bool = True
    parties: bool = True
    """True if the runner finds out the parties of the call."""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.protocol, self.encoding, str(self.rate_hz))))


DIALECTS = [
    Spoken("exotel"),
    Spoken("exotel", 16000),
    Spoken("twilio"),
    Spoken("vonage", detected=False),
    Spoken("vonage", 16000, detected=False),
    Spoken("plivo", parties=False),
    Spoken("telnyx"),
    Spoken("telnyx", encoding="alaw"),
]
every_dialect = pytest.mark.parametrize("spoken", DIALECTS, ids=str)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent() -> AsyncIterator[PipecatAgent]:
    async with pipecat_agent() as running:
        yield running
        # Both ends close at once where the call was ended by REST; pipecat says so when it comes second.
        complaints = await running.complaints()
        assert [line for line in complaints if "while closing the websocket" not in line] == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InboundStage]:
    async with inbound_stage(tmp_path_factory.mktemp("pipecat")) as running:
        yield running


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def no_calls_left(stage: InboundStage) -> AsyncIterator[None]:
    yield
    await stage.clear()


async def connect(stage: InboundStage, agent: PipecatAgent, spoken: Spoken) -> PhoneCall:
    """Place an inbound call that the agent answers."""
    query = f"sample-rate={spoken.rate_hz}" if spoken.rate_hz != 8000 else ""
    binding: dict[str, Any] = {"encoding": spoken.encoding} if spoken.encoding else {}
    if spoken.protocol == "twilio":
        # What its serializer needs to hang up; customers would have it in their own settings.
        binding["custom_parameters"] = {
            "account": stage.account_sid,
            "key": stage.key,
            "base_url": stage.server.url,
        }
    await stage.bind(
        target="media_stream",
        stream_url=agent.url("" if spoken.detected else spoken.protocol, query),
        stream_protocol=spoken.protocol,
        **binding,
    )
    await agent.expect_call()
    caller = stage.call()
    await caller.wait(Answered)
    await agent.until(lambda state: state["ready"])
    return caller


@every_dialect
async def test_a_call(stage: InboundStage, agent: PipecatAgent, spoken: Spoken) -> None:
    caller = await connect(stage, agent, spoken)
    call = await stage.latest()

    # It is taken for what it is, by the stock runner.
    state = await agent.state()
    assert state["dialect"] == spoken.protocol
    if spoken.detected:
        assert state["call"]["call_id"] == call["call_sid"]
    if spoken.detected and spoken.parties:
        assert (state["call"]["from"], state["call"]["to"]) == (CALLER, NUMBER)

    # The caller is heard.
    caller.speak(TONE_HZ)
    loud = level_dbfs(samples_of(tone(TONE_HZ, 1000)))
    await hear_tone(lambda: agent.heard(1.0), state["rate_hz"], level=loud)
    caller.open().send_dtmf("5")
    await agent.until(lambda state: state["keys"] == "5")

    # The agent is heard.
    await agent.do("tone", hz=TONE_HZ, seconds=SECONDS + 5.0)
    await caller.hears(TONE_HZ)
    await hear_tone(lambda: a_second_of(caller), 8000, level=20 * math.log10(8000 / 32768) - 3.0)

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
    assert ended["hangup_source"] == ("api" if spoken.protocol == "twilio" else "stream")
    await agent.until(lambda state: state["over"])


@every_dialect
async def test_a_caller_who_hangs_up(stage: InboundStage, agent: PipecatAgent, spoken: Spoken) -> None:
    caller = await connect(stage, agent, spoken)
    caller.hang_up()
    await agent.until(lambda state: state["disconnected"] and state["over"])
    assert (await stage.ended())["hangup_source"] == "caller"


@every_dialect
async def test_a_transfer_by_message(stage: InboundStage, agent: PipecatAgent, spoken: Spoken) -> None:
    caller = await connect(stage, agent, spoken)
    await agent.do("say", event="transfer", transfer={"to": TRANSFERRED, "caller_id": NUMBER})
    assert await eventually(lambda: stage.phone.calls[-1] is not caller)
    callee = stage.phone.calls[-1]
    # The agent is done with the call, and the two parties have each other.
    await agent.until(lambda state: state["disconnected"] and state["over"])
    caller.speak(440.0)
    callee.speak(TONE_HZ)
    await callee.hears(440.0)
    await caller.hears(TONE_HZ)
    callee.hang_up()
    assert (await stage.ended())["status"] == "completed"


async def a_second_of(caller: PhoneCall) -> bytes:
    """Return the next second of the caller's received audio."""
    caller.heard.clear()
    await caller.until(lambda: len(caller.heard) >= 16_000)
    return bytes(caller.heard[:16_000])


async def hear_tone(listen: Callable[[], Awaitable[bytes]], rate_hz: int, *, level: float) -> None:
    """
    Wait for a second of the tone without a gap and at its level.

    Where the machine is busy, packets are late now and then; what is our fault is in every second.
    """
    for _ in range(SECONDS):
        if not (fault := fault_of(samples_of(await listen()), rate_hz, level)):
            return
    raise AssertionError(fault)


def fault_of(samples: Sequence[int], rate_hz: int, level: float) -> str:
    """Return the fault of a tone, empty without one."""
    found = find_tone(samples, rate_hz)
    if abs(found.frequency_hz - TONE_HZ) > 5 or found.share < 0.9:
        return str(found)
    step = rate_hz // 50
    levels = [level_dbfs(samples[at : at + step]) for at in range(0, len(samples) - step + 1, step)]
    off = {at * 20: round(value, 1) for at, value in enumerate(levels) if abs(value - level) > 1.5}
    return f"at these milliseconds it is not at {level:.1f} dBFS: {off}" if off else ""
