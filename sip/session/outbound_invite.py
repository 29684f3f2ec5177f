"""Parameters of an outbound INVITE, set by the application."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sip.auth.digest import Credentials
from sip.location.rfc3263 import Destination
from sip.message.fields import NameAddr
from sip.message.message import Headers, Request
from sip.message.responses import ACCEPT, ALLOW, add_fields, supported_fields
from sip.message.uri import SipUri
from sip.session.prack import OPTION_TAG
from sip.session.redirects import Redirects


@dataclass(slots=True)
class OutboundInvite:
    """
    Parameters of an outbound INVITE.

    `from_` has no tag. Without a `body` the answer holds the offer. `first_response_timeout_s` limits the
    time to the first response, `no_answer_timeout_s` the time to the answer; None uses the session settings.
    A `call_id` is generated when None. `max_forwards` is one less than that of the call this one continues,
    so that a number that leads back to us ends the loop. The called party may (`rel100` `supported`), must
    (`required`) or must not (`off`) send provisional responses reliably (RFC 3262). `session_expires_s`
    requests a session timer of that interval (RFC 4028); None requests none, and accepts the peer's.
    `redirects` defines the redirections to follow, None follows none. After a redirection `destination` and
    `uri` are those of the current target.
    """

    uri: SipUri
    from_: NameAddr
    to: NameAddr
    destination: Destination
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    credentials: Credentials | None = None
    call_id: str | None = None
    max_forwards: int = 70
    no_answer_timeout_s: float | None = None
    first_response_timeout_s: float | None = None
    rel100: str = "supported"
    session_expires_s: int | None = None
    redirects: Redirects | None = None

    def request(
        self, call_id: str, tag: str, contact: str, product: str, timer_fields: Iterable[tuple[str, str]]
    ) -> Request:
        """Build the INVITE; `timer_fields` are those of the session timer."""
        from_ = self.from_.with_tag(tag)
        headers = Headers.from_entries(
            [
                ("max-forwards", "Max-Forwards", str(self.max_forwards)),
                ("from", "From", str(from_)),
                ("to", "To", str(self.to)),
                ("call-id", "Call-ID", call_id),
                ("cseq", "CSeq", "1 INVITE"),
                ("contact", "Contact", contact),
                ("allow", "Allow", ALLOW),
                ("user-agent", "User-Agent", product),
            ],
            {"from": from_, "call-id": call_id},
        )
        headers.extend(supported_fields() if self.rel100 != "off" else supported_fields(OPTION_TAG))
        headers.extend(timer_fields)
        if self.rel100 == "required":
            headers.add("Require", OPTION_TAG)
        if self.body:
            headers.add("Content-Type", ACCEPT)
        add_fields(headers, self.headers)
        return Request("INVITE", self.uri, headers, self.body)
