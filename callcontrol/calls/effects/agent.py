"""Effects on the agent's stream, and notifications to the agent."""

from dataclasses import dataclass

from callcontrol.calls.effects import Effect
from callcontrol.calls.events.commands import ListenStatus
from callcontrol.ids import LegId
from media.streams import AgentHold, AgentMute, AgentRecord, Reconnect, StreamChoice


@dataclass(frozen=True, slots=True)
class OpenAgent(Effect):
    """
    Connect to the agent; ``AgentOpened`` or ``AgentRefused`` follows.

    With ``reconnect`` the connection continues a broken one; it is tried once, for ``budget_s``.
    """

    choice: StreamChoice
    stream_sid: str
    reconnect: Reconnect | None = None
    budget_s: float | None = None


@dataclass(frozen=True, slots=True)
class StartAgent(Effect):
    """Start the flow of audio between the leg and the agent."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class ListenAgent(Effect):
    """Set what the agent hears: the party, silence, or nothing."""

    status: ListenStatus


@dataclass(frozen=True, slots=True)
class DrainAgent(Effect):
    """Accept no more audio from the agent; ``PlayoutDrained`` follows when the queued audio is played."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class StopAgent(Effect):
    """Send the agent the reason of the end and close its stream; audio not yet played is dropped."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class MoveAgent(Effect):
    """Move the agent's audio to another leg."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class TellAgentDigit(Effect):
    """Notify the agent of a pressed key."""

    digit: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class TellAgentDigitsSent(Effect):
    """Notify the agent that its digits are sent."""

    digits: str


@dataclass(frozen=True, slots=True)
class TellAgentDone(Effect):
    """Notify the agent that its command was carried out."""

    command: AgentHold | AgentMute | AgentRecord


@dataclass(frozen=True, slots=True)
class TellAgentSpeech(Effect):
    """Notify the agent that the party talks, or is silent."""

    active: bool


@dataclass(frozen=True, slots=True)
class TellAgentHold(Effect):
    """Notify the agent that the party has put us on hold, or has resumed."""

    active: bool


@dataclass(frozen=True, slots=True)
class TellAgentTransfer(Effect):
    """Notify the agent of the progress of its transfer: ``ringing``, ``answered`` or ``failed``."""

    status: str
    sip_status: int | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class TellAgentError(Effect):
    """Notify the agent that its command was refused."""

    code: str
    message: str
    ref: str
