"""Every dialect at every format over real sockets, joined to the media engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from media.aio import MediaEngine, RtpStream
from media.aio.agent_stream import AgentStream
from media.audio import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16, tone
from media.streams import (
    DIALECTS,
    WEBSOCKET_DIALECTS,
    AgentClosed,
    AgentEvent,
    AgentHangup,
    AgentHold,
    AgentMark,
    AgentMarkReached,
    Encoding,
    StreamSetup,
    frame_bytes,
)
from media.types import MarkReached, MediaEvent, RemoteMedia
from tests.support.agent_bot import FakeTap, no_leaks, to_loopback
from tests.support.agent_paths import Carrier, agent_url
from tests.support.dialect_agent import DECODERS, MARKS, NO_LAST, SUBPROTOCOLS, heard_in, read_text, spoken
from tests.support.levels import tone_level_dbfs
from tests.support.phone import engine_settings

FORMATS = [(name, encoding, rate) for name in WEBSOCKET_DIALECTS for encoding, rate in DIALECTS[name].formats]
FRAMES_ECHOED = 75


@pytest.fixture(autouse=True)
async def leaks() -> AsyncIterator[None]:
    async with no_leaks():
        yield


@dataclass
class Echo:
    """An agent of one dialect: sends back what it hears, then sets a mark and waits for it."""

    dialect: str
    heard: bytearray = field(default_factory=bytearray)
    frames: list[dict[str, Any]] = field(default_factory=list)
    marked: asyncio.Event = field(default_factory=asyncio.Event)
    protocol: str | None = None
    echoed: int = 0

    async def serve(self, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            content = heard_in(message)
            if isinstance(content, bytes):
                await self.echo(socket, content)
            else:
                self.note(content)

    async def echo(self, socket: web.WebSocketResponse, audio: bytes) -> None:
        self.heard += audio
        self.echoed += 1
        if self.echoed > FRAMES_ECHOED:
            return
        frame = spoken(self.dialect, audio)
        await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
        if self.echoed == FRAMES_ECHOED:
            await socket.send_str(MARKS[self.dialect][0])

    def note(self, frame: dict[str, Any]) -> None:
        self.frames.append(frame)
        if MARKS[self.dialect][1].items() <= frame.items():
            self.marked.set()


class Echoes:
    """A server of one agent per path."""

    def __init__(self) -> None:
        self.agents: dict[str, Echo] = {}
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/{path}", self._serve)
        self._runner = web.AppRunner(application, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=Carrier.tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        agent = self.agents[request.match_info["path"]]
        socket = web.WebSocketResponse(protocols=tuple(SUBPROTOCOLS.values()), compress=False)
        await socket.prepare(request)
        agent.protocol = socket.ws_protocol
        await agent.serve(socket)
        return socket


@pytest.fixture
async def echoes() -> AsyncIterator[Echoes]:
    made = Echoes()
    await made.start()
    yield made
    await made.stop()


def setup(port: int, path: str, dialect: str, encoding: Encoding, rate: int) -> StreamSetup:
    return StreamSetup(
        url=agent_url(port, f"/{path}"),
        dialect=dialect,
        encoding=encoding,
        sample_rate=rate,
        stream_sid="s",
        call_sid="c",
        account_sid="a",
        from_="+919876543210",
        to="+918047491899",
    )


def towards(stream: RtpStream) -> RemoteMedia:
    address, port = stream.local
    return RemoteMedia(address=address, port=port, codec="PCMU", payload_type=0)


@dataclass
class Call:
    """A caller's stream and ours, and an agent on ours."""

    agent: AgentStream
    ours: RtpStream
    theirs: RtpStream
    heard_by_caller: bytearray

    @classmethod
    async def open(cls, engine: MediaEngine, setup: StreamSetup) -> Call:
        agents: list[AgentStream] = []

        def on_media(event: MediaEvent) -> None:
            if isinstance(event, MarkReached) and agents:
                agents[0].mark_reached(event.name, event.cleared)

        ours, theirs = engine.open_stream(on_media), engine.open_stream(lambda event: None)
        ours.connect(towards(theirs))
        theirs.connect(towards(ours))
        agent = await AgentStream.connect(
            setup,
            resolve=to_loopback,
            on_event=lambda event: None,
            carrier=ours,
        )
        agents.append(agent)
        heard = bytearray()
        theirs.play(tone(1000, 4000))
        theirs.open_tap(sample_rate=8000, encoding="l16", on_frames=heard.extend)
        tap = ours.open_tap(
            sample_rate=16_000 if setup.sample_rate == 16_000 else 8000,
            encoding=setup.encoding,
            on_frames=agent.send_audio,
        )
        agent.start(tap)
        return cls(agent, ours, theirs, heard)

    async def close(self) -> None:
        await self.agent.stop("callended", "caller_hangup")
        self.ours.close()
        self.theirs.close()


async def test_a_tone_is_heard_both_ways_in_every_dialect_and_format(call_path: str, echoes: Echoes) -> None:
    engine = MediaEngine(engine_settings(200, quarantine_s=4.0))
    await engine.start()
    calls: dict[str, Call] = {}
    for dialect, encoding, rate in FORMATS:
        path = f"{dialect}-{encoding}-{rate}"
        echoes.agents[path] = Echo(dialect)
        calls[path] = await Call.open(engine, setup(echoes.port, path, dialect, encoding, rate))
    async with asyncio.timeout(30):
        for agent in echoes.agents.values():
            await agent.marked.wait()
    for call in calls.values():
        await call.close()
    await engine.close()
    for dialect, encoding, rate in FORMATS:
        path = f"{dialect}-{encoding}-{rate}"
        check(echoes.agents[path], calls[path], encoding, rate)


def check(agent: Echo, call: Call, encoding: Encoding, rate: int) -> None:
    decode = DECODERS[encoding]
    assert len(agent.heard) % frame_bytes(encoding, rate) == 0
    # The second half of what was echoed: the first may hold the silence before the tone arrived.
    size = FRAMES_ECHOED * frame_bytes(encoding, rate)
    heard = decode(bytes(agent.heard[size // 2 // 2 * 2 : size]))
    assert tone_level_dbfs(heard, 1000, rate) == pytest.approx(-10.0, abs=1.5), agent.dialect
    spoken = bytes(call.heard_by_caller)
    best = max(tone_level_dbfs(spoken[at : at + 8000], 1000) for at in range(0, len(spoken) - 8000, 1600))
    assert best == pytest.approx(-10.0, abs=1.5), agent.dialect
    assert agent.protocol == SUBPROTOCOLS.get(agent.dialect)
    # The stream was said to be over before the socket closed.
    assert agent.dialect in NO_LAST or agent.frames[-1]["event"] in ("stop", "websocket:disconnected")


@dataclass
class Talk:
    """A stream whose agent sends what it is told, and whose tap keeps what it gets."""

    stream: AgentStream
    socket: web.WebSocketResponse
    tap: FakeTap
    events: asyncio.Queue[AgentEvent]
    frames: asyncio.Queue[dict[str, Any]]

    async def next(self) -> AgentEvent:
        async with asyncio.timeout(40):
            return await self.events.get()

    async def told(self) -> dict[str, Any]:
        async with asyncio.timeout(40):
            return await self.frames.get()


@pytest.fixture
async def talk(request: pytest.FixtureRequest, carrier: None, echoes: Echoes) -> AsyncIterator[Talk]:
    dialect: str = request.param
    sockets: asyncio.Queue[web.WebSocketResponse] = asyncio.Queue()
    frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    class Told(Echo):
        async def serve(self, socket: web.WebSocketResponse) -> None:
            sockets.put_nowait(socket)
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    frames.put_nowait(read_text(message.data))

    echoes.agents["talk"] = Told(dialect)
    events: asyncio.Queue[AgentEvent] = asyncio.Queue()

    def keep(event: AgentEvent) -> None:
        if not isinstance(event, AgentMark | AgentMarkReached):
            events.put_nowait(event)

    encoding, rate = DIALECTS[dialect].formats[0]
    stream = await AgentStream.connect(
        setup(echoes.port, "talk", dialect, encoding, rate),
        resolve=to_loopback,
        on_event=keep,
        carrier=Carrier.stream,
    )
    tap = FakeTap(stream.mark_reached)
    stream.start(tap)
    made = Talk(stream, await sockets.get(), tap, events, frames)
    for _ in range(1 if DIALECTS[dialect].binary_audio or dialect in ("plivo", "vobiz") else 2):
        await made.told()
    yield made
    await stream.stop()


@pytest.mark.parametrize("talk", ["jambonz"], indirect=True)
async def test_pieces_of_audio_and_marks_of_jambonz(talk: Talk) -> None:
    piece = {"audioContentType": "raw", "sampleRate": 8000, "audioContent": "AQIDBA=="}
    await talk.socket.send_json({"type": "playAudio", "data": piece | {"id": "p1", "queuePlay": True}})
    await talk.socket.send_json({"type": "mark", "data": {"name": "m1"}})
    await talk.socket.send_json({"type": "clearMarks"})
    assert await talk.told() == {"type": "mark", "data": {"name": "m1", "event": "cleared"}}
    # The audio behind the mark was not taken back; its end is told, the mark's is not told again.
    talk.tap.reach()
    assert await talk.told() == {"type": "playDone", "data": {"id": "p1"}}
    await talk.socket.send_json({"type": "playAudio", "data": piece | {"id": "p2", "queuePlay": True}})
    await talk.socket.send_json({"type": "playAudio", "data": piece | {"id": "p3"}})
    assert await talk.told() == {"type": "playDone", "data": {"id": "p2", "status": "cleared"}}
    talk.tap.reach()
    assert await talk.told() == {"type": "playDone", "data": {"id": "p3"}}
    assert bytes(talk.tap.written) == b"\1\2\3\4" * 3
    await talk.socket.send_bytes(b"")
    assert await talk.next() == AgentHangup()


@pytest.mark.parametrize("talk", ["vonage"], indirect=True)
async def test_notifications_and_clears_of_vonage(talk: Talk) -> None:
    await talk.socket.send_bytes(b"\1\2" * 500)
    await talk.socket.send_bytes(b"")
    await talk.socket.send_json({"action": "notify", "payload": {"mark": "m1"}})
    await talk.tap.until(lambda tap: len(tap.done) >= 3)
    talk.tap.reach()
    assert await talk.told() == {"event": "websocket:notify", "payload": {"mark": "m1"}}
    await talk.socket.send_json({"action": "clear"})
    assert await talk.told() == {"event": "websocket:cleared"}
    await talk.socket.send_bytes(b"\1\2\3")
    assert (await talk.told())["error"]["code"] == "invalid_audio"
    await talk.next()
    await talk.socket.send_json({"event": "hold", "hold": {"active": True}})
    assert await talk.next() == AgentHold(True)
    assert not talk.stream.closed


@pytest.mark.parametrize("talk", ["plivo"], indirect=True)
async def test_checkpoints_of_plivo_that_are_cleared_are_not_answered(talk: Talk) -> None:
    await talk.socket.send_json({"event": "playAudio", "media": {"payload": "AAAA"}})
    await talk.socket.send_json({"event": "checkpoint", "name": "c1"})
    await talk.socket.send_json({"event": "clearAudio"})
    assert await talk.told() == {"event": "clearedAudio", "streamId": "s"}
    await talk.socket.send_json({"event": "checkpoint", "name": "c2"})
    await talk.tap.until(lambda tap: "mark c2" in tap.done)
    talk.tap.reach()
    assert await talk.told() == {"event": "playedStream", "streamId": "s", "name": "c2"}


@pytest.mark.parametrize("talk", sorted(WEBSOCKET_DIALECTS), indirect=True)
async def test_the_wrong_kind_of_frame_is_refused_and_too_many_end_the_stream(talk: Talk) -> None:
    dialect = DIALECTS[talk.stream.setup.dialect]
    wrong = b"\1\2\3" if dialect.binary_audio else b"\1\2\3\4"
    for _ in range(101):
        # Asterisk drops what is no whole sample; a line that is no word is as wrong there.
        if talk.stream.setup.dialect in NO_LAST:
            await talk.socket.send_str("no word")
        else:
            await talk.socket.send_bytes(wrong)
    closed = await talk.next()
    assert isinstance(closed, AgentClosed) and closed.code == 1008 and closed.abnormal
    assert (await talk.told())["event"] in ("error", "ERROR")
    assert not talk.tap.written


def test_audio_of_both_laws_is_told_apart() -> None:
    """The levels above would not notice if both laws were taken for the same."""
    pcm = tone(1000, 20)
    assert mulaw_to_l16(l16_to_mulaw(pcm)) != alaw_to_l16(l16_to_mulaw(pcm))
    assert alaw_to_l16(l16_to_alaw(pcm)) != mulaw_to_l16(l16_to_alaw(pcm))
