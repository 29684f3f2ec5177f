"""The agent's end of a stream, and listeners to what passes on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from media import _engine
from media.types import PlayoutOverflow, PlayoutStats

if TYPE_CHECKING:
    from media.aio.stream import RtpStream


_CAPACITY_MS = 120_000
# Level to which an overflowing queue must fall before the next overflow is reported.
_OVERFLOW_OVER_MS = 110_000


class AgentTap:
    """
    The agent's end of a stream: delivers frames of received audio and queues audio to play.

    An utterance plays after a prebuffer of 60 ms, which shrinks to 10 ms while audio comes steadily (100 ms
    after an underrun), and replaces other sent audio.
    All methods are harmless after `close`. Created by `RtpStream.open_tap`.
    """

    def __init__(self, stream: RtpStream, native: _engine.Tap, bytes_per_ms: int) -> None:
        self.native = native
        self.names: dict[int, str] = {}
        self.dropped_ms = 0.0
        self._stream = stream
        self._bytes_per_ms = bytes_per_ms
        self._overflowing = False
        self._closed = False

    @property
    def queued_ms(self) -> int:
        """Queued audio, in milliseconds."""
        return self.native.queued_ms()

    def carry(self, socket: _engine.AgentSocket) -> bool:
        """Pass audio between the tap and a socket in the engine; False if they are on different threads."""
        return not self._closed and socket.attach(self.native)

    def watch_level(self, xoff_ms: int = 60_000, xon_ms: int = 30_000) -> None:
        """
        Report by `PlayoutLevel` when the queue is so long that a writer should pause, and when it may resume.

        Raises:
            ValueError: Not 0 <= xon_ms < xoff_ms <= 120,000.
        """
        if not 0 <= xon_ms < xoff_ms <= _CAPACITY_MS:
            raise ValueError(f"levels must be 0 <= xon_ms < xoff_ms <= {_CAPACITY_MS}")
        self.native.watch_level(xoff_ms, xon_ms)

    def stats(self) -> PlayoutStats:
        """Return the current metrics."""
        return PlayoutStats(
            queued_ms=self.native.queued_ms(),
            played_ms=self.native.played_ms(),
            dropped_ms=round(self.dropped_ms) + self.native.refused_ms(),
            underruns=self._stream.stats().underruns,
            prebuffer_ms=self.native.prebuffer_ms(),
        )

    def write(self, audio: bytes) -> None:
        """
        Append audio to the playout queue, in the tap's encoding, any number of bytes.

        The queue holds 120 s. Audio that does not fit is dropped and reported once by `PlayoutOverflow`.
        """
        if self._closed:
            return
        refused_bytes = self.native.write(audio)
        if refused_bytes:
            self._overflow(refused_bytes)
        elif self._overflowing and self.queued_ms < _OVERFLOW_OVER_MS:
            self._overflowing = False

    def mark(self, name: str) -> None:
        """Report by `MarkReached` when the audio written so far was played; at once when none waits.

        Beyond 1000 waiting marks, a new one is reported as cleared.
        """
        if self._closed:
            return
        mark = self._stream.add_mark(self, name)
        if mark is not None:
            self.native.mark(mark)

    def clear(self) -> None:
        """Drop the queue, and end a pause; silence within 20 ms. Waiting marks are reported as cleared."""
        if not self._closed:
            self._overflowing = False
            self.native.clear()

    def pause(self, active: bool) -> None:
        """Keep the queue and play silence, until the pause is over."""
        if not self._closed:
            self.native.pause(active)

    def close(self) -> None:
        """Detach from the stream; waiting marks are reported as cleared. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._stream.forget_tap(self)
        self.native.close()

    def _overflow(self, refused_bytes: int) -> None:
        dropped_ms = refused_bytes / self._bytes_per_ms
        self.dropped_ms += dropped_ms
        if not self._overflowing:
            self._overflowing = True
            self._stream.tell(PlayoutOverflow(max(1, round(dropped_ms))))


class Monitor:
    """
    One stream that hears both directions of another; created by `RtpStream.monitor`.

    Harmless when one of the streams was closed.
    """

    def __init__(self, native: _engine.Monitor) -> None:
        self._native = native

    def close(self) -> None:
        """Hear no more. Idempotent."""
        self._native.close()


class FrameListener:
    """
    A listener to what a stream receives, in frames of 100 ms of 16-bit samples.

    It leaves everything else of the stream as it is. Created by `RtpStream.listen`.

    Attributes:
        sample_rate: Rate of the samples.
    """

    def __init__(self, stream: RtpStream, native: _engine.FrameListener, sample_rate: int) -> None:
        self.id = native.id
        self.sample_rate = sample_rate
        self._native = native
        self._stream = stream

    def close(self) -> None:
        """Listen no more. Idempotent, and harmless when the stream was closed."""
        self._stream.forget_listener(self)
        self._native.close()
