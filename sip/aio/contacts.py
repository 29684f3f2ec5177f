"""Contact values of our transports."""

from sip.aio.transport import Transport
from sip.message.message import Request
from sip.secure import is_secure

__all__ = ["contact_of", "settle_contact"]


def contact_of(transport: Transport, *, secure: bool = False) -> str:
    """
    Return the Contact value of a transport; with `secure`, a `sips` URI where the transport is TLS.

    Source: RFC 3261 8.1.1.8, 12.1.1; RFC 5630 3.1.3 (no `transport=tls` in a `sips` URI).
    """
    if secure and transport.name == "tls":
        return f"<sips:{transport.sent_by}>"
    if transport.name == "udp":
        return f"<sip:{transport.sent_by}>"
    return f"<sip:{transport.sent_by};transport={transport.name}>"


def settle_contact(request: Request, transport: Transport) -> None:
    """Set the Contact of a request to its actual transport: a name may resolve to the other IP version."""
    contact = contact_of(transport, secure=is_secure(request))
    if request.headers.get("Contact") != contact:
        request.headers.set("Contact", contact)
