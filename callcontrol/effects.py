"""
What a call machine wants done: the effects that ``callcontrol.aio`` performs, in the order given.

An effect that can fail comes back as an event (``LegRefused``, ``RouteRefused``, ``AgentRefused``, ...); none
returns a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from callcontrol.events import ListenStatus, Timer
from callcontrol.hangup import HangupCause
from callcontrol.ids import CallSid, LegId
from callcontrol.plan import Party, WebhookMethod
from callcontrol.routing import Attempt
from media.audio import Sound
from media.streams import StreamChoice
from sip import Replaces

# --- signalling ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeOffer:
    """Give the caller's leg an RTP stream and take its offer; ``OfferTaken`` or ``LegRefused`` follows."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class DialLeg:
    """Give the leg an RTP stream and send its INVITE; ``like`` names the leg whose codec to prefer."""

    leg: LegId
    attempt: Attempt
    party: Party
    like: LegId | None = None


@dataclass(frozen=True, slots=True)
class RingLeg:
    """Send a provisional response to the caller, with our SDP answer when media already flows."""

    leg: LegId
    status: int = 180
    early_media: bool = False


@dataclass(frozen=True, slots=True)
class AnswerLeg:
    """Answer the caller."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class RejectLeg:
    """Refuse the caller with a final response."""

    leg: LegId
    status: int
    cause: HangupCause


@dataclass(frozen=True, slots=True)
class HangUpLeg:
    """End the leg from our side: BYE when it is answered, CANCEL when we dialled it and it is not."""

    leg: LegId
    cause: HangupCause


# --- media --------------------------------------------------------------------------------------------------


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
    """Play a prompt or a WAV by its URL; ``PlaybackEnded`` follows."""

    leg: LegId
    url: str
    loops: int = 1


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
class DetectMachine:
    """Listen for who answered; ``MachineDetected`` follows, and ``GreetingOver`` when it is a machine."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class StopDetecting:
    """Listen no more for who answered."""

    leg: LegId


# --- the agent's stream -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenAgent:
    """Connect to the agent; ``AgentOpened`` or ``AgentRefused`` follows."""

    choice: StreamChoice
    stream_sid: str


@dataclass(frozen=True, slots=True)
class StartAgent:
    """Let audio flow between the leg and the agent."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class ListenAgent:
    """Send the agent what the party says, silence instead of it, or nothing."""

    status: ListenStatus


@dataclass(frozen=True, slots=True)
class DrainAgent:
    """Take no more audio from the agent; ``PlayoutDrained`` follows when the queued audio is played."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class StopAgent:
    """Tell the agent why its stream ends and close it; audio not yet played is dropped."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class TellAgentDigit:
    """Pass a pressed key to the agent."""

    digit: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class TellAgentDigitsSent:
    """Tell the agent that the digits it asked for are out."""

    digits: str


@dataclass(frozen=True, slots=True)
class TellAgentTransfer:
    """Tell the agent how its transfer goes: ``ringing``, ``answered`` or ``failed``."""

    status: str
    sip_status: int | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class TellAgentError:
    """Tell the agent that a command of its was refused."""

    code: str
    message: str
    ref: str


# --- transfers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AcceptTransfer:
    """Answer a party's REFER: its target is being called."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class RefuseTransfer:
    """Refuse a party's REFER."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class TellTransfer:
    """Tell a party how the transfer goes that it asked for; a final status is the last news."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class ReferLeg:
    """Ask a party to call someone else by itself; ``LegReferred`` follows, several times."""

    leg: LegId
    target: str


@dataclass(frozen=True, slots=True)
class MoveAgent:
    """Let the agent's audio flow to and from another leg."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class FindPartner:
    """Look for the call of ours that has a dialog; ``PartnerFound`` or ``PartnerMissing`` follows at once."""

    replaces: Replaces


@dataclass(frozen=True, slots=True)
class AskPartner:
    """Ask another call to give up a leg for ours; ``PartnerReady`` or ``PartnerRefused`` follows."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class AnswerPartner:
    """Tell a call that asked which leg of ours its party is joined with, None for none."""

    call_sid: CallSid
    leg: LegId | None


@dataclass(frozen=True, slots=True)
class LinkPartner:
    """Let a leg and one of another call hear each other; the end of either call ends the other."""

    leg: LegId
    call_sid: CallSid
    other: LegId


@dataclass(frozen=True, slots=True)
class PassDigit:
    """Tell the call that this one is joined with that a key was pressed."""

    digit: str
    duration_ms: int
    in_band: bool


@dataclass(frozen=True, slots=True)
class AdoptLeg:
    """Make the session of a caller that waits, known by ``token``, a leg of the call."""

    leg: LegId
    token: int


@dataclass(frozen=True, slots=True)
class RefuseReplacement:
    """Decline a caller that would take the place of a leg."""

    token: int


# --- instructions of the customer's server ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskWebhook:
    """
    Ask the customer's server what to do with the call.

    ``InstructionsReceived`` or ``InstructionsFailed`` of the same ``number`` follows. ``event`` is the word
    that tells the server why it is asked.
    """

    number: int
    url: str
    method: WebhookMethod
    event: str


@dataclass(frozen=True, slots=True)
class StopAsking:
    """Nobody waits any more for what a server answers; without effect when it has answered."""

    number: int


# --- routing, time, money, records --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindRoute:
    """Look for gateways to a party; ``RouteFound`` or ``RouteRefused`` follows at once."""

    party: Party


@dataclass(frozen=True, slots=True)
class RestGateway:
    """Leave a gateway alone for a while: it said so itself (Retry-After)."""

    gateway_sid: str
    rest_s: float


@dataclass(frozen=True, slots=True)
class Arm:
    """Start a timer, replacing the one that runs under the same name."""

    timer: Timer
    delay_s: float


@dataclass(frozen=True, slots=True)
class Disarm:
    """Stop a timer, if it runs."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class ExtendReserve:
    """Have the wallet hold a total for the call; ``ReserveExtended`` or ``ReserveRefused`` follows."""

    total_paise: int


@dataclass(frozen=True, slots=True)
class Save:
    """
    Write the record as it is now, together with an event for the customer if one is named.

    ``shown`` is the call as it was when the event came about, when it may have gone on since.
    """

    event: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Write the last state of the call, settle its reserve and publish ``call.completed``."""

    charge_paise: int


Effect = (
    TakeOffer
    | DialLeg
    | RingLeg
    | AnswerLeg
    | RejectLeg
    | HangUpLeg
    | ConnectMedia
    | AnswerOffer
    | CloseMedia
    | LinkMedia
    | MuteLeg
    | PlayAudio
    | PlaySounds
    | PlayRingback
    | StopAudio
    | SendDigits
    | RelayDigit
    | StartRecording
    | ControlRecording
    | DetectMachine
    | StopDetecting
    | OpenAgent
    | StartAgent
    | ListenAgent
    | DrainAgent
    | StopAgent
    | TellAgentDigit
    | TellAgentDigitsSent
    | TellAgentTransfer
    | TellAgentError
    | AcceptTransfer
    | RefuseTransfer
    | TellTransfer
    | ReferLeg
    | MoveAgent
    | FindPartner
    | AskPartner
    | AnswerPartner
    | LinkPartner
    | PassDigit
    | AdoptLeg
    | RefuseReplacement
    | AskWebhook
    | StopAsking
    | FindRoute
    | RestGateway
    | Arm
    | Disarm
    | ExtendReserve
    | Save
    | Finish
)
