"""Calls that an application of jambonz steers over a WebSocket, over real SIP and RTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from callcontrol.instructions.instructions import MAX_ANSWER_BYTES
from callcontrol.instructions.jambonz.aio import MAX_MESSAGES
from callcontrol.models import CallStatus
from sip import Answered, Ended, Failed
from tests.support.domain import OWN_NUMBER, make_account
from tests.support.phone import PhoneCall, eventually
from tests.support.voice import Voice
from tests.support.webhook_stage import SECRET
from tests.support.world import World, running

PITCHES = {"menu": 1100.0, "sorry": 1500.0}
MENU = {
    "verb": "gather",
    "numDigits": 1,
    "timeout": 20,
    "actionHook": "/keys",
    "say": {"text": "menu", "loop": 50},
}
Reply = Callable[[dict[str, Any]], object]


class Application:
    """A WebSocket server that answers by scripts: `replies` has the verbs for a type of message or a hook."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.messages: list[dict[str, Any]] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.protocols: list[str | None] = []
        self.closed: list[int | None] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/app", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"ws://{host}:{port}/app"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def command(self, name: str, data: object, **more: Any) -> None:
        await self.sockets[-1].send_json({"type": "command", "command": name, "data": data, **more})

    def got(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == kind]

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("ws.jambonz.org",))
        await socket.prepare(request)
        self.protocols.append(socket.ws_protocol)
        self.sockets.append(socket)
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                continue
            message = json.loads(frame.data)
            self.messages.append(message)
            reply = self.replies.get(message.get("hook") or message["type"])
            if reply is not None and not socket.closed:
                verbs = reply(message)
                data = {} if verbs is None else {"data": verbs}
                await socket.send_str(json.dumps({"type": "ack", "msgid": message["msgid"], **data}))
        self.closed.append(socket.close_code)
        return socket


class Stage:
    """A server with a voice, a telephone, and an application."""

    def __init__(self, world: World, application: Application) -> None:
        self.world = world
        self.application = application

    async def call(self) -> PhoneCall:
        self.world.bind(target="webhook", webhook_url=self.application.url, webhook_format="jambonz")
        return self.world.phone.call(OWN_NUMBER, self.world.port)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    application = Application()
    await application.start()
    try:
        async with running(tmp_path, speech=Voice(PITCHES)) as world:
            world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
            yield Stage(world, application)
    finally:
        await application.close()


def press(call: PhoneCall, keys: str) -> None:
    assert call.stream is not None
    call.stream.send_dtmf(keys)


async def test_an_application_leads_a_caller_through_its_menu(stage: Stage) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [{"verb": "tag", "data": {"order": 7}}, MENU]
    application.replies["/keys"] = lambda _: [{"verb": "say", "text": "sorry"}, {"verb": "hangup"}]
    call = await stage.call()
    await call.wait(Answered)
    await call.hears(PITCHES["menu"])
    press(call, "2")
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    record = await stage.world.ended()
    new, keys = application.messages
    assert (new["call_sid"], new["data"]["to"], new["data"]["call_status"]) == (
        record.call_sid,
        OWN_NUMBER,
        "trying",
    )
    assert (keys["type"], keys["hook"], keys["data"]["digits"]) == ("verb:hook", "/keys", "2")
    assert keys["data"]["customerData"] == {"order": 7}
    assert application.protocols == ["ws.jambonz.org"]
    assert await eventually(lambda: len(application.closed) == 1), "the end of the call closes the connection"


async def test_a_command_adds_a_track(stage: Stage) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [MENU]
    call = await stage.call()
    await call.hears(PITCHES["menu"])
    await application.command("dub", {"action": "addTrack", "track": "m", "say": "sorry", "loop": True})
    call.heard.clear()
    await call.until(lambda: call.hears_now(PITCHES["menu"]) and call.hears_now(PITCHES["sorry"]))
    await application.command("dub", {"action": "playOnTrack", "track": "m", "play": "ftp://a.example/x"})
    assert await eventually(lambda: len(application.got("jambonz:error")) == 1)
    assert "verbs[0].play" in application.got("jambonz:error")[0]["data"]["error"]
    call.hang_up()
    await stage.world.ended()


async def test_an_answer_without_verbs_lets_the_list_go_on(stage: Stage) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [MENU, {"verb": "say", "text": "sorry"}]
    application.replies["/keys"] = lambda _: None
    call = await stage.call()
    await call.wait(Answered)
    await call.hears(PITCHES["menu"])
    press(call, "2")
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    await stage.world.ended()


async def test_commands_of_an_application_change_the_call(stage: Stage) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [{"verb": "answer"}, {"verb": "pause", "length": 60}]
    call = await stage.call()
    await call.wait(Answered)
    await application.command("whisper", {"verb": "say"})
    await application.command("redirect", [{"verb": "say", "text": 5}])
    await application.command("redirect", [{"verb": "say", "text": "menu", "loop": 50}], queueCommand=False)
    await call.hears(PITCHES["menu"])
    await application.command("call:status", {"call_status": "completed"})
    await call.wait(Ended)
    record = await stage.world.ended()
    assert record.hangup_source == "api"
    first, second = (message["data"]["error"] for message in application.got("jambonz:error"))
    assert "whisper" in first and "verbs[0].text" in second


async def test_an_application_may_have_itself_asked(stage: Stage) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [{"verb": "answer"}, {"verb": "pause", "length": 60}]
    application.replies["/next"] = lambda _: [{"verb": "say", "text": "sorry"}]
    call = await stage.call()
    await call.wait(Answered)
    await application.command("redirect", {"call_hook": "/next"})
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    await stage.world.ended()
    (asked,) = application.got("verb:hook")
    assert (asked["hook"], asked["data"]["call_status"]) == ("/next", "in-progress")


async def test_a_lost_application_is_connected_again_for_the_next_hook(stage: Stage) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [MENU]
    application.replies["/keys"] = lambda _: [{"verb": "say", "text": "sorry"}]
    call = await stage.call()
    await call.wait(Answered)
    await application.sockets[0].close()
    await call.hears(PITCHES["menu"])
    press(call, "2")
    await call.hears(PITCHES["sorry"])
    await call.wait(Ended)
    await stage.world.ended()
    assert [message["type"] for message in application.messages] == [
        "session:new",
        "session:reconnect",
        "verb:hook",
    ]


async def test_a_call_is_handed_to_another_application(stage: Stage) -> None:
    application, other = stage.application, Application()
    await other.start()
    try:
        application.replies["session:new"] = lambda _: [{"verb": "answer"}, {"verb": "pause", "length": 60}]
        other.replies["session:redirect"] = lambda _: [{"verb": "say", "text": "sorry"}]
        call = await stage.call()
        await call.wait(Answered)
        await application.command("redirect", {"call_hook": other.url})
        await call.hears(PITCHES["sorry"])
        await call.wait(Ended)
        await stage.world.ended()
        assert other.got("session:redirect") and await eventually(lambda: bool(application.closed))
    finally:
        await other.close()


async def test_an_application_that_says_nothing_costs_the_caller_a_480(stage: Stage) -> None:
    call = await stage.call()
    failed = await call.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    record = await stage.world.ended()
    assert record.status is CallStatus.FAILED
    new, again = stage.application.messages
    assert (new["type"], again["type"]) == ("session:new", "session:new")


async def test_an_application_that_is_not_there_costs_the_caller_a_480(stage: Stage) -> None:
    stage.application.url = stage.application.url.replace("/app", "/nowhere")
    call = await stage.call()
    failed = await call.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    await stage.world.ended()


async def test_an_application_is_told_why_its_verbs_have_no_effect(stage: Stage) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [{"verb": "enqueue", "name": "sales"}, {"verb": "say"}]
    call = await stage.call()
    await call.wait(Failed)
    await stage.world.ended()
    (told,) = [message["data"]["error"] for message in application.got("jambonz:error")]
    assert "verbs[0].verb" in told and "verbs[1].text" in told


@pytest.mark.parametrize("frames", ["flood", "large", "binary"])
async def test_an_application_that_sends_too_much_is_disconnected(stage: Stage, frames: str) -> None:
    application = stage.application
    application.replies["session:new"] = lambda _: [{"verb": "answer"}, {"verb": "pause", "length": 60}]
    call = await stage.call()
    await call.wait(Answered)
    socket = application.sockets[0]
    if frames == "large":
        await socket.send_str("x" * (MAX_ANSWER_BYTES + 1))
    elif frames == "binary":
        await socket.send_bytes(b"\0\0")
    else:
        for _ in range(MAX_MESSAGES + 1):
            if not socket.closed:
                await socket.send_str('{"type":"ack","msgid":"nobody"}')
                await asyncio.sleep(0)
    assert await eventually(lambda: bool(application.closed))
    call.hang_up()
    await stage.world.ended()
