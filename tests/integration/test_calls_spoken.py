"""Calls that speak texts and gather keys, over real SIP and RTP."""

import asyncio
import json
from pathlib import Path

from aiohttp import web

from callcontrol.calls.plan import Gather, Pause, Plan, Play, RecordMessage, RequestInstructions, Say, Step
from callcontrol.calls.requests import CallMetadata
from media.aio import EspeakSynthesizer
from media.audio import Clip, SpeechUnavailable, read_wav, tone
from media.audio.speech import Synthesizer
from sip import Ended
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID, make_account
from tests.support.levels import level_dbfs, tone_level_dbfs
from tests.support.phone import PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.webhook_stage import SECRET, Receiver
from tests.support.world import WEBHOOK, World, running

VECTORS = Path(__file__).parent.parent / "vectors" / "audio"
WELCOME_HZ, MENU_HZ = 700.0, 1100.0


class Tones(Synthesizer):
    """Speaks a tone for a word, each of its own pitch."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.slow = asyncio.Event()

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        self.asked.append((text, language))
        if text == "unspeakable":
            raise SpeechUnavailable("nobody speaks this")
        if text == "never":
            await self.slow.wait()
        return Clip(tone(WELCOME_HZ if text == "welcome" else MENU_HZ, 1200))


async def call_with(world: World, *steps: Step) -> PhoneCall:
    plan = Plan(steps, dial=make_party())
    await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
    return await world.phone.next_call()


def words() -> bytes:
    """Somebody talking: a tone is none."""
    return read_wav((VECTORS / "talk_en.wav").read_bytes()).pcm[: 16 * 2500]


def voiced_ms(call: PhoneCall) -> int:
    """Duration of audio as loud as a voice, in steps of 20 ms."""
    heard = bytes(call.heard)
    return sum(20 for at in range(0, len(heard) - 319, 320) if level_dbfs(heard[at : at + 320]) > -35.0)


async def test_a_party_hears_what_is_said_and_the_call_goes_on(tmp_path: Path) -> None:
    speech = Tones()
    async with running(tmp_path, speech=speech) as world:
        call = await call_with(world, Say("welcome"), Say("unspeakable"), Say("menu", "hi-IN"))
        await call.hears(WELCOME_HZ)
        await call.hears(MENU_HZ)
        await call.wait(Ended)
        record = await world.ended()
    assert speech.asked == [("welcome", "en-IN"), ("unspeakable", "en-IN"), ("menu", "hi-IN")]
    assert record.hangup_cause == "NORMAL_CLEARING"


async def test_a_server_that_speaks_nothing_goes_on_with_the_call(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        call = await call_with(world, Say("welcome"))
        await call.wait(Ended)
        assert (await world.ended()).status.value == "completed"


async def test_hanging_up_while_a_text_is_being_made_ends_the_call_at_once(tmp_path: Path) -> None:
    speech = Tones()
    async with running(tmp_path, speech=speech) as world:
        call = await call_with(world, Say("never"))
        assert await eventually(lambda: bool(speech.asked))
        call.hang_up()
        await world.ended()
        assert not speech.slow.is_set(), "nobody waited for the voice"


async def test_a_key_stops_the_prompt_and_the_keys_reach_the_server(tmp_path: Path) -> None:
    server = Receiver()
    server.answers["/menu"] = lambda _: web.json_response([{"verb": "hangup"}])
    await server.start()
    try:
        async with running(tmp_path, speech=Tones()) as world:
            world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
            prompts = (Say("menu", loops=50), Pause(1.0), Play("prompt:none"))
            gather = Gather(
                prompts, num_digits=4, action=RequestInstructions(server.url("/menu"), event="call.gathered")
            )
            call = await call_with(world, Say("welcome"), gather)
            await call.hears(MENU_HZ)
            assert call.stream is not None
            call.stream.send_dtmf("4")
            await call.hears_silence()
            call.stream.send_dtmf("27#")
            await call.wait(Ended)
            record = await world.ended()
    finally:
        await server.close()
    assert [got.path for got in server.requests] == ["/menu"]
    assert record.hangup_source == "api"


async def test_the_voice_of_the_server_is_heard(tmp_path: Path) -> None:
    """Speech by espeak-ng arrives as sound, for as long as the text is."""
    speech = EspeakSynthesizer(tmp_path / "speech", timeout_s=60.0)
    async with running(tmp_path, speech=speech) as world:
        call = await call_with(world, Say("Good morning, and welcome to the bank."))
        await call.until(lambda: voiced_ms(call) > 800)
        await call.wait(Ended)
        await world.ended()
    await speech.close()
    assert list((tmp_path / "speech").iterdir()), "it is kept for the next call"


async def test_a_message_is_in_a_file_of_its_own_beside_the_recording(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        plan = Plan((RecordMessage(silence_s=2.5), Say("welcome")), dial=make_party(), record=True)
        await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
        call = await world.phone.next_call()
        await call.until(lambda: call.heard_beep(1000.0))
        call.open().play(words())
        await call.wait(Ended)
        record = await world.ended()
    ready = [
        json.loads(item.body)["data"]
        for item in world.records.events
        if item.event.endswith("recording.ready")
    ]
    (message,) = [data for data in ready if "message_sid" in data]
    assert message["recording_url"] == f"/recordings/{message['message_sid']}.wav"
    clip = read_wav((tmp_path / "recordings" / f"{message['message_sid']}.wav").read_bytes())
    assert clip.channels == 1 and abs(clip.duration_ms - message["recording_duration_ms"]) < 100
    assert level_dbfs(clip.pcm) > -35.0, "what the party said"
    assert tone_level_dbfs(clip.pcm[: 16 * 200], 1000.0) < -40.0, "and not the beep"
    assert record.recording_status == "completed", "the whole call was recorded as well"


async def test_a_message_is_kept_when_its_party_hangs_up(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        call = await call_with(world, RecordMessage(beep=False))
        call.open().play(words())
        await time_passes(0.9)
        call.hang_up()
        await world.ended()
        assert world.published("call.recording.ready")["data"]["recording_duration_ms"] > 300
        assert len(world.control.engine.recordings) == len(world.control.engine.conferences) == 0


async def test_nothing_is_left_of_a_message_without_words(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        call = await call_with(world, RecordMessage(beep=False, silence_s=0.3))
        await call.wait(Ended)
        await world.ended()
        assert not [item for item in world.records.events if item.event == "call.recording.ready"]
        assert await eventually(lambda: not list((tmp_path / "recordings").iterdir()))
