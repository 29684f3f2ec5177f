"""What the media of a leg reports."""

from dataclasses import dataclass

from callcontrol.ids import LegId


@dataclass(frozen=True, slots=True)
class DigitReceived:
    """A key was pressed; ``in_band`` is False when it came in signalling (SIP INFO), past the RTP relay."""

    leg: LegId
    digit: str
    duration_ms: int
    in_band: bool = True


@dataclass(frozen=True, slots=True)
class PlaybackEnded:
    """What ``Play`` or ``PlaySounds`` asked for was played to its end, or could not be played."""

    leg: LegId
    problem: str | None = None
    turn: int = 0


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The party has begun to talk."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """The party has fallen silent after having talked for ``duration_ms``."""

    leg: LegId
    duration_ms: int


@dataclass(frozen=True, slots=True)
class LegHeld:
    """The party has put us on hold with its telephone, or takes us back."""

    leg: LegId
    active: bool


@dataclass(frozen=True, slots=True)
class DigitsSent:
    """All digits of a ``SendDigits`` are out, or cannot be sent; ``by_api`` as there."""

    leg: LegId
    digits: str
    problem: str | None = None
    by_api: bool = False


@dataclass(frozen=True, slots=True)
class PlayoutDrained:
    """Everything that the agent had queued was played."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class MediaSilent:
    """A party that may send has sent no RTP for too long."""

    leg: LegId
    silent_s: float


@dataclass(frozen=True, slots=True)
class RecordingEnded:
    """The recording is complete on disk, or was given up."""

    leg: LegId
    path: str
    duration_ms: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class MessageEnded:
    """A message is complete on disk, or was given up; ``number`` is that of its ``StartMessage``."""

    number: int
    message_sid: str
    path: str
    duration_ms: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class MachineDetected:
    """Who answered: ``human``, ``machine`` or ``unknown``; what told it, and how long that took."""

    leg: LegId
    answered_by: str
    reason: str
    took_ms: int


@dataclass(frozen=True, slots=True)
class GreetingOver:
    """A machine has said its greeting and records; ``reason`` is ``beep``, ``silence`` or ``timeout``."""

    leg: LegId
    reason: str
    at_ms: int
