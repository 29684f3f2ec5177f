"""Texts that a speech server speaks: streamed, kept, and spoken by espeak-ng's stand-in where it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.calls.plan import Gather, Plan, Say
from callcontrol.calls.requests import CallMetadata
from fixtures import speech as stand_in
from fixtures.speech import VOICE_HZ, SpeechEndpoint
from media.aio.speech_server import OUTCOMES, ServerSynthesizer, SpeechServer
from media.audio import Clip, SpeechError, SpeechUnavailable, tone
from media.audio.circuit_breaker import BreakerState
from media.audio.speech import Synthesizer
from sip import Ended
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID
from tests.support.inbound_stage import inbound_stage
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PATIENCE_S, PhoneCall, eventually
from tests.support.webhook_stage import Receiver
from tests.support.world import WEBHOOK, World, running

FALLBACK_HZ = 300.0


class Espeak(Synthesizer):
    """Stands in for espeak-ng: its texts are a tone of their own."""

    def __init__(self) -> None:
        self.spoken: list[str] = []

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        self.spoken.append(text)
        if text == "unspeakable":
            raise SpeechUnavailable("nobody speaks this")
        return Clip(tone(FALLBACK_HZ, 1500, sample_rate=16_000), 16_000)


@asynccontextmanager
async def voices(
    directory: Path | None = None, key: str = "sk-test", **limits: Any
) -> AsyncIterator[tuple[SpeechEndpoint, ServerSynthesizer, Espeak]]:
    espeak = Espeak()
    async with SpeechEndpoint().running() as endpoint:
        server = replace(SpeechServer(endpoint.url, "gpt-4o-mini-tts", "alloy", key), **limits)
        synthesizer = ServerSynthesizer(server, espeak, directory)
        try:
            yield endpoint, synthesizer, espeak
        finally:
            await synthesizer.close()
    assert not endpoint.problems


async def joined(
    synthesizer: ServerSynthesizer, text: str = "Hello there.", voice: str | None = None
) -> Clip:
    pieces = [piece async for piece in synthesizer.pieces(text, "en-IN", voice=voice)]
    assert {piece.sample_rate for piece in pieces} == {16_000}
    return Clip(b"".join(piece.pcm for piece in pieces), 16_000)


def says(clip: Clip, hz: float, ms: int = 1500) -> bool:
    return clip.duration_ms == pytest.approx(ms, abs=2) and tone_level_dbfs(clip.pcm, hz, 16_000) > -11.0


def outcomes(synthesizer: ServerSynthesizer, **expected: int) -> bool:
    return dict(synthesizer.outcomes) == dict.fromkeys(OUTCOMES, 0) | expected


# --- the synthesizer ---


async def test_the_first_audio_is_there_before_the_server_has_finished() -> None:
    async with voices() as (endpoint, synthesizer, _):
        endpoint.answer = stand_in.held
        pieces = synthesizer.pieces("Hello there.", "en-IN")
        async with asyncio.timeout(PATIENCE_S):
            first = await anext(pieces)
        assert 300 < first.duration_ms <= 500 and not endpoint.released.is_set()
        endpoint.released.set()
        rest = [piece async for piece in pieces]
        assert says(Clip(b"".join(piece.pcm for piece in (first, *rest)), 16_000), VOICE_HZ["alloy"])
    assert endpoint.asked == [
        {"model": "gpt-4o-mini-tts", "input": "Hello there.", "voice": "alloy", "response_format": "pcm"}
    ]


@pytest.mark.parametrize("wav", [False, True])
async def test_samples_and_wav_files_of_unknown_length_are_heard(wav: bool) -> None:
    async with voices() as (endpoint, synthesizer, _):
        endpoint.wav = wav
        assert says(await joined(synthesizer), VOICE_HZ["alloy"])
        assert outcomes(synthesizer, spoken=1)


async def test_pieces_that_are_cut_anywhere_are_one_sound() -> None:
    async def odd(endpoint: SpeechEndpoint, response: object, audio: bytes) -> None:
        for at in range(0, len(audio), 1237):
            await response.write(audio[at : at + 1237])  # type: ignore[attr-defined]  # A StreamResponse.
            await asyncio.sleep(0)

    async with voices() as (endpoint, synthesizer, _):
        endpoint.answer = odd
        clip = await joined(synthesizer)
    assert clip.duration_ms == pytest.approx(1500, abs=2)
    # A sample out of place in a single piece would show.
    levels = [
        tone_level_dbfs(clip.pcm[at : at + 640], 500, 16_000) for at in range(640, len(clip.pcm) - 1280, 640)
    ]
    assert min(levels) > -11.0


async def test_a_sentence_is_asked_for_once_and_then_kept_also_on_disk(tmp_path: Path) -> None:
    async with voices(tmp_path) as (endpoint, synthesizer, _):
        for _ in range(2):
            assert says(await joined(synthesizer), VOICE_HZ["alloy"])
        assert says(await joined(synthesizer, voice="coral"), VOICE_HZ["coral"])
        assert outcomes(synthesizer, spoken=2, cached=1)
        again = ServerSynthesizer(SpeechServer(endpoint.url, "gpt-4o-mini-tts", "alloy"), Espeak(), tmp_path)
        assert says(await joined(again, voice="coral"), VOICE_HZ["coral"])
        assert outcomes(again, cached=1)
        await again.close()
    assert [body["voice"] for body in endpoint.asked] == ["alloy", "coral"]


async def test_calls_that_want_one_sentence_at_once_share_a_request() -> None:
    async with voices() as (endpoint, synthesizer, _):
        endpoint.answer = stand_in.held
        waiting = [asyncio.create_task(joined(synthesizer)) for _ in range(5)]
        async with asyncio.timeout(PATIENCE_S):
            await endpoint.sent.wait()
        endpoint.released.set()
        assert all([says(await task, VOICE_HZ["alloy"]) for task in waiting])
        assert len(endpoint.asked) == 1 and outcomes(synthesizer, spoken=1)


async def test_who_hangs_up_meanwhile_does_not_spoil_it_for_the_others() -> None:
    async with voices() as (endpoint, synthesizer, _):
        endpoint.answer = stand_in.held
        gone, stays = (asyncio.create_task(joined(synthesizer)) for _ in range(2))
        async with asyncio.timeout(PATIENCE_S):
            await endpoint.sent.wait()
        gone.cancel()
        endpoint.released.set()
        assert says(await stays, VOICE_HZ["alloy"])


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"status": 500}, "refused"),
        ({"status": 429}, "refused"),
        ({"content_type": "application/json"}, "invalid"),
        ({"content_type": "audio/mpeg"}, "invalid"),
        ({"garbage": b""}, "invalid"),
        (
            {"garbage": b"<html><body>It works, but it does not speak at all to anybody.</body></html>"},
            "invalid",
        ),
        ({"garbage": b"ID3" + bytes(4096)}, "invalid"),
        ({"garbage": b"RIFF\xff\xff\xff\xffnone" + bytes(4096)}, "invalid"),
        (
            {"garbage": b"RIFF\xff\xff\xff\xffWAVEjunk" + (1 << 30).to_bytes(4, "little") + bytes(99_000)},
            "invalid",
        ),
        ({"garbage": b"\1\2\3"}, "invalid"),
        ({"answer": stand_in.mute}, "slow"),
    ],
)
async def test_what_the_server_does_not_speak_is_spoken_by_espeak(
    change: dict[str, object], outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with voices(start_timeout_s=0.5) as (endpoint, synthesizer, espeak):
        for name, value in change.items():
            setattr(endpoint, name, value)
        with caplog.at_level(logging.WARNING):
            assert says(await joined(synthesizer), FALLBACK_HZ)
        assert espeak.spoken == ["Hello there."] and outcomes(synthesizer, **{outcome: 1})
        assert "spoken by espeak-ng: the speech server" in caplog.text
        assert "Hello" not in caplog.text and "sk-test" not in caplog.text
        # Nothing of that was kept.
        endpoint.status, endpoint.content_type, endpoint.garbage = 200, None, None
        endpoint.answer = stand_in.whole
        assert says(await joined(synthesizer), VOICE_HZ["alloy"])


async def test_a_wrong_key_is_refused_and_espeak_speaks() -> None:
    async with voices(key="sk-wrong") as (endpoint, synthesizer, _):
        assert says(await joined(synthesizer), FALLBACK_HZ)
        assert outcomes(synthesizer, refused=1) and not endpoint.asked


async def test_a_voice_that_the_server_does_not_have_is_spoken_by_espeak() -> None:
    async with voices() as (endpoint, synthesizer, _):
        assert says(await joined(synthesizer, voice="Polly.Aditi"), FALLBACK_HZ)
        assert outcomes(synthesizer, refused=1)
        endpoint.problems.clear()


async def test_a_server_that_is_not_there() -> None:
    async with SpeechEndpoint().running() as endpoint:
        url = endpoint.url
    synthesizer = ServerSynthesizer(SpeechServer(url, "tts-1", "alloy"), Espeak())
    assert says(await joined(synthesizer), FALLBACK_HZ)
    assert outcomes(synthesizer, unreachable=1)
    await synthesizer.close()


@pytest.mark.parametrize("answer", [stand_in.held, stand_in.broken], ids=["stalls", "hangs up"])
async def test_speech_that_breaks_off_ends_there_and_is_not_kept(answer: stand_in.Answer) -> None:
    async with voices(stall_timeout_s=0.5) as (endpoint, synthesizer, espeak):
        endpoint.answer = answer
        assert (await joined(synthesizer)).duration_ms == pytest.approx(490, abs=20)
        assert outcomes(synthesizer, interrupted=1) and not espeak.spoken
        endpoint.answer = stand_in.whole
        assert says(await joined(synthesizer), VOICE_HZ["alloy"])


async def test_a_server_that_speaks_without_end_is_cut_off() -> None:
    async def endless(endpoint: SpeechEndpoint, response: object, audio: bytes) -> None:
        while True:
            await response.write(audio)  # type: ignore[attr-defined]  # A StreamResponse.

    async with voices() as (endpoint, synthesizer, _):
        endpoint.answer = endless
        clip = await joined(synthesizer)
        assert 200_000 < clip.duration_ms <= 240_000 and outcomes(synthesizer, interrupted=1)


async def test_too_many_texts_at_once_are_spoken_by_espeak() -> None:
    async with voices(at_once=1) as (endpoint, synthesizer, _):
        endpoint.answer = stand_in.held
        first = asyncio.create_task(joined(synthesizer))
        async with asyncio.timeout(PATIENCE_S):
            await endpoint.sent.wait()
        assert says(await joined(synthesizer, "Another text."), FALLBACK_HZ)
        endpoint.released.set()
        assert says(await first, VOICE_HZ["alloy"])
        assert outcomes(synthesizer, spoken=1, busy=1)


async def test_a_text_that_neither_speaks_and_one_that_nobody_may_hear_of() -> None:
    async with voices() as (endpoint, synthesizer, espeak):
        endpoint.status = 500
        with pytest.raises(SpeechError, match="nobody speaks this"):
            await joined(synthesizer, "unspeakable")
        await synthesizer.speak("Your password is 271828.", "en-IN", keep=False)
        assert [body["input"] for body in endpoint.asked] == ["unspeakable"]
        assert espeak.spoken[-1].startswith("Your password")


# --- a dead server ---


async def texts(synthesizer: ServerSynthesizer, *names: str) -> None:
    for name in names:
        assert says(await joined(synthesizer, name), FALLBACK_HZ)


@pytest.mark.parametrize(
    ("change", "outcome"), [({"status": 503}, "refused"), ({"answer": stand_in.mute}, "slow")]
)
async def test_a_server_that_fails_again_and_again_is_left_alone(
    change: dict[str, object], outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with voices(start_timeout_s=0.3, cooldown_s=60.0) as (endpoint, synthesizer, espeak):
        for name, value in change.items():
            setattr(endpoint, name, value)
        await texts(synthesizer, "one", "two", "three", "four", "five")
        assert [body["input"] for body in endpoint.asked] == ["one", "two", "three"]
        assert espeak.spoken == ["one", "two", "three", "four", "five"]
        assert outcomes(synthesizer, **{outcome: 3}, skipped=2)
        assert synthesizer.breaker.changes == {"open": 1, "half_open": 0, "closed": 0}
    assert caplog.text.count("the speech server fails: espeak-ng speaks for 60.0 s") == 1
    assert caplog.text.count("a text is spoken by espeak-ng") == 3


async def test_a_connection_that_is_refused_counts() -> None:
    async with SpeechEndpoint().running() as endpoint:
        url = endpoint.url
    synthesizer = ServerSynthesizer(SpeechServer(url, "tts-1", "alloy", cooldown_s=60.0), Espeak())
    await texts(synthesizer, "one", "two", "three", "four")
    assert outcomes(synthesizer, unreachable=3, skipped=1)
    await synthesizer.close()


async def test_one_text_tries_the_server_and_its_answer_ends_the_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with voices(cooldown_s=0.0) as (endpoint, synthesizer, espeak):
        endpoint.status = 500
        with caplog.at_level(logging.INFO):
            # The fourth is a trial, too, and fails.
            await texts(synthesizer, "one", "two", "three", "four")
            endpoint.status, endpoint.answer = 200, stand_in.held
            trial = asyncio.create_task(joined(synthesizer, "five"))
            async with asyncio.timeout(PATIENCE_S):
                await endpoint.sent.wait()
            await texts(synthesizer, "six")
            endpoint.released.set()
            assert says(await trial, VOICE_HZ["alloy"])
            assert says(await joined(synthesizer, "seven"), VOICE_HZ["alloy"])
        assert espeak.spoken == ["one", "two", "three", "four", "six"]
        assert outcomes(synthesizer, refused=4, skipped=1, spoken=2)
        assert synthesizer.breaker.changes == {"open": 2, "half_open": 2, "closed": 1}
    assert caplog.text.count("the speech server is tried by one text") == 2
    assert caplog.text.count("the speech server works again") == 1


async def test_a_trial_that_ends_with_the_server_is_none(tmp_path: Path) -> None:
    async with voices(cooldown_s=0.0) as (endpoint, synthesizer, _):
        endpoint.status = 500
        await texts(synthesizer, "one", "two", "three")
        endpoint.status, endpoint.answer = 200, stand_in.held
        trial = asyncio.create_task(joined(synthesizer, "four"))
        async with asyncio.timeout(PATIENCE_S):
            await endpoint.sent.wait()
        await synthesizer.close()
        await trial
        assert synthesizer.breaker.state is BreakerState.OPEN


@pytest.mark.parametrize(
    "change", [{"status": 401}, {"status": 429}, {"content_type": "application/json"}, {"garbage": b""}]
)
async def test_what_is_the_fault_of_a_request_or_a_key_does_not_count(change: dict[str, object]) -> None:
    async with voices() as (endpoint, synthesizer, _):
        for name, value in change.items():
            setattr(endpoint, name, value)
        await texts(synthesizer, *(f"text {number}" for number in range(5)))
        assert len(endpoint.asked) == 5 and synthesizer.outcomes["skipped"] == 0


# --- calls ---


@asynccontextmanager
async def speaking(directory: Path) -> AsyncIterator[tuple[SpeechEndpoint, World]]:
    async with voices() as (endpoint, synthesizer, _), running(directory, speech=synthesizer) as world:
        yield endpoint, world
        # What is said for nobody any more ends with the server.
        await synthesizer.close()
        await endpoint.stop()


async def call_with(world: World, *steps: Say | Gather) -> PhoneCall:
    plan = Plan(steps, dial=make_party())
    await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
    call = await world.phone.next_call()
    call.kept_ms = 20_000
    return call


def longest_ms(call: PhoneCall, hz: float) -> int:
    """Longest time for which a tone was heard without a gap, in steps of 20 ms."""
    heard, longest, now = bytes(call.heard), 0, 0
    for at in range(0, len(heard) - 319, 320):
        now = now + 20 if tone_level_dbfs(heard[at : at + 320], hz) > -14.0 else 0
        longest = max(longest, now)
    return longest


async def test_a_caller_hears_the_beginning_while_the_rest_is_being_made(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (endpoint, world):
        endpoint.answer = stand_in.held
        call = await call_with(world, Say("Hello there."), Say("And again.", voice="nova"))
        await call.until(lambda: longest_ms(call, VOICE_HZ["alloy"]) >= 200)
        assert not endpoint.released.is_set()
        endpoint.released.set()
        await call.until(lambda: longest_ms(call, VOICE_HZ["nova"]) >= 1000)
        await call.wait(Ended)
        await world.ended()


async def test_pieces_are_heard_without_a_gap(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (endpoint, world):
        # Twice as fast as it is heard.
        endpoint.pace_s, endpoint.duration_ms = 0.05, 4000
        call = await call_with(world, Say("Hello there."))
        await call.wait(Ended)
        await world.ended()
        assert longest_ms(call, VOICE_HZ["alloy"]) >= 3900


async def test_a_key_stops_a_prompt_that_is_still_being_made(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (endpoint, world):
        endpoint.pace_s, endpoint.duration_ms = 0.09, 20_000
        gather = Gather((Say("A long menu."),), num_digits=2, timeout_s=1.0)
        call = await call_with(world, gather, Say("Good bye.", voice="sage"))
        await call.hears(VOICE_HZ["alloy"])
        call.open().send_dtmf("4")
        await call.hears_silence()
        await call.until(lambda: longest_ms(call, VOICE_HZ["sage"]) >= 500)
        call.hang_up()
        await world.ended()


async def test_a_call_goes_on_with_espeak_when_the_server_fails(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (endpoint, world):
        endpoint.status = 503
        call = await call_with(world, Say("Hello there.", loops=2), Say("unspeakable"))
        await call.until(lambda: longest_ms(call, FALLBACK_HZ) >= 1000)
        await call.wait(Ended)
        record = await world.ended()
    assert record.hangup_cause == "NORMAL_CLEARING"


async def test_hanging_up_while_the_server_speaks_ends_the_call_at_once(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (endpoint, world):
        endpoint.answer = stand_in.held
        call = await call_with(world, Say("Hello there."))
        assert await eventually(endpoint.sent.is_set)
        call.hang_up()
        await world.ended()
        assert not endpoint.released.is_set()


async def test_a_server_with_these_settings_speaks_and_counts(tmp_path: Path) -> None:
    webhook = Receiver()
    webhook.answers["/say"] = lambda _: web.json_response(
        [{"verb": "say", "text": "Welcome.", "voice": "coral"}, {"verb": "say", "text": "Good bye."}]
    )
    await webhook.start()
    try:
        async with (
            SpeechEndpoint().running() as endpoint,
            inbound_stage(
                tmp_path, SPEECH_URL=endpoint.url, SPEECH_KEY="sk-test", SPEECH_VOICE="sage"
            ) as stage,
        ):
            await stage.bind(target="webhook", webhook_url=webhook.url("/say"))
            call = stage.call()
            await call.until(lambda: longest_ms(call, VOICE_HZ["sage"]) >= 500)
            assert longest_ms(call, VOICE_HZ["coral"]) >= 1000
            await call.wait(Ended)
            async with stage.http.get(f"{stage.server.url}/metrics") as answer:
                metrics = await answer.text()
            assert 'trunkline_speech_texts_total{outcome="spoken"} 2.0' in metrics
            assert "trunkline_speech_server_usable 1.0" in metrics
            assert 'trunkline_speech_server_changes_total{state="open"} 0.0' in metrics
    finally:
        await webhook.close()
    assert [body["voice"] for body in endpoint.asked] == ["coral", "sage"] and not endpoint.problems
    assert len(list((tmp_path / "speech").glob("*.wav"))) == 2
