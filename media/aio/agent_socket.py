"""
The socket of a stream, as the stream uses it.

It is the engine's WebSocket (`media.aio.engine_socket`) or AudioSocket (`media.aio.agent_audiosocket`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from media.streams import Dialect, Envelope, Listening, Track

if TYPE_CHECKING:
    from media.aio.agent_backpressure import Pace
    from media.aio.tap import AgentTap


class SocketListener(Protocol):
    """Receiver of what happens on a socket: the stream."""

    def on_open(self, socket: AgentSocket) -> None:
        """Send the first frames."""

    @property
    def closed(self) -> bool:
        """True when nothing more is handled."""

    def on_text(self, data: bytes) -> None:
        """Handle a text message; `AgentSocket.handled` follows."""

    def on_binary(self, data: bytes) -> None:
        """Handle a binary message; `AgentSocket.handled` follows."""

    def on_played(self, size_bytes: int) -> None:
        """Note audio that the socket played itself, before the message that follows."""

    def on_pong(self) -> None:
        """Record that the agent is alive."""

    def on_close(self, code: int, reason: str) -> None:
        """Answer the agent's close frame; 0 stands for no code."""

    def on_violation(self, code: int, reason: str) -> None:
        """Close after a breach of RFC 6455."""

    def on_abuse(self, reason: str) -> None:
        """Close after frames that are valid, but too many."""

    def on_lost(self, code: int | None) -> None:
        """Handle the end of the connection; `code` is that of a close frame which the socket itself sent."""


class AgentSocket(Protocol):
    """
    A socket to an agent that is open.

    Attributes:
        numbers_frames: True if frames are to be written with places for their numbers.
    """

    numbers_frames: bool

    @property
    def pace(self) -> Pace:
        """Pace of reading, by the work that messages make."""

    @property
    def frames_sent(self) -> int:
        """Audio frames written to the socket."""

    @property
    def frames_dropped(self) -> int:
        """Audio frames dropped as too old."""

    @property
    def clock_ms(self) -> int:
        """Time of the inbound track's audio, in milliseconds."""

    def begin(self, dialect: Dialect) -> None:
        """Prepare for audio, whose format is known: `start` was written."""

    def attach(self, tap: AgentTap) -> None:
        """Carry the audio of a tap, if the socket can without the stream's help."""

    def listen(self, listening: Listening) -> None:
        """Set what the agent hears from now on."""

    def audio(self, frames: bytes, track: Track) -> None:
        """Send whole frames of a track, unless the socket carries the tap's audio itself."""

    def send(self, frame: bytes | None) -> bool:
        """Send a text frame other than audio, if not None; False if too many bytes wait."""

    def ping(self) -> None:
        """Send a ping."""

    def handled(self, envelope: Envelope | None) -> None:
        """Go on after a message; `envelope` is the dialect's."""

    def finish(self, last: bytes | None) -> None:
        """Send all waiting frames but audio, then a last frame."""

    def close(self, code: int, reason: str = "") -> None:
        """Send a close frame."""

    def disconnect(self) -> None:
        """End the connection after all output is written."""

    def abort(self) -> None:
        """End the connection at once. Idempotent."""

    async def wait_disconnected(self, timeout_s: float) -> None:
        """Wait for the end of the connection."""
