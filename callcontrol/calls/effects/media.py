"""Effects on the media of the legs."""

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from callcontrol.calls.conference_room import MemberTerms
from callcontrol.calls.effects import Effect
from callcontrol.ids import LegId
from media.audio import Sound
from sip.values import frozen


@frozen
class ConnectMedia(Effect):
    """
    Apply the SDP answer of a party.

    ``MediaConnected`` or ``LegRefused`` follows. Neither does for an early one (in a provisional response):
    the final answer decides.
    """

    leg: LegId
    body: bytes
    early: bool = False


@frozen
class AnswerOffer(Effect):
    """Answer a party's new offer without the other party: apply it, or reject it and change nothing."""

    leg: LegId
    body: bytes


@frozen
class CloseMedia(Effect):
    """Free the leg's RTP stream; ``RecordingEnded`` still follows when it was being recorded."""

    leg: LegId


@frozen
class LinkMedia(Effect):
    """Link the audio of two legs."""

    leg: LegId
    other: LegId


@frozen
class MuteLeg(Effect):
    """Mute or unmute what a party says, and what it hears."""

    leg: LegId
    says: bool
    hears: bool


@frozen
class PlayAudio(Effect):
    """Play a prompt or a WAV by its URL; ``PlaybackEnded`` of the same ``turn`` follows."""

    leg: LegId
    url: str
    loops: int = 1
    turn: int = 0


@frozen
class PlaySounds(Effect):
    """
    Play sounds in a row; ``PlaybackEnded`` of the same ``turn`` follows, unless they are stopped.

    The sounds may be a secret.
    """

    leg: LegId
    sounds: Sequence[Sound] = field(repr=False)
    turn: int = 0


@frozen
class Speak(Effect):
    """
    Speak a text; ``PlaybackEnded`` of the same ``turn`` follows, unless it is stopped.

    A text that cannot be spoken ends at once with a problem.
    """

    leg: LegId
    text: str = field(repr=False)
    language: str
    turn: int = 0
    voice: str | None = None


@frozen
class PlayTrack(Effect):
    """
    Play on a track of the leg, instead of what plays there, beside everything else that its party hears.

    The sound is the one at ``url``, as in ``PlayAudio``, or ``text`` in ``language``. ``TrackFailed`` follows
    when it is not available.
    """

    leg: LegId
    track: int
    url: str | None = None
    text: str | None = field(default=None, repr=False)
    language: str = ""
    voice: str | None = None
    loop: bool = False
    gain_db: float = 0.0


@frozen
class StopTrack(Effect):
    """Stop what plays on a track of the leg."""

    leg: LegId
    track: int


@frozen
class Recognise(Effect):
    """
    Recognise what the party says; ``WordsHeard`` follow until ``StopRecognising``.

    Nothing follows if this server recognises no speech, or cannot.
    """

    leg: LegId
    language: str


@frozen
class StopRecognising(Effect):
    """Recognise no more."""

    leg: LegId


@frozen
class TranscribeLeg(Effect):
    """
    Recognise what the party says, beside all else that is done with its audio, as run ``number``.

    ``SentenceHeard`` follows for each sentence, and ``TranscriptionEnded`` at the end, also at once.
    """

    leg: LegId
    number: int
    language: str


@frozen
class EndTranscription(Effect):
    """End a run of ``TranscribeLeg``; the last sentence may follow within seconds."""

    number: int


@frozen
class DetectSpeech(Effect):
    """Listen for the party's voice; ``SpeechStarted`` and ``SpeechEnded`` follow, until ``StopSpeech``."""

    leg: LegId


@frozen
class StopSpeech(Effect):
    """Stop listening for the party's voice."""

    leg: LegId


@frozen
class FillSilence(Effect):
    """Play hold music, or comfort noise, to a party while its agent is silent; None stops it."""

    leg: LegId
    sound: Literal["music", "noise"] | None


@frozen
class PlayRingback(Effect):
    """Play the ringing tone to an answered party until ``StopAudio``."""

    leg: LegId


@frozen
class StopAudio(Effect):
    """Stop what is being played to the leg."""

    leg: LegId


@frozen
class SendDigits(Effect):
    """
    Send DTMF digits in the way of the leg's trunk, in RTP or in INFO; ``DigitsSent`` follows.

    ``by_api`` is True when no step of the plan waits for them.
    """

    leg: LegId
    digits: str
    duration_ms: int = 160
    gap_ms: int = 80
    by_api: bool = False


@frozen
class RelayDigit(Effect):
    """Forward a digit that came in RTP, where the relay does not: into INFO, and between its threads."""

    leg: LegId
    digit: str
    duration_ms: int


@frozen
class StartRecording(Effect):
    """Record the leg, what it says and what it hears, into the recording of the call."""

    leg: LegId
    channels: int = 2


@frozen
class ControlRecording(Effect):
    """Pause, resume or complete the recording."""

    action: Literal["pause", "resume", "stop"]


@frozen
class StartMessage(Effect):
    """
    Record what the party of a leg says into a file of its own; ``MessageEnded`` of that ``number`` follows.

    It also follows when the leg is closed, or the message reaches ``max_length_s``.
    """

    leg: LegId
    number: int
    max_length_s: float


@frozen
class StopMessage(Effect):
    """Complete a message."""

    number: int


@frozen
class DropMessage(Effect):
    """Delete the file of a discarded message."""

    path: str


@frozen
class DetectMachine(Effect):
    """Detect who answered; ``MachineDetected`` follows, and ``GreetingOver`` when it is a machine."""

    leg: LegId


@frozen
class StopDetecting(Effect):
    """Stop the detection of who answered."""

    leg: LegId


@frozen
class EnterConference(Effect):
    """
    Add a leg to a conference of the account, unless it has ``max_members`` already.

    ``ConferenceEntered`` or ``ConferenceRefused`` follows, later ``ConferenceBegan`` for a leg that waits,
    and ``ConferenceOver`` when the conference is over for all.
    """

    leg: LegId
    name: str
    terms: MemberTerms
    max_members: int


@frozen
class LeaveConference(Effect):
    """Remove a leg from its conference, if it is in one."""

    leg: LegId
