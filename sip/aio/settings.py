"""How a user agent is told to behave."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sip.aio.dns_client import NameServer
from sip.aio.tcp import StreamLimits
from sip.aio.tls import TlsSettings
from sip.auth.server import DigestSettings, SecretsOf
from sip.message.message import Request
from sip.message.parser import Limits
from sip.message.responses import MIN_SESSION_EXPIRES_S
from sip.timers import Timers

__all__ = ["Screen", "ScreenVerdict", "Screened", "Source", "UserAgentSettings"]


class ScreenVerdict(Enum):
    """What is to become of an INVITE from this source."""

    ACCEPT = "accept"
    FORBID = "forbid"
    """Answer 403, remembering nothing."""
    DROP = "drop"
    """Say nothing."""
    CHALLENGE = "challenge"
    """Answer 401 until the request proves a password; only then it is accepted."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a request came from; `names` are those of a client certificate that was verified."""

    host: str
    port: int
    transport: str
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Screened:
    """
    A verdict with what belongs to it.

    `identities` is who the caller is known to be, for `InboundSession.identities`. With `CHALLENGE` it is
    `secrets_of` that knows the passwords of a user name, and the identities are those it gives.
    """

    verdict: ScreenVerdict
    identities: tuple[Hashable, ...] = ()
    secrets_of: SecretsOf | None = None


Screen = Callable[[Source, Request], Screened | ScreenVerdict]
"""Called with each new INVITE before anything is allocated for it."""


@dataclass(frozen=True, slots=True)
class UserAgentSettings:
    """
    How a user agent behaves and what it may hold.

    Beyond `max_sessions` and `max_transactions` new INVITEs get a 503 with `retry_after_s`; so do requests
    within a session of which `max_requests_within` are remembered (over UDP for 32 s each).
    """

    product: str = "Trunkline"
    timers: Timers = field(default_factory=Timers)
    limits: Limits = field(default_factory=Limits)
    streams: StreamLimits = field(default_factory=StreamLimits)
    digest: DigestSettings = field(default_factory=DigestSettings)
    tls: TlsSettings | None = None
    """Needed for `tls` addresses."""
    max_udp_request_bytes: int = 1300
    """Larger requests go by TCP where it can be had (RFC 3261 18.1.1); 0 sends all as datagrams."""
    max_sessions: int = 20_000
    max_transactions: int = 200_000
    max_requests_within: int = 500
    retry_after_s: int = 5
    max_ringing_s: float = 300.0
    name_servers: Sequence[NameServer] = ()
    """Who is asked for the names of peers; the system's name servers when empty."""
    min_se_s: int = MIN_SESSION_EXPIRES_S
    """The shortest session interval a peer may ask for (RFC 4028 5)."""
    first_response_timeout_s: float = 4.0
    """How long nothing at all may come back to an INVITE that does not say otherwise itself."""
