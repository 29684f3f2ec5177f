"""
One WebSocket to a voice agent.

Call control opens it, passes it the tap of a media stream, forwards the engine's reports, and receives the
agent's commands by callback. This module writes audio, marks and clears to the tap.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

import picows

from media.aio.agent_backpressure import OrderedDecoder, RateLimit, ReadBackpressure
from media.aio.agent_dial import Resolve, dial
from media.aio.agent_send_queue import AgentSendQueue
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_websocket import AgentWebSocket
from media.aio.early_playout import EarlyPlayout, PendingMarks
from media.aio.tap import AgentTap
from media.streams import (
    DIALECTS,
    FRAME_MS,
    AgentClear,
    AgentClearMarks,
    AgentClosed,
    AgentCommand,
    AgentDtmf,
    AgentEvent,
    AgentHold,
    AgentMark,
    AgentMute,
    AgentPlay,
    AgentRecord,
    CommandError,
    StreamConnectError,
    StreamSetup,
    Track,
    frame_bytes,
)
from media.streams.model import BROKEN, closed_by_agent

_LOGGER = logging.getLogger(__name__)

# Audio that an agent may send before the call is answered; as much as the playout queue holds.
_MAX_EARLY_MS = 120_000
# Frames that may wait for the `start` frame before them.
_MAX_UNANNOUNCED = 2000
_CLOSE_NO_PONG = 4408
_CLOSE_ABUSE = 1008
_CLOSE_INTERNAL = 1011


class AgentStream:
    """
    A stream to a voice agent, from the opening of the socket to its end.

    All methods must be called on the loop that opened it. Events come by callback, in order, never after
    `stop` was called. The last is exactly one AgentClosed, unless `stop` was called first.
    """

    def __init__(
        self, setup: StreamSetup, on_event: Callable[[AgentEvent], None], settings: AgentStreamSettings
    ) -> None:
        self.setup = setup
        self._settings = settings
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._dialect = DIALECTS[setup.dialect](setup)
        self._frame_bytes = frame_bytes(setup.encoding, setup.sample_rate)
        self._queue = AgentSendQueue(self._dialect, settings.queue_ms // FRAME_MS)
        self._transport: picows.WSTransport | None = None
        self._tap: AgentTap | None = None
        self._announced = False
        self._closed = False
        self._clock_ms: dict[Track, int] = {"inbound": 0, "outbound": 0}
        self._marks = PendingMarks()
        self._early = EarlyPlayout(self._frame_bytes * _MAX_EARLY_MS // FRAME_MS)
        self._early_full = False
        self._unannounced: list[Callable[[], bytes | None]] = []
        # Events are held until connect() has returned the stream.
        self._held_events: list[AgentEvent] | None = []
        self._malformed_rate = RateLimit(settings.malformed_limit, settings.malformed_window_s)
        self._error_rate = RateLimit(20, 10.0)
        self._command_rate = RateLimit(settings.command_limit, settings.command_window_s)
        self._backpressure = ReadBackpressure(self._loop)
        self._decoder: OrderedDecoder[bytes | AgentCommand] = OrderedDecoder(
            self._loop, self._backpressure, self._take, lambda: self._fail(_CLOSE_INTERNAL, "internal error")
        )
        self._timer: asyncio.TimerHandle | None = None
        self._start_timer: asyncio.TimerHandle | None = None
        """Limit for the first message of an agent that must send one."""
        self._ended: asyncio.Task[None] | None = None
        self._announce_on_open = True
        self._got_message = False

    @classmethod
    async def connect(
        cls,
        setup: StreamSetup,
        *,
        resolve: Resolve,
        on_event: Callable[[AgentEvent], None],
        settings: AgentStreamSettings | None = None,
        announce: bool = True,
    ) -> AgentStream:
        """
        Open the socket and send `connected`, and `start` too if `announce`.

        An outbound call passes `announce=False`: the method `start` sends `start` when it is answered.
        Cancelling abandons the socket.

        Args:
            setup: Description of the stream.
            resolve: Maps host, port and use of TLS to the addresses that may be dialled. Raises OSError
                when there are none, StreamConnectError("forbidden") when they must not be dialled.
            on_event: Called with each event, on the loop.
            settings: Limits and periods.
            announce: True to describe the call at once.

        Raises:
            StreamConnectError: The socket could not be opened, or was closed at once.
        """
        stream = cls(setup, on_event, settings or AgentStreamSettings())
        stream._announce_on_open = announce
        dial_settings = stream._settings.dial
        try:
            await dial(
                setup,
                lambda: AgentWebSocket(stream, dial_settings.max_message_bytes),
                resolve,
                dial_settings,
            )
        except BaseException:
            stream._give_up()
            raise
        if stream._closed:
            raise StreamConnectError("protocol", attempts=1, detail="the agent closed the socket at once")
        stream._loop.call_soon(stream._release)
        return stream

    @property
    def closed(self) -> bool:
        """True when nothing can be sent any more."""
        return self._closed

    @property
    def frames_sent(self) -> int:
        """Audio frames written to the socket."""
        return self._queue.frames_sent

    @property
    def frames_dropped(self) -> int:
        """Audio frames dropped as too old."""
        return self._queue.frames_dropped

    def start(self, tap: AgentTap) -> None:
        """Start audio in both directions; earlier audio of the agent is played first."""
        if self._closed:
            return
        self._announce()
        self._tap = tap
        self._early.play(tap)
        limit_s = self._settings.start_timeout_s
        if limit_s is not None and not self._got_message:
            self._start_timer = self._loop.call_later(
                limit_s, self._fail, _CLOSE_NO_PONG, "the agent is silent"
            )

    def send_audio(self, frames: bytes, track: Track = "inbound") -> None:
        """Send audio of a track: one or more whole frames, in the encoding of the stream."""
        size = self._frame_bytes
        assert len(frames) % size == 0
        if self._closed or self._tap is None:
            return
        for offset in range(0, len(frames), size):
            self._clock_ms[track] += FRAME_MS
            self._queue.audio(frames[offset : offset + size], self._clock_ms[track], track)

    def skip_audio(self, frames: bytes, track: Track = "inbound") -> None:
        """Omit audio of a track but advance its clock by it, so that later timestamps are right."""
        if not self._closed and self._tap is not None:
            self._clock_ms[track] += FRAME_MS * (len(frames) // self._frame_bytes)

    def send_dtmf(self, digit: str, duration_ms: int) -> None:
        """Send the agent a digit that the caller pressed."""
        self._send(lambda: self._dialect.dtmf(digit, duration_ms))

    def mark_reached(self, name: str, cleared: bool = False) -> None:
        """Notify the agent that the audio before a mark was played or cleared."""
        if self._marks.reached(name):
            self._notify_mark(name, cleared=cleared)

    def playout_overflow(self, dropped_ms: int) -> None:
        """Send the agent an error: it sent more than the playout queue holds."""
        self._error(
            "playout_overflow", f"The playout queue is full; {dropped_ms} ms of audio dropped", "media"
        )

    def accept(self, command: AgentDtmf | AgentHold | AgentMute | AgentRecord) -> None:
        """Notify the agent that a command was executed."""
        self._send(lambda: self._dialect.accepted(command))

    def refuse(self, ref: str, message: str, code: str = "refused") -> None:
        """Notify the agent that a command, named by its event, was refused, and why."""
        self._error(code, message, ref)

    def transfer_status(
        self, status: str, sip_status: int | None = None, hangup_cause: str | None = None
    ) -> None:
        """Notify the agent of its transfer's status: ringing, answered or failed."""
        self._send(lambda: self._dialect.transfer(status, sip_status, hangup_cause))

    def notify_speech(self, active: bool) -> None:
        """Notify the agent that the party started or stopped speaking."""
        self._send(lambda: self._dialect.speech(active))

    def notify_buffer(self, full: bool, level_ms: int) -> None:
        """Notify the agent that the playout queue is nearly full, or has room again."""
        self._send(lambda: self._dialect.buffer(full, level_ms))

    def notify_hold(self, active: bool) -> None:
        """Notify the agent that the party put the call on hold, or resumed it."""
        self._send(lambda: self._dialect.held(active))

    async def stop(self, reason: str = "stopped", detail: str = "api_hangup", *, code: int = 1000) -> None:
        """
        Send `stop`, close the socket and wait for its end, at most for the close timeout each time.

        Idempotent. Cancelling closes the socket without waiting.
        """
        transport = self._transport
        if transport is None:
            return
        if not self._closed:
            self._send_stop(reason, detail)
            self._shut()
            transport.send_close(code)  # type: ignore[arg-type]  # Any code fits; the stub knows only the names.
        try:
            await self._wait_disconnected(self._settings.close_timeout_s)
        finally:
            transport.disconnect(False)
        await self._wait_disconnected(self._settings.close_timeout_s)

    # Callbacks of AgentWebSocket.

    def on_open(self, transport: picows.WSTransport) -> None:
        """Send the first frames."""
        self._transport = transport
        if self._closed:
            transport.disconnect(False)
            return
        self._queue.open(transport)
        self._backpressure.open(transport)
        self._queue.control(self._dialect.connected())
        if self._announce_on_open:
            self._announce()
        self._timer = self._loop.call_later(self._settings.ping_interval_s, self._ping)

    def on_frame(self, size: int) -> None:
        """Count a frame that was read."""
        if not self._closed and not self._backpressure.read(size):
            self._fail(_CLOSE_ABUSE, "too many frames")

    def on_text(self, data: bytes) -> None:
        """Handle a text message."""
        self._decoder.read(self._dialect.decode, data)

    def on_binary(self, data: bytes) -> None:
        """Play or refuse a binary message."""
        self._decoder.read(self._dialect.decode_binary, data)

    def _take(self, read: Callable[[], bytes | AgentCommand]) -> None:
        if self._closed:
            return
        if not self._got_message:
            self._first_message()
        try:
            command = read()
        except CommandError as error:
            self._malformed_frame(error)
            return
        if isinstance(command, bytes):
            self._play(command)
        else:
            self._execute(command)

    def _first_message(self) -> None:
        self._got_message = True
        if self._start_timer is not None:
            self._start_timer.cancel()
            self._start_timer = None

    def on_ping(self, payload: bytes) -> None:
        """Answer a ping."""
        if not self._closed:
            self._queue.pong(payload)

    def on_pong(self) -> None:
        """Record that the agent is alive."""
        if self._timer is not None and not self._closed:
            self._timer.cancel()
            self._timer = self._loop.call_later(self._settings.ping_interval_s, self._ping)

    def on_close(self, code: int, reason: str) -> None:
        """Answer the agent's close frame and report it."""
        transport = self._transport
        assert transport is not None
        if self._closed:
            # The answer to our own close frame.
            transport.disconnect()
            return
        # Its earlier messages come first, those that take long to decode included.
        self._decoder.then(lambda: self._end(transport, code, reason))

    def _end(self, transport: picows.WSTransport, code: int, reason: str) -> None:
        if self._closed:
            return
        self._shut()
        transport.send_close(code or 1000)  # type: ignore[arg-type]  # As above.
        self._disconnect_soon()
        self._emit(closed_by_agent(code, reason))

    def on_violation(self, code: int, reason: str) -> None:
        """Close after a protocol violation of the agent."""
        # The library may have closed already, and after a close frame no other may follow (RFC 6455 5.5.1).
        self._fail(int(code), reason, send_stop=False)

    def on_lost(self, code: int | None) -> None:
        """Handle the end of the connection."""
        if self._transport is not None:
            self._ended = self._loop.create_task(self._collect())
        if self._closed:
            return
        self._shut()
        # The library closes by itself on frames that break RFC 6455 and on those that are too long.
        reason = "connection lost" if code is None else "the agent broke the protocol"
        self._emit(AgentClosed(code or BROKEN, abnormal=True, reason=reason))

    def on_writable(self, writable: bool) -> None:
        """Queue frames while the socket takes none."""
        self._queue.writable(writable)

    # Reactions.

    def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            self._queue.control(self._dialect.start(int(time.time() * 1000)))
            waiting, self._unannounced = self._unannounced, []
            for write in waiting:
                self._send(write)

    def _play(self, audio: bytes) -> None:
        if self._tap is not None:
            self._tap.write(audio)
        elif not self._early.audio(audio) and not self._early_full:
            self._early_full = True
            self._error("playout_overflow", "The playout queue is full; audio is dropped", "media")

    def _execute(self, command: AgentCommand) -> None:
        match command:
            case AgentMark(name=name):
                self._mark(name)
            case AgentPlay():
                self._play_with_mark(command)
            case AgentClearMarks(prefix=prefix):
                for name in self._marks.take_back(prefix):
                    self._notify_mark(name, cleared=True)
            case AgentClear():
                self._clear()
                self._send(self._dialect.cleared)
                self._emit(command)
            case _ if self._command_rate.exceeded(self._loop.time()):
                self._fail(_CLOSE_ABUSE, "too many commands")
            case _:
                self._emit(command)

    def _play_with_mark(self, command: AgentPlay) -> None:
        if command.replaces:
            self._clear()
        self._play(command.audio)
        if command.mark is not None:
            self._mark(command.mark)

    def _mark(self, name: str) -> None:
        if self._marks.full:
            self._error("too_many_marks", "Too many marks are pending; wait for some of them", "mark")
            return
        self._marks.add(name)
        if self._tap is not None:
            self._tap.mark(name)
        else:
            self._early.mark(AgentMark(name))

    def _notify_mark(self, name: str, *, cleared: bool) -> None:
        self._send(lambda: self._dialect.mark(name, cleared=cleared))

    def _clear(self) -> None:
        if self._tap is not None:
            self._tap.clear()
            return
        self._early_full = False
        for mark in self._early.clear():
            self.mark_reached(mark.name, cleared=True)

    def _malformed_frame(self, error: CommandError) -> None:
        if error.counts and self._malformed_rate.exceeded(self._loop.time()):
            self._fail(_CLOSE_ABUSE, "too many malformed frames")
        else:
            self._error(error.code, error.message, error.ref)

    def _error(self, code: str, message: str, ref: str | None) -> None:
        """Send an `error` event, rate-limited, since a hostile agent could provoke a flood of them."""
        if not self._error_rate.exceeded(self._loop.time()):
            self._send(lambda: self._dialect.error(code, message, ref))

    def _send(self, write: Callable[[], bytes | None]) -> None:
        """Send a frame; it is written only if it will be sent, since frames are numbered."""
        if self._closed or self._transport is None:
            return
        if not self._announced:
            # Clients read the first frame after the opening as the description of the call.
            self._unannounced.append(write)
            if len(self._unannounced) > _MAX_UNANNOUNCED:
                self._fail(_CLOSE_ABUSE, "too many messages before the call was answered")
        elif not self._queue.control(write()):
            self._fail(_CLOSE_ABUSE, "the agent does not read")

    def _ping(self) -> None:
        if self._transport is not None and not self._closed:
            self._queue.ping()
            self._timer = self._loop.call_later(self._settings.pong_timeout_s, self._no_pong)

    def _no_pong(self) -> None:
        self._fail(_CLOSE_NO_PONG, "no pong")

    def _fail(self, code: int, reason: str, *, send_stop: bool = True) -> None:
        """Close the socket because of a fault of the agent."""
        if self._closed or self._transport is None:
            return
        if send_stop:
            self._send_stop("stopped", "stream_hangup")
        self._shut()
        self._transport.send_close(code, reason)  # type: ignore[arg-type]  # As above.
        self._disconnect_soon()
        self._emit(AgentClosed(code, abnormal=True, reason=reason))

    def _send_stop(self, reason: str, detail: str) -> None:
        """Send `stop` to an agent that got `start`."""
        self._queue.finish(self._dialect.stop(reason, detail) if self._announced else None)

    def _shut(self) -> None:
        """Stop sending frames and handling messages."""
        self._closed = True
        self._early.clear()
        self._unannounced.clear()
        self._decoder.forget()
        self._backpressure.stop()
        self._first_message()
        self._tap = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _disconnect_soon(self) -> None:
        """Close cleanly, but abort after the close timeout if the peer does not read."""
        transport = self._transport
        assert transport is not None
        transport.disconnect()
        self._timer = self._loop.call_later(self._settings.close_timeout_s, transport.disconnect, False)

    async def _wait_disconnected(self, timeout_s: float) -> None:
        assert self._transport is not None
        with suppress(TimeoutError, picows.WSError):
            async with asyncio.timeout(timeout_s):
                await self._transport.wait_disconnected()

    async def _collect(self) -> None:
        """Collect the outcome of the connection, which the library would otherwise report as unretrieved."""
        if self._timer is not None:
            self._timer.cancel()
        await self._wait_disconnected(self._settings.close_timeout_s)

    def _give_up(self) -> None:
        self._shut()
        if self._transport is not None:
            self._transport.disconnect(False)

    def _release(self) -> None:
        events, self._held_events = self._held_events or [], None
        for event in events:
            self._emit(event)

    def _emit(self, event: AgentEvent) -> None:
        if self._held_events is not None:
            self._held_events.append(event)
            return
        try:
            self._on_event(event)
        except Exception:
            # A defect of the application ends this stream, not the reader of the WebSocket in silence.
            _LOGGER.exception("agent event handler failed")
            self._fail(_CLOSE_INTERNAL, "internal error")
