"""What the agent's stream is to do, and what the agent is told."""

from dataclasses import dataclass

from callcontrol.calls.events import ListenStatus
from callcontrol.ids import LegId
from media.streams import AgentHold, AgentMute, AgentRecord, Reconnect, StreamChoice


@dataclass(frozen=True, slots=True)
class OpenAgent:
    """
    Connect to the agent; ``AgentOpened`` or ``AgentRefused`` follows.

    ``reconnect`` says that its connection broke and this one goes on; it is tried once, for ``budget_s``.
    """

    choice: StreamChoice
    stream_sid: str
    reconnect: Reconnect | None = None
    budget_s: float | None = None


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
class MoveAgent:
    """Let the agent's audio flow to and from another leg."""

    leg: LegId


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
class TellAgentDone:
    """Tell the agent that a command of its was carried out."""

    command: AgentHold | AgentMute | AgentRecord


@dataclass(frozen=True, slots=True)
class TellAgentSpeech:
    """Tell the agent that the party talks, or has fallen silent."""

    active: bool


@dataclass(frozen=True, slots=True)
class TellAgentHold:
    """Tell the agent that the party has put it on hold, or takes it back."""

    active: bool


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
