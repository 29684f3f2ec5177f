"""
One WebSocket to a voice agent.

Call control opens it, passes it the tap of a media stream, forwards the engine's reports, and receives the
agent's commands by callback. This module writes marks and clears to the tap, and audio where the socket does
not do so itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from media.aio.agent_audiosocket import open_audiosocket
from media.aio.agent_backpressure import OrderedDecoder, RateLimit
from media.aio.agent_dial import Resolve
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_socket import AgentSocket
from media.aio.early_playout import EarlyPlayout, PendingMarks
from media.aio.engine_socket import open_engine_socket
from media.aio.model_link import ModelLink
from media.aio.stream import RtpStream
from media.aio.tap import AgentTap
from media.streams import (
    FRAME_MS,
    AgentBatch,
    AgentClear,
    AgentClearMarks,
    AgentClosed,
    AgentCommand,
    AgentDtmf,
    AgentEvent,
    AgentFailed,
    AgentHold,
    AgentInterrupted,
    AgentMark,
    AgentMarkReached,
    AgentMute,
    AgentPause,
    AgentPlay,
    AgentReady,
    AgentRecord,
    AgentReply,
    AgentStatus,
    CommandError,
    Listening,
    ModelDialect,
    StreamConnectError,
    StreamSetup,
    Track,
    dialect_class,
    frame_bytes,
)
from media.streams.dialects.audiosocket import AudioSocketDialect
from media.streams.model import BROKEN, closed_by_agent

_LOGGER = logging.getLogger(__name__)

# Audio that an agent may send before the call is answered; as much as the playout queue holds.
_MAX_EARLY_MS = 120_000
# Frames that may wait for the `start` frame before them.
_MAX_UNANNOUNCED = 2000
_NO_CODE = 1005
_CLOSE_NORMAL = 1000
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
        self._dialect = dialect = dialect_class(setup.dialect)(setup)
        self.model: ModelLink | None = None
        """Set for a session with a vendor's speech model."""
        if isinstance(dialect, ModelDialect):
            key = setup.model.api_key if setup.model is not None else ""
            self.model = ModelLink(dialect, key, self._loop, self._write)
        self._frame_bytes = frame_bytes(setup.encoding, setup.sample_rate)
        self._socket: AgentSocket | None = None
        self._tap: AgentTap | None = None
        self._announced = self._closed = False
        self._marks = PendingMarks()
        self._early = EarlyPlayout(self._frame_bytes * _MAX_EARLY_MS // FRAME_MS)
        self._early_full = self._paused = False
        self._unannounced: list[Callable[[], bytes | None]] = []
        # Events are held until connect() has returned the stream.
        self._held_events: list[AgentEvent] | None = []
        self._malformed_rate = RateLimit(settings.malformed_limit, settings.malformed_window_s)
        self._error_rate = RateLimit(20, 10.0)
        self._command_rate = RateLimit(settings.command_limit, settings.command_window_s)
        self._decoder: OrderedDecoder[bytes | AgentCommand] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._start_timer: asyncio.TimerHandle | None = None
        """Limit for the first message of an agent that must send one."""
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
        carrier: RtpStream | None = None,
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
            carrier: Stream whose engine thread carries the socket, unless it is AudioSocket's.

        Raises:
            StreamConnectError: The socket could not be opened, or was closed at once.
        """
        stream = cls(setup, on_event, settings or AgentStreamSettings())
        stream._announce_on_open = announce
        try:
            opening = stream, stream._dialect, setup, stream._settings, resolve
            if setup.dialect == AudioSocketDialect.name:
                await open_audiosocket(*opening)
            else:
                await open_engine_socket(*opening, carrier)
            if stream.model is not None and (announce or not stream.model.dialect.begins_with_call):
                await stream.model.until_ready(stream._settings.model_timeout_s)
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
        return self._socket.frames_sent if self._socket is not None else 0

    @property
    def frames_dropped(self) -> int:
        """Audio frames dropped as too old."""
        return self._socket.frames_dropped if self._socket is not None else 0

    def start(self, tap: AgentTap) -> None:
        """Start audio in both directions; earlier audio of the agent is played first."""
        if self._closed or self._socket is None:
            return
        self._announce()
        self._tap = tap
        if self._paused:
            tap.pause(True)
        self._early.play(tap)
        self._attach()
        limit_s = self._settings.start_timeout_s if self.model is None else self._settings.model_timeout_s
        if limit_s is not None and not self._got_message:
            silent = _CLOSE_NO_PONG, "the agent is silent"
            self._start_timer = self._loop.call_later(limit_s, self._fail, *silent)

    def _attach(self) -> None:
        """Join socket and tap, so that audio passes; a vendor's model gets none before it is ready."""
        if self._closed or self._tap is None or self._socket is None:
            return
        if self.model is None or self.model.takes_audio:
            # Some vendors of models have said only now which format they want.
            self._socket.begin(self._dialect)
            self._socket.attach(self._tap)

    def send_audio(self, frames: bytes, track: Track = "inbound") -> None:
        """Send audio of a track: one or more whole frames, in the encoding of the stream."""
        assert len(frames) % self._frame_bytes == 0
        socket = None if self._closed or self._tap is None else self._socket
        if socket is not None and (self.model is None or self.model.takes_audio):
            socket.audio(frames, track)

    def listen(self, listening: Listening) -> None:
        """
        Set what the agent hears from now on: all, silence, or nothing.

        The clock of its audio advances all the same, so that later timestamps are right. A vendor's model
        hears silence instead of nothing: some end a session that has no audio.
        """
        if self._socket is not None:
            is_silent = self.model is not None and listening == "pause"
            self._socket.listen("silence" if is_silent else listening)

    def send_dtmf(self, digit: str, duration_ms: int) -> None:
        """Send the agent a digit that the caller pressed."""
        if self.model is not None and not self._closed:
            self.model.press(digit)
        self._send(lambda: self._dtmf(digit, duration_ms))

    def _dtmf(self, digit: str, duration_ms: int) -> bytes | None:
        if self._socket is not None:
            self._dialect.tell_time(self._socket.clock_ms)
        return self._dialect.dtmf(digit, duration_ms)

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
        opened = self._socket
        if opened is None:
            return
        if not self._closed:
            self._send_stop(opened, reason, detail)
            self._shut()
            opened.close(code)
        try:
            await opened.wait_disconnected(self._settings.close_timeout_s)
        finally:
            opened.abort()
        await opened.wait_disconnected(self._settings.close_timeout_s)

    # Callbacks of the socket.

    def on_open(self, socket: AgentSocket) -> None:
        """Send the first frames."""
        self._socket = socket
        if self._closed:
            socket.abort()
            return
        if socket.numbers_frames:
            self._dialect.leave_places()
        self._decoder = OrderedDecoder(
            self._loop, socket.pace, self._take, lambda: self._fail(_CLOSE_INTERNAL, "internal error")
        )
        socket.send(self._dialect.connected())
        if self._announce_on_open:
            self._announce()
        self._timer = self._loop.call_later(self._settings.ping_interval_s, self._ping)

    def on_text(self, data: bytes) -> None:
        """Handle a text message."""
        if self._decoder is not None:
            self._decoder.read(self._dialect.decode, data)

    def on_binary(self, data: bytes) -> None:
        """Play or refuse a binary message."""
        if self._decoder is not None:
            self._decoder.read(self._dialect.decode_binary, data)

    def _take(self, read: Callable[[], bytes | AgentCommand]) -> None:
        if self._closed or self._socket is None:
            return
        if not self._got_message:
            self._first_message()
        self._obey(read)
        self._socket.handled(self._dialect.envelope)

    def _obey(self, read: Callable[[], bytes | AgentCommand]) -> None:
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

    def on_played(self, size_bytes: int) -> None:
        """Notify the dialect of audio that the socket played itself."""
        if self._decoder is not None:
            self._decoder.then(lambda: self._dialect.played(size_bytes))

    def on_pong(self) -> None:
        """Record that the agent is alive."""
        if self._timer is not None and not self._closed:
            self._timer.cancel()
            self._timer = self._loop.call_later(self._settings.ping_interval_s, self._ping)

    def on_close(self, code: int, reason: str) -> None:
        """Answer the agent's close frame and report it."""
        if self._closed:
            # The answer to our own close frame.
            if self._socket is not None:
                self._socket.disconnect()
        elif self._decoder is not None:
            # Its earlier messages come first, those that take long to decode included.
            self._decoder.then(lambda: self._end(code, reason))

    def _end(self, code: int, reason: str) -> None:
        if self._closed or self._socket is None:
            return
        if self.model is None:
            closed = closed_by_agent(code, reason)
        else:
            self._dialect.tell_time(self._socket.clock_ms)
            closed = self.model.closed(code or _NO_CODE, reason)
        self._shut(reason or f"closed with {code or _NO_CODE}")
        self._socket.close(code or _CLOSE_NORMAL)
        self._disconnect_soon(self._socket)
        self._emit(closed)

    def on_violation(self, code: int, reason: str) -> None:
        """Close after a protocol violation of the agent."""
        # The library may have closed already, and after a close frame no other may follow (RFC 6455 5.5.1).
        self._fail(code, reason, send_stop=False)

    def on_abuse(self, reason: str) -> None:
        """Close after more than an agent may ask for."""
        self._fail(_CLOSE_ABUSE, reason)

    def on_lost(self, code: int | None) -> None:
        """Handle the end of the connection."""
        self._stop_timer()
        if self._closed:
            return
        self._shut("connection lost")
        # The library closes by itself on frames that break RFC 6455 and on those that are too long.
        reason = "connection lost" if code is None else "the agent broke the protocol"
        self._emit(AgentClosed(code or BROKEN, abnormal=True, reason=reason))

    # Reactions.

    def _announce(self) -> None:
        if not self._announced and self._socket is not None:
            self._announced = True
            self._socket.send(self._dialect.start(int(time.time() * 1000)))
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
            case AgentBatch(parts=parts):
                self._execute_all(parts)
            case AgentReply() | AgentReady() | AgentInterrupted() | AgentFailed():
                self._of_model(command)
            case AgentMark(name=name):
                self._mark(name)
            case AgentPlay():
                self._play_with_mark(command)
            case AgentClearMarks(prefix=prefix):
                self._take_back_marks(prefix)
            case AgentClear():
                self._clear()
                self._send(self._dialect.cleared)
                self._emit(command)
            case AgentPause(active=active):
                self._pause(active)
            case AgentStatus():
                self._send(lambda: self._dialect.status(self._queued_ms(), self._paused))
            case _ if self._command_rate.exceeded(self._loop.time()):
                self._fail(_CLOSE_ABUSE, "too many commands")
            case _:
                self._emit(command)

    def _take_back_marks(self, prefix: str) -> None:
        for name in self._marks.take_back(prefix):
            self._notify_mark(name, cleared=True)

    def _execute_all(self, parts: Sequence[bytes | AgentCommand]) -> None:
        for part in parts:
            if self._closed:
                return
            if isinstance(part, bytes):
                self._play(part)
            else:
                self._execute(part)

    def _of_model(self, command: AgentReply | AgentReady | AgentInterrupted | AgentFailed) -> None:
        model = self.model
        assert model is not None, "only the protocols of models have these"
        match command:
            case AgentReply(frames=frames):
                model.send(frames)
            case AgentInterrupted():
                unplayed_ms = self._queued_ms()
                self._clear()
                model.interrupt(unplayed_ms)
            case AgentReady():
                model.note(command)
                # Behind the frames that answer the same message.
                self._loop.call_soon(self._attach)
            case AgentFailed(code=code):
                model.note(command)
                self._fail(_CLOSE_NORMAL, f"the vendor reports {code}"[:100])

    def _write(self, frame: bytes) -> None:
        """Send a frame at once, also before the call is answered."""
        if not self._closed and self._socket is not None and not self._socket.send(frame):
            self._fail(_CLOSE_ABUSE, "the agent does not read")

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
        self._emit(AgentMark(name))
        if self._tap is not None:
            self._tap.mark(name)
        else:
            self._early.mark(AgentMark(name))

    def _notify_mark(self, name: str, *, cleared: bool) -> None:
        if not self._closed:
            self._send(lambda: self._dialect.mark(name, cleared=cleared))
            self._emit(AgentMarkReached(name, cleared))

    def _pause(self, active: bool) -> None:
        self._paused = active
        if self._tap is not None:
            self._tap.pause(active)

    def _queued_ms(self) -> int:
        if self._tap is not None:
            return self._tap.queued_ms
        return self._early.queued_bytes * FRAME_MS // self._frame_bytes

    def _clear(self) -> None:
        self._paused = False
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
        if self._closed or self._socket is None:
            return
        if not self._announced:
            # Clients read the first frame after the opening as the description of the call.
            self._unannounced.append(write)
            if len(self._unannounced) > _MAX_UNANNOUNCED:
                self._fail(_CLOSE_ABUSE, "too many messages before the call was answered")
        elif not self._socket.send(write()):
            self._fail(_CLOSE_ABUSE, "the agent does not read")

    def _ping(self) -> None:
        if self._socket is not None and not self._closed:
            self._socket.ping()
            if self.model is not None:
                self.model.keep_alive()
            self._timer = self._loop.call_later(self._settings.pong_timeout_s, self._no_pong)

    def _no_pong(self) -> None:
        self._fail(_CLOSE_NO_PONG, "no pong")

    def _fail(self, code: int, reason: str, *, send_stop: bool = True) -> None:
        """Close the socket because of a fault of the agent."""
        if self._closed or self._socket is None:
            return
        if send_stop:
            self._send_stop(self._socket, "stopped", "stream_hangup")
        self._shut(reason)
        self._socket.close(code, reason)
        self._disconnect_soon(self._socket)
        error = self.model.error if self.model is not None else None
        self._emit(AgentClosed(code, abnormal=True, reason=reason, error=error))

    def _send_stop(self, opened: AgentSocket, reason: str, detail: str) -> None:
        """Send `stop` to an agent that got `start`."""
        opened.finish(self._dialect.stop(reason, detail) if self._announced else None)

    def _shut(self, reason: str = "stopped") -> None:
        """Stop sending frames and handling messages."""
        self._closed = True
        if self.model is not None:
            self.model.close(reason)
        self._early.clear()
        self._unannounced.clear()
        if self._decoder is not None:
            self._decoder.forget()
        self._first_message()
        self._tap = None
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _disconnect_soon(self, opened: AgentSocket) -> None:
        """Close cleanly, but abort after the close timeout if the peer does not read."""
        opened.disconnect()
        self._timer = self._loop.call_later(self._settings.close_timeout_s, opened.abort)

    def _give_up(self) -> None:
        self._shut()
        if self._socket is not None:
            self._socket.abort()

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
        except Exception:  # A defect of the application ends this stream, not its reader in silence.
            _LOGGER.exception("agent event handler failed")
            self._fail(_CLOSE_INTERNAL, "internal error")
