"""Tracks that a party hears beside everything else, over real SIP and RTP: two tones at once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.errors import Conflict, ValidationFailed
from media.audio import Clip, tone
from media.audio.wav import write_wav
from sip import Answered, Ended
from tests.support.domain import ACCOUNT_SID, CALLEE, OWN_NUMBER
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PhoneCall
from tests.support.voice import Voice
from tests.support.waiting import until
from tests.support.webhook_stage import Receiver
from tests.support.world import World, instructed

PITCHES = {"welcome": 700.0, "menu": 1100.0, "hint": 1900.0}
MUSIC_HZ = 2300.0
OTHER_HZ = 440.0
_RECENT_BYTES = 400 * 16
_SILENT_DBFS = -50.0
_HEARD_DBFS = -30.0


class Stage:
    """A server with a voice, a telephone, and the customer's server, which has verbs and a sound."""

    def __init__(self, world: World, server: Receiver) -> None:
        self.world = world
        self.server = server
        music = write_wav(Clip(tone(MUSIC_HZ, 500)))
        server.answers["/music.wav"] = lambda _: web.Response(body=music)
        server.answers["/empty.wav"] = lambda _: web.Response(body=write_wav(Clip(b"")))

    def says(self, path: str, *verbs: dict[str, Any]) -> None:
        self.server.answers[path] = lambda _: web.json_response(list(verbs))

    async def called(self, *verbs: dict[str, Any], **binding: Any) -> PhoneCall:
        self.says("/voice", *verbs)
        self.world.bind(target="webhook", webhook_url=self.server.url("/voice"), **binding)
        call = self.world.phone.call(OWN_NUMBER, self.world.port)
        await call.wait(Answered)
        return call

    async def change(self, **dub: Any) -> None:
        call_sid = self.world.records.only().call_sid
        await self.world.control.update_call(ACCOUNT_SID, call_sid, LiveUpdate(dub=dub))

    def failures(self) -> list[tuple[str, str]]:
        alerts = [item for item in self.world.records.events if item.event == "webhook.failed"]
        return [
            (data["reason"], data["message"]) for data in (json.loads(item.body)["data"] for item in alerts)
        ]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with instructed(tmp_path, speech=Voice(PITCHES)) as (world, server):
        yield Stage(world, server)


async def hears(call: PhoneCall, *freqs_hz: float, but: tuple[float, ...] = ()) -> None:
    """Wait until all of these tones are in 400 ms of what is heard, and none of the others."""
    call.heard.clear()

    def found() -> bool:
        recent = bytes(call.heard[-_RECENT_BYTES:])
        return (
            len(recent) == _RECENT_BYTES
            and all(tone_level_dbfs(recent, freq_hz) > _HEARD_DBFS for freq_hz in freqs_hz)
            and all(tone_level_dbfs(recent, freq_hz) < _SILENT_DBFS for freq_hz in but)
        )

    await call.until(found)


MUSIC = {"verb": "dub", "track": "m", "loop": True}
MENU = {"verb": "gather", "say": {"text": "menu", "loop": 50}, "num_digits": 1, "timeout": 60}


async def test_a_track_is_heard_with_prompts_and_over_a_bridge_until_it_is_removed(stage: Stage) -> None:
    track = {"verb": "dub", "track": "office", "action": "add", "url": "music.wav", "loop": True, "gain": -3}
    dial = {"verb": "dial", "target": [{"type": "phone", "number": CALLEE}]}
    call = await stage.called(track, MENU, dial)
    await hears(call, PITCHES["menu"], MUSIC_HZ)
    call.open().send_dtmf("1")
    other = await stage.world.phone.next_call(2)
    other.speak(OTHER_HZ)
    await hears(call, OTHER_HZ, MUSIC_HZ, but=(PITCHES["menu"],))
    call.speak(PITCHES["welcome"])
    await hears(other, PITCHES["welcome"], but=(MUSIC_HZ,))
    await stage.change(action="add", track="hints", text="hint", loop=True)
    await hears(call, OTHER_HZ, MUSIC_HZ, PITCHES["hint"])
    await stage.change(action="silence", track="hints")
    await hears(call, OTHER_HZ, MUSIC_HZ, but=(PITCHES["hint"],))
    # A sound of no length is a sound too.
    await stage.change(action="play", track="office", url=stage.server.url("/empty.wav"))
    await hears(call, OTHER_HZ, but=(MUSIC_HZ,))
    await stage.change(action="play", track="office", url=stage.server.url("/music.wav"), loop=True)
    await hears(call, OTHER_HZ, MUSIC_HZ)
    await stage.change(action="remove", track="office")
    await hears(call, OTHER_HZ, but=(MUSIC_HZ, PITCHES["hint"]))
    with pytest.raises(Conflict, match="there is no track office"):
        await stage.change(action="silence", track="office")
    other.hang_up()
    await call.wait(Ended)
    await stage.world.ended()
    assert not stage.failures()


async def test_verbs_of_jambonz_do_the_same(stage: Stage) -> None:
    call = await stage.called(
        {"verb": "dub", "action": "addTrack", "track": "m"},
        {
            "verb": "dub",
            "action": "playOnTrack",
            "track": "m",
            "play": "music.wav",
            "loop": True,
            "gain": "-3 dB",
        },
        {"verb": "say", "text": "welcome", "loop": 2},
        {"verb": "dub", "action": "silenceTrack", "track": "m"},
        {**MUSIC, "action": "sayOnTrack", "say": "hint"},
        {"verb": "say", "text": "menu", "loop": 50},
        webhook_format="jambonz",
    )
    await hears(call, PITCHES["welcome"], MUSIC_HZ)
    await hears(call, PITCHES["menu"], PITCHES["hint"], but=(MUSIC_HZ,))
    call.hang_up()
    await stage.world.ended()


async def test_what_cannot_be_heard_is_reported_and_the_call_goes_on(stage: Stage) -> None:
    stage.server.answers["/gone.wav"] = lambda _: web.Response(status=404)
    stage.server.answers["/text.wav"] = lambda _: web.Response(text="no sound")
    added = [{"verb": "dub", "action": "add", "track": f"{number}"} for number in range(5)]
    call = await stage.called(
        {"verb": "dub", "action": "play", "track": "none", "url": "music.wav"},
        *added,
        {"verb": "dub", "action": "play", "track": "0", "url": "gone.wav"},
        {"verb": "dub", "action": "play", "track": "1", "url": "text.wav"},
        {"verb": "say", "text": "menu", "loop": 50},
    )
    await hears(call, PITCHES["menu"], but=(MUSIC_HZ,))
    await until(lambda: len(stage.failures()) == 4)
    assert {reason for reason, _ in stage.failures()} == {"dub"}
    assert [message for _, message in stage.failures()][:2] == [
        "there is no track none",
        "there are 4 tracks already",
    ]
    with pytest.raises(ValidationFailed, match="printable"):
        await stage.change(action="add", track="a\0b")
    with pytest.raises(Conflict, match="there are 4 tracks already"):
        await stage.change(action="add", track="5")
    call.hang_up()
    await stage.world.ended()
