"""The media engine on the event loop."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar, runtime_checkable

from media import _engine
from media.aio.agent_connection import AgentConnection
from media.aio.conference import Conference, ConferenceEvent
from media.aio.recording import Recordings
from media.aio.stream import RtpStream
from media.errors import EngineClosed, InvalidMedia, PortsExhausted
from media.types import EngineSettings, EngineStats, MediaEvent, TapEncoding

logger = logging.getLogger(__name__)
_Event = TypeVar("_Event")

# The last message of an agent's socket, as in `MessageKind` of inbound.hpp.
_LOST = 8

_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@runtime_checkable
class EngineDriver(Protocol):
    """Event loop with its own clock, which also drives its engines."""

    def drive_engine(self, advance: Callable[[int], int]) -> Callable[[], None]:
        """
        Call `advance` with the loop's time in ns, now and after each step of time; see `_engine.Engine`.

        Returns:
            A function that stops the calls.
        """


class MediaEngine:
    """
    Threads that carry RTP without the interpreter.

    Commands return at once and take effect in order. The threads deliver events and the frames of all taps in
    one wake-up of the loop; callbacks run on the loop.

    A loop with its own clock has a method `drive_engine` (see `EngineDriver`): then the engine starts no
    thread and the loop runs it by that clock. A simulated call takes only the time of its work.
    """

    def __init__(self, settings: EngineSettings | None = None) -> None:
        self.settings = settings or EngineSettings()
        self.advertised = self.settings.advertise or self.settings.listen
        """Address given to far ends."""
        listen = self.settings.listen
        self._here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)
        self._native: _engine.Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_driving: Callable[[], None] | None = None
        self._streams: dict[int, RtpStream] = {}
        self._frame_callbacks: dict[int, Callable[[bytes], None]] = {}
        self._message_callbacks: dict[int, Callable[[int, int, bytes, int], None]] = {}
        self.recordings = Recordings(self.next_id)
        self.conferences: dict[int, Conference] = {}
        """Open conferences, by id."""

    def destination(self, address: str) -> str:
        """
        Return where to send the media of a far end at an address.

        The address that this engine advertises is its own: the NAT in front of it need not turn packets back.
        """
        return self._here if address == self.settings.advertise else address

    async def start(self) -> None:
        """
        Start the threads; harmless when done before.

        Raises:
            InvalidMedia: The settings are invalid.
            OSError: The system refused a thread or a descriptor.
        """
        if self._native is not None:
            return
        settings, loop = self.settings, asyncio.get_running_loop()
        driven = isinstance(loop, EngineDriver)
        try:
            self._native = _engine.Engine(
                settings.listen,
                settings.port_min,
                settings.port_max,
                settings.threads,
                round(settings.quarantine_s * 1000),
                driven,
                settings.continuous,
            )
        except (ValueError, TypeError) as error:
            raise InvalidMedia(f"invalid media settings: {error}") from error
        if isinstance(loop, EngineDriver):
            self._stop_driving = loop.drive_engine(self._native.advance)
        self._loop = loop
        loop.add_reader(self._native.fileno(), self._drain)

    async def close(self) -> None:
        """Close all streams, complete all recordings and end the threads. Idempotent."""
        native, self._native = self._native, None
        if native is None or self._loop is None:
            return
        self._loop.remove_reader(native.fileno())
        if self._stop_driving is not None:
            self._stop_driving()
        for conference in list(self.conferences.values()):
            conference.close()
        for stream in list(self._streams.values()):
            stream.close()
        # Waits for threads and, when recordings are open, for the disk.
        await asyncio.to_thread(native.close)
        self._dispatch(native)

    def open_stream(self, on_event: Callable[[MediaEvent], None], near: RtpStream | None = None) -> RtpStream:
        """
        Open a stream on a free port. Streams that will be linked must be opened `near` one another.

        Raises:
            PortsExhausted: No port is left.
            EngineClosed: The engine is not running.
        """
        if self._native is None:
            raise EngineClosed("the media engine is not running")
        try:
            native = self._native.open_stream(None if near is None else near.native)
        except OSError as error:
            if error.errno in _NO_DESCRIPTORS:
                raise PortsExhausted(f"the system has no socket left: {error.strerror}") from error
            raise
        if native is None:
            settings = self.settings
            raise PortsExhausted(f"no RTP port is left in {settings.port_min}-{settings.port_max}")
        stream = RtpStream(self, native, on_event)
        self._streams[native.id] = stream
        return stream

    def open_conference(
        self, on_event: Callable[[ConferenceEvent], None], *, sample_rate: Literal[8000, 16000] = 16000
    ) -> Conference:
        """
        Open a conference; streams of any engine thread may be its members.

        Args:
            on_event: Called with changes of talker, departures, and events of playbacks and recordings.
            sample_rate: Rate of the mix. 8000 saves a little work where all members use G.711.

        Raises:
            InvalidMedia: The rate is neither 8000 nor 16000.
            EngineClosed: The engine is not running.
        """
        if self._native is None:
            raise EngineClosed("the media engine is not running")
        try:
            native = self._native.open_conference(sample_rate)
        except ValueError as error:
            raise InvalidMedia(str(error)) from error
        conference = self.conferences[native.id] = Conference(self, native, sample_rate, on_event)
        return conference

    def stats(self) -> EngineStats:
        """Return metrics of the whole engine; zeros when it is not running."""
        if self._native is None:
            return EngineStats(0, 0, 0, 0, 0, 0, 0)
        return EngineStats(**self._native.stats())

    def dropped(self) -> dict[str, int]:
        """Return the received packets that were dropped since the start, by reason; none when not running."""
        counts = self._native.dropped() if self._native is not None else (0,) * len(_DROPS)
        return dict(zip(_DROPS, counts, strict=True))

    # For the streams.

    def open_agent_socket(
        self,
        near: RtpStream,
        connection: AgentConnection,
        read: bytes,
        *,
        binary: bool,
        audio_format: tuple[TapEncoding, int],
        max_frames: int,
        max_message_bytes: int,
        on_message: Callable[[int, int, bytes, int], None],
    ) -> _engine.AgentSocket:
        """
        Adopt the connection of a WebSocket to an agent; see `_engine.Engine.open_agent_socket`.

        `on_message` gets the kind, the code and the bytes of each message, and how many bytes of audio were
        played between the message before and this one; the last message is that of the loss.

        Raises:
            EngineClosed: The engine is not running. The socket is closed.
        """
        if self._native is None:
            connection.sock.close()
            raise EngineClosed("the media engine is not running")
        encoding, rate_hz = audio_format
        opened = self._native.open_agent_socket(
            near.native,
            connection.sock.detach(),
            connection.tls,
            read,
            binary,
            encoding,
            rate_hz,
            max_frames,
            max_message_bytes,
        )
        self._message_callbacks[opened.id] = on_message
        return opened

    def open_browser_socket(self, bound: socket.socket, upward: socket.socket) -> _engine.BrowserSocket:
        """
        Adopt the socket of all browsers, and one end of a pair; see `_engine.Engine.open_browser_socket`.

        Raises:
            EngineClosed: The engine is not running.
            OSError: The system refused to watch it.
        """
        if self._native is None:
            raise EngineClosed("the media engine is not running")
        return self._native.open_browser_socket(bound.detach(), upward.detach())

    def next_id(self) -> int:
        """Return a new id, unique in this engine."""
        if self._native is None:
            raise EngineClosed("the media engine is not running")
        return self._native.next_id()

    def call_soon(self, callback: Callable[[_Event], None], event: _Event) -> None:
        """Deliver an event of the loop's side, never from within a command."""
        if self._loop is not None:
            self._loop.call_soon(_call, callback, event)

    def watch_tap(self, tap_id: int, on_frames: Callable[[bytes], None]) -> None:
        """Deliver the frames of a tap."""
        self._frame_callbacks[tap_id] = on_frames

    def forget_tap(self, tap_id: int) -> None:
        """Drop pending frames of a tap."""
        self._frame_callbacks.pop(tap_id, None)

    def forget_stream(self, stream_id: int) -> None:
        """Drop pending events of a stream and remove it from its conference."""
        stream = self._streams.pop(stream_id, None)
        if stream is not None and stream.conference is not None:
            stream.conference.member_closed(stream)

    def _drain(self) -> None:
        if self._native is not None:
            self._dispatch(self._native)

    def _dispatch(self, native: _engine.Engine) -> None:
        events, frames, messages = native.drain()
        callbacks = self._frame_callbacks
        for tap_id, audio in frames:
            on_frames = callbacks.get(tap_id)
            if on_frames is not None:
                try:
                    on_frames(audio)
                except Exception:
                    # An error of one consumer must not silence the others.
                    logger.exception("a tap's frame callback failed")
        for source_id, kind, a, b, c in events:
            self._tell(source_id, kind, a, b, c)
        for message in messages:
            self._pass_on(*message)

    def _pass_on(self, socket_id: int, kind: int, code: int, data: bytes, audio_bytes: int) -> None:
        """Deliver one message of an agent."""
        if kind == _LOST:
            on_message = self._message_callbacks.pop(socket_id, None)
        else:
            on_message = self._message_callbacks.get(socket_id)
        if on_message is not None:
            _call(on_message, kind, code, data, audio_bytes)

    def _tell(self, source_id: int, kind: int, a: int, b: int, c: int) -> None:
        """Deliver one event record to its recording, stream or conference, if it still exists."""
        if (told := self.recordings.decode(kind, source_id, a, b, c)) is not None:
            recording, recorded = told
            _call(recording.on_event, recorded)
        elif (stream := self._streams.get(source_id)) is not None:
            event = stream.decode(kind, a, b, c)
            if event is not None:
                _call(stream.on_event, event)
        elif (conference := self.conferences.get(source_id)) is not None:
            happened = conference.decode(kind, a, b, c)
            if happened is not None:
                _call(conference.on_event, happened)


def _call(callback: Callable[..., None], *event: object) -> None:
    try:
        callback(*event)
    except Exception:  # An error of one consumer must not lose the events of the others.
        # What an agent sends may be long, and may hold a secret.
        shown = [one for one in event if not isinstance(one, bytes)]
        logger.exception("a media event callback failed on %r", shown)


_DROPS = ("foreign", "invalid", "unwanted", "unauthentic", "duplicate", "late")
"""Reasons for which packets are dropped, in the engine's order."""
