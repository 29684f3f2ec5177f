"""How a user agent is told to behave."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from sip.aio.stream import StreamLimits
from sip.aio.tls import TlsSettings
from sip.message import Request
from sip.parser import Limits
from sip.timers import Timers

__all__ = ["Screen", "ScreenVerdict", "UserAgentSettings"]


class ScreenVerdict(Enum):
    """What is to become of an INVITE from this source."""

    ACCEPT = "accept"
    FORBID = "forbid"
    """Answer 403, remembering nothing."""
    DROP = "drop"
    """Say nothing."""


Screen = Callable[[str, int, str, Request], ScreenVerdict]
"""Called with source host, source port, transport and request, before anything is allocated."""


@dataclass(frozen=True, slots=True)
class UserAgentSettings:
    """
    How a user agent behaves and what it may hold.

    Beyond `max_sessions` and `max_transactions` new INVITEs get a 503 with `retry_after_s`.
    """

    product: str = "Trunkline"
    timers: Timers = field(default_factory=Timers)
    limits: Limits = field(default_factory=Limits)
    streams: StreamLimits = field(default_factory=StreamLimits)
    tls: TlsSettings | None = None
    """Needed for `tls` addresses."""
    max_sessions: int = 20_000
    max_transactions: int = 200_000
    retry_after_s: int = 5
    max_ringing_s: float = 300.0
    first_response_timeout_s: float = 4.0
    """How long nothing at all may come back to an INVITE that does not say otherwise itself."""
