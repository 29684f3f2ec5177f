"""
What happens to a call: the events its machine is fed with, one at a time and in order.

They come from SIP sessions, RTP streams, the agent's socket, the API, timers and the wallet, translated by
``callcontrol.aio``. SIP bodies pass through as they are; the machine never looks into them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Literal

from callcontrol.hangup import NORMAL_CLEARING, RECOVERY_ON_TIMER_EXPIRE, HangupCause
from callcontrol.ids import CallSid, LegId
from callcontrol.models import CallStatus, HangupSource
from callcontrol.plan import Party, Step, WebhookMethod
from callcontrol.routing import Attempt
from sip import Replaces, SipUri

PartyName = Literal["a", "b"]
"""``a`` is the first party of a call, ``b`` whom it talks to, unless that is an agent."""

ListenStatus = Literal["pause", "silence", "resume"]
RecordingAction = Literal["start", "stop", "pause", "resume"]


class Timer(IntEnum):
    """The timers of a call; each is armed at most once at any time."""

    RING = auto()
    PAUSE = auto()
    DRAIN = auto()
    TIME_LIMIT = auto()
    MONEY = auto()
    RECORDING = auto()
    TRANSFER = auto()


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that the machine armed has run out."""

    timer: Timer


# --- legs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfferTaken:
    """The caller's first offer is acceptable and has its RTP stream."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class LegProgress:
    """A provisional response above 100; a body means early media."""

    leg: LegId
    status: int
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class LegAnswered:
    """The party we dialled answered."""

    leg: LegId
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class LegConfirmed:
    """The caller acknowledged our answer; a body is the answer to our late offer."""

    leg: LegId
    body: bytes = b""


FailureKind = Literal["response", "timeout", "transport", "cancelled", "resolve", "full"]


@dataclass(frozen=True, slots=True)
class LegFailed:
    """
    A leg we dialled is over without an answer.

    ``kind`` is ``response`` for a final response and otherwise says why there was none; ``timeout`` means
    that nothing at all came back, ``full`` that the trunk's own limits left no room for it. ``cause`` is what
    the Reason header of the response added to its status.
    """

    leg: LegId
    status: int
    reason: str = ""
    kind: FailureKind = "response"
    retry_after_s: float | None = None
    cause: HangupCause | None = None


@dataclass(frozen=True, slots=True)
class LegCancelled:
    """The caller gave up before the answer; ``cause`` is what its Reason header said of that, if it did."""

    leg: LegId
    cause: HangupCause | None = None


@dataclass(frozen=True, slots=True)
class LegEnded:
    """
    An answered leg is over: the party hung up, or its signalling was lost (``clean`` is False).

    ``cause`` is what the party's Reason header said, if it did.
    """

    leg: LegId
    clean: bool = True
    cause: HangupCause | None = None

    @property
    def hangup_cause(self) -> HangupCause:
        """Why the call is over that ends with this leg."""
        if not self.clean:
            return RECOVERY_ON_TIMER_EXPIRE
        return self.cause or NORMAL_CLEARING


@dataclass(frozen=True, slots=True)
class LegOffered:
    """The party offers changed media (hold, resume, codec); an empty body asks for our offer."""

    leg: LegId
    body: bytes


@dataclass(frozen=True, slots=True)
class MediaConnected:
    """The party's answer is applied: audio may flow."""

    leg: LegId


MediaProblem = Literal["codec", "ports"]


@dataclass(frozen=True, slots=True)
class LegRefused:
    """The leg can have no media: nothing in common with its SDP, or no RTP port left."""

    leg: LegId
    problem: MediaProblem


# --- media --------------------------------------------------------------------------------------------------


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


# --- the agent's stream -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentOpened:
    """The agent took the connection."""


@dataclass(frozen=True, slots=True)
class AgentRefused:
    """The agent could not be reached within the connect budget; ``reason`` as in ``stream.failed``."""

    reason: str
    http_status: int | None = None
    attempts: int = 1


class AgentExit(Enum):
    """How an agent left its stream."""

    NORMAL = "normal"
    """It closed: what it has queued is played first."""
    AT_ONCE = "at_once"
    """It closed with a code of 4000 to 4099: nothing more is played."""
    LOST = "lost"
    """The connection broke."""


@dataclass(frozen=True, slots=True)
class AgentClosed:
    """The agent's connection is over."""

    exit: AgentExit
    code: int | None = None


@dataclass(frozen=True, slots=True)
class AgentHangup:
    """The agent asks to end the call, after its queued audio or at once."""

    drain: bool = True


@dataclass(frozen=True, slots=True)
class AgentDigits:
    """The agent asks to send digits to the caller."""

    digits: str
    duration_ms: int = 160
    gap_ms: int = 80


@dataclass(frozen=True, slots=True)
class AgentTransfer:
    """The agent asks to connect the caller to someone else."""

    to: str
    mode: str = "bridge"
    caller_id: str | None = None
    timeout_s: float = 30.0
    headers: tuple[tuple[str, str], ...] = ()


# --- transfers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransferRequested:
    """
    A party asks, by REFER, for the other one to be connected elsewhere.

    ``local`` says that the target names a host of ours; ``replaces`` is the dialog to take the place of.
    """

    leg: LegId
    target: SipUri
    replaces: Replaces | None = None
    local: bool = False


@dataclass(frozen=True, slots=True)
class LegReferred:
    """A party that we asked to call someone else tells how it goes; a final status is the last news."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class ReplacementCalled:
    """A caller wants the place of a leg (INVITE with Replaces); it waits under ``token``."""

    leg: LegId
    token: int
    caller: str = ""


@dataclass(frozen=True, slots=True)
class PartnerFound:
    """The dialog to replace is a leg of another call of the account."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerMissing:
    """The dialog to replace is no leg of any other call of the account."""


@dataclass(frozen=True, slots=True)
class JoinRequested:
    """Another call asks for the party that hears a leg of ours; that leg is to be given up."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerReady:
    """The other call has given up its leg: this party of it is to be joined with ours."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerRefused:
    """The other call cannot be joined now."""


@dataclass(frozen=True, slots=True)
class PartnerDigit:
    """The party of the call that this one is joined with pressed a key; see ``DigitReceived``."""

    digit: str
    duration_ms: int
    in_band: bool


@dataclass(frozen=True, slots=True)
class PartnerGone:
    """The call that this one is joined with is over."""


# --- instructions of the customer's server ------------------------------------------------------------------

InstructionProblem = Literal[
    "dns", "connect", "tls", "http_status", "timeout", "protocol", "instruction", "limit", "state"
]


@dataclass(frozen=True, slots=True)
class InstructionsReceived:
    """The customer's server said what to do with the call; without any step it has nothing to say."""

    number: int
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class InstructionsFailed:
    """
    The customer's server could not be asked, or its answer cannot be followed (``instruction``).

    ``message`` says for people what was wrong.
    """

    number: int
    reason: InstructionProblem
    message: str
    http_status: int | None = None
    attempts: int = 1


# --- from our own side --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RouteFound:
    """The gateways through which a party may be dialled, best first; never empty."""

    attempts: Sequence[Attempt]


@dataclass(frozen=True, slots=True)
class RouteRefused:
    """A party may not be dialled, or there is no gateway to it now."""

    cause: HangupCause
    message: str


@dataclass(frozen=True, slots=True)
class HangupRequested:
    """
    Someone on our side ends the call: the API, or the process as it stops.

    ``unanswered`` is the status of a call that the API ends before it was answered.
    """

    source: HangupSource = "api"
    cause: HangupCause = NORMAL_CLEARING
    unanswered: CallStatus = CallStatus.CANCELED


@dataclass(frozen=True, slots=True)
class ConsultRequested:
    """The API wants the customer's server asked anew; the call goes on as it does until that has answered."""

    url: str
    method: WebhookMethod = "POST"


@dataclass(frozen=True, slots=True)
class MuteRequested:
    """
    The API wants a party not to be heard, or not to hear, or the contrary.

    ``says`` is about what the party says, ``hears`` about what it hears; what is None stays as it is.
    """

    party: PartyName
    says: bool | None = None
    hears: bool | None = None


@dataclass(frozen=True, slots=True)
class ListenRequested:
    """The API wants the agent to hear the party, to hear silence instead, or to be sent nothing."""

    status: ListenStatus


@dataclass(frozen=True, slots=True)
class RecordingRequested:
    """The API wants the call recorded, or its recording paused, resumed or completed."""

    action: RecordingAction
    channels: int = 2


@dataclass(frozen=True, slots=True)
class DigitsRequested:
    """The API wants digits sent to a party."""

    party: PartyName
    digits: str


@dataclass(frozen=True, slots=True)
class TransferOrdered:
    """
    The API wants a party put through to someone else.

    Whoever it talks to until then, the other party or an agent, leaves when that one answers.
    """

    party: PartyName
    to: Party


@dataclass(frozen=True, slots=True)
class TimeLimitRequested:
    """The API sets another time limit, counted from the answer."""

    limit_s: float


@dataclass(frozen=True, slots=True)
class ReserveExtended:
    """The wallet now holds this much for the call."""

    total_paise: int


@dataclass(frozen=True, slots=True)
class ReserveRefused:
    """The wallet cannot hold more for the call."""


LiveOrder = (
    HangupRequested
    | MuteRequested
    | ListenRequested
    | RecordingRequested
    | DigitsRequested
    | TransferOrdered
    | TimeLimitRequested
    | ConsultRequested
)
"""What our own side asks of a call that is up."""

Event = (
    TimerFired
    | OfferTaken
    | LegProgress
    | LegAnswered
    | LegConfirmed
    | LegFailed
    | LegCancelled
    | LegEnded
    | LegOffered
    | MediaConnected
    | LegRefused
    | DigitReceived
    | PlaybackEnded
    | DigitsSent
    | PlayoutDrained
    | MediaSilent
    | RecordingEnded
    | AgentOpened
    | AgentRefused
    | AgentClosed
    | AgentHangup
    | AgentDigits
    | AgentTransfer
    | TransferRequested
    | LegReferred
    | ReplacementCalled
    | PartnerFound
    | PartnerMissing
    | JoinRequested
    | PartnerReady
    | PartnerRefused
    | PartnerDigit
    | PartnerGone
    | RouteFound
    | RouteRefused
    | MachineDetected
    | GreetingOver
    | InstructionsReceived
    | InstructionsFailed
    | LiveOrder
    | ReserveExtended
    | ReserveRefused
)
