"""Calls that gather what the party says, by stand-ins of recognisers, over real SIP and RTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.calls.plan import Gather, Plan, RequestInstructions, Say, Step
from callcontrol.calls.requests import CallMetadata
from fixtures.recognizer import RecognizerEndpoint
from fixtures.recognizer_openai import TranscriptionEndpoint
from media.aio.recognizer import Recognizer
from media.audio import Clip, tone
from media.audio.recognition import (
    DEFAULT_MODELS,
    RECOGNIZER_PROTOCOLS,
    RecognizerProtocol,
    RecognizerServer,
)
from media.audio.speech import Synthesizer
from sip import Ended
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID, make_account
from tests.support.inbound_stage import inbound_stage
from tests.support.phone import PhoneCall, eventually
from tests.support.webhook_stage import SECRET, Receiver
from tests.support.world import WEBHOOK, World, running

MENU_HZ = 1500.0
KEY = "key-1"


class Menu(Synthesizer):
    """Every text is a long tone."""

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        return Clip(tone(MENU_HZ, 20_000))


Endpoint = RecognizerEndpoint | TranscriptionEndpoint
PROTOCOLS = pytest.mark.parametrize("protocol", RECOGNIZER_PROTOCOLS)


def make_endpoint(protocol: RecognizerProtocol) -> Endpoint:
    return RecognizerEndpoint(KEY) if protocol == "deepgram" else TranscriptionEndpoint(KEY)


def sessions(endpoint: Endpoint) -> list[Any]:
    """Return what the endpoint was told of its sessions."""
    return list(endpoint.asked if isinstance(endpoint, RecognizerEndpoint) else endpoint.sessions)


class Stage:
    def __init__(self, world: World, endpoint: Endpoint, recognizer: Recognizer, receiver: Receiver) -> None:
        self.world = world
        self.recognizer = recognizer
        self.endpoint = endpoint
        self._receiver = receiver

    async def gather(self, *, prompts: tuple[Say, ...] = (), **fields: Any) -> PhoneCall:
        """Place a call that gathers."""
        action = RequestInstructions(self._receiver.url("/heard"), event="call.gathered")
        steps: tuple[Step, ...] = (Gather(prompts, action=action, **fields),)
        plan = Plan(steps, dial=make_party())
        await self.world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
        return await self.world.phone.next_call()

    async def told(self, call: PhoneCall) -> dict[str, Any]:
        """Return the facts that the customer's server is told, once the call is over."""
        await call.wait(Ended)
        await self.world.ended()
        (request,) = self._receiver.requests
        body: dict[str, Any] = json.loads(request.body)["data"]
        return {name: body[name] for name in ("digits", "speech", "speech_confidence") if name in body}


@asynccontextmanager
async def stage(
    directory: Path, protocol: RecognizerProtocol = "deepgram", key: str = KEY
) -> AsyncIterator[Stage]:
    receiver = Receiver()
    receiver.answers["/heard"] = lambda _: web.json_response([{"verb": "hangup"}])
    await receiver.start()
    try:
        async with make_endpoint(protocol).running() as endpoint:
            model = DEFAULT_MODELS[protocol]
            recognizer = Recognizer(
                RecognizerServer(endpoint.url, model, key, protocol=protocol, endpointing_ms=300)
            )
            async with running(directory, speech=Menu(), recognizer=recognizer) as world:
                world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
                yield Stage(world, endpoint, recognizer, receiver)
                await recognizer.close()
                await endpoint.stop()
    finally:
        await receiver.close()
    assert not endpoint.problems


async def say(call: PhoneCall, hz: float) -> None:
    """Say a word of half a second, and then nothing."""
    call.open().play(tone(hz, 500))


@PROTOCOLS
@pytest.mark.parametrize(("hz", "word"), [(440.0, "yes"), (1000.0, "no")])
async def test_what_the_party_says_reaches_the_server(
    tmp_path: Path, hz: float, word: str, protocol: RecognizerProtocol
) -> None:
    async with stage(tmp_path, protocol) as it:
        call = await it.gather(language="hi-IN")
        await say(call, hz)
        told = await it.told(call)
        assert await eventually(lambda: it.endpoint.closed == 1)
    assert told == {"digits": "", "speech": f"and {word} thanks", "speech_confidence": "0.970"}
    (session,) = sessions(it.endpoint)
    if protocol == "deepgram":
        assert (session["language"], session["model"], session["endpointing"]) == ("hi-IN", "nova-3", "300")
    else:
        transcription = session["audio"]["input"]["transcription"]
        assert transcription == {"model": "gpt-4o-transcribe", "language": "hi"}
        assert session["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 300


@PROTOCOLS
async def test_the_first_words_stop_the_prompt(tmp_path: Path, protocol: RecognizerProtocol) -> None:
    async with stage(tmp_path, protocol) as it:
        call = await it.gather(language="en-IN", prompts=(Say("A long menu."),))
        await call.hears(MENU_HZ)
        await say(call, 440.0)
        await call.hears_silence()
        assert (await it.told(call))["speech"] == "and yes thanks"


async def test_a_long_sentence_is_not_cut_off_by_the_timeout(tmp_path: Path) -> None:
    async with stage(tmp_path, "openai") as it:
        call = await it.gather(language="en-IN", timeout_s=1.5)
        call.open().play(tone(440.0, 4000))
        assert (await it.told(call))["speech"] == "and yes thanks"


async def test_a_key_ends_what_also_listens_and_one_that_only_listens_ignores_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        call = await it.gather(language="en-IN", num_digits=1, prompts=(Say("A long menu."),))
        await call.hears(MENU_HZ)
        call.open().send_dtmf("4")
        assert await it.told(call) == {"digits": "4", "speech": "", "speech_confidence": None}


async def test_a_step_that_only_listens_ignores_keys(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        call = await it.gather(language="en-IN", num_digits=1, keys=False, prompts=(Say("A long menu."),))
        await call.hears(MENU_HZ)
        call.open().send_dtmf("4")
        await call.hears(MENU_HZ)
        await say(call, 1000.0)
        assert await it.told(call) == {
            "digits": "",
            "speech": "and no thanks",
            "speech_confidence": "0.970",
        }


@PROTOCOLS
@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"status": 503}, "refused"),
        ({"garbage": ("nonsense", 3)}, "broken"),
        ({"garbage": ('{"type":"Results"}', 500)}, "broken"),
        ({"garbage": ('{"type":"conversation.item.input_audio_transcription.delta"}', 500)}, "broken"),
        ({"garbage": ('{"type":"input_audio_buffer.committed"}', 30_000)}, "broken"),
        ({"garbage": ("x" * 300_000, 1)}, "broken"),
    ],
)
async def test_a_recogniser_that_fails_leaves_the_keys(
    tmp_path: Path, change: dict[str, Any], outcome: str, protocol: RecognizerProtocol
) -> None:
    async with stage(tmp_path, protocol) as it:
        for name, value in change.items():
            setattr(it.endpoint, name, value)
        call = await it.gather(language="en-IN", num_digits=1, timeout_s=20.0)
        assert await eventually(lambda: it.recognizer.outcomes[outcome] == 1)
        call.open().send_dtmf("7")
        assert await it.told(call) == {"digits": "7", "speech": "", "speech_confidence": None}


async def test_a_session_that_is_refused_leaves_the_keys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(tmp_path, "openai") as it:
        assert isinstance(it.endpoint, TranscriptionEndpoint)
        it.endpoint.error = "insufficient_quota"
        call = await it.gather(language="en-IN", num_digits=1, timeout_s=20.0)
        assert await eventually(lambda: it.recognizer.outcomes["broken"] == 1)
        call.open().send_dtmf("7")
        assert (await it.told(call))["digits"] == "7"
    assert "speech is not recognised: the server reported insufficient_quota" in caplog.text
    assert KEY not in caplog.text


@PROTOCOLS
async def test_a_wrong_key_is_refused(tmp_path: Path, protocol: RecognizerProtocol) -> None:
    async with stage(tmp_path, protocol, "wrong") as it:
        call = await it.gather(language="en-IN", timeout_s=1.0, action_on_empty=True)
        assert (await it.told(call))["speech"] == ""
        assert it.recognizer.outcomes["refused"] == 1 and not sessions(it.endpoint)


@PROTOCOLS
async def test_hanging_up_while_a_recogniser_listens_ends_both(
    tmp_path: Path, protocol: RecognizerProtocol
) -> None:
    async with stage(tmp_path, protocol) as it:
        call = await it.gather(language="en-IN", timeout_s=20.0)
        assert await eventually(lambda: bool(sessions(it.endpoint)))
        call.hang_up()
        await it.world.ended()
        assert await eventually(lambda: it.endpoint.closed == 1)


async def test_a_server_without_a_recogniser_gathers_keys(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        plan = Plan((Gather(timeout_s=1.0, language="en-IN"),), dial=make_party())
        await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
        call = await world.phone.next_call()
        await call.wait(Ended)
        assert (await world.ended()).status.value == "completed"


@PROTOCOLS
async def test_twiml_asks_for_speech_and_is_told_in_its_form(
    tmp_path: Path, protocol: RecognizerProtocol
) -> None:
    webhook = Receiver()
    document = '<Response><Gather input="dtmf speech" language="en-IN" action="/said"/></Response>'
    webhook.answers["/ask"] = lambda _: web.Response(text=document, content_type="text/xml")
    webhook.answers["/said"] = lambda _: web.Response(text="<Response/>", content_type="text/xml")
    await webhook.start()
    try:
        async with (
            make_endpoint(protocol).running() as endpoint,
            inbound_stage(
                tmp_path,
                RECOGNIZER_URL=endpoint.url,
                RECOGNIZER_KEY=KEY,
                RECOGNIZER_PROTOCOL=protocol,
            ) as stage,
        ):
            await stage.bind(target="webhook", webhook_url=webhook.url("/ask"), webhook_format="form")
            call = stage.call()
            assert await eventually(lambda: bool(sessions(endpoint)))
            await say(call, 440.0)
            await call.wait(Ended)
    finally:
        await webhook.close()
    asked = [got for got in webhook.requests if got.path == "/said"]
    assert len(asked) == 1 and b"SpeechResult=and+yes+thanks" in asked[0].body
    assert b"Confidence=0.970" in asked[0].body and not endpoint.problems
