"""The verb that changes a track, in our form and in that of jambonz."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callcontrol.calls.plan import Dub, Play, Say
from callcontrol.errors import ValidationFailed
from callcontrol.instructions.instructions import read_instructions
from callcontrol.instructions.jambonz import live_dub
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from tests.support.domain import OpenDestinations, make_ringing

URL = "https://customer.example/calls/next"
HINDI = {"synthesizer": {"language": "hi-IN"}}
UNKNOWN = {"synthesizer": {"language": "xx"}}
SOUND = "https://customer.example/calls/music.wav"


def read(verb: dict[str, Any], *, jambonz: bool = False) -> list[object]:
    return list(
        read_instructions(
            "application/json",
            json.dumps([{"verb": "dub", **verb}]).encode(),
            VerbRules({"IN"}, ["beep"], OpenDestinations().check_url),
            make_ringing(),
            caller=None,
            url=URL,
            webhooks=WebhookDefaults("jambonz" if jambonz else "json"),
        )
    )


def wrong(verb: dict[str, Any], *, jambonz: bool = False) -> list[str]:
    with pytest.raises(ValidationFailed) as refusal:
        read(verb, jambonz=jambonz)
    return [error.field.removeprefix("verbs[0].") for error in refusal.value.errors]


@pytest.mark.parametrize(
    ("verb", "step"),
    [
        ({"action": "add", "track": "music"}, Dub("add", "music")),
        (
            {"action": "add", "track": "music", "url": "music.wav", "loop": True, "gain": -10},
            Dub("add", "music", Play(SOUND), loop=True, gain_db=-10.0),
        ),
        ({"action": "play", "track": "m", "url": "prompt:beep"}, Dub("play", "m", Play("prompt:beep"))),
        (
            {"action": "say", "track": "संगीत", "text": "Hello", "language": "hi-IN", "voice": "nova"},
            Dub("say", "संगीत", Say("Hello", "hi-IN", voice="nova")),
        ),
        ({"action": "add", "track": "m", "text": "Hello", "url": None}, Dub("add", "m", Say("Hello"))),
        ({"action": "silence", "track": "m", "gain": None}, Dub("silence", "m")),
        ({"action": "remove", "track": "m"}, Dub("remove", "m")),
    ],
)
def test_every_action_becomes_its_step(verb: dict[str, Any], step: Dub) -> None:
    assert read(verb) == [step]


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ({}, ["track", "action"]),
        ({"action": "addTrack", "track": "m"}, ["action"]),
        ({"action": ["add"], "track": ["m"]}, ["track", "action"]),
        ({"action": "add", "track": ""}, ["track"]),
        ({"action": "add", "track": "m" * 65}, ["track"]),
        ({"action": "add", "track": "a\nb"}, ["track"]),
        ({"action": "play", "track": "m"}, ["url"]),
        ({"action": "play", "track": "m", "url": "https://forbidden.example/x.wav"}, ["url"]),
        ({"action": "play", "track": "m", "url": "ftp://a.example/x.wav"}, ["url"]),
        ({"action": "play", "track": "m", "url": "prompt:none"}, ["url"]),
        ({"action": "play", "track": "m", "url": "music.wav", "text": "Hello"}, ["text"]),
        ({"action": "add", "track": "m", "url": "music.wav", "text": "Hello"}, ["text"]),
        ({"action": "add", "track": "m", "voice": "nova"}, ["text"]),
        ({"action": "say", "track": "m"}, ["text"]),
        ({"action": "say", "track": "m", "text": "Hello", "language": "xx"}, ["language"]),
        ({"action": "silence", "track": "m", "url": "music.wav", "loop": True}, ["loop", "url"]),
        ({"action": "add", "track": "m", "loop": 3, "gain": 18.5}, ["loop", "gain"]),
        ({"action": "add", "track": "m", "gain": True}, ["gain"]),
        ({"action": "add", "track": "m", "gain": float("nan")}, ["gain"]),
        ({"action": "add", "track": "m", "gain": -51, "volume": 2}, ["volume", "gain"]),
    ],
)
def test_each_wrong_field_is_named(verb: dict[str, Any], fields: list[str]) -> None:
    assert wrong(verb) == fields


def test_a_name_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="NUL"):
        read({"action": "add", "track": "a\0b"})


@pytest.mark.parametrize(
    ("verb", "step"),
    [
        ({"action": "addTrack", "track": "office", "id": "x"}, Dub("add", "office")),
        (
            {"action": "addTrack", "track": "office", "play": "music.wav", "loop": True, "gain": "-10 dB"},
            Dub("add", "office", Play(SOUND), loop=True, gain_db=-10.0),
        ),
        (
            {"action": "playOnTrack", "track": "m", "play": SOUND, "gain": "+5.5DB"},
            Dub("play", "m", Play(SOUND), gain_db=5.5),
        ),
        (
            {"action": "sayOnTrack", "track": "m", "say": "Hello", "gain": 3},
            Dub("say", "m", Say("Hello"), False, 3.0),
        ),
        (
            {
                "action": "sayOnTrack",
                "track": "m",
                "say": {"text": "Hello", "synthesizer": {"language": "hi-IN"}},
            },
            Dub("say", "m", Say("Hello", "hi-IN")),
        ),
        ({"action": "silenceTrack", "track": "m"}, Dub("silence", "m")),
        ({"action": "removeTrack", "track": "m"}, Dub("remove", "m")),
    ],
)
def test_jambonz_has_the_same_by_its_own_names(verb: dict[str, Any], step: Dub) -> None:
    assert read(verb, jambonz=True) == [step]


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ({"track": "m"}, ["action"]),
        ({"action": "add", "track": "m"}, ["action"]),
        ({"action": ["addTrack"]}, ["action", "track"]),
        ({"action": "addTrack"}, ["track"]),
        ({"action": "addTrack", "track": "m", "gain": "loud", "loop": "yes"}, ["gain", "loop"]),
        ({"action": "addTrack", "track": "m", "gain": "50 dB"}, ["gain"]),
        ({"action": "addTrack", "track": "m", "actionHook": "/a"}, ["actionHook"]),
        ({"action": "playOnTrack", "track": "m"}, ["play"]),
        ({"action": "playOnTrack", "track": "m", "play": "https://forbidden.example/x.wav"}, ["play"]),
        ({"action": "sayOnTrack", "track": "m", "say": {"text": "Hello", "loop": 3}}, ["say.loop"]),
        ({"action": "sayOnTrack", "track": "m", "say": "<speak>Hello</speak>"}, ["say"]),
        (
            {
                "action": "sayOnTrack",
                "track": "m",
                "say": {"text": "Hello", "synthesizer": {"language": "xx"}},
            },
            ["say.synthesizer.language"],
        ),
        ({"action": "silenceTrack", "track": "m", "play": SOUND}, ["play"]),
    ],
)
def test_each_wrong_field_is_named_as_jambonz_has_it(verb: dict[str, Any], fields: list[str]) -> None:
    assert wrong(verb, jambonz=True) == fields


def test_a_change_of_an_active_call_has_the_same_fields() -> None:
    assert live_dub({"action": "playOnTrack", "track": "m", "play": SOUND, "gain": "-6 dB"}) == {
        "action": "play",
        "track": "m",
        "url": SOUND,
        "gain": -6.0,
    }
    with pytest.raises(ValidationFailed) as refusal:
        live_dub({"action": "playOnTrack", "track": "m", "gain": "x", "mode": 1})
    assert [error.field for error in refusal.value.errors] == ["dub.gain", "dub.mode"]
