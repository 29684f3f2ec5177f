"""Model of a stream to a voice agent, of its commands and errors; common to all dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from media.streams.speech_models import ModelSession

# Code of a connection that ended without a close frame (RFC 6455 7.4.1).
BROKEN = 1006

_NO_CODE = 1005

Encoding = Literal["l16", "mulaw", "alaw"]
CallDirection = Literal["inbound", "outbound"]
TransferMode = Literal["bridge", "refer"]
RecordAction = Literal["start", "stop", "pause", "resume"]
TranscriptRole = Literal["agent", "user"]

# Track of a frame: `inbound` is the party's audio, `outbound` the audio it hears.
Track = Literal["inbound", "outbound"]
StreamTrack = Literal["inbound", "both"]

# What an agent hears: all, nothing, or silence in place of all.
Listening = Literal["resume", "pause", "silence"]

# Events that an agent gets only if its customer requested them.
StreamEvent = Literal["speech", "buffer", "hold"]

# Length of the frames of audio that an agent receives.
FRAME_MS = 20


def frame_bytes(encoding: Encoding, sample_rate: int) -> int:
    """Return the bytes of one frame of audio; signed 16-bit samples for `l16`, else one byte per sample."""
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
    """Fields of `start` for a stream that continues another whose socket was lost."""

    attempt: int
    previous_stream_sid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSetup:
    """
    Parameters of one connection to an agent.

    Attributes:
        url: Dialled unchanged; without user information, which belongs in `auth`.
        secret: Key for signing the upgrade request; None leaves it unsigned.
        previous_secret: Second key during a change of the secret.
        extra_headers: Added to ours in the upgrade request.
        track: "both" if the agent also gets the audio that the party hears.
        sip_call_id: `Call-ID` of the party's dialog, if known.
        model: Session to open with a vendor's speech model; None for an agent of the customer.
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
    model: ModelSession | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class AgentMark:
    """
    Request to report when the audio sent so far was played.

    `name` belongs to the dialect, which gets it back unchanged; it may have a prefix before the agent's name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class AgentPlay:
    """
    A piece of audio with its own options.

    Attributes:
        audio: In the encoding of the stream.
        mark: Mark set after the audio.
        replaces: True to clear the audio that was not played yet first.
    """

    audio: bytes
    mark: str | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class AgentClearMarks:
    """The agent clears the marks with a name prefix, and keeps the audio."""

    prefix: str = ""


@dataclass(frozen=True, slots=True)
class AgentClear:
    """The agent clears the audio that was not played yet."""


@dataclass(frozen=True, slots=True)
class AgentPause:
    """The agent stops the playout of its audio, which is kept, or continues it."""

    active: bool


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The agent asks for the state of the playout queue."""


@dataclass(frozen=True, slots=True)
class AgentDtmf:
    """The agent sends DTMF digits; `w` in the digits pauses 500 ms, `W` one second."""

    digits: str
    duration_ms: int = 160
    gap_ms: int = 80


@dataclass(frozen=True, slots=True)
class AgentHangup:
    """
    The agent ends its stream, after the queued audio if `drain`.

    With `ends_call` the call ends too, whatever would follow the stream.
    """

    drain: bool = True
    reason: str = "completed"
    ends_call: bool = False


@dataclass(frozen=True, slots=True)
class AgentTransfer:
    """The agent transfers the caller; `to` is a number, or a `sip:` or `tel:` address."""

    to: str
    mode: TransferMode = "bridge"
    caller_id: str | None = None
    timeout_s: int = 30
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AgentHold:
    """The agent puts the caller on hold, or resumes."""

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
    A piece of the call's transcript; times are in milliseconds since the call was answered.

    Attributes:
        role: The speaker: the agent, or the party it talks with.
        final: True if the words will not change any more.
    """

    role: TranscriptRole
    text: str = field(repr=False)
    final: bool = True
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AgentReply:
    """Frames that the vendor of a speech model gets in answer to one of its own."""

    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AgentReady:
    """The vendor of a speech model has accepted the session: audio may flow."""


@dataclass(frozen=True, slots=True)
class AgentInterrupted:
    """The party speaks: what it has not heard yet is dropped, and the model is notified of what was heard."""


@dataclass(frozen=True, slots=True)
class AgentToolCall:
    """
    A speech model uses a tool.

    Attributes:
        call_id: The vendor's name of this use, for the result.
        arguments: JSON text as the vendor sent it, unchecked.
    """

    call_id: str
    name: str
    arguments: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """Units that the vendor counted, by name, since the last report."""

    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class AgentFailed:
    """
    The vendor reports an error that ends the session.

    Attributes:
        code: The vendor's code.
        message: Its text for people.
        may_continue: True if another session may continue this one, as after the longest time of one.
    """

    code: str
    message: str
    may_continue: bool = False


@dataclass(frozen=True, slots=True)
class AgentBatch:
    """Several commands, and audio as plain bytes, of one frame; in order."""

    parts: tuple[bytes | AgentCommand, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentMarkReached:
    """The agent was told that the audio before its mark was played, or cleared."""

    name: str
    cleared: bool = False


@dataclass(frozen=True, slots=True)
class AgentClosed:
    """
    The socket closed without a stop of ours.

    Attributes:
        code: Close code (RFC 6455 7.4); 1006 when the connection broke without one.
        abnormal: True if the stream failed and may be reconnected; otherwise the call ends.
        drain: True if the queued audio should still be played to the caller.
        reason: Text for a log; may be the agent's.
        error: Error of the vendor of a speech model that ended the session, if it sent one.
    """

    code: int
    abnormal: bool
    drain: bool = False
    reason: str = ""
    error: AgentFailed | None = None


AgentCommand = (
    AgentMark
    | AgentClear
    | AgentClearMarks
    | AgentPlay
    | AgentPause
    | AgentStatus
    | AgentDtmf
    | AgentHangup
    | AgentTransfer
    | AgentHold
    | AgentMute
    | AgentRecord
    | AgentTranscript
    | AgentReply
    | AgentReady
    | AgentInterrupted
    | AgentToolCall
    | AgentUsage
    | AgentFailed
    | AgentBatch
)
AgentEvent = AgentCommand | AgentMarkReached | AgentClosed


def closed_by_agent(code: int, reason: str = "") -> AgentClosed:
    """
    Evaluate a close frame of the agent.

    1000 and a frame without a code end the call once its queue is played; 4000 to 4099 end it at once.
    Other application codes (3000 to 4999) end it like 1000. All other codes are failures: the agent shuts
    down, crashed, or could not understand us.
    """
    code = code or _NO_CODE
    if 4000 <= code <= 4099:
        return AgentClosed(code, abnormal=False, drain=False, reason=reason)
    if code in (1000, _NO_CODE) or 3000 <= code <= 4999:
        return AgentClosed(code, abnormal=False, drain=True, reason=reason)
    return AgentClosed(code, abnormal=True, drain=False, reason=reason)


# --- errors -------------------------------------------------------------------------------------------------


ConnectFailure = Literal[
    "dns", "connect", "tls", "http_status", "timeout", "protocol", "forbidden", "rejected", "key"
]


class StreamSetupError(Exception):
    """
    An invalid description of a stream.

    Attributes:
        field: Name of the wrong field of the request.
        reason: The fault, or the requirement.
        faults: By the name of each wrong field, its fault; this one first.
    """

    def __init__(self, field: str, reason: str, faults: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.faults = faults or {field: reason}


class StreamConnectError(Exception):
    """
    The socket to the agent could not be opened.

    Attributes:
        reason: Kind of the last failure.
        http_status: Status of the answer if it was not 101, or None.
        attempts: Number of connection attempts.
        error: Error of the vendor of a speech model, if it sent one.
    """

    def __init__(
        self,
        reason: ConnectFailure,
        http_status: int | None = None,
        attempts: int = 0,
        detail: str = "",
        error: AgentFailed | None = None,
    ) -> None:
        status = f" {http_status}" if http_status is not None else ""
        super().__init__(f"{reason}{status}{': ' if detail else ''}{detail}")
        self.reason: ConnectFailure = reason
        self.http_status = http_status
        self.attempts = attempts
        self.detail = detail
        self.error = error


class CommandError(Exception):
    """
    An invalid frame from the agent, which gets an `error` event.

    Attributes:
        code: Code of that event.
        ref: Event name of the agent's frame, if readable.
        counts: True if the frame counts towards the limit on malformed frames.
    """

    def __init__(
        self, message: str, *, code: str = "invalid_command", ref: str | None = None, counts: bool = True
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.ref = ref
        self.counts = counts
