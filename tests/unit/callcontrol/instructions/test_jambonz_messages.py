"""Messages between a server and an application of jambonz over a WebSocket."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callcontrol.calls.events import Event
from callcontrol.calls.events.commands import (
    DigitsRequested,
    HangupRequested,
    ListenRequested,
    MuteRequested,
    RecordingRequested,
)
from callcontrol.errors import ValidationFailed
from callcontrol.instructions.instructions import read_instructions
from callcontrol.instructions.jambonz.messages import (
    Ack,
    DubOrder,
    Redirect,
    Redirection,
    hook_of,
    read_message,
    written,
)
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from callcontrol.instructions.verbs.values import hook_url, is_session
from tests.support.domain import OpenDestinations, make_ringing
from tests.support.examples import examples

URL = "wss://customer.example/app?x=1"


def command(name: str, data: Any, **more: Any) -> str:
    return json.dumps({"type": "command", "command": name, "data": data, **more})


@pytest.mark.parametrize("hook", ["/keys", "keys", "after the menu", "a#b", "?x=1", "dialled:busy"])
def test_a_hook_is_found_again_behind_the_address_of_its_session(hook: str) -> None:
    url = hook_url(hook_url(URL, "before"), hook)
    assert is_session(url) and hook_of(url) == (URL, hook)


def test_an_application_has_no_hook_of_its_own() -> None:
    assert hook_of(URL) == (URL, "")
    assert not is_session("https://customer.example/") and not is_session("ws://[")


def test_hooks_of_verbs_are_names_in_the_session() -> None:
    rules = VerbRules({"IN"}, None, OpenDestinations().check_url)
    verbs = [
        {"verb": "redirect", "actionHook": "/next"},
        {"verb": "redirect", "actionHook": "https://a.example/next"},
    ]
    steps = read_instructions(
        "application/json",
        json.dumps(verbs).encode(),
        rules,
        make_ringing(),
        caller=None,
        url=hook_url(URL, "/keys"),
        webhooks=WebhookDefaults("jambonz"),
    )
    assert [step.url for step in steps] == [f"{URL}#/next", "https://a.example/next"]  # type: ignore[attr-defined]  # both are requests


def test_a_message_has_its_fields_in_the_order_that_people_read() -> None:
    text = written("verb:hook", "m1", "c1", {"digits": "2", "share": 1.0}, "/keys")
    assert text == (
        '{"type":"verb:hook","msgid":"m1","call_sid":"c1","hook":"/keys","data":{"digits":"2","share":1}}'
    )
    assert "hook" not in json.loads(written("session:new", "m1", "c1", {}))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('{"type":"ack","msgid":"m1"}', Ack("m1", None)),
        ('{"type":"ack","msgid":"m1","data":[{"verb":"hangup"}]}', Ack("m1", [{"verb": "hangup"}])),
        (command("redirect", [{"verb": "hangup"}], queueCommand=False), Redirect([{"verb": "hangup"}])),
        (command("redirect", {"call_hook": "/next"}), Redirection("/next", "POST")),
        (
            command("redirect", {"call_hook": {"url": "https://a.example/", "method": "GET"}}),
            Redirection("https://a.example/", "GET"),
        ),
        (command("call:status", {"call_status": "completed"}), HangupRequested()),
        (command("mute:status", {"mute_status": "mute"}), MuteRequested("a", says=True)),
        (command("mute:status", {"mute_status": "unmute"}), MuteRequested("a", says=False)),
        (command("conf:mute-status", {"conf_mute_status": "mute"}), MuteRequested("a", says=True)),
        (command("listen:status", {"listen_status": "silence"}), ListenRequested("silence")),
        (command("record", {"action": "startCallRecording"}), RecordingRequested("start", 2)),
        (command("dtmf", {"digit": "1w#", "duration": 250}), DigitsRequested("a", "1w#")),
        (command("dub", {"action": "addTrack"}), DubOrder({"action": "addTrack"})),
    ],
)
def test_every_message_has_its_meaning(text: str, meaning: object) -> None:
    assert read_message(text) == meaning


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "message"),
        ("[" * 100_000, "message"),
        ("5", "message"),
        ("{}", "type"),
        ('{"type":"ack"}', "msgid"),
        (command("redirect", [], queueCommand=True), "queueCommand"),
        (command("redirect", {"call_hook": 5}), "call_hook"),
        (command("redirect", {"call_hook": {"url": "https://a.example/", "method": "PUT"}}), "call_hook"),
        (command("whisper", {"verb": "say"}), "command"),
        (command("call:status", {"call_status": "busy"}), "command"),
        (command("mute:status", {"mute_status": "loud"}), "command"),
        (command("record", {"action": "sing"}), "command"),
        (command("dub", {"track": "a"}), "command"),
        (command("dtmf", {"digit": "x"}), "command"),
        (command("dtmf", {"digit": "1" * 65}), "command"),
        (command("dtmf", None), "command"),
        ('{"type":"command","command":[]}', "command"),
    ],
)
def test_what_cannot_be_done_is_refused(text: str, field: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        read_message(text)
    assert [error.field for error in refusal.value.errors] == [field]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["redirect", "call:status", "mute:status", "listen:status", "record", "dtmf", "dub", "tag"]
)


@settings(max_examples=examples(200))
@given(NAMES, st.dictionaries(st.sampled_from(["call_hook", "digit", "action"]), VALUES) | VALUES)
def test_no_message_does_harm(name: str, data: object) -> None:
    try:
        found = read_message(command(name, data))
    except ValidationFailed:
        return
    assert isinstance(found, Event | Redirect | Redirection | DubOrder)
