"""What we call ourselves towards a peer: the Contact of a transport."""

from sip.aio.transport import Transport
from sip.message.message import Request
from sip.secure import is_secure

__all__ = ["contact_of", "settle_contact"]


def contact_of(transport: Transport, *, secure: bool = False) -> str:
    """
    The Contact value that leads back to a transport; `sips` where every hop is to be secure.

    Source: RFC 3261 8.1.1.8, 12.1.1; RFC 5630 3.1.3 (no `transport=tls` in a `sips` URI).
    """
    if secure and transport.name == "tls":
        return f"<sips:{transport.sent_by}>"
    if transport.name == "udp":
        return f"<sip:{transport.sent_by}>"
    return f"<sip:{transport.sent_by};transport={transport.name}>"


def settle_contact(request: Request, transport: Transport) -> None:
    """Have a request name the transport it really leaves by: a name may lead to the other kind of address."""
    contact = contact_of(transport, secure=is_secure(request))
    if request.headers.get("Contact") != contact:
        request.headers.set("Contact", contact)
