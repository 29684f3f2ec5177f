"""Settings of a user agent."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sip.aio.dns_client import NameServer
from sip.aio.tcp import StreamLimits
from sip.aio.tls import TlsSettings
from sip.aio.transaction_layer import draw_between, make_token
from sip.aio.transport import Flow
from sip.auth.server import DigestSettings, SecretsOf
from sip.message.message import Request
from sip.message.parser import Limits
from sip.protection.rate_limits import FRONT_HEADER
from sip.session.model import SessionSettings
from sip.values import constructed_natively


class ScreenVerdict(Enum):
    """Decision about an INVITE from a source."""

    ACCEPT = "accept"
    FORBID = "forbid"
    """Answer 403 statelessly."""
    DROP = "drop"
    """Send no response."""
    CHALLENGE = "challenge"
    """Answer 401 until the request proves a password."""


@constructed_natively
@dataclass(frozen=True, slots=True)
class Source:
    """Source of a request; `names` are those of a verified client certificate."""

    host: str
    port: int
    transport: str
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, request: Request, flow: Flow) -> "Source":
        """
        Return the peer of the flow, or what the front names that forwards the request.

        After the address a front may add the names that a client's certificate proves:
        `tls:198.51.100.7:5061;name=carrier.example`.
        """
        host, port = flow.source
        if flow.origin is None:
            return cls(host, port, flow.transport.name, flow.peer_names)
        address, *params = (request.headers.first(FRONT_HEADER.lower()) or "").split(";")
        names = [
            value.strip().lower()
            for name, _, value in (param.partition("=") for param in params)
            if name.strip().lower() == "name"
        ]
        return cls(host, port, address.partition(":")[0].strip().lower(), frozenset(filter(None, names)))


@constructed_natively
@dataclass(frozen=True, slots=True)
class Screened:
    """
    A verdict with its identities and passwords.

    `identities` are those of the caller, for `InboundSession.identities`. With `CHALLENGE`, `secrets_of`
    returns the passwords of a user name, and the identities with them.
    """

    verdict: ScreenVerdict
    identities: tuple[Hashable, ...] = ()
    secrets_of: SecretsOf | None = None


Screen = Callable[[Source, Request], Screened | ScreenVerdict]
"""Called with each new INVITE before any state is allocated for it."""


@dataclass(frozen=True, slots=True)
class UserAgentSettings(SessionSettings):
    """
    Behaviour and limits of a user agent.

    Beyond `max_sessions` and `max_transactions` new INVITEs get a 503 with `retry_after_s`. So do further
    requests within a session that has `max_requests_within` transactions (over UDP each lasts 32 s).
    """

    random_between: Callable[[float, float], float] = draw_between
    token: Callable[[], str] = make_token
    limits: Limits = field(default_factory=Limits)
    streams: StreamLimits = field(default_factory=StreamLimits)
    digest: DigestSettings = field(default_factory=DigestSettings)
    tls: TlsSettings | None = None
    """Required for `tls` addresses."""
    max_udp_request_bytes: int = 1300
    """Larger requests use TCP where available (RFC 3261 18.1.1); 0 sends all over UDP."""
    max_sessions: int = 20_000
    max_transactions: int = 200_000
    max_requests_within: int = 500
    retry_after_s: int = 5
    name_servers: Sequence[NameServer] = ()
    """Name servers for the names of peers; empty means those of the system."""
