"""What the media of the legs is to do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from callcontrol.ids import LegId
from media.audio import Sound


@dataclass(frozen=True, slots=True)
class ConnectMedia:
    """
    Apply the SDP answer of a party.

    ``MediaConnected`` or ``LegRefused`` follows. Neither does for an early one (in a provisional response):
    the final answer decides.
    """

    leg: LegId
    body: bytes
    early: bool = False


@dataclass(frozen=True, slots=True)
class AnswerOffer:
    """Answer a party's new offer by ourselves: apply it, or refuse it and leave everything as it was."""

    leg: LegId
    body: bytes


@dataclass(frozen=True, slots=True)
class CloseMedia:
    """Free the leg's RTP stream; ``RecordingEnded`` still follows when it was being recorded."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class LinkMedia:
    """Let the two legs hear each other."""

    leg: LegId
    other: LegId


@dataclass(frozen=True, slots=True)
class MuteLeg:
    """
    Let nobody hear what a party says, or the party hear nobody, or undo that.

    What is None stays as it is.
    """

    leg: LegId
    says: bool | None = None
    hears: bool | None = None


@dataclass(frozen=True, slots=True)
class PlayAudio:
    """Play a prompt or a WAV by its URL; ``PlaybackEnded`` of the same ``turn`` follows."""

    leg: LegId
    url: str
    loops: int = 1
    turn: int = 0


@dataclass(frozen=True, slots=True)
class PlaySounds:
    """
    Play sounds in a row; ``PlaybackEnded`` of the same ``turn`` follows, unless they are stopped.

    They may be a secret that is spoken.
    """

    leg: LegId
    sounds: Sequence[Sound] = field(repr=False)
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Speak:
    """
    Speak a text; ``PlaybackEnded`` of the same ``turn`` follows, unless it is stopped.

    A text that cannot be spoken ends at once with a problem.
    """

    leg: LegId
    text: str = field(repr=False)
    language: str
    turn: int = 0


@dataclass(frozen=True, slots=True)
class DetectSpeech:
    """Listen for the party's voice; ``SpeechStarted`` and ``SpeechEnded`` follow, until ``StopSpeech``."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class StopSpeech:
    """Listen no more for the party's voice."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class FillSilence:
    """Let a party hear hold music, or the soft noise of a line, whenever its agent says nothing."""

    leg: LegId
    sound: Literal["music", "noise"] | None


@dataclass(frozen=True, slots=True)
class PlayRingback:
    """Let a party that is already connected hear ringing until ``StopAudio``."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class StopAudio:
    """Stop what is being played to the leg."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class SendDigits:
    """
    Send telephone digits as the leg's trunk takes them, in RTP or in INFO; ``DigitsSent`` follows.

    ``by_api`` says that no step of the plan waits for them.
    """

    leg: LegId
    digits: str
    duration_ms: int = 160
    gap_ms: int = 80
    by_api: bool = False


@dataclass(frozen=True, slots=True)
class RelayDigit:
    """Pass on a digit that came in RTP, unless the relay has: not into INFO, nor between its threads."""

    leg: LegId
    digit: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class StartRecording:
    """Record the leg, what it says and what it hears, into the recording of the call."""

    leg: LegId
    channels: int = 2


@dataclass(frozen=True, slots=True)
class ControlRecording:
    """Leave out what passes from here on, take it in again, or complete the recording."""

    action: Literal["pause", "resume", "stop"]


@dataclass(frozen=True, slots=True)
class StartMessage:
    """
    Record what the party of a leg says into a file of its own; ``MessageEnded`` of that ``number`` follows.

    It does so also when the leg is closed, or the message is as long as it may be.
    """

    leg: LegId
    number: int
    max_length_s: float


@dataclass(frozen=True, slots=True)
class StopMessage:
    """Complete a message."""

    number: int


@dataclass(frozen=True, slots=True)
class DropMessage:
    """Delete the file of a message that nobody is to have."""

    path: str


@dataclass(frozen=True, slots=True)
class DetectMachine:
    """Listen for who answered; ``MachineDetected`` follows, and ``GreetingOver`` when it is a machine."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class StopDetecting:
    """Listen no more for who answered."""

    leg: LegId
