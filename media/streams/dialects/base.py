"""Base class of the stream protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from media.streams.audio_event import Envelope
from media.streams.conversion import AudioConverter
from media.streams.model import (
    AgentCommand,
    AgentDtmf,
    AgentHold,
    AgentMute,
    AgentRecord,
    CommandError,
    Encoding,
    StreamSetup,
    Track,
)

# Places in a frame, filled in when it is written to the socket: number of the frame, number of the piece of
# audio on its track, time of the audio in ms, and the audio in base64. No JSON holds these characters.
NUMBER, CHUNK, TIME, AUDIO = "\x01", "\x02", "\x03", "\x04"


class Dialect(ABC):
    """
    Encoder and decoder of the frames of one stream.

    Frames are text, except audio frames if `binary_audio` is set. A method returns None if the dialect has no
    such frame. Numbered frames are numbered in the order of writing, so each must be sent, in that order.
    After `leave_places`, whoever writes to the socket numbers them, and writes audio by `audio_template`.

    Attributes:
        formats: Supported encodings and rates; the first encoding of a rate is its default.
        binary_audio: True if audio is sent in binary frames, both ways.
        both_tracks: True if it can distinguish the party's audio from the audio the party hears.
        subprotocols: Offered in the upgrade request.
        schemes: Schemes of the URLs of its agents.
        levels_ms: Lengths of the playout queue at which every agent is told to pause and to resume; None if
            only those are told that requested it.
    """

    name: ClassVar[str]
    formats: ClassVar[tuple[tuple[Encoding, int], ...]]
    binary_audio: ClassVar[bool] = False
    both_tracks: ClassVar[bool] = True
    subprotocols: ClassVar[tuple[str, ...]] = ()
    schemes: ClassVar[tuple[str, ...]] = ("ws", "wss")
    levels_ms: ClassVar[tuple[int, int] | None] = None

    __slots__ = ("_now_ms", "_places", "_setup")

    def __init__(self, setup: StreamSetup) -> None:
        self._setup = setup
        self._places = False
        self._now_ms = 0

    def connected(self) -> bytes | None:
        """Write the first frame on the socket."""
        return None

    @abstractmethod
    def start(self, unix_ms: int = 0) -> bytes | None:
        """Write the frame that describes the call and its audio format; `unix_ms` is the current time."""

    @property
    def envelope(self) -> Envelope | None:
        """
        Text around the base64 of the agent's audio, in frames that differ in nothing else, or a description.

        None while that is not known. The same object until it changes.
        """
        return None

    def played(self, size_bytes: int) -> None:
        """Note how much audio was played by the envelope since the last message."""
        return None

    @property
    def audio_converter(self) -> AudioConverter | None:
        """Converter of audio to the agent, for whoever writes it by `audio_template`; None if unchanged."""
        return None

    def leave_places(self) -> None:
        """Leave a place for the number of a frame from now on."""
        self._places = True

    def tell_time(self, now_ms: int) -> None:
        """Set the time of the audio, for frames that state it; `media` sets it too."""
        self._now_ms = now_ms

    def audio_template(self, track: Track) -> tuple[bytes, int]:
        """
        Return a frame of audio with its places, and the time in ms to count from, once `start` was written.

        Empty where audio is binary.
        """
        return b"", 0

    @abstractmethod
    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio that ends `timestamp_ms` after the start of the stream."""

    @abstractmethod
    def mark(self, name: str, *, cleared: bool) -> bytes | None:
        """Write that the audio before a mark was played or cleared; `name` is that of the command."""

    def cleared(self) -> bytes | None:
        """Write that the audio was cleared, in dialects that report it separately from the marks."""
        return None

    @abstractmethod
    def dtmf(self, digit: str, duration_ms: int) -> bytes | None:
        """Write that the party pressed a DTMF key."""

    @abstractmethod
    def event(self, event: str, key: str, body: Mapping[str, Any]) -> bytes | None:
        """Write an event that this server adds to the dialect, with its body under `key`."""

    @abstractmethod
    def stop(self, reason: str, detail: str) -> bytes | None:
        """Write the last frame."""

    @abstractmethod
    def decode(self, data: bytes) -> bytes | AgentCommand:
        """
        Parse a text frame of the agent; audio is returned as plain bytes, to save one object per frame.

        Raises:
            CommandError: The frame is unknown, or its body is wrong.
        """

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """
        Parse a binary frame of the agent.

        Raises:
            CommandError: The frame is invalid.
        """
        raise CommandError(f"The {self.name} protocol has no binary frames", code="binary_frame")

    def accepted(self, command: AgentDtmf | AgentHold | AgentMute | AgentRecord) -> bytes | None:
        """Write that a command was executed."""
        match command:
            case AgentDtmf(digits=digits):
                return self.event("dtmf_sent", "dtmf", {"digits": digits})
            case AgentHold(active=active):
                return self.event("hold", "hold", {"active": active})
            case AgentMute(active=active):
                return self.event("mute", "mute", {"active": active})
            case AgentRecord(action=action):
                return self.event("record", "record", {"action": action})

    def transfer(self, status: str, sip_status: int | None, hangup_cause: str | None) -> bytes | None:
        """Write the status of a transfer."""
        body: dict[str, Any] = {"status": status}
        if sip_status is not None:
            body["sip_status"] = sip_status
        if hangup_cause is not None:
            body["hangup_cause"] = hangup_cause
        return self.event("transfer", "transfer", body)

    def error(self, code: str, message: str, ref: str | None = None) -> bytes | None:
        """Write an error."""
        body = {"code": code, "message": message}
        if ref is not None:
            body["ref"] = ref
        return self.event("error", "error", body)

    def speech(self, active: bool) -> bytes | None:
        """Write that the party started or stopped speaking; only if the agent requested it."""
        return self.event("speech", "speech", {"state": "start" if active else "stop"})

    def buffer(self, full: bool, level_ms: int) -> bytes | None:
        """Write that the playout queue is nearly full, or has room again; only if the agent requested it."""
        return self.event("buffer", "buffer", {"state": "xoff" if full else "xon", "level_ms": level_ms})

    def status(self, queued_ms: int, paused: bool) -> bytes | None:
        """Write the state of the playout queue, in dialects whose agents can ask for it."""
        return None

    def held(self, active: bool) -> bytes | None:
        """Write that the party put us on hold, or resumed; only if the agent requested it."""
        return self.event("hold", "hold", {"active": active})
