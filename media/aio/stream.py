"""RTP streams on the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from media import _engine
from media.aio.detection import Detection, decode_detection
from media.aio.playback import StreamPlaybacks
from media.aio.recording import Recording, natural_rate
from media.aio.tap import AgentTap, FrameListener, Monitor
from media.audio import Clip
from media.errors import DtmfUnavailable, InvalidMedia, MediaError, StreamClosed
from media.types import (
    DtmfReceived,
    DtmfSent,
    FirstPacket,
    MarkReached,
    MediaEvent,
    MediaTimeout,
    PlayoutDrained,
    PlayoutLevel,
    PlayoutOverflow,
    QualityInterval,
    RecordingSettings,
    RemoteMedia,
    StreamMeter,
    StreamStats,
    TapEncoding,
)

if TYPE_CHECKING:
    from media.aio.conference import Conference
    from media.aio.engine import MediaEngine


_DTMF_KEYS = frozenset("0123456789*#ABCDabcdwW")
_MAX_DIGITS = 256
_MAX_WAITING = 256
_MAX_MARKS = 1000
_MAX_TIMEOUT_S = 86_400


class RtpStream:
    """
    One RTP stream: a port, a far end, and the processing of its audio.

    Sent audio is, in this order of precedence: digits, the tap's audio, playback, audio that the linked
    stream receives, silence while a tap is open or audio is muted, or soft noise if enabled. Tracks are added
    to it. Created by `MediaEngine.open_stream`.
    """

    def __init__(
        self, engine: MediaEngine, native: _engine.Stream, on_event: Callable[[MediaEvent], None]
    ) -> None:
        self.native = native
        self.on_event = on_event
        self.local: tuple[str, int] = (engine.advertised, native.udp_port)
        self.remote: RemoteMedia | None = None
        self.conference: Conference | None = None
        """Conference that the stream is a member of; set by the conference."""
        self._engine = engine
        self._closed = False
        self._final: StreamStats | None = None
        self._playbacks: StreamPlaybacks | None = None
        self._tap: AgentTap | None = None
        self._recording: Recording | None = None
        self._texts: dict[int, str] = {}
        self._marks: dict[int, AgentTap] = {}
        self._listeners: tuple[FrameListener, ...] = ()

    @property
    def engine(self) -> MediaEngine:
        """Engine that runs it."""
        return self._engine

    @property
    def detection(self) -> Detection:
        """Detectors on the received audio."""
        return Detection(self.native)

    @property
    def playbacks(self) -> StreamPlaybacks:
        """Queue of playbacks, and the tracks; made at its first use."""
        if self._playbacks is None:
            self._playbacks = StreamPlaybacks(self.native, self._engine.next_id)
            if self._closed:
                self._playbacks.abandon()
        return self._playbacks

    @property
    def closed(self) -> bool:
        """True after the stream was closed."""
        return self._closed

    def connect(self, remote: RemoteMedia) -> None:
        """
        Set the negotiated SDP parameters; may be called again.

        Audio is sent to the source of the far end's first valid packet (RFC 4961), until then to the
        signalled address. A later call with another signalled address repeats that choice.

        Raises:
            InvalidMedia: The address is no IP literal, or a value is out of range.
            StreamClosed: The stream was closed.
        """
        self._check_open()
        try:
            self.native.connect(_settings_of(remote, self._engine.destination(remote.address)))
        except (ValueError, TypeError) as error:
            raise InvalidMedia(f"cannot connect to {remote}: {error}") from error
        self.remote = remote

    def link(self, other: RtpStream) -> None:
        """
        Relay audio and digits both ways; a stream linked to itself echoes. Undoes earlier links of both.

        Packets of equal codecs are relayed unchanged; different codecs or packet times are transcoded.

        Raises:
            MediaError: The streams were not opened near one another.
            StreamClosed: One of the streams was closed.
        """
        self._check_open()
        other._check_open()
        if not self.native.link(other.native):
            raise MediaError("linked streams must be opened near one another")

    def unlink(self) -> None:
        """Stop relaying; harmless when not linked."""
        self.native.unlink()

    def play(self, pcm: bytes, *, loop: bool = False) -> int:
        """
        Queue audio; returns the playback's id.

        Playback starts once the stream is connected. A loop repeats until another playback waits.

        Args:
            pcm: Linear 16-bit mono samples at 8 kHz, little-endian. Kept, not copied.
            loop: True repeats until `stop_playback` or a later `play`.

        Raises:
            InvalidMedia: An odd number of bytes.
            MediaError: Too many playbacks are already queued.
            StreamClosed: The stream was closed.
        """
        self._check_open()
        return self.playbacks.queue([Clip(pcm)], loop=loop).id

    def stop_playback(self) -> None:
        """Drop the current playback and all waiting ones; each ends with `PlaybackFinished`."""
        self.playbacks.stop()

    def mute(self, *, received: bool = False, sent: bool = False) -> None:
        """
        Replace the far end's audio (`received`) or the audio sent to it (`sent`) by silence.

        Digits still pass. Each call sets both sides; without arguments it unmutes both.

        Raises:
            StreamClosed: The stream was closed.
        """
        self._check_open()
        self.native.mute(received, sent)

    def comfort_noise(self, active: bool) -> None:
        """
        Send soft noise instead of silence or nothing, so that a pause does not sound like a dead line.

        Raises:
            StreamClosed: The stream was closed.
        """
        self._check_open()
        self.native.comfort_noise(active)

    def send_dtmf(self, digits: str, duration_ms: int = 160, gap_ms: int = 80) -> None:
        """
        Queue digits to send; `w` pauses 500 ms, `W` 1 s.

        They are sent as telephone events (RFC 4733), as tones if the far end takes no events or wants tones.

        Raises:
            InvalidMedia: A character is no DTMF key, or a time is out of range.
            DtmfUnavailable: The stream is not connected, or too many digits wait already.
            StreamClosed: The stream was closed.
        """
        self._check_open()
        if not digits or len(digits) > _MAX_DIGITS or not _DTMF_KEYS.issuperset(digits):
            raise InvalidMedia(f"1 to {_MAX_DIGITS} of 0-9 * # A-D w W can be sent, not {digits[:32]!r}")
        if not 40 <= duration_ms <= 8000 or not 20 <= gap_ms <= 8000:
            raise InvalidMedia("digits last 40 to 8000 ms with gaps of 20 to 8000 ms")
        if self.remote is None:
            raise DtmfUnavailable("the stream is not connected")
        if len(self._texts) >= _MAX_WAITING:
            raise DtmfUnavailable(f"{_MAX_WAITING} digit strings are already queued")
        token = self._engine.next_id() & 0xFFFFFFFF
        self._texts[token] = digits
        self.native.send_dtmf(token, digits, duration_ms, gap_ms)

    def set_media_timeout(self, timeout_s: float, hold_timeout_s: float = 0) -> None:
        """
        Report by `MediaTimeout` when the far end sends nothing for this long though it may; 0 turns it off.

        While the stream is held and no audio is due, the other limit applies, and RTCP counts as activity.

        Raises:
            InvalidMedia: A limit is negative or longer than a day.
        """
        if not (0 <= timeout_s <= _MAX_TIMEOUT_S and 0 <= hold_timeout_s <= _MAX_TIMEOUT_S):
            raise InvalidMedia(f"media timeouts are 0 to {_MAX_TIMEOUT_S} s")
        self.native.set_media_timeout(round(timeout_s * 1000), round(hold_timeout_s * 1000))

    def start_recording(
        self,
        path: str,
        settings: RecordingSettings | None = None,
        *,
        channels: Literal[1, 2] = 2,
        on_event: Callable[[MediaEvent], None] | None = None,
    ) -> Recording:
        """
        Record to a file; ends a recording in progress.

        Two channels hold received audio left and sent audio right, one holds their sum. `RecordingFinished`
        reports the end, also after a full disk and after the stream was closed.

        Args:
            path: The file; an existing one is overwritten.
            settings: Format and limits; WAV at the codec's rate when None.
            channels: 1 or 2, used without settings.
            on_event: Callback for events; the stream's own callback when None.

        Raises:
            InvalidMedia: A setting is out of range, or the encoding was not built in.
            RecordingFailed: The file cannot be created.
            StreamClosed: The stream was closed.
        """
        self._check_open()
        started = self._engine.recordings.start(
            self.native,
            path,
            settings or RecordingSettings(channels=channels),
            natural_rate(self.remote),
            on_event or self.on_event,
        )
        if self._recording is not None:
            self._recording.let_go()
        self._recording = started
        return started

    def stop_recording(self) -> None:
        """End the recording; harmless when there is none."""
        if self._recording is not None:
            self._recording.stop()

    def open_tap(
        self,
        *,
        sample_rate: Literal[8000, 16000] = 8000,
        encoding: TapEncoding = "l16",
        on_frames: Callable[[bytes], None],
        on_sent: Callable[[bytes], None] | None = None,
    ) -> AgentTap:
        """
        Open the agent's end of the stream; closes an open one first.

        `on_frames` gets 20 ms of received audio at a time without gaps, silence while no audio is received.
        `on_sent`, if given, then gets the audio sent to the far end in the same 20 ms: the tap's audio,
        playbacks and tones, but not audio relayed from a linked stream.

        Raises:
            InvalidMedia: Unknown rate or encoding.
            StreamClosed: The stream was closed.
        """
        self._check_open()
        if self._tap is not None:
            self._tap.close()
        try:
            native = self.native.open_tap(encoding, sample_rate, on_sent is not None)
        except ValueError as error:
            raise InvalidMedia(str(error)) from error
        if native is None:
            raise StreamClosed("the stream was closed")
        bytes_per_ms = sample_rate // 1000 * (2 if encoding == "l16" else 1)
        tap = AgentTap(self, native, bytes_per_ms)
        self.watch_tap(tap, on_frames, on_sent)
        self._tap = tap
        return tap

    def listen(
        self, on_frames: Callable[[bytes], None], *, sample_rate: Literal[8000, 16000] = 8000
    ) -> FrameListener:
        """
        Pass on what is received, beside a tap and other listeners; silence while the far end is muted.

        Raises:
            StreamClosed: The stream was closed.
        """
        self._check_open()
        native = self.native.listen(sample_rate)
        if native is None:
            raise StreamClosed("the stream was closed")
        listener = FrameListener(self, native, sample_rate)
        self._engine.watch_tap(listener.id, on_frames)
        self._listeners += (listener,)
        return listener

    def monitor(self, hearing: RtpStream) -> Monitor:
        """
        Mix what this stream receives and sends for another one, which is connected, to send.

        What passes on this one stays as it is. A far end that is muted is silent there, too. `hearing` may
        hear one stream at a time.

        Raises:
            InvalidMedia: A stream cannot hear itself.
            StreamClosed: One of them was closed.
        """
        self._check_open()
        hearing._check_open()
        try:
            native = self.native.monitor(hearing.native)
        except ValueError as error:
            raise InvalidMedia(str(error)) from error
        if native is None:
            raise StreamClosed("the stream was closed")
        return Monitor(native)

    def stats(self) -> StreamStats:
        """Return the current metrics; the final ones after the stream was closed."""
        if self._final is not None:
            return self._final
        figures = StreamStats(*self.native.stats())
        if self._closed:
            self._final = figures
        return figures

    def meter(self) -> StreamMeter:
        """Return the few metrics that are read often; they cost a tenth of `stats`."""
        return StreamMeter(*self.native.meter())

    def intervals(self) -> tuple[QualityInterval, ...]:
        """Return the quality of both directions in the last 36 intervals of about 5 s, the oldest first."""
        found = self.native.intervals()
        return tuple([QualityInterval(*figures) for figures in found]) if found else ()

    def close(self) -> None:
        """Stop everything and free the port. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._tap is not None:
            self._tap.close()
        for listener in self._listeners:
            listener.close()
        self._engine.forget_stream(self.native.id)
        if self._playbacks is not None:
            self._playbacks.abandon()
        self.native.close()

    # For the engine and the tap.

    def decode(self, kind: int, a: int, b: int, c: int = 0) -> MediaEvent | None:
        """Decode an event record of the engine; None for one that is obsolete."""
        # By the numbers of `EventKind` in event_queue.hpp.
        match kind:
            case 1:
                return FirstPacket()
            case 2:
                return DtmfReceived(chr(a), b)
            case 3:
                digits = self._texts.pop(a, None)
                return None if digits is None else DtmfSent(digits)
            case 5:
                return self._mark_reached(b, cleared=bool(a))
            case 6:
                return PlayoutDrained()
            case 7:
                return MediaTimeout(b / 1000, held=bool(a))
            case 9:
                return PlayoutLevel("xoff" if a else "xon", b)
            case 10:
                return PlayoutOverflow(b)
            case 60 | 61:
                return self.playbacks.decode(kind, a, b, c)
        return decode_detection(kind, a, b, c)

    def add_mark(self, tap: AgentTap, name: str) -> int | None:
        """Return an id for a mark, or None when too many wait."""
        if len(self._marks) >= _MAX_MARKS:
            self.tell(MarkReached(name, cleared=True))
            return None
        mark = self._engine.next_id() & 0xFFFFFFFF
        self._marks[mark] = tap
        tap.names[mark] = name
        return mark

    def tell(self, event: MediaEvent) -> None:
        """Deliver an event of this side in the next iteration of the loop."""
        self._engine.call_soon(self.on_event, event)

    def watch_tap(
        self, tap: AgentTap, on_frames: Callable[[bytes], None], on_sent: Callable[[bytes], None] | None
    ) -> None:
        """Deliver the frames of a tap."""
        self._engine.watch_tap(tap.native.id, on_frames)
        if on_sent is not None and tap.native.sent_id:
            self._engine.watch_tap(tap.native.sent_id, on_sent)

    def forget_tap(self, tap: AgentTap) -> None:
        """Remove a closed tap."""
        self._engine.forget_tap(tap.native.id)
        self._engine.forget_tap(tap.native.sent_id)
        if self._tap is tap:
            self._tap = None

    def forget_listener(self, listener: FrameListener) -> None:
        """Remove a closed listener."""
        self._engine.forget_tap(listener.id)
        self._listeners = tuple(other for other in self._listeners if other is not listener)

    def _check_open(self) -> None:
        if self._closed:
            raise StreamClosed("the stream was closed")

    def _mark_reached(self, mark: int, *, cleared: bool) -> MediaEvent | None:
        tap = self._marks.pop(mark, None)
        name = None if tap is None else tap.names.pop(mark, None)
        return None if name is None else MarkReached(name, cleared=cleared)


def _settings_of(remote: RemoteMedia, address: str) -> _engine.MediaSettings:
    rtcp_port = remote.rtcp_port
    send, receive = remote.srtp_send, remote.srtp_receive
    return _engine.MediaSettings(
        (address, remote.port),
        None if rtcp_port is None else (remote.rtcp_address or address, rtcp_port),
        remote.codec,
        remote.clock_rate,
        remote.payload_type,
        remote.receive_payload_type,
        remote.ptime_ms,
        remote.direction in ("sendrecv", "sendonly"),
        remote.direction in ("sendrecv", "recvonly"),
        remote.dtmf_payload_type,
        remote.dtmf_receive_payload_type,
        remote.dtmf_tones,
        remote.comfort_noise_payload_type,
        remote.opus,
        None if send is None else (send.suite, send.key),
        None if receive is None else (receive.suite, receive.key),
    )
