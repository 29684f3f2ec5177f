"""Calls that a customer's server steers, in JSON and in TwiML, over real HTTP, SIP and RTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from callcontrol.calls.steps.webhook import MAX_REQUESTS
from callcontrol.egress.requests import form_signature
from callcontrol.models import CallStatus
from media.audio import read_wav
from sip import Answered, Ended, Failed
from tests.support.domain import CALLEE, OWN_NUMBER, make_account
from tests.support.phone import PhoneCall, eventually
from tests.support.voice import Voice
from tests.support.waiting import time_passes
from tests.support.webhook_stage import SECRET, Received, Receiver
from tests.support.world import World, instructed, running

VECTORS = Path(__file__).parent.parent / "vectors" / "audio"
PITCHES = {"welcome": 700.0, "menu": 1100.0, "sorry": 1500.0}


class Stage:
    """A server with a voice, a telephone, and the customer's server, which says what calls do."""

    def __init__(self, world: World, server: Receiver) -> None:
        self.world = world
        self.server = server

    def says(self, path: str, *verbs: dict[str, Any]) -> None:
        self.server.answers[path] = lambda _: web.json_response(list(verbs))

    def writes(self, path: str, document: str, kind: str = "text/xml") -> None:
        self.server.answers[path] = lambda _: web.Response(text=document, content_type=kind)

    def asked(self, path: str) -> list[Received]:
        return [got for got in self.server.requests if got.path == path]

    def told(self, path: str) -> dict[str, Any]:
        """The data of the only question that went there."""
        (got,) = self.asked(path)
        data = json.loads(got.body)["data"]
        assert isinstance(data, dict)
        return data

    def form(self, path: str) -> dict[str, str]:
        """The fields of the only form that went there, whose signature is the one servers check."""
        (got,) = self.asked(path)
        fields = dict(parse_qsl(got.body.decode(), keep_blank_values=True, strict_parsing=True))
        url = self.server.url(str(got.request.rel_url))
        assert got.headers["X-Twilio-Signature"] == form_signature(SECRET, url, fields)
        assert got.headers["Content-Type"] == "application/x-www-form-urlencoded"
        return fields

    async def call(self, **binding: Any) -> PhoneCall:
        self.world.bind(**{"target": "webhook", "webhook_url": self.server.url("/voice"), **binding})
        return self.world.phone.call(OWN_NUMBER, self.world.port)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with instructed(tmp_path, speech=Voice(PITCHES)) as (world, server):
        yield Stage(world, server)


def press(call: PhoneCall, keys: str) -> None:
    assert call.stream is not None
    call.stream.send_dtmf(keys)


def words() -> bytes:
    """Somebody talking: a tone is none."""
    return read_wav((VECTORS / "talk_en.wav").read_bytes()).pcm[: 16 * 2500]


def busy(call: PhoneCall) -> None:
    call.reject(486)


async def test_a_server_of_twiml_leads_a_caller_through_its_menu(stage: Stage) -> None:
    menu = '<Gather numDigits="1" action="/menu?shop=7"><Say voice="alice" loop="20">menu</Say></Gather>'
    stage.writes("/voice", f"<Response><Say>welcome</Say>{menu}</Response>")
    stage.writes("/menu", f'<Response><Dial action="after">{CALLEE}</Dial></Response>', "application/xml")
    stage.writes("/after", "<Response><Say>sorry</Say><Hangup/></Response>", "text/html")
    stage.world.phone.on_call = busy
    call = await stage.call(webhook_format="form")
    await call.wait(Answered)
    await call.hears(PITCHES["menu"])
    press(call, "2")
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    record = await stage.world.ended()
    first = stage.form("/voice")
    assert (first["CallSid"], first["CallStatus"], first["Direction"]) == (
        record.call_sid,
        "ringing",
        "inbound",
    )
    assert (first["From"], first["To"]) == ("+919811111111", OWN_NUMBER)
    pressed = stage.form("/menu")
    assert (pressed["Digits"], pressed["CallStatus"]) == ("2", "in-progress")
    after = stage.form("/after")
    assert (after["DialCallStatus"], after["DialCallDuration"]) == ("busy", "0")
    assert record.hangup_source == "api"


async def test_a_placed_call_is_led_through_a_menu_in_json(stage: Stage) -> None:
    gather = {"verb": "gather", "say": {"text": "menu"}, "timeout": 1, "num_digits": 4, "action_url": "/keys"}
    stage.says("/next", gather, {"verb": "say", "text": "sorry", "loop": 20}, {"verb": "hangup"})
    stage.says("/keys", {"verb": "hangup"})
    await stage.world.place(webhook_url=stage.server.url("/next"))
    call = await stage.world.phone.next_call()
    await call.hears(PITCHES["menu"])
    await call.hears(PITCHES["sorry"])
    assert not stage.asked("/keys"), "nothing was pressed, so the list goes on"
    call.hang_up()
    await stage.world.ended()


async def test_the_keys_are_told_with_the_question(stage: Stage) -> None:
    stage.says(
        "/next", {"verb": "gather", "prompts": [{"verb": "say", "text": "menu"}], "action_url": "/keys"}
    )
    stage.says("/keys", {"verb": "hangup"})
    await stage.world.place(webhook_url=stage.server.url("/next"))
    call = await stage.world.phone.next_call()
    await call.hears(PITCHES["menu"])
    press(call, "27#")
    await call.wait(Ended)
    await stage.world.ended()
    told = stage.told("/keys")
    assert (told["digits"], told["finished_on_key"]) == ("27", "#")


async def test_whom_a_verb_dials_gets_its_headers_and_the_action_how_it_went(stage: Stage) -> None:
    target = [{"type": "phone", "number": CALLEE}]
    dial = {"verb": "dial", "target": target, "headers": {"X-Shop": "7"}, "action_url": "/after"}
    stage.says("/voice", dial)
    stage.says("/after", {"verb": "say", "text": "sorry"})
    caller = await stage.call()
    await caller.wait(Answered)
    callee = await stage.world.phone.next_call(2)
    assert callee.request.headers.get("X-Shop") == "7"
    caller.speak(440.0)
    await callee.hears(440.0)
    callee.hang_up()
    await caller.hears(PITCHES["sorry"])
    await stage.world.ended()
    told = stage.told("/after")
    assert told["dial_call_status"] == "completed" and told["dial_call_duration"] >= 0


async def test_a_message_is_taken_and_the_server_told_where_it_is(stage: Stage) -> None:
    stage.writes("/voice", '<Response><Record action="/taken" finishOnKey="#" playBeep="false"/></Response>')
    stage.writes("/taken", "<Response><Say>sorry</Say></Response>")
    call = await stage.call(webhook_format="form")
    await call.wait(Answered)
    call.open().play(words())
    await time_passes(0.9)  # The message is as long as this: nobody tells when it is long enough.
    press(call, "#")
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    await stage.world.ended()
    taken = stage.form("/taken")
    assert taken["RecordingUrl"].startswith("/recordings/")
    assert int(taken["RecordingDuration"]) >= 0


async def test_two_callers_meet_in_a_conference(stage: Stage) -> None:
    stage.writes("/voice", "<Response><Dial><Conference beep='false'>Desk</Conference></Dial></Response>")
    first, second = await stage.call(), await stage.call()
    for call in (first, second):
        await call.wait(Answered)
    first.speak(440.0)
    await second.hears(440.0)
    for call in (first, second):
        call.hang_up()
    assert await eventually(lambda: stage.world.control.active_calls == 0)


async def test_a_document_that_goes_in_circles_comes_to_an_end(stage: Stage) -> None:
    stage.writes("/voice", "<Response><Redirect/></Response>")
    failed = await (await stage.call()).wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    await stage.world.ended()
    assert len(stage.asked("/voice")) == MAX_REQUESTS
    assert stage.world.published("webhook.failed")["data"]["reason"] == "limit"


GARBAGE = {
    "twiml": ("<Response><Dance/></Response>", "text/xml", "Response.Dance[1]"),
    "bomb": ('<!DOCTYPE r [<!ENTITY a "a">]><Response>&a;</Response>', "text/xml", "DOCTYPE"),
    "page": ("<html><body>It works!</body></html>", "text/html", "must be a <Response>"),
    "huge": ("<Response>" + " " * 70_000 + "</Response>", "text/xml", "longer than"),
}


@pytest.mark.parametrize("kind", GARBAGE)
async def test_a_fallback_takes_over_from_a_server_that_fails(stage: Stage, kind: str) -> None:
    document, media_type, message = GARBAGE[kind]
    stage.writes("/voice", document, media_type)
    stage.writes("/spare", "<Response><Say>sorry</Say><Redirect>/voice</Redirect></Response>")
    call = await stage.call(fallback_url=stage.server.url("/spare"))
    await call.hears(PITCHES["sorry"])
    call.hang_up()
    await stage.world.ended()
    told = [json.loads(got.body) for got in stage.asked("/spare")][0]
    assert told["event"] == "call.fallback"
    assert told["data"]["failed_url"] == stage.server.url("/voice")
    assert message in told["data"]["error_message"]


async def test_a_slow_server_is_asked_twice_and_then_the_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callcontrol.instructions.aio.TIMEOUT_S", 0.3)
    never = asyncio.Event()
    server = Receiver()
    await server.start()

    async def hold(_: Received) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    server.answers["/voice"] = hold
    try:
        async with running(tmp_path, speech=Voice(PITCHES)) as world:
            world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
            stage = Stage(world, server)
            stage.says("/spare", {"verb": "reject", "status": 603})
            failed = await (await stage.call(fallback_url=server.url("/spare"))).wait(Failed)
            assert isinstance(failed, Failed) and failed.status == 603
            assert (await world.ended()).status is CallStatus.BUSY
            assert len(stage.asked("/voice")) == 2
            assert stage.told("/spare")["error_reason"] == "timeout"
            never.set()
            await server.close()
    finally:
        never.set()
        await server.close()


@pytest.mark.parametrize(
    ("document", "kind"),
    [("<Response><Reject/></Response>", "text/xml"), ('[{"verb": "reject"}]', "application/json")],
    ids=["twiml", "json"],
)
async def test_a_party_that_was_called_cannot_be_rejected(stage: Stage, document: str, kind: str) -> None:
    stage.writes("/voice", document, kind)
    stage.says("/spare", {"verb": "play", "url": "gone.wav"}, {"verb": "say", "text": "sorry"})
    stage.server.answers["/gone.wav"] = lambda _: web.Response(status=404)
    urls = {"webhook_url": stage.server.url("/voice"), "fallback_url": stage.server.url("/spare")}
    await stage.world.place(**urls)
    call = await stage.world.phone.next_call()
    await call.hears(PITCHES["sorry"])
    call.hang_up()
    record = await stage.world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "NORMAL_CLEARING")
    alerts = [item for item in stage.world.records.events if item.event == "webhook.failed"]
    refused, unplayed = (json.loads(alert.body)["data"] for alert in alerts)
    assert (refused["reason"], refused["webhook_url"]) == ("instruction", urls["webhook_url"])
    assert "use hangup" in refused["message"]
    assert (unplayed["reason"], unplayed["webhook_url"]) == ("play", stage.server.url("/gone.wav"))
    assert unplayed["message"] == "answered with status 404"


async def test_an_agent_that_cannot_be_reached_leaves_the_caller_to_the_fallback(stage: Stage) -> None:
    stage.says("/spare", {"verb": "say", "text": "sorry"})
    url = "ws://127.0.0.1:1/agent"
    call = await stage.call(
        target="media_stream", stream_url=url, webhook_url=None, fallback_url=stage.server.url("/spare")
    )
    await call.hears(PITCHES["sorry"])
    await stage.world.ended()
    told = json.loads(stage.asked("/spare")[0].body)
    assert told["event"] == "call.fallback"
    assert (told["data"]["failed_url"], told["data"]["error_reason"]) == (url, "connect")


async def test_a_called_party_whose_agent_refuses_while_it_rings_is_answered_by_the_fallback(
    stage: Stage,
) -> None:
    stage.says("/spare", {"verb": "say", "text": "sorry"})
    stage.server.answers["/agent"] = lambda _: web.Response(status=403)
    url = stage.server.url("/agent").replace("http:", "ws:")
    stage.world.phone.on_call = PhoneCall.ring
    await stage.world.place(stream_url=url, fallback_url=stage.server.url("/spare"))
    call = await stage.world.phone.next_call()
    assert await eventually(lambda: "stream.failed" in stage.world.records.event_names())
    assert not stage.asked("/spare"), "the party has not answered yet"
    call.answer()
    await call.hears(PITCHES["sorry"])
    record = await stage.world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "NORMAL_CLEARING")
    assert stage.world.published("stream.failed")["data"]["http_status"] == 403
    assert json.loads(stage.asked("/spare")[0].body)["event"] == "call.fallback"


async def test_a_binding_chooses_the_events_of_its_calls(stage: Stage) -> None:
    stage.says("/voice", {"verb": "reject"})
    await (await stage.call(status_webhook_events=("completed",))).wait(Failed)
    await stage.world.ended()
    assert stage.world.records.event_names() == ["call.completed"]
