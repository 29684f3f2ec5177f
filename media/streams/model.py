"""What a stream to a voice agent is, and what an agent may ask for; the same for every dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "FRAME_MS",
    "AgentClear",
    "AgentClearMarks",
    "AgentClosed",
    "AgentCommand",
    "AgentDtmf",
    "AgentEvent",
    "AgentHangup",
    "AgentHold",
    "AgentMark",
    "AgentMute",
    "AgentPlay",
    "AgentRecord",
    "AgentTranscript",
    "AgentTransfer",
    "BasicAuth",
    "BearerAuth",
    "CallDirection",
    "Encoding",
    "RecordAction",
    "Reconnect",
    "StreamAuth",
    "StreamEvent",
    "StreamSetup",
    "StreamTrack",
    "Track",
    "TranscriptRole",
    "TransferMode",
    "frame_bytes",
]

Encoding = Literal["l16", "mulaw", "alaw"]
CallDirection = Literal["inbound", "outbound"]
TransferMode = Literal["bridge", "refer"]
RecordAction = Literal["start", "stop", "pause", "resume"]
TranscriptRole = Literal["agent", "user"]

# Whose audio one frame carries: `inbound` is what the party says, `outbound` what it hears.
Track = Literal["inbound", "outbound"]
StreamTrack = Literal["inbound", "both"]

# What an agent is told only if its customer asked for it.
StreamEvent = Literal["speech", "buffer", "hold"]

# Length of the frames of audio that an agent receives.
FRAME_MS = 20


def frame_bytes(encoding: Encoding, sample_rate: int) -> int:
    """Size of one frame of audio; signed 16-bit samples for `l16`, one byte a sample otherwise."""
    samples = sample_rate * FRAME_MS // 1000
    return samples * 2 if encoding == "l16" else samples


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """User name and password for the upgrade request (RFC 7617)."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class BearerAuth:
    """Token for the upgrade request (RFC 6750)."""

    token: str = field(repr=False)


StreamAuth = BasicAuth | BearerAuth


@dataclass(frozen=True, slots=True)
class Reconnect:
    """Says in `start` that a stream continues another whose socket was lost."""

    attempt: int
    previous_stream_sid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSetup:
    """
    Everything that one connection to an agent needs.

    Attributes:
        url: Dialled as it is; without user information, which belongs in `auth`.
        secret: Key of the signature of the upgrade request; None leaves it unsigned.
        previous_secret: Second key while the secret is being changed.
        extra_headers: Sent beside ours in the upgrade request.
        track: Whether the agent also gets what the party hears.
        sip_call_id: `Call-ID` of the party's dialog, where it is known.
    """

    url: str
    stream_sid: str
    call_sid: str
    account_sid: str
    from_: str
    to: str
    direction: CallDirection = "inbound"
    dialect: str = "exotel"
    encoding: Encoding = "l16"
    sample_rate: int = 8000
    custom_parameters: tuple[tuple[str, str], ...] = ()
    auth: StreamAuth | None = None
    secret: str | None = field(default=None, repr=False)
    previous_secret: str | None = field(default=None, repr=False)
    user_agent: str = "trunkline/1.0"
    extra_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    reconnect: Reconnect | None = None
    track: StreamTrack = "inbound"
    sip_call_id: str = ""


@dataclass(frozen=True, slots=True)
class AgentMark:
    """
    The agent wants to know when the audio sent so far has been heard.

    `name` belongs to the dialect, which gets it back unchanged; it may hold more than the agent's own words.
    """

    name: str


@dataclass(frozen=True, slots=True)
class AgentPlay:
    """
    The agent sends a piece of audio with orders of its own.

    Attributes:
        audio: In the encoding of the stream.
        mark: Mark that is set behind the audio.
        replaces: Whether the audio that has not been heard yet is taken back first.
    """

    audio: bytes
    mark: str | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class AgentClearMarks:
    """The agent takes back the marks whose names begin so, and leaves the audio."""

    prefix: str = ""


@dataclass(frozen=True, slots=True)
class AgentClear:
    """The agent takes back the audio that has not been heard yet."""


@dataclass(frozen=True, slots=True)
class AgentDtmf:
    """The agent presses keys; `w` in the digits pauses 500 ms, `W` one second."""

    digits: str
    duration_ms: int = 160
    gap_ms: int = 80


@dataclass(frozen=True, slots=True)
class AgentHangup:
    """The agent ends the call, after the audio queued if `drain`."""

    drain: bool = True
    reason: str = "completed"


@dataclass(frozen=True, slots=True)
class AgentTransfer:
    """The agent hands the caller to somebody else; `to` is a number, or a `sip:` or `tel:` address."""

    to: str
    mode: TransferMode = "bridge"
    caller_id: str | None = None
    timeout_s: int = 30
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AgentHold:
    """The agent puts the caller on hold, or takes the hold back."""

    active: bool


@dataclass(frozen=True, slots=True)
class AgentMute:
    """The agent stops hearing the caller, or hears again."""

    active: bool


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """The agent starts, stops, pauses or resumes the recording of the call."""

    action: RecordAction


@dataclass(frozen=True, slots=True)
class AgentTranscript:
    """
    The agent says what was said on the call; times are in milliseconds since the call was answered.

    Attributes:
        role: Who said it: the agent, or the party it talks with.
        final: Whether the words will not change any more.
    """

    role: TranscriptRole
    text: str = field(repr=False)
    final: bool = True
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AgentClosed:
    """
    The socket is gone, and not because we stopped the stream.

    Attributes:
        code: Close code (RFC 6455 7.4); 1006 when the connection broke without one.
        abnormal: Whether the stream failed: it may be connected anew, otherwise the call ends.
        drain: Whether the caller should hear the audio that is still queued.
        reason: Words for a log; may be the agent's.
    """

    code: int
    abnormal: bool
    drain: bool = False
    reason: str = ""


AgentCommand = (
    AgentMark
    | AgentClear
    | AgentClearMarks
    | AgentPlay
    | AgentDtmf
    | AgentHangup
    | AgentTransfer
    | AgentHold
    | AgentMute
    | AgentRecord
    | AgentTranscript
)
AgentEvent = AgentCommand | AgentClosed
