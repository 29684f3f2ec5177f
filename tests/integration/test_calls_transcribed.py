"""Calls that are transcribed by stand-ins of recognisers, over real SIP and RTP."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from callcontrol.calls.aio.transcription import PartyTranscription
from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.calls.plan import ChangeTranscription, Gather, Pause, Plan, Step
from callcontrol.calls.requests import CallMetadata
from callcontrol.errors import Conflict
from fixtures.loopback_endpoint import LoopbackEndpoint
from fixtures.recognizer import RecognizerEndpoint
from fixtures.recognizer_openai import TranscriptionEndpoint
from media.aio import FrameListener, RtpStream
from media.aio.recognizer import Recognizer
from media.audio import tone
from media.audio.circuit_breaker import BreakerState
from media.audio.recognition import (
    DEFAULT_MODELS,
    MAX_TEXT_CHARS,
    RECOGNIZER_PROTOCOLS,
    RecognizerProtocol,
    RecognizerServer,
)
from sip import Answered, Ended
from tests.support.agent_bot import Bot
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID, OWN_NUMBER
from tests.support.phone import PhoneCall, eventually
from tests.support.world import WEBHOOK, World, running

SECOND = "+919811111111"
KEY = "key-1"
YES, NO, MELODY = 440.0, 1000.0, 1500.0
PROTOCOLS = pytest.mark.parametrize("protocol", RECOGNIZER_PROTOCOLS)
Endpoint = RecognizerEndpoint | TranscriptionEndpoint


class Stage:
    def __init__(self, world: World, endpoint: Endpoint, recognizer: Recognizer) -> None:
        self.world = world
        self.endpoint = endpoint
        self.recognizer = recognizer

    async def call(self, *steps: Step, language: str | None = "hi-IN") -> PhoneCall:
        """Place a call that is transcribed in a language from its answer."""
        plan = Plan(steps or (Pause(60.0),), dial=make_party(), transcribe=language)
        await self.world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
        return await self.world.phone.next_call()

    @property
    def sentences(self) -> list[dict[str, Any]]:
        """Sentences that were sent to the status webhook."""
        bodies = [json.loads(event.body) for event in self.world.records.events if event.url == WEBHOOK]
        return [body["data"]["transcript"] for body in bodies if body["event"] == "call.transcript"]

    @property
    def said(self) -> list[tuple[str, str]]:
        """Segments of the transcript: speaker and text."""
        return [(segment.role, segment.text) for segment in self.world.segments]

    def listening(self) -> int:
        """Return the number of connections that the recogniser has had."""
        endpoint = self.endpoint
        return len(endpoint.asked if isinstance(endpoint, RecognizerEndpoint) else endpoint.sessions)

    async def hears(self, connections: int = 1) -> None:
        """Wait until the recogniser has had so many connections."""
        assert await eventually(lambda: self.listening() == connections)


@asynccontextmanager
async def stage(
    directory: Path, protocol: RecognizerProtocol = "deepgram", url: str | None = None
) -> AsyncIterator[Stage]:
    made = RecognizerEndpoint(KEY) if protocol == "deepgram" else TranscriptionEndpoint(KEY)
    async with made.running() as endpoint:
        server = RecognizerServer(
            url or endpoint.url, DEFAULT_MODELS[protocol], KEY, protocol=protocol, endpointing_ms=300
        )
        recognizer = Recognizer(server)
        async with running(directory, recognizer=recognizer) as world:
            yield Stage(world, endpoint, recognizer)
            await recognizer.close()
            await endpoint.stop()
    assert not endpoint.problems


def say(call: PhoneCall, hz: float, ms: int = 500) -> None:
    """Say a word, and then nothing."""
    call.open().play(tone(hz, ms))


@PROTOCOLS
async def test_sentences_are_sent_and_kept_in_order(tmp_path: Path, protocol: RecognizerProtocol) -> None:
    async with stage(tmp_path, protocol) as it:
        call = await it.call()
        await it.hears()
        say(call, YES)
        assert await eventually(lambda: len(it.said) == 1)
        say(call, NO)
        assert await eventually(lambda: len(it.said) == 2)
        call.hang_up()
        await it.world.ended()
    assert it.said == [("a", "and yes thanks"), ("a", "and no thanks")]
    first, second = it.sentences
    assert (first["number"], first["speaker"], first["text"]) == (1, "a", "and yes thanks")
    assert (first["language"], first["confidence"]) == ("hi-IN", 0.97)
    assert 0 <= first["start_ms"] < first["end_ms"] < second["start_ms"] < second["end_ms"]
    assert second["number"] == 2
    sequences = [json.loads(event.body)["sequence"] for event in it.world.records.events]
    assert sequences == sorted(set(sequences))


@PROTOCOLS
async def test_each_party_of_a_bridge_has_a_speaker(tmp_path: Path, protocol: RecognizerProtocol) -> None:
    async with stage(tmp_path, protocol) as it:
        dial = {"verb": "dial", "target": [{"type": "phone", "number": SECOND}]}
        await it.world.place({"verb": "transcribe", "language": "en-IN"}, dial)
        one = await it.world.phone.next_call()
        two = await it.world.phone.next_call(2)
        await it.hears(2)
        say(one, YES)
        assert await eventually(lambda: len(it.said) == 1)
        say(two, NO)
        assert await eventually(lambda: len(it.said) == 2)
        # Both hear one another as before.
        say(one, MELODY, 3000)
        await two.hears(MELODY)
        one.hang_up()
        await it.world.ended()
    assert it.said[:2] == [("a", "and yes thanks"), ("b", "and no thanks")]


async def test_a_forwarded_call_is_transcribed_by_its_binding(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        it.world.forward(transcribe=True, transcription_language="hi-IN")
        it.world.phone.on_call = PhoneCall.answer
        caller = it.world.phone.call(OWN_NUMBER, it.world.port)
        await caller.wait(Answered)
        callee = await it.world.phone.next_call(2)
        await it.hears(2)
        say(caller, YES)
        assert await eventually(lambda: it.said == [("a", "and yes thanks")])
        say(callee, NO)
        assert await eventually(lambda: len(it.said) == 2)
        caller.hang_up()
        await it.world.ended()
    assert it.said[1] == ("b", "and no thanks")
    assert isinstance(it.endpoint, RecognizerEndpoint)
    assert [asked["language"] for asked in it.endpoint.asked] == ["hi-IN", "hi-IN"]


@PROTOCOLS
async def test_the_last_words_come_after_the_end(tmp_path: Path, protocol: RecognizerProtocol) -> None:
    async with stage(tmp_path, protocol) as it:
        call = await it.call()
        await it.hears()
        say(call, YES, 5000)
        assert await eventually(lambda: it.endpoint.begun == 1)
        call.hang_up()
        assert await eventually(lambda: it.said == [("a", "and yes thanks")])
        await it.world.ended()
    names = [event.event for event in it.world.records.events]
    assert names.index("call.completed") < names.index("call.transcript")


async def test_an_order_begins_and_ends_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        call = await it.call(language=None)
        assert await eventually(lambda: it.world.records.only().status.value == "in-progress")
        sid = it.world.records.only().call_sid
        control = it.world.control
        assert it.listening() == 0
        with pytest.raises(Conflict, match="not being transcribed"):
            await control.update_call(ACCOUNT_SID, sid, LiveUpdate(transcription="stop"))
        await control.update_call(ACCOUNT_SID, sid, LiveUpdate(transcription="start"))
        await it.hears()
        await control.update_call(ACCOUNT_SID, sid, LiveUpdate(transcription="stop"))
        assert await eventually(lambda: it.endpoint.closed == 1)
        french = LiveUpdate(transcription="start", transcription_language="fr-FR")
        await control.update_call(ACCOUNT_SID, sid, french)
        await it.hears(2)
        # Another language takes the place of the first.
        await control.update_call(ACCOUNT_SID, sid, LiveUpdate(transcription="start"))
        await it.hears(3)
        call.hang_up()
        await it.world.ended()
        assert await eventually(lambda: it.endpoint.closed == 3)
    assert isinstance(it.endpoint, RecognizerEndpoint)
    assert [asked["language"] for asked in it.endpoint.asked] == ["en-IN", "fr-FR", "en-IN"]


async def test_a_gather_and_the_transcript_hear_the_same_words(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        call = await it.call(Gather(language="en-IN", timeout_s=20.0), Pause(60.0))
        await it.hears(2)
        say(call, NO)
        assert await eventually(lambda: len(it.said) == 1 and it.endpoint.closed == 1)
        say(call, YES)
        assert await eventually(lambda: len(it.said) == 2)
        call.hang_up()
        await it.world.ended()
    assert [text for _, text in it.said] == ["and no thanks", "and yes thanks"]


async def until_closed(bot: Bot) -> None:
    await bot.until_closed()


async def test_an_agent_and_the_transcript_hear_the_same_words(tmp_path: Path) -> None:
    async with stage(tmp_path) as it, Bot(until_closed).running() as bot:
        await it.world.place(stream_url=bot.url, transcribe=True)
        call = await it.world.phone.next_call()
        await it.hears()
        say(call, YES)
        assert await eventually(lambda: it.said == [("a", "and yes thanks")])
        assert sum(frame["event"] == "media" for frame in bot.received) > 10
        call.hang_up()
        await it.world.ended()


@PROTOCOLS
@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"status": 503}, "refused"),
        ({"garbage": ("nonsense", 30)}, "broken"),
        ({"garbage": ('{"type":"Results","channel":7}', 500)}, "broken"),
        ({"garbage": ("[" * 100_000, 30)}, "broken"),
        ({"garbage": ("x" * 300_000, 1)}, "broken"),
    ],
)
async def test_a_failing_recogniser_is_left_alone_and_tried_again(
    tmp_path: Path, change: dict[str, Any], outcome: str, protocol: RecognizerProtocol
) -> None:
    async with stage(tmp_path, protocol) as it:
        for name, value in change.items():
            setattr(it.endpoint, name, value)
        call = await it.call()
        recognizer = it.recognizer
        assert await eventually(lambda: recognizer.breaker.state is BreakerState.OPEN, 60.0)
        assert recognizer.outcomes[outcome] == 3
        assert await eventually(lambda: recognizer.outcomes["skipped"] > 0, 60.0)
        it.endpoint.status, it.endpoint.garbage = 101, None
        before = it.listening()
        await it.hears(before + 1)
        say(call, YES)
        assert await eventually(lambda: it.said == [("a", "and yes thanks")])
        assert recognizer.breaker.state is BreakerState.CLOSED
        call.hang_up()
        assert (await it.world.ended()).status.value == "completed"


async def test_a_session_that_is_refused_keeps_no_other_from_the_recogniser(tmp_path: Path) -> None:
    async with stage(tmp_path, "openai") as it:
        assert isinstance(it.endpoint, TranscriptionEndpoint)
        it.endpoint.error = "invalid_value"
        call = await it.call(language="zz")
        assert await eventually(lambda: it.recognizer.outcomes["broken"] == 4, 60.0)
        assert it.recognizer.breaker.state is BreakerState.CLOSED and not it.recognizer.outcomes["skipped"]
        call.hang_up()
        await it.world.ended()


async def test_a_transcription_leaves_nothing_for_the_collector(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        stream = StreamOfFrames()
        heard: list[str] = []
        runs = [
            PartyTranscription(
                it.recognizer,
                cast(RtpStream, stream),
                "en-IN",
                wide=False,
                on_sentence=lambda said, _: heard.append(said.text),
            )
            for _ in range(2)
        ]
        await it.hears(2)
        left, ended = [weakref.ref(run) for run in runs], asyncio.Event()
        gc.disable()
        try:
            runs[0].finish(ended.set)
            runs[1].stop()
            runs.clear()
            await asyncio.wait_for(ended.wait(), 5)
            assert await eventually(lambda: [run() for run in left] == [None, None])
        finally:
            gc.enable()


class StreamOfFrames:
    """A stream of which only the listeners are used."""

    def listen(self, on_frame: Callable[[bytes], None], *, sample_rate: int) -> FrameListener:
        return cast(FrameListener, SimpleNamespace(sample_rate=sample_rate, close=lambda: None))


async def test_a_recogniser_that_cannot_be_reached_harms_no_call(tmp_path: Path) -> None:
    async with stage(tmp_path, url="ws://127.0.0.1:9/v1/listen") as it:
        call = await it.call()
        assert await eventually(lambda: it.recognizer.breaker.state is BreakerState.OPEN, 60.0)
        call.hang_up()
        assert (await it.world.ended()).status.value == "completed"
    assert it.recognizer.outcomes["unreachable"] == 3 and not it.sentences


class Stalled(LoopbackEndpoint):
    """Accepts connections, and reads nothing from them."""

    def __init__(self) -> None:
        super().__init__("GET", "/v1/listen")
        self.accepted = 0
        self.released = asyncio.Event()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        self.accepted += 1
        await self.released.wait()
        return socket


async def test_a_recogniser_that_stalls_harms_no_call(tmp_path: Path) -> None:
    async with Stalled().running() as stalled:
        url = f"ws://127.0.0.1:{stalled.port}/v1/listen"
        async with stage(tmp_path, url=url) as it:
            call = await it.call()
            assert await eventually(lambda: stalled.accepted == 1)
            call.open().play(tone(MELODY, 1000), loop=True)
            # It misses its heartbeats.
            assert await eventually(lambda: it.recognizer.outcomes["broken"] == 1, 60.0)
            assert await eventually(lambda: stalled.accepted == 2)
            call.hang_up()
            assert (await it.world.ended(20.0)).status.value == "completed"
            stalled.released.set()
            await stalled.stop()


async def test_an_end_does_not_wait_for_a_recogniser_that_stalls() -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with Stalled().running() as stalled, silent:
        # One neither answers the handshake, the other neither reads nor closes.
        ports = (silent.sockets[0].getsockname()[1], stalled.port)
        urls = [f"ws://127.0.0.1:{port}/v1/listen" for port in ports]
        recognizers = [Recognizer(RecognizerServer(url, "nova-3", connect_timeout_s=30.0)) for url in urls]
        began = [made.start("en-IN", 8000, print, print) for made in recognizers]
        assert await eventually(lambda: stalled.accepted == 1)
        ended = [asyncio.Event() for _ in began]
        asked_s = asyncio.get_running_loop().time()
        for recognition, event in zip(began, ended, strict=True):
            recognition.feed(bytes(160_000))
            recognition.finish(event.set)
        await asyncio.gather(*(event.wait() for event in ended), *(item.task for item in began))
        took_s = asyncio.get_running_loop().time() - asked_s
        assert 1.5 < took_s < 3.0
        assert [made.outcomes["unreachable"] for made in recognizers] == [0, 0]
        for made in recognizers:
            await made.close()
        stalled.released.set()
        await stalled.stop()


async def test_a_flood_of_sentences_is_cut_to_the_rate_of_speech(tmp_path: Path) -> None:
    result = {
        "type": "Results",
        "is_final": True,
        "speech_final": True,
        "channel": {"alternatives": [{"transcript": "word " * 10_000, "confidence": 1}]},
    }
    async with stage(tmp_path) as it:
        it.endpoint.garbage = (json.dumps(result), 3000)
        call = await it.call()
        assert await eventually(lambda: it.recognizer.outcomes["broken"] >= 1)
        call.hang_up()
        await it.world.ended()
    assert 1 <= len(it.sentences) == len(it.said) <= 60
    assert {len(text) for _, text in it.said} == {MAX_TEXT_CHARS}


async def test_a_server_without_a_recogniser_goes_on_without(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        plan = Plan((Pause(1.0),), dial=make_party(), transcribe="en-IN")
        await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
        call = await world.phone.next_call()
        await call.wait(Ended)
        assert (await world.ended()).status.value == "completed"
        assert not world.segments


async def test_a_step_that_waits_transcribes_until_the_call_goes_on(tmp_path: Path) -> None:
    hook = "https://shop.example/said"
    async with stage(tmp_path) as it:
        call = await it.call(ChangeTranscription("en-IN", hook, waits=True), language=None)
        await it.hears()
        say(call, YES)
        assert await eventually(lambda: len(it.said) == 1)
        call.hang_up()
        await it.world.ended()
    (event,) = [event for event in it.world.records.events if event.url == hook]
    body = json.loads(event.body)
    assert body["call_sid"] == event.call_sid and body["call_status"] == "in-progress"
    assert body["speech"] == {
        "language_code": "en-IN",
        "channel_tag": 1,
        "is_final": True,
        "alternatives": [{"confidence": 0.97, "transcript": "and yes thanks"}],
    }
