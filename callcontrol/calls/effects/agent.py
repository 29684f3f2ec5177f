"""Effects on the agent's stream, and notifications to the agent."""

from dataclasses import dataclass

from callcontrol.calls.events import ListenStatus
from callcontrol.ids import LegId
from media.streams import AgentHold, AgentMute, AgentRecord, Reconnect, StreamChoice


@dataclass(frozen=True, slots=True)
class OpenAgent:
    """
    Connect to the agent; ``AgentOpened`` or ``AgentRefused`` follows.

    With ``reconnect`` the connection continues a broken one; it is tried once, for ``budget_s``.
    """

    choice: StreamChoice
    stream_sid: str
    reconnect: Reconnect | None = None
    budget_s: float | None = None


@dataclass(frozen=True, slots=True)
class StartAgent:
    """Start the flow of audio between the leg and the agent."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class ListenAgent:
    """Set what the agent hears: the party, silence, or nothing."""

    status: ListenStatus


@dataclass(frozen=True, slots=True)
class DrainAgent:
    """Accept no more audio from the agent; ``PlayoutDrained`` follows when the queued audio is played."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class StopAgent:
    """Send the agent the reason of the end and close its stream; audio not yet played is dropped."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class MoveAgent:
    """Move the agent's audio to another leg."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class TellAgentDigit:
    """Notify the agent of a pressed key."""

    digit: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class TellAgentDigitsSent:
    """Notify the agent that its digits are sent."""

    digits: str


@dataclass(frozen=True, slots=True)
class TellAgentDone:
    """Notify the agent that its command was carried out."""

    command: AgentHold | AgentMute | AgentRecord


@dataclass(frozen=True, slots=True)
class TellAgentSpeech:
    """Notify the agent that the party talks, or is silent."""

    active: bool


@dataclass(frozen=True, slots=True)
class TellAgentHold:
    """Notify the agent that the party has put us on hold, or has resumed."""

    active: bool


@dataclass(frozen=True, slots=True)
class TellAgentTransfer:
    """Notify the agent of the progress of its transfer: ``ringing``, ``answered`` or ``failed``."""

    status: str
    sip_status: int | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class TellAgentError:
    """Notify the agent that its command was refused."""

    code: str
    message: str
    ref: str
