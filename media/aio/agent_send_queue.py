"""
Send queue of an agent.

Nothing waits while the socket takes data. When it is full, a short piece of audio is queued and the oldest is
dropped: an agent that recovers needs current audio. Responses are queued up to a limit.
"""

from __future__ import annotations

import asyncio
from collections import deque

from media.aio.agent_backpressure import ReadBackpressure
from media.aio.agent_settings import AgentStreamSettings
from media.aio.tap import AgentTap
from media.streams import FRAME_MS, Dialect, Encoding, Envelope, Listening, Track, frame_bytes

# An agent that does not read but keeps sending commands is disconnected beyond this.
_MAX_HELD_BYTES = 256 * 1024

# Beyond this the transport reports a full socket; about four frames of audio.
_HIGH_WATER_BYTES = 4 * 1024
_LOW_WATER_BYTES = 1024

# The byte for silence in each encoding.
_SILENCE: dict[Encoding, bytes] = {"l16": b"\x00", "mulaw": b"\xff", "alaw": b"\xd5"}


class AgentSendQueue:
    """
    Sends frames in order, or queues them while the socket is full.

    Attributes:
        frames_sent: Audio frames written to the socket.
        frames_dropped: Audio frames dropped as too old.
    """

    def __init__(self, dialect: Dialect, max_audio_frames: int) -> None:
        self.frames_sent = 0
        self.frames_dropped = 0
        self._dialect = dialect
        self._transport: asyncio.Transport | None = None
        self._full = False
        self._audio: deque[tuple[bytes, int, Track]] = deque(maxlen=max_audio_frames)
        self._held: list[bytes] = []
        self._held_bytes = 0

    def open(self, transport: asyncio.Transport) -> None:
        """Set the socket."""
        self._transport = transport
        transport.set_write_buffer_limits(_HIGH_WATER_BYTES, _LOW_WATER_BYTES)

    def audio(self, frame: bytes, timestamp_ms: int, track: Track = "inbound") -> None:
        """Send a frame of audio."""
        if self._full:
            if len(self._audio) == self._audio.maxlen:
                self.frames_dropped += 1
            self._audio.append((frame, timestamp_ms, track))
            return
        self.frames_sent += 1
        self._write(self._dialect.media(frame, timestamp_ms, track))

    def control(self, frame: bytes | None) -> bool:
        """Send a frame other than audio, if not None; False if too many bytes wait."""
        if frame is None:
            return True
        if not self._full:
            self._write(frame)
            return True
        self._held.append(frame)
        self._held_bytes += len(frame)
        return self._held_bytes <= _MAX_HELD_BYTES

    def writable(self, writable: bool) -> None:
        """Start queuing frames, or send the queued ones."""
        self._full = not writable
        if writable:
            self._flush()

    def finish(self, last: bytes | None) -> None:
        """Write all queued frames but audio, then a last frame."""
        self.frames_dropped += len(self._audio)
        self._audio.clear()
        for frame in self._held:
            self._write(frame)
        self._held.clear()
        if last is not None:
            self._write(last)

    def _flush(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        # Responses first: they waited as long, and audio grows old.
        while held and not self._full:
            self._write(held.pop(0))
        self._held = held + self._held
        self._held_bytes = sum(map(len, self._held))
        while self._audio and not self._full:
            frame, timestamp_ms, track = self._audio.popleft()
            self.frames_sent += 1
            self._write(self._dialect.media(frame, timestamp_ms, track))

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(frame)


class AgentAudio:
    """
    Cuts audio into frames by the clock of its track, and sends them, or silence, or nothing.

    Attributes:
        clock_ms: Time of each track's audio, in milliseconds.
    """

    def __init__(self, queue: AgentSendQueue, encoding: Encoding, sample_rate: int) -> None:
        self.clock_ms: dict[Track, int] = {"inbound": 0, "outbound": 0}
        self._queue = queue
        self._frame_bytes = frame_bytes(encoding, sample_rate)
        self._silence = _SILENCE[encoding] * self._frame_bytes
        self._listening: Listening = "resume"

    def listen(self, listening: Listening) -> None:
        """Set what the agent hears from now on."""
        self._listening = listening

    def send(self, frames: bytes, track: Track) -> None:
        """Send whole frames of a track, or advance its clock by them."""
        size = self._frame_bytes
        for offset in range(0, len(frames), size):
            self.clock_ms[track] += FRAME_MS
            if self._listening == "pause":
                continue
            frame = frames[offset : offset + size] if self._listening == "resume" else self._silence
            self._queue.audio(frame, self.clock_ms[track], track)


class QueuedSocket:
    """
    Sending part of an `AgentSocket` in Python: audio and messages go through one queue.

    Attributes:
        pace: Pace of reading, by the work that messages make.
    """

    numbers_frames = False

    def __init__(
        self, dialect: Dialect, settings: AgentStreamSettings, audio_format: tuple[Encoding, int]
    ) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self.pace = ReadBackpressure(self._loop)
        self._queue = AgentSendQueue(dialect, settings.queue_ms // FRAME_MS)
        self._audio = AgentAudio(self._queue, *audio_format)

    @property
    def frames_sent(self) -> int:
        """Audio frames written to the socket."""
        return self._queue.frames_sent

    @property
    def frames_dropped(self) -> int:
        """Audio frames dropped as too old."""
        return self._queue.frames_dropped

    @property
    def clock_ms(self) -> int:
        """Time of the inbound track's audio, in milliseconds."""
        return self._audio.clock_ms["inbound"]

    def begin(self, dialect: Dialect) -> None:
        """Do nothing: the dialect writes each frame."""

    def attach(self, tap: AgentTap) -> None:
        """Do nothing: the stream passes audio between tap and socket."""

    def listen(self, listening: Listening) -> None:
        """Set what the agent hears from now on."""
        self._audio.listen(listening)

    def audio(self, frames: bytes, track: Track) -> None:
        """Send whole frames of a track, or advance its clock by them."""
        self._audio.send(frames, track)

    def send(self, frame: bytes | None) -> bool:
        """Send a frame other than audio, if not None; False if too many bytes wait."""
        return self._queue.control(frame)

    def handled(self, envelope: Envelope | None) -> None:
        """Do nothing: the decoder keeps messages in order."""
