"""
Server for voice agents: each call is a WebSocket in the default stream protocol, and one run of a function.

The protocol is that of docs/agent-streams.md, dialect ``exotel``: JSON with signed 16-bit little-endian mono
PCM in base64.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from trunkline_client.errors import TrunklineError, WebhookInvalid
from trunkline_client.webhooks import verify_stream

__all__ = [
    "AgentCall",
    "Audio",
    "Digit",
    "Event",
    "Mark",
    "Notice",
    "Stopped",
    "StreamInvalid",
    "run_agent",
    "serve_agent",
]

_log = logging.getLogger(__name__)
_LARGEST_MESSAGE_BYTES: Final = 1 << 20
_START_TIMEOUT_S: Final = 10.0
_PROTOCOL_ERROR: Final = 1002


class StreamInvalid(TrunklineError):
    """A frame is not in the stream protocol."""


@dataclass(frozen=True, slots=True)
class Audio:
    """20 ms of what a party says; `track` is `inbound` unless the stream carries both."""

    pcm: bytes = field(repr=False)
    timestamp_ms: int
    track: str


@dataclass(frozen=True, slots=True)
class Digit:
    """A key of the caller's telephone."""

    digit: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The audio before a mark was played, or else cleared."""

    name: str
    played: bool


@dataclass(frozen=True, slots=True)
class Stopped:
    """The stream is over; the last event."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Any other message: an answer to a command, an error, an event on request."""

    event: str
    content: Mapping[str, Any]


Event = Audio | Digit | Mark | Stopped | Notice
Handler = Callable[["AgentCall"], Awaitable[None]]


@dataclass
class AgentCall:
    """
    A call whose agent this is. ``async for`` reads its events; the methods act on it.

    Audio that is played is queued by the server, up to 120 s, and may be sent faster than it sounds.
    """

    call_sid: str
    stream_sid: str
    account_sid: str
    from_: str
    to: str
    direction: str
    sample_rate: int
    parameters: Mapping[str, str]
    start: Mapping[str, Any] = field(repr=False)
    """The whole message ``start``."""
    _socket: ServerConnection = field(repr=False)

    async def __aiter__(self) -> AsyncIterator[Event]:
        async for frame in self._socket:
            event = read_event(_message(frame))
            yield event
            if isinstance(event, Stopped):
                return

    async def play(self, pcm: bytes) -> None:
        """Queue audio in the sample rate of the call."""
        await self._send("media", payload=base64.b64encode(pcm).decode())

    async def mark(self, name: str) -> None:
        """Ask for a `Mark` when all audio queued before has been played."""
        await self._send("mark", name=name)

    async def clear(self) -> None:
        """Drop the queued audio: silence within 20 ms."""
        await self.send({"event": "clear"})

    async def send_digits(self, digits: str) -> None:
        """Send keys to the other party; `w` waits half a second."""
        await self._send("dtmf", digits=digits)

    async def hangup(self, *, drain: bool = True) -> None:
        """End the call, after the queued audio when `drain` is true."""
        await self._send("hangup", drain=drain)

    async def stop(self) -> None:
        """End the stream after the queued audio; verbs that follow it go on."""
        await self.send({"event": "stop"})

    async def transfer(self, to: str, mode: Literal["bridge", "refer"] = "bridge", **options: Any) -> None:
        """Transfer the caller; `options` are `caller_id` and `timeout`."""
        await self._send("transfer", to=to, mode=mode, **options)

    async def hold(self, active: bool = True) -> None:
        """Play music to the caller, or end it."""
        await self._send("hold", active=active)

    async def mute(self, active: bool = True) -> None:
        """Hear silence, or the caller again."""
        await self._send("mute", active=active)

    async def record(self, action: Literal["start", "stop", "pause", "resume"]) -> None:
        """Change the recording of the call."""
        await self._send("record", action=action)

    async def transcript(self, role: Literal["agent", "user"], text: str, **options: Any) -> None:
        """Add to the call's transcript; `options` are `final`, `start_ms` and `end_ms`."""
        await self._send("transcript", role=role, text=text, **{"final": True, **options})

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message of the protocol. What is sent to a call that has ended is dropped."""
        try:
            await self._socket.send(json.dumps(message))
        except ConnectionClosed:
            _log.debug("call %s has ended; %s is dropped", self.call_sid, message.get("event"))

    async def _send(self, event: str, **content: Any) -> None:
        await self.send({"event": event, event: content})


def read_event(message: Mapping[str, Any]) -> Event:
    """
    Read a message of the server.

    Raises:
        StreamInvalid: A field is missing or of another type.
    """
    name = str(message.get("event"))
    try:
        content = message[name] if name in ("media", "dtmf", "mark", "stop") else {}
        match name:
            case "media":
                pcm = base64.b64decode(content["payload"], validate=True)
                return Audio(pcm, int(content["timestamp"]), str(content.get("track", "inbound")))
            case "dtmf":
                return Digit(str(content["digit"]), int(content["duration"]))
            case "mark":
                return Mark(str(content["name"]), content.get("status", "played") == "played")
            case "stop":
                return Stopped(str(content.get("reason")), str(content.get("detail")))
    except (KeyError, TypeError, AttributeError, ValueError, binascii.Error) as error:
        raise StreamInvalid(f"a message {name} cannot be read: {error!r}") from error
    return Notice(name, message)


@asynccontextmanager
async def serve_agent(
    handler: Handler,
    port: int,
    host: str = "127.0.0.1",
    *,
    secret: str | Sequence[str] | None = None,
    public_url: str | None = None,
) -> AsyncIterator[Server]:
    """
    Serve calls while the block runs: `handler` is called for each, and its return ends the stream.

    With a `secret`, the stream secret of the account, a handshake without its signature gets 401. The
    signature covers the URL that was dialled: `public_url` is its beginning, as ``wss://bot.example.com``.
    """
    if secret is not None and public_url is None:
        raise ValueError("a secret needs the public_url that the server dials")

    def authorize(connection: ServerConnection, request: Request) -> Response | None:
        if secret is None or public_url is None:
            return None
        try:
            verify_stream(dict(request.headers.raw_items()), public_url.rstrip("/") + request.path, secret)
        except WebhookInvalid as error:
            _log.warning("a handshake is refused: %s", error)
            return connection.respond(HTTPStatus.UNAUTHORIZED, "the signature is missing or wrong\n")
        return None

    async def answer(socket: ServerConnection) -> None:
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                call = await _started(socket)
            await handler(call)
        except (StreamInvalid, TimeoutError) as error:
            _log.warning("a stream is closed: %r", error)
            await socket.close(_PROTOCOL_ERROR)
        except ConnectionClosed:
            _log.debug("a stream was lost")

    async with serve(
        answer, host, port, process_request=authorize, max_size=_LARGEST_MESSAGE_BYTES, compression=None
    ) as server:
        yield server


def run_agent(handler: Handler, port: int, host: str = "127.0.0.1", **options: Any) -> None:
    """Serve calls until the process is ended; `options` are those of `serve_agent`."""

    async def forever() -> None:
        async with serve_agent(handler, port, host, **options) as server:
            print(f"listening on ws://{host}:{port}", flush=True)
            await server.serve_forever()

    try:
        asyncio.run(forever())
    except KeyboardInterrupt:
        pass


async def _started(socket: ServerConnection) -> AgentCall:
    """Read up to the message ``start``, and return the call that it describes."""
    async for frame in socket:
        message = _message(frame)
        if message.get("event") != "start":
            continue
        try:
            start = message["start"]
            return AgentCall(
                call_sid=str(start["call_sid"]),
                stream_sid=str(start["stream_sid"]),
                account_sid=str(start["account_sid"]),
                from_=str(start["from"]),
                to=str(start["to"]),
                direction=str(start["direction"]),
                sample_rate=int(start["media_format"]["sample_rate"]),
                parameters={str(name): str(value) for name, value in start["custom_parameters"].items()},
                start=start,
                _socket=socket,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise StreamInvalid(f"the message start cannot be read: {error!r}") from error
    raise StreamInvalid("the stream ended before it began")


def _message(frame: str | bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(frame) if isinstance(frame, str) else None
    except (ValueError, RecursionError) as error:
        raise StreamInvalid("a frame is no JSON") from error
    if not isinstance(message, dict):
        raise StreamInvalid("a frame is no JSON object")
    return message
