"""Effects on the agent's stream, and notifications to the agent."""

from callcontrol.calls.effects import Effect
from callcontrol.calls.events.commands import ListenStatus
from callcontrol.ids import LegId
from media.streams import AgentHold, AgentMute, AgentRecord, Reconnect, StreamChoice
from sip.values import frozen


@frozen
class OpenAgent(Effect):
    """
    Connect to the agent; ``AgentOpened`` or ``AgentRefused`` follows.

    With ``reconnect`` the connection continues a broken one; it is tried once, for ``budget_s``.
    """

    choice: StreamChoice
    stream_sid: str
    reconnect: Reconnect | None = None
    budget_s: float | None = None


@frozen
class StartAgent(Effect):
    """Start the flow of audio between the leg and the agent."""

    leg: LegId


@frozen
class ListenAgent(Effect):
    """Set what the agent hears: the party, silence, or nothing."""

    status: ListenStatus


@frozen
class DrainAgent(Effect):
    """Accept no more audio from the agent; ``PlayoutDrained`` follows when the queued audio is played."""

    leg: LegId


@frozen
class StopAgent(Effect):
    """Send the agent the reason of the end and close its stream; audio not yet played is dropped."""

    reason: str
    detail: str


@frozen
class MoveAgent(Effect):
    """Move the agent's audio to another leg."""

    leg: LegId


@frozen
class TellAgentDigit(Effect):
    """Notify the agent of a pressed key."""

    digit: str
    duration_ms: int


@frozen
class TellAgentDigitsSent(Effect):
    """Notify the agent that its digits are sent."""

    digits: str


@frozen
class TellAgentDone(Effect):
    """Notify the agent that its command was carried out."""

    command: AgentHold | AgentMute | AgentRecord


@frozen
class TellAgentSpeech(Effect):
    """Notify the agent that the party talks, or is silent."""

    active: bool


@frozen
class TellAgentHold(Effect):
    """Notify the agent that the party has put us on hold, or has resumed."""

    active: bool


@frozen
class TellAgentTransfer(Effect):
    """Notify the agent of the progress of its transfer: ``ringing``, ``answered`` or ``failed``."""

    status: str
    sip_status: int | None = None
    cause: str | None = None


@frozen
class TellAgentError(Effect):
    """Notify the agent that its command was refused."""

    code: str
    message: str
    ref: str
