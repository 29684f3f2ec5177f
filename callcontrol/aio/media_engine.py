"""What the calls need of the media engine; ``media.aio`` implements it, tests may put a stand-in."""

from collections.abc import Callable
from typing import Any, Protocol

from media.types import RemoteMedia

OnMediaEvent = Callable[[Any], None]


class Tap(Protocol):
    """A consumer and producer of a stream's audio; see ``media.aio.AgentTap``."""

    def write(self, audio: bytes) -> None:
        """Append audio to the playout queue."""

    def mark(self, name: str) -> None:
        """Report when the audio written so far was played."""

    def clear(self) -> None:
        """Drop the playout queue."""

    def close(self) -> None:
        """End the tap; audio not yet played is dropped."""


class Stream(Protocol):
    """One RTP stream; see ``media.aio.RtpStream``."""

    @property
    def local(self) -> tuple[str, int]:
        """The address and port to announce."""

    def connect(self, remote: RemoteMedia) -> None:
        """Say where and how to send."""

    def link(self, other: Any) -> None:
        """Relay to and from another stream."""

    def play(self, pcm: bytes, *, loop: bool = False) -> int:
        """Play samples after what plays now; returns the playback's number."""

    def stop_playback(self) -> None:
        """Play nothing more."""

    def send_dtmf(self, digits: str, duration_ms: int = 160, gap_ms: int = 80) -> None:
        """Send telephone events."""

    def start_recording(self, path: str, *, channels: int = 2) -> None:
        """Record what is received and sent."""

    def open_tap(self, *, sample_rate: int, encoding: Any, on_frames: Callable[[bytes], None]) -> Tap:
        """Give the received audio to a callback and take audio to send."""

    def set_media_timeout(self, silent_s: float) -> None:
        """Report a silence of this length; 0 never."""

    def stats(self) -> Any:
        """Counters of the stream."""

    def close(self) -> None:
        """Free the stream and its port."""


class Engine(Protocol):
    """The engine; see ``media.aio.MediaEngine``."""

    async def start(self) -> None:
        """Begin."""

    async def close(self) -> None:
        """End."""

    def open_stream(self, on_event: OnMediaEvent, near: Any = None) -> Stream:
        """
        Open a stream, beside ``near`` when the two may be linked.

        Raises:
            PortsExhausted: No RTP port is free.
        """

    def stats(self) -> Any:
        """Counters of the engine."""
