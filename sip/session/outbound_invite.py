"""What an application says to have somebody called."""

from dataclasses import dataclass, field

from sip.auth.digest import Credentials
from sip.message.fields import NameAddr
from sip.message.responses import ACCEPT
from sip.message.uri import SipUri
from sip.session.redirects import Redirects

__all__ = ["Destination", "OutboundInvite"]


@dataclass(frozen=True, slots=True)
class Destination:
    """
    A peer to send to: `transport` is `udp`, `tcp` or `tls`, `host` an IP address or a name.

    Over TLS its certificate must prove `verify`, or the host itself when that is None (RFC 5922 7).

    Port 0 and transport None are looked up in the DNS (RFC 3263); a name leads to several targets then,
    and so does a name with a port that has several addresses.
    """

    transport: str | None
    host: str
    port: int = 5060
    verify: str | None = None


@dataclass(slots=True)
class OutboundInvite:
    """
    What to invite whom with.

    `from_` is without a tag. Without a `body` the answer brings the offer. `first_response_timeout_s`
    is how long nothing at all may come back, `no_answer_timeout_s` how long it may take to be answered.
    `call_id` is made up when None. `max_forwards` is one less than that of the call this one goes on with,
    so that a number that leads back to us ends the loop. `rel100` says whether the called party may
    (`supported`), must (`required`) or need not (`off`) send its provisional responses reliably (RFC 3262).
    `session_expires_s` asks for a session timer of that interval (RFC 4028); None asks for none, and does
    what the peer asks. Redirections are followed as `redirects` says, and not at all when it is
    None; `destination` and `uri` are then those of the target that is being called.
    """

    uri: SipUri
    from_: NameAddr
    to: NameAddr
    destination: Destination
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    content_type: str = ACCEPT
    credentials: Credentials | None = None
    call_id: str | None = None
    max_forwards: int = 70
    no_answer_timeout_s: float | None = None
    first_response_timeout_s: float | None = None
    rel100: str = "supported"
    session_expires_s: int | None = None
    redirects: Redirects | None = None
