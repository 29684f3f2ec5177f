"""Commands of the API and of the server to an active call."""

from collections.abc import Sequence
from typing import Literal

from callcontrol.calls.events import Event
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, HangupCause
from callcontrol.calls.plan import Dub, RecordingAction, Step, WebhookFormat, WebhookMethod
from callcontrol.models import CallStatus, HangupSource
from callcontrol.models.parties import Party
from sip.values import frozen

PartyName = Literal["a", "b"]
"""``a`` is the first party of a call, ``b`` the party it talks to, unless that is an agent."""

MuteDirection = Literal["says", "hears", "both"]
"""Direction of a mute: the party is not heard, does not hear, or both."""

ListenStatus = Literal["pause", "silence", "resume"]


@frozen
class HangupRequested(Event):
    """
    End the call: ordered by the API, by a stopping process, or after an internal error.

    ``unanswered`` is the status of a call that the API ends before it was answered.
    """

    source: HangupSource = "api"
    cause: HangupCause = NORMAL_CLEARING
    unanswered: CallStatus = CallStatus.CANCELED


@frozen
class RedirectRequested(Event):
    """Ask the customer's server for new instructions; the call goes on until it has answered."""

    url: str
    method: WebhookMethod = "POST"
    format: WebhookFormat = "json"


@frozen
class StepsRequested(Event):
    """Abort the current step, and do these steps instead of it and of the rest of the plan."""

    steps: Sequence[Step]


@frozen
class MuteRequested(Event):
    """
    Mute or unmute a party.

    ``says`` is about what the party says, ``hears`` about what it hears; None leaves the state unchanged.
    """

    party: PartyName
    says: bool | None = None
    hears: bool | None = None


@frozen
class ListenRequested(Event):
    """Set what the agent hears: the party, silence, or nothing."""

    status: ListenStatus


@frozen
class RecordingRequested(Event):
    """Start, pause, resume or complete the recording of the call."""

    action: RecordingAction
    channels: int = 2


@frozen
class TranscriptionRequested(Event):
    """Begin to transcribe the call in a language, or transcribe it no more without one."""

    language: str | None


@frozen
class DubRequested(Event):
    """Change a track that a party hears."""

    party: PartyName
    dub: Dub


@frozen
class DigitsRequested(Event):
    """Send digits to a party."""

    party: PartyName
    digits: str


@frozen
class TransferCommand(Event):
    """
    Transfer a party to another one.

    The present peer, the other party or an agent, leaves when the new one answers.
    """

    party: PartyName
    to: Party


@frozen
class TimeLimitRequested(Event):
    """Set another time limit, counted from the answer."""

    limit_s: float


LiveCommand = (
    HangupRequested
    | MuteRequested
    | ListenRequested
    | RecordingRequested
    | TranscriptionRequested
    | DubRequested
    | DigitsRequested
    | TransferCommand
    | TimeLimitRequested
    | RedirectRequested
    | StepsRequested
)
"""Any command to an active call."""
