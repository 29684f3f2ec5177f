"""Commands of the API and of the server to an active call."""

from dataclasses import dataclass
from typing import Literal

from callcontrol.calls.hangup_cause import NORMAL_CLEARING, HangupCause
from callcontrol.calls.plan import WebhookMethod
from callcontrol.models import CallStatus, HangupSource
from callcontrol.routing.party import Party

PartyName = Literal["a", "b"]
"""``a`` is the first party of a call, ``b`` the party it talks to, unless that is an agent."""

ListenStatus = Literal["pause", "silence", "resume"]
RecordingAction = Literal["start", "stop", "pause", "resume"]


@dataclass(frozen=True, slots=True)
class HangupRequested:
    """
    End the call: ordered by the API, by a stopping process, or after an internal error.

    ``unanswered`` is the status of a call that the API ends before it was answered.
    """

    source: HangupSource = "api"
    cause: HangupCause = NORMAL_CLEARING
    unanswered: CallStatus = CallStatus.CANCELED


@dataclass(frozen=True, slots=True)
class ConsultRequested:
    """Ask the customer's server for new instructions; the call goes on until it has answered."""

    url: str
    method: WebhookMethod = "POST"


@dataclass(frozen=True, slots=True)
class MuteRequested:
    """
    Mute or unmute a party.

    ``says`` is about what the party says, ``hears`` about what it hears; None leaves the state unchanged.
    """

    party: PartyName
    says: bool | None = None
    hears: bool | None = None


@dataclass(frozen=True, slots=True)
class ListenRequested:
    """Set what the agent hears: the party, silence, or nothing."""

    status: ListenStatus


@dataclass(frozen=True, slots=True)
class RecordingRequested:
    """Start, pause, resume or complete the recording of the call."""

    action: RecordingAction
    channels: int = 2


@dataclass(frozen=True, slots=True)
class DigitsRequested:
    """Send digits to a party."""

    party: PartyName
    digits: str


@dataclass(frozen=True, slots=True)
class TransferOrdered:
    """
    Transfer a party to another one.

    The present peer, the other party or an agent, leaves when the new one answers.
    """

    party: PartyName
    to: Party


@dataclass(frozen=True, slots=True)
class TimeLimitRequested:
    """Set another time limit, counted from the answer."""

    limit_s: float


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
"""Any command to an active call."""
