"""Calls that a server for jambonz steers, over real HTTP, SIP and RTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.errors import ValidationFailed
from callcontrol.models import Principal
from callcontrol.tools.aio.call_messages import CallMessages
from callcontrol.tools.models import ToolResult
from fixtures.recognizer import RecognizerEndpoint
from media.aio.recognizer import Recognizer
from media.audio import tone
from media.audio.recognition import RecognizerServer
from sip import Answered, Ended
from tests.support.domain import ACCOUNT_SID, CALLEE, OWN_NUMBER, make_account
from tests.support.phone import PhoneCall
from tests.support.voice import Voice
from tests.support.webhook_stage import SECRET, Receiver
from tests.support.world import World, instructed, running

PITCHES = {"welcome": 700.0, "menu": 1100.0, "sorry": 1500.0}


class Stage:
    """A server with a voice, a telephone, and the customer's server, which answers with verbs of jambonz."""

    def __init__(self, world: World, server: Receiver) -> None:
        self.world = world
        self.server = server

    def says(self, path: str, *verbs: dict[str, Any]) -> None:
        self.server.answers[path] = lambda _: web.json_response(list(verbs))

    def told(self, path: str) -> dict[str, Any]:
        """The body of the only request that went there; it has a signature of jambonz."""
        (got,) = [got for got in self.server.requests if got.path == path]
        assert got.headers["Jambonz-Signature"].startswith("t=")
        body = json.loads(got.body)
        assert isinstance(body, dict)
        return body

    async def call(self) -> PhoneCall:
        url = self.server.url("/hello")
        self.world.bind(target="webhook", webhook_url=url, webhook_format="jambonz")
        return self.world.phone.call(OWN_NUMBER, self.world.port)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with instructed(tmp_path, speech=Voice(PITCHES)) as (world, server):
        yield Stage(world, server)


def press(call: PhoneCall, keys: str) -> None:
    assert call.stream is not None
    call.stream.send_dtmf(keys)


async def test_an_application_of_jambonz_leads_a_caller_through_its_menu(stage: Stage) -> None:
    gather = {"verb": "gather", "input": ["digits"], "numDigits": 1, "timeout": 20, "actionHook": "/keys"}
    stage.says(
        "/hello",
        {"verb": "tag", "data": {"order": 7}},
        {"verb": "say", "text": "welcome"},
        {**gather, "say": {"text": "menu", "loop": 20}},
    )
    dial = {"verb": "dial", "target": [{"type": "phone", "number": CALLEE}], "actionHook": "/after"}
    stage.says(
        "/keys", {**dial, "answerOnBridge": True}, {"verb": "say", "text": "sorry"}, {"verb": "hangup"}
    )
    stage.server.answers["/after"] = lambda _: web.Response(text="OK")
    stage.world.phone.on_call = lambda call: call.reject(486)
    call = await stage.call()
    await call.wait(Answered)
    await call.hears(PITCHES["menu"])
    press(call, "2")
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    record = await stage.world.ended()
    new = stage.told("/hello")
    assert (new["call_sid"], new["call_status"], new["direction"]) == (record.call_sid, "trying", "inbound")
    assert (new["from"], new["to"]) == ("+919811111111", OWN_NUMBER)
    keys = stage.told("/keys")
    assert (keys["reason"], keys["digits"], keys["call_status"]) == ("dtmfDetected", "2", "in-progress")
    after = stage.told("/after")
    assert (after["dial_call_status"], after["dial_sip_status"]) == ("busy", 486)
    assert keys["customerData"] == after["customerData"] == {"order": 7}
    events = [json.loads(event.body) for event in stage.world.records.events]
    statuses = [event["call_status"] for event in events]
    assert statuses == ["trying", "ringing", "in-progress", "completed"]
    assert events[-1]["call_termination_by"] == "jambonz"


async def test_a_key_interrupts_a_prompt_by_the_barge_in_of_the_session(stage: Stage) -> None:
    barge_in = {"enable": True, "input": ["digits"], "numDigits": 1, "actionHook": "/keys"}
    stage.says(
        "/hello",
        {"verb": "config", "bargeIn": barge_in},
        {"verb": "say", "text": "menu", "loop": 50},
        {"verb": "hangup"},
    )
    stage.says("/keys", {"verb": "say", "text": "sorry"})
    call = await stage.call()
    await call.wait(Answered)
    await call.hears(PITCHES["menu"])
    press(call, "5")
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    await stage.world.ended()
    assert stage.told("/keys")["digits"] == "5"


async def test_a_party_is_referred_to_another(stage: Stage) -> None:
    stage.says("/hello", {"verb": "answer"}, {"verb": "sip:refer", "referTo": CALLEE, "actionHook": "/after"})
    caller = await stage.call()
    await caller.wait(Answered)
    callee = await stage.world.phone.next_call(2)
    caller.speak(440.0)
    await callee.hears(440.0)
    callee.hang_up()
    await caller.wait(Ended)
    await stage.world.ended()
    assert not [got for got in stage.server.requests if got.path == "/after"]


class OneMessage:
    """The tools of an account whose message is accepted, or refused by its recipient."""

    def __init__(self) -> None:
        self.used: list[tuple[str, str, dict[str, Any]]] = []
        self.claims: list[tuple[str, str] | None] = []

    async def execute(self, principal: Principal, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.used.append((principal.account_sid, name, dict(arguments)))
        self.claims.append(CLAIM.get())
        if len(self.used) > 1:
            raise ValidationFailed.of("arguments.to", "has opted out", "OPTED_OUT")
        return ToolResult({"message_id": "m-1"})

    async def number(self, _: str) -> str:
        return OWN_NUMBER


async def test_a_message_is_sent_and_its_hook_told_whether_it_was_accepted(tmp_path: Path) -> None:
    server, tools = Receiver(), OneMessage()
    await server.start()
    try:
        messages = CallMessages(lambda: tools, tools.number)
        async with running(tmp_path, speech=Voice(PITCHES), messages=messages) as world:
            world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
            stage = Stage(world, server)
            message = {"verb": "message", "to": CALLEE, "from": OWN_NUMBER, "text": "Your order."}
            stage.says("/hello", {**message, "actionHook": "/one"}, {**message, "actionHook": "/two"})
            stage.server.answers["/one"] = lambda _: web.Response(text="OK")
            stage.says("/two", {"verb": "say", "text": "sorry"}, {"verb": "hangup"})
            call = await stage.call()
            await call.wait(Answered)
            await call.hears(PITCHES["sorry"])
            await call.wait(Ended)
            await world.ended()
    finally:
        await server.close()
    assert tools.used == 2 * [(ACCOUNT_SID, "send_message", {"to": CALLEE, "text": "Your order."})]
    one, two = stage.told("/one"), stage.told("/two")
    assert (one["message_sid"], one["message_status"]) == ("m-1", "success")
    assert (two["message_sid"], two["message_status"]) == ("", "failure")
    assert two["message_failure_reason"] == "to: has opted out"


async def test_a_message_is_no_effect_of_the_request_that_placed_the_call(tmp_path: Path) -> None:
    tools = OneMessage()
    async with running(tmp_path, messages=CallMessages(lambda: tools, tools.number)) as world:
        world.phone.on_call = PhoneCall.answer
        claim = CLAIM.set((ACCOUNT_SID, "key-of-the-request"))
        await world.place({"verb": "message", "to": CALLEE, "text": "Hello"}, {"verb": "hangup"})
        CLAIM.reset(claim)
        await world.ended()
    assert tools.claims == [None]


@pytest.mark.parametrize(("hz", "words"), [(440.0, "and yes thanks"), (None, None)])
async def test_a_gather_of_speech_tells_its_hook_what_was_said(
    tmp_path: Path, hz: float | None, words: str | None
) -> None:
    server = Receiver()
    await server.start()
    try:
        async with RecognizerEndpoint().running() as endpoint:
            recognizer = Recognizer(RecognizerServer(endpoint.url, "nova-3", "dg-test", endpointing_ms=300))
            async with running(tmp_path, speech=Voice(PITCHES), recognizer=recognizer) as world:
                world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
                stage = Stage(world, server)
                recognized = {"vendor": "deepgram", "language": "hi-IN"}
                gather = {"verb": "gather", "input": ["speech", "digits"], "actionHook": "/said"}
                stage.says("/hello", {**gather, "timeout": 2, "recognizer": recognized})
                stage.says("/said", {"verb": "hangup"})
                call = await stage.call()
                await call.wait(Answered)
                if hz is not None:
                    call.open().play(tone(hz, 500))
                await call.wait(Ended)
                await world.ended()
                await recognizer.close()
        assert [query["language"] for query in endpoint.asked] == ["hi-IN"] and not endpoint.problems
    finally:
        await server.close()
    said = stage.told("/said")
    if words is None:
        assert said["reason"] == "timeout" and "speech" not in said
        return
    assert said["reason"] == "speechDetected" and "digits" not in said
    assert said["speech"] == {
        "language_code": "hi-IN",
        "channel_tag": 1,
        "is_final": True,
        "alternatives": [{"confidence": 0.97, "transcript": words}],
    }
