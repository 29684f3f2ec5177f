"""What our own side asks of a call that is up."""

from dataclasses import dataclass
from typing import Literal

from callcontrol.calls.hangup_cause import NORMAL_CLEARING, HangupCause
from callcontrol.calls.plan import WebhookMethod
from callcontrol.models import CallStatus, HangupSource
from callcontrol.routing.party import Party

PartyName = Literal["a", "b"]
"""``a`` is the first party of a call, ``b`` whom it talks to, unless that is an agent."""

ListenStatus = Literal["pause", "silence", "resume"]
RecordingAction = Literal["start", "stop", "pause", "resume"]


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
