"""The socket of a stream in the media engine, which also carries the audio between it and a tap."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from media import _engine
from media.aio.agent_connection import AgentConnection
from media.aio.agent_dial import Resolve, dial_websocket
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_socket import SocketListener
from media.aio.stream import RtpStream
from media.aio.tap import AgentTap
from media.errors import EngineClosed
from media.streams import (
    FRAME_MS,
    AudioEvent,
    Dialect,
    Envelope,
    Listening,
    StreamConnectError,
    StreamSetup,
    Track,
    frame_bytes,
)

T = TypeVar("T")

_LISTENING: dict[Listening, int] = {"resume": 0, "pause": 1, "silence": 2}


async def open_engine_socket(
    listener: SocketListener,
    dialect: Dialect,
    setup: StreamSetup,
    settings: AgentStreamSettings,
    resolve: Resolve,
    carrier: RtpStream | None,
) -> None:
    """
    Open the WebSocket of a stream on the engine thread of `carrier`; `on_open` gets it.

    Raises:
        StreamConnectError: It could not be opened, or there is no such thread any more.
    """
    if carrier is None:
        raise StreamConnectError("connect", detail="the call has no media")
    connected = await dial_websocket(setup, resolve, settings.dial)
    try:
        opened = EngineSocket(listener, connected, carrier, setup, settings, dialect.binary_audio)
    except EngineClosed:
        raise StreamConnectError("connect", detail="the media engine is closed") from None
    listener.on_open(opened)


class EngineSocket:
    """
    One socket on the engine's thread of an RTP stream.

    Audio flows there, without Python, between the socket and a tap of the same thread, once the agent has
    shown how it sends it. Everything else comes here: messages in order, each `handled` before the audio
    behind it is played.
    """

    numbers_frames = True

    def __init__(
        self,
        listener: SocketListener,
        connected: tuple[AgentConnection, bytes],
        carrier: RtpStream,
        setup: StreamSetup,
        settings: AgentStreamSettings,
        binary: bool,
    ) -> None:
        connection, read = connected
        self.pace = _Work()
        self._listener: SocketListener | None = listener
        self._frame_bytes = frame_bytes(setup.encoding, setup.sample_rate)
        self._attached = False
        self._envelope: Envelope | None = None
        self._lost = asyncio.Event()
        self._native: _engine.AgentSocket = carrier.engine.open_agent_socket(
            carrier,
            connection,
            read,
            binary=binary,
            audio_format=(setup.encoding, setup.sample_rate),
            max_frames=settings.queue_ms // FRAME_MS,
            max_message_bytes=settings.dial.max_message_bytes,
            on_message=self._on_message,
        )

    @property
    def frames_sent(self) -> int:
        """Audio frames written to the socket."""
        return self._native.frames_sent

    @property
    def frames_dropped(self) -> int:
        """Audio frames dropped as too old."""
        return self._native.frames_dropped

    @property
    def clock_ms(self) -> int:
        """Time of the inbound track's audio, in milliseconds."""
        return self._native.clock_ms

    def begin(self, dialect: Dialect) -> None:
        """Write audio by the dialect's templates, converted if it says so."""
        said, origin_ms = dialect.audio_template("inbound")
        heard, _ = dialect.audio_template("outbound")
        self._native.set_templates(said, heard, origin_ms)
        self._native.convert(dialect.audio_converter)

    def attach(self, tap: AgentTap) -> None:
        """Carry the audio of a tap on the same thread; the stream passes that of any other."""
        self._attached = tap.carry(self._native)

    def listen(self, listening: Listening) -> None:
        """Set what the agent hears from now on."""
        self._native.listen(_LISTENING[listening])

    def audio(self, frames: bytes, track: Track) -> None:
        """Send whole frames of a track, unless the tap's audio does not pass through here."""
        if self._attached:
            return
        size = self._frame_bytes
        for offset in range(0, len(frames), size):
            self._native.audio(track == "outbound", frames[offset : offset + size])

    def send(self, frame: bytes | None) -> bool:
        """Send a text frame other than audio, if not None; too many that wait are reported later."""
        if frame is not None:
            self._native.send(frame)
        return True

    def ping(self) -> None:
        """Send a ping."""
        self._native.ping()

    def handled(self, envelope: Envelope | None) -> None:
        """Go on after a message."""
        if envelope is not self._envelope:
            self._envelope = envelope
            self._learn(envelope)
        self._native.handled(self.pace.take_ns())

    def _learn(self, envelope: Envelope | None) -> None:
        if envelope is None:
            self._native.unlearn()
        elif isinstance(envelope, AudioEvent):
            self._native.learn_event(
                envelope.members(), envelope.in_binary, envelope.converter, envelope.whole
            )
        else:
            self._native.learn(*envelope)

    def finish(self, last: bytes | None) -> None:
        """Send all waiting frames but audio, then a last frame."""
        self._native.finish(last or b"")

    def close(self, code: int, reason: str = "") -> None:
        """Send a close frame."""
        self._native.close(code, reason)

    def disconnect(self) -> None:
        """End the connection after all output is written."""
        self._native.disconnect(False)

    def abort(self) -> None:
        """End the connection at once."""
        self._native.disconnect(True)

    async def wait_disconnected(self, timeout_s: float) -> None:
        """Wait for the end of the connection."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._lost.wait()

    def _on_message(self, kind: int, code: int, data: bytes, audio_bytes: int) -> None:
        # By the numbers of `MessageKind` in inbound.hpp.
        listener = self._listener
        if listener is None:
            return
        if audio_bytes:
            listener.on_played(audio_bytes)
        match kind:
            case 1:
                listener.on_text(data)
            case 2:
                listener.on_binary(data)
            case 3:
                listener.on_pong()
            case 4:
                listener.on_close(code, data.decode())
            case 5:
                listener.on_violation(code, data.decode())
            case 6:
                listener.on_abuse(data.decode())
            case 7:
                listener.on_abuse("the agent does not read")
            case _:
                self._listener = None  # It holds this socket: a cycle would keep both until a collection.
                self._native.release()
                self._lost.set()
                listener.on_lost(None)


class _Work:
    """Time spent on messages, for the engine's limit; the order of messages is the engine's."""

    def __init__(self) -> None:
        self._spent_s = 0.0

    def timed(self, work: Callable[[], T]) -> T:
        """Run work that may take long, and count its time."""
        began_s = time.monotonic()
        try:
            return work()
        finally:
            self._spent_s += time.monotonic() - began_s

    def spent(self, seconds: float) -> None:
        """Count seconds spent on a message."""
        self._spent_s += seconds

    def hold(self) -> None:
        """Do nothing: the engine waits until the message is handled."""

    def release(self) -> None:
        """Do nothing: `handled` was called."""

    def take_ns(self) -> int:
        """Return the time spent since the last call, in ns."""
        spent_s, self._spent_s = self._spent_s, 0.0
        return round(spent_s * 1e9)
