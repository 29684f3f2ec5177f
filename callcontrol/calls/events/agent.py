"""Events of an agent on its stream."""

from dataclasses import field
from enum import Enum
from typing import Literal

from callcontrol.calls.events import Event
from sip.values import frozen


@frozen
class AgentOpened(Event):
    """The agent accepted the connection."""


@frozen
class VendorError:
    """Error that the vendor of a speech model reported: its code, and its text."""

    code: str
    message: str


@frozen
class AgentUsage(Event):
    """Units that the vendor of a speech model counted, by name."""

    counts: tuple[tuple[str, int], ...]


@frozen
class AgentRefused(Event):
    """The agent could not be reached within the connect budget; ``reason`` as in ``stream.failed``."""

    reason: str
    http_status: int | None = None
    attempts: int = 1
    error: VendorError | None = None


class AgentExit(Enum):
    """End of an agent's stream."""

    NORMAL = "normal"
    """The agent closed: its queued audio is played first."""
    AT_ONCE = "at_once"
    """The agent closed with a code of 4000 to 4099: nothing more is played."""
    LOST = "lost"
    """The connection broke."""


@frozen
class AgentClosed(Event):
    """The agent's connection has ended; after an ``error`` that is ``final`` another one is of no use."""

    exit: AgentExit
    code: int | None = None
    error: VendorError | None = None
    final: bool = False


@frozen
class AgentHangup(Event):
    """The agent asks to end its stream, after its queued audio or at once; ``ends_call``: also the call."""

    drain: bool = True
    ends_call: bool = False


@frozen
class AgentDigits(Event):
    """The agent asks to send digits to the caller."""

    digits: str
    duration_ms: int = 160
    gap_ms: int = 80


@frozen
class AgentTransfer(Event):
    """The agent asks to connect the caller to someone else."""

    to: str
    mode: str = "bridge"
    caller_id: str | None = None
    timeout_s: float = 30.0
    headers: tuple[tuple[str, str], ...] = ()


@frozen
class AgentHold(Event):
    """The agent puts the party on hold, or resumes it."""

    active: bool


@frozen
class AgentMute(Event):
    """The agent stops hearing the party, or hears it again."""

    active: bool


@frozen
class AgentRecord(Event):
    """The agent starts, pauses, resumes or completes the recording of the call."""

    action: Literal["start", "stop", "pause", "resume"]


@frozen
class AgentTranscript(Event):
    """
    Transcript of the agent's or the party's speech; a segment that is not ``final`` may still change.

    Times count from the answer of the call. The text may be private: no ``repr`` shows it.
    """

    role: Literal["agent", "user"]
    text: str = field(repr=False)
    final: bool = True
    start_ms: int | None = None
    end_ms: int | None = None
