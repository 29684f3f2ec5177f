"""The built-in voice agent over real SIP and RTP: what callers hear, press and say, and where that leads."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from callcontrol.agents.steps.turn import CUT_SHORT
from media.aio import EspeakSynthesizer
from media.audio import Clip
from sip import Answered, Ended
from tests.support.inbound_stage import InboundStage, inbound_stage
from tests.support.levels import level_dbfs
from tests.support.phone import PhoneCall

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKSPACE = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
DESK = "+919876543210"
QUESTION = "Press one to be put through to the desk, or tell me what you need when I am done."
BYE = {"say": "Thank you, and goodbye.", "hangup": True}
_FRAME_BYTES = 320
_PATIENCE_S = 40.0


@dataclass
class Callers:
    """A server that speaks for agents, and a key to make some."""

    stage: InboundStage
    assistant_key: str
    words: Clip
    """Somebody who says a sentence."""

    async def agent(self, **values: Any) -> str:
        """Make an agent, and send the calls of the number to it."""
        stage = self.stage
        platform, stage.key = stage.key, self.assistant_key
        try:
            status, agent = await stage.ask("POST", "/api/v1/agents", {"name": "Asha", **values})
        finally:
            stage.key = platform
        assert status == 201, agent
        await stage.bind(target="voice_agent", agent_id=agent["id"], workspace_id=WORKSPACE)
        return str(agent["id"])

    async def transcript(self, call: dict[str, Any]) -> list[tuple[str, str]]:
        segments = await self.stage.server.storage.transcripts.of_call(call["call_sid"])
        return [(segment.role, segment.text) for segment in segments]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def callers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callers]:
    folder: Path = tmp_path_factory.mktemp("agents")
    speech = EspeakSynthesizer(folder / "words", timeout_s=60.0)
    words = await speech.speak("I would like to know when my parcel is going to arrive.", "en-IN")
    await speech.close()
    async with inbound_stage(folder / "server") as stage:
        key = await stage.server.storage.keys.create(stage.account_sid, "assistant", ("assistant",))
        yield Callers(stage, key, words.to_mono(8000))


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def no_calls_left(callers: Callers) -> AsyncIterator[None]:
    yield
    await callers.stage.clear()


def voiced_ms(call: PhoneCall) -> int:
    """Duration of the kept audio that is as loud as a voice."""
    heard = bytes(call.heard)
    frames = (heard[at : at + _FRAME_BYTES] for at in range(0, len(heard) - _FRAME_BYTES + 1, _FRAME_BYTES))
    return sum(20 for frame in frames if level_dbfs(frame) > -35.0)


async def hears_words(call: PhoneCall, at_least_ms: int) -> None:
    call.heard.clear()
    await call.until(lambda: voiced_ms(call) >= at_least_ms, _PATIENCE_S)


async def hears_the_end_of_it(call: PhoneCall) -> None:
    """A second of silence: pauses between words are shorter."""
    call.heard.clear()
    await call.until(lambda: len(call.heard) >= 16_000 and not any(call.heard[-16_000:]), _PATIENCE_S)


async def test_a_caller_presses_a_key_and_is_put_through(callers: Callers) -> None:
    stage = callers.stage
    await callers.agent(
        greeting="Good morning.",
        script={
            "nodes": {
                "start": {"say": QUESTION, "gather": {}, "on": {"1": "desk", "failed": "bye"}},
                "desk": {"say": "One moment.", "transfer": {"to": DESK}, "on": {"failed": "bye"}},
                "bye": BYE,
            }
        },
    )
    a = stage.call()
    await a.wait(Answered)
    await hears_words(a, 1500)
    a.open().send_dtmf("1")
    b = await stage.phone.next_call(len(stage.phone.calls) + 1, _PATIENCE_S)
    assert b.request.uri.user == DESK
    await b.until(lambda: b.stream is not None)
    a.speak(600.0)
    b.speak(440.0)
    await a.hears(440.0, _PATIENCE_S)
    await b.hears(600.0, _PATIENCE_S)
    b.hang_up()
    await a.wait(Ended, _PATIENCE_S)
    call = await stage.ended()
    assert (call["status"], call["hangup_source"], call["stream"]) == ("completed", "callee", None)
    said = await callers.transcript(call)
    assert [role for role, _ in said] == ["agent", "user", "agent"]
    assert said[0][1].startswith("Good morning. Press") and said[0][1].endswith(CUT_SHORT)
    assert said[1:] == [("user", "1"), ("agent", "One moment.")]


async def test_a_caller_who_talks_is_heard_and_told_so(callers: Callers) -> None:
    await callers.agent(
        script={
            "nodes": {
                "start": {"say": "What can I do?", "gather": {"timeout_s": 20}, "on": {"speech": "noted"}},
                "noted": {"say": "I have noted that.", "next": "bye"},
                "bye": BYE,
            }
        },
    )
    a = callers.stage.call()
    await a.wait(Answered)
    await hears_words(a, 500)
    await hears_the_end_of_it(a)
    a.open().play(callers.words.pcm)
    await hears_words(a, 1200)
    await a.wait(Ended, _PATIENCE_S)
    call = await callers.stage.ended()
    assert (call["status"], call["hangup_source"]) == ("completed", "stream")
    said = await callers.transcript(call)
    assert [text for role, text in said if role == "agent"] == [
        "What can I do?",
        "I have noted that.",
        "Thank you, and goodbye.",
    ]
    (talked,) = [text for role, text in said if role == "user"]
    found = re.fullmatch(r"\[speech (\d+\.\d) s\]", talked)
    assert found is not None and 1.0 <= float(found[1]) <= 6.0, talked


async def test_a_caller_who_says_nothing_hears_the_end(callers: Callers) -> None:
    await callers.agent(
        language="hi-IN",
        script={
            "nodes": {
                "start": {
                    "say": "नमस्ते।",
                    "gather": {"timeout_s": 1, "retry_say": "कृपया बोलिए।"},
                    "on": {"speech": "start", "failed": "bye"},
                },
                "bye": {"say": "धन्यवाद।", "hangup": True},
            }
        },
    )
    a = callers.stage.call()
    await a.wait(Ended, _PATIENCE_S)
    call = await callers.stage.ended()
    assert [text for _, text in await callers.transcript(call)] == ["नमस्ते।", "कृपया बोलिए।", "धन्यवाद।"]


async def test_an_agent_with_nothing_but_a_name_calls_somebody(callers: Callers) -> None:
    stage = callers.stage
    agent_id = await callers.agent(greeting="Hello {{name|there}}.")
    number = (await stage.ask("GET", f"/v1/phone-numbers/{stage.number_id}"))[1]["number"]
    body = {"from": number, "to": DESK, "agent_id": agent_id, "custom_parameters": {"name": "Ravi"}}
    before = len(stage.phone.calls)
    status, placed = await stage.ask("POST", "/v1/calls", body)
    assert status == 201, placed
    b = await stage.phone.next_call(before + 1, _PATIENCE_S)
    await hears_words(b, 400)
    await hears_the_end_of_it(b)
    b.hang_up()
    call = await stage.ended()
    assert (call["call_sid"], call["hangup_source"]) == (placed["call_sid"], "callee")
    assert (await callers.transcript(call))[0] == ("agent", "Hello Ravi.")
