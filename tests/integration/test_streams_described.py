"""Frames that agents receive on calls in every dialect, checked against the published schemas."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from aiohttp import WSMsgType, web

from media.streams import WEBSOCKET_DIALECTS
from media.streams.schemas import FRAMES, schema_document
from sip import Answered
from tests.support.dialect_agent import SUBPROTOCOLS, read_text
from tests.support.domain import OWN_NUMBER
from tests.support.phone import eventually
from tests.support.world import running

# Words of an agent in each dialect: a mark, a clear, and what every dialect takes.
MARKS: dict[str, Any] = {
    "vonage": {"action": "notify", "payload": {"mark": "m"}},
    "plivo": {"event": "checkpoint", "name": "m"},
    "vobiz": {"event": "checkpoint", "name": "m"},
    "jambonz": {"type": "mark", "data": {"name": "m"}},
    "asterisk": {"command": "MARK_MEDIA", "correlation_id": "m"},
    "asterisk_json": {"command": "MARK_MEDIA"},
}
CLEARS: dict[str, Any] = {
    "vonage": {"action": "clear"},
    "plivo": {"event": "clearAudio"},
    "vobiz": {"event": "clearAudio"},
    "jambonz": {"type": "killAudio"},
    "asterisk": {"command": "FLUSH_MEDIA"},
    "asterisk_json": {"command": "FLUSH_MEDIA"},
}
COMMON: tuple[Any, ...] = (
    {"event": "mark", "mark": {"name": "common"}},
    {"event": "dtmf", "dtmf": {"digits": "1"}},
    {"event": "mute", "mute": {"active": True}},
    {"event": "mute", "mute": {"active": False}},
    {"event": "transfer", "transfer": {"to": "nobody"}},
    {"event": "nonsense"},
)


class Recorder:
    """An agent that says its words and keeps all text that it gets."""

    def __init__(self, words: list[Any]) -> None:
        self.texts: list[str] = []
        self.binary = 0
        self.over = False
        self.port = 0
        self._words = words

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=tuple(SUBPROTOCOLS.values()))
        await socket.prepare(request)
        async for frame in socket:
            if frame.type is WSMsgType.BINARY:
                self.binary += 1
            elif frame.type is WSMsgType.TEXT:
                self.texts.append(frame.data)
            while self._words and self.hears:
                await socket.send_json(self._words.pop(0))
        self.over = True
        return socket

    @property
    def hears(self) -> bool:
        """Return True if the call's audio has begun to arrive."""
        return self.binary > 0 or any('"event":"media"' in text for text in self.texts)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_get("/ws", self.serve)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"ws://127.0.0.1:{runner.addresses[0][1]}/ws"
        finally:
            await runner.cleanup()


@pytest.mark.parametrize("dialect", WEBSOCKET_DIALECTS)
async def test_all_that_an_agent_gets_is_described(tmp_path: Path, dialect: str) -> None:
    document = schema_document(dialect)
    described = jsonschema_rs.Draft202012Validator(
        {"$schema": document["$schema"], "$ref": "#/$defs/ToAgent", "$defs": document["$defs"]}
    )
    mark, clear = MARKS.get(dialect, COMMON[0]), CLEARS.get(dialect, {"event": "clear"})
    agent = Recorder([mark, *COMMON, mark, clear])
    async with running(tmp_path) as world, agent.running() as url:
        world.stream(url, stream_protocol=dialect)
        caller = world.phone.call(OWN_NUMBER, world.port)
        await caller.wait(Answered)
        caller.speak(440.0)
        assert await eventually(lambda: any("unknown_event" in text for text in agent.texts))
        assert await eventually(lambda: any("dtmf_sent" in text for text in agent.texts))
        caller.open().send_dtmf("5")
        assert await eventually(lambda: any(pressed(text) for text in agent.texts))
        caller.hang_up()
        await world.ended()
        assert await eventually(lambda: agent.over)
    for text in agent.texts:
        described.validate(json.loads(text) if text.startswith("{") else text)
    assert (agent.binary > 0) == FRAMES[dialect].binary_audio


def pressed(text: str) -> bool:
    """Return True if a frame reports the key 5."""
    event = read_text(text)
    return "dtmf" in str(event.get("event")).lower() and "'5'" in str(event)
