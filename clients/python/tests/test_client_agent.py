"""The agent server, opposite a client of WebSockets that writes what docs/agent-streams.md says."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from media.streams.handshake import sign
from trunkline_client.agent import (
    AgentCall,
    Audio,
    Digit,
    Event,
    Handler,
    Mark,
    Notice,
    Stopped,
    StreamInvalid,
    read_event,
    serve_agent,
)

START = {
    "event": "start",
    "sequence_number": "1",
    "stream_sid": "s-1",
    "start": {
        **{"stream_sid": "s-1", "call_sid": "c-1", "account_sid": "a-1", "from": "+9198", "to": "+9180"},
        **{"direction": "inbound", "custom_parameters": {"customer": "42"}},
        "media_format": {"encoding": "raw", "sample_rate": "8000", "bit_rate": "128"},
    },
}
PCM = bytes(range(160)) * 2
MEDIA = {"chunk": "1", "timestamp": "20", "payload": base64.b64encode(PCM).decode()}
STOP = {"event": "stop", "stop": {"reason": "callended", "detail": "caller_hangup"}}


@asynccontextmanager
async def connection(handler: Handler, **options: Any) -> AsyncIterator[ClientConnection]:
    async with serve_agent(handler, 0, **options) as server:
        (listening,) = server.sockets
        async with connect(f"ws://127.0.0.1:{listening.getsockname()[1]}/ws?x=1") as socket:
            yield socket


async def send(socket: ClientConnection, *messages: Any) -> None:
    for message in messages:
        await socket.send(json.dumps(message))


async def test_events_arrive_as_the_server_sends_them() -> None:
    heard: list[Event] = []
    calls: list[AgentCall] = []
    done = asyncio.Event()

    async def answer(call: AgentCall) -> None:
        calls.append(call)
        async for event in call:
            heard.append(event)
        done.set()

    async with connection(answer) as socket:
        await send(socket, {"event": "connected"}, START, {"event": "media", "media": MEDIA})
        await send(socket, {"event": "dtmf", "dtmf": {"digit": "5", "duration": "160"}})
        await send(socket, {"event": "mark", "mark": {"name": "m", "status": "cleared"}})
        await send(socket, {"event": "speech", "speech": {"state": "start"}}, STOP)
        async with asyncio.timeout(10):
            await done.wait()
    (call,) = calls
    assert (call.call_sid, call.from_, call.sample_rate) == ("c-1", "+9198", 8000)
    assert call.parameters == {"customer": "42"}
    assert heard == [
        Audio(PCM, 20, "inbound"),
        Digit("5", 160),
        Mark("m", played=False),
        Notice("speech", {"event": "speech", "speech": {"state": "start"}}),
        Stopped("callended", "caller_hangup"),
    ]


async def test_commands_are_those_of_the_protocol() -> None:
    async def answer(call: AgentCall) -> None:
        await call.play(PCM)
        await call.mark("m")
        await call.clear()
        await call.send_digits("12w#")
        await call.transfer("+91", timeout=30)
        await call.hold()
        await call.mute(False)
        await call.record("pause")
        await call.transcript("agent", "Hello.")
        await call.stop()
        await call.hangup(drain=False)

    async with connection(answer) as socket:
        await send(socket, START)
        got = [json.loads(message) async for message in socket]
    assert got == [
        {"event": "media", "media": {"payload": MEDIA["payload"]}},
        {"event": "mark", "mark": {"name": "m"}},
        {"event": "clear"},
        {"event": "dtmf", "dtmf": {"digits": "12w#"}},
        {"event": "transfer", "transfer": {"to": "+91", "mode": "bridge", "timeout": 30}},
        {"event": "hold", "hold": {"active": True}},
        {"event": "mute", "mute": {"active": False}},
        {"event": "record", "record": {"action": "pause"}},
        {"event": "transcript", "transcript": {"role": "agent", "text": "Hello.", "final": True}},
        {"event": "stop"},
        {"event": "hangup", "hangup": {"drain": False}},
    ]
    assert socket.close_code == 1000


async def echo(call: AgentCall) -> None:
    async for event in call:
        if isinstance(event, Audio):
            await call.play(event.pcm)


@pytest.mark.parametrize(
    "frames",
    [
        *(["{"], [b"\0"], ["[1]"], ["[" * 100_000], [json.dumps({"event": "start"})]),
        [json.dumps({"event": "start", "start": {**START["start"], "media_format": 1}})],  # type: ignore[dict-item]  # A dict.
        [json.dumps(START), json.dumps({"event": "media", "media": {"payload": "?", "timestamp": "1"}})],
        [json.dumps(START), json.dumps({"event": "dtmf", "dtmf": None})],
    ],
)
async def test_frames_that_are_not_of_the_protocol_close_the_stream(frames: list[str | bytes]) -> None:
    async with connection(echo) as socket:
        for frame in frames:
            await socket.send(frame)
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(10):
                await socket.recv()
        assert socket.close_code == 1002


async def test_a_caller_that_is_gone_ends_the_handler_quietly() -> None:
    ended = asyncio.Event()

    async def answer(call: AgentCall) -> None:
        await call._socket.wait_closed()
        await call.play(PCM)
        ended.set()

    async with connection(answer) as socket:
        await send(socket, START)
        await socket.close(4000)
        async with asyncio.timeout(10):
            await ended.wait()


@pytest.mark.parametrize(("by", "allowed"), [("the secret", True), ("another", False), (None, False)])
async def test_handshakes_need_the_signature_of_the_secret(by: str | None, allowed: bool) -> None:
    now_s = int(time.time())
    url = "wss://bot.example.com/ws?x=1"
    headers = {"X-Service-Timestamp": str(now_s), "X-Service-Signature": sign(by, now_s, url)} if by else {}
    options = {"secret": "the secret", "public_url": "wss://bot.example.com/"}
    async with serve_agent(echo, 0, **options) as server:
        (listening,) = server.sockets
        address = f"ws://127.0.0.1:{listening.getsockname()[1]}/ws?x=1"
        if allowed:
            async with connect(address, additional_headers=headers) as socket:
                await send(socket, START, {"event": "media", "media": MEDIA})
                assert json.loads(await socket.recv())["media"] == {"payload": MEDIA["payload"]}
            return
        with pytest.raises(InvalidStatus) as caught:
            await connect(address, additional_headers=headers)
        assert caught.value.response.status_code == 401


async def test_a_secret_needs_the_url_that_is_signed() -> None:
    with pytest.raises(ValueError, match="public_url"):
        async with serve_agent(echo, 0, secret="x"):
            pass


def test_a_message_of_a_later_server_is_a_notice() -> None:
    assert read_event({"event": "weather"}) == Notice("weather", {"event": "weather"})
    with pytest.raises(StreamInvalid):
        read_event({"event": "media"})
