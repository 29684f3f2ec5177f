"""An agent that speaks any of the dialects, as servers made for it do: for tests over real sockets."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import WSMessage, WSMsgType, web

from media.audio import alaw_to_l16, l16_to_alaw, l16_to_mulaw, mulaw_to_l16
from media.streams import DIALECTS, WEBSOCKET_DIALECTS, Encoding

__all__ = [
    "CLEARS",
    "DECODERS",
    "ENCODERS",
    "LASTS",
    "MARKS",
    "NO_LAST",
    "QUIET_MARKS",
    "SUBPROTOCOLS",
    "DialectAgent",
    "heard_in",
    "read_text",
    "spoken",
]

DECODERS: Mapping[Encoding, Callable[[bytes], bytes]] = {
    "l16": bytes,
    "mulaw": mulaw_to_l16,
    "alaw": alaw_to_l16,
}
ENCODERS: Mapping[Encoding, Callable[[bytes], bytes]] = {
    "l16": bytes,
    "mulaw": l16_to_mulaw,
    "alaw": l16_to_alaw,
}

# How an agent of each dialect sets a mark, and what it is told when that is reached.
MARKS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "exotel": ('{"event":"mark","mark":{"name":"m"}}', {"event": "mark"}),
    "twilio": ('{"event":"mark","streamSid":"s","mark":{"name":"m"}}', {"event": "mark"}),
    "telnyx": ('{"event":"mark","mark":{"name":"m"}}', {"event": "mark"}),
    "plivo": ('{"event":"checkpoint","streamId":"s","name":"m"}', {"event": "playedStream"}),
    "vobiz": ('{"event":"checkpoint","streamId":"s","name":"m"}', {"event": "playedStream"}),
    "vonage": ('{"action":"notify","payload":{"mark":"m"}}', {"event": "websocket:notify"}),
    "jambonz": ('{"type":"mark","data":{"name":"m"}}', {"type": "mark"}),
    "asterisk": ("MARK_MEDIA m", {"event": "MEDIA_MARK_PROCESSED", "words": "m"}),
    "asterisk_json": (
        '{"command":"MARK_MEDIA","correlation_id":"m"}',
        {"event": "MEDIA_MARK_PROCESSED", "correlation_id": "m"},
    ),
}

# How it takes back what it said, and what it is told of that beside its marks.
CLEARS: Mapping[str, tuple[str, dict[str, Any] | None]] = {
    "exotel": ('{"event":"clear"}', None),
    "twilio": ('{"event":"clear","streamSid":"s"}', None),
    "telnyx": ('{"event":"clear"}', None),
    "plivo": ('{"event":"clearAudio","streamId":"s"}', {"event": "clearedAudio"}),
    "vobiz": ('{"event":"clearAudio","streamId":"s"}', {"event": "clearedAudio"}),
    "vonage": ('{"action":"clear"}', {"event": "websocket:cleared"}),
    "jambonz": ('{"type":"killAudio"}', None),
    "asterisk": ("FLUSH_MEDIA", None),
    "asterisk_json": ('{"command":"FLUSH_MEDIA"}', None),
}

# Dialects that tell nothing of marks that are cleared, and those whose last frame tells nothing of the end.
QUIET_MARKS = ("plivo", "vobiz", "asterisk", "asterisk_json")
NO_LAST = ("asterisk", "asterisk_json")

# The last that it is told.
LASTS: Mapping[str, str] = {name: "stop" for name in WEBSOCKET_DIALECTS if name not in NO_LAST} | {
    "vonage": "websocket:disconnected"
}

SUBPROTOCOLS: Mapping[str, str] = {
    "jambonz": "audio.drachtio.org",
    "asterisk": "media",
    "asterisk_json": "media",
}


def spoken(dialect: str, audio: bytes) -> str | bytes:
    """A frame of audio as an agent of the dialect sends it."""
    if DIALECTS[dialect].binary_audio:
        return audio
    event = "playAudio" if dialect in ("plivo", "vobiz") else "media"
    return json.dumps({"event": event, "media": {"payload": base64.b64encode(audio).decode()}})


def heard_in(message: WSMessage) -> bytes | dict[str, Any]:
    """Return the kind of a message to an agent: audio, or something else."""
    if message.type is WSMsgType.BINARY:
        audio: bytes = message.data
        return audio
    frame = read_text(message.data)
    return base64.b64decode(frame["media"]["payload"]) if frame.get("event") == "media" else frame


def read_text(text: str) -> dict[str, Any]:
    """Return a text frame as its object; a line of words as one with its `event` and its `words`."""
    if text.startswith("{"):
        frame: dict[str, Any] = json.loads(text)
        return frame
    event, _, words = text.partition(" ")
    pairs = dict(word.partition(":")[::2] for word in words.split(" ") if ":" in word)
    return {"event": event, "words": words, **pairs}


class DialectAgent:
    """
    One agent, for one stream at a time.

    Attributes:
        heard: The caller's audio as it came.
        frames: Everything else, in order.
        echo: Whether it sends back what it hears.
        protocol: The subprotocol that was agreed.
    """

    def __init__(self, dialect: str, *, echo: bool = False) -> None:
        self.dialect = dialect
        self.echo = echo
        self.heard = bytearray()
        self.frames: list[dict[str, Any]] = []
        self.protocol: str | None = None
        self.closed = asyncio.Event()
        self.close_code: int | None = None
        self.port = 0
        self._socket: web.WebSocketResponse | None = None

    @property
    def url(self) -> str:
        """Return the URL, with the dialect in the query as a customer would write it."""
        return f"ws://127.0.0.1:{self.port}/ws?stream_protocol={self.dialect}"

    async def say(self, audio: bytes) -> None:
        """Send audio, in the encoding of the stream."""
        await self.send(spoken(self.dialect, audio))

    async def send(self, message: str | bytes) -> None:
        """Send anything."""
        assert self._socket is not None
        await (
            self._socket.send_str(message) if isinstance(message, str) else self._socket.send_bytes(message)
        )

    async def close(self) -> None:
        """Close the socket."""
        assert self._socket is not None
        await self._socket.close()

    def told(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The frames that hold all of this."""
        return [frame for frame in self.frames if wanted.items() <= frame.items()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[DialectAgent]:
        """Listen on loopback."""
        application = web.Application()
        application.router.add_get("/ws", self._serve)
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        socket = self._socket = web.WebSocketResponse(protocols=tuple(SUBPROTOCOLS.values()), compress=False)
        await socket.prepare(request)
        self.protocol = socket.ws_protocol
        async for message in socket:
            content = heard_in(message)
            if isinstance(content, dict):
                self.frames.append(content)
                continue
            self.heard += content
            if self.echo:
                await self.say(content)
        self.close_code = socket.close_code
        self.closed.set()
        return socket
