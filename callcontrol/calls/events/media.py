"""Events of a leg's media."""

from dataclasses import field
from typing import Literal

from callcontrol.calls.events import Event
from callcontrol.ids import LegId
from sip.values import frozen


@frozen
class DigitReceived(Event):
    """A key was pressed; ``in_band`` is False when it came in signalling (SIP INFO), past the RTP relay."""

    leg: LegId
    digit: str
    duration_ms: int
    in_band: bool = True


@frozen
class PlaybackEnded(Event):
    """Playback of ``PlayAudio``, ``PlaySounds`` or ``Speak`` has ended, or is not possible."""

    leg: LegId
    problem: str | None = None
    turn: int = 0


@frozen
class TrackFailed(Event):
    """The sound at ``url``, or a text without one, could not be played on a track."""

    leg: LegId
    problem: str
    url: str | None = None


@frozen
class SpeechStarted(Event):
    """The party has begun to talk."""

    leg: LegId


@frozen
class SpeechEnded(Event):
    """The party is silent, after having talked for ``duration_ms``."""

    leg: LegId
    duration_ms: int


@frozen
class WordsHeard(Event):
    """The party says this; ``final`` when it has finished, with the recogniser's ``confidence``, 0 to 1."""

    leg: LegId
    text: str = field(repr=False)
    final: bool
    confidence: float = 0.0


@frozen
class SentenceHeard(Event):
    """
    The party of run ``number`` of ``TranscribeLeg`` has finished a sentence.

    ``duration_ms`` is the time since its first words were recognised.
    """

    number: int
    text: str = field(repr=False)
    confidence: float
    duration_ms: int


@frozen
class TranscriptionEnded(Event):
    """A run of ``TranscribeLeg`` sends no more, or cannot begin: nothing here recognises speech."""

    number: int


@frozen
class LegHeld(Event):
    """The party has put us on hold, or resumed, by a SIP offer."""

    leg: LegId
    active: bool


@frozen
class DigitsSent(Event):
    """All digits of a ``SendDigits`` are sent, or cannot be sent; ``by_api`` as there."""

    leg: LegId
    digits: str
    problem: str | None = None
    by_api: bool = False


@frozen
class PlayoutDrained(Event):
    """All queued audio of the agent was played."""

    leg: LegId


@frozen
class MediaSilent(Event):
    """A party that may send has sent no RTP for too long."""

    leg: LegId
    silent_s: float


@frozen
class RecordingEnded(Event):
    """The recording is complete on disk, or was given up."""

    leg: LegId
    path: str
    duration_ms: int
    problem: str | None = None


@frozen
class MessageEnded(Event):
    """A message is complete on disk, or was given up; ``number`` is that of its ``StartMessage``."""

    number: int
    message_sid: str
    path: str
    duration_ms: int
    problem: str | None = None


@frozen
class MachineDetected(Event):
    """Detection result: ``human``, ``machine`` or ``unknown``; its reason, and the time it took."""

    leg: LegId
    answered_by: str
    reason: str
    took_ms: int


@frozen
class GreetingOver(Event):
    """A machine has ended its greeting and records; ``reason`` is ``beep``, ``silence`` or ``timeout``."""

    leg: LegId
    reason: str
    at_ms: int


@frozen
class ConferenceEntered(Event):
    """The leg has joined; it ``waits`` when the conference has not begun."""

    leg: LegId
    waits: bool


@frozen
class ConferenceBegan(Event):
    """The conference that the leg waits for has begun."""

    leg: LegId


@frozen
class ConferenceRefused(Event):
    """
    The leg may not join: the conference is full, or the media engine refused it.

    With ``unavailable`` the conference is on a node that cannot be reached, or no node could be chosen.
    """

    leg: LegId
    problem: Literal["full", "media", "unavailable"]


@frozen
class ConferenceOver(Event):
    """The conference is over; the leg has left it."""

    leg: LegId
