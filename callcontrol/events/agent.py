"""What an agent does on its stream."""

from dataclasses import dataclass
from enum import Enum


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
