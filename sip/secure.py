"""Requirements of a `sips` URI, and the refusal of requests that break them (RFC 3261 26.2, RFC 5630)."""

from sip.message.message import Request, Response
from sip.message.responses import reply

__all__ = ["is_secure", "secure_refusal"]


def is_secure(request: Request) -> bool:
    """Return True when a request requires TLS on every hop, and `sips` in our Contact (RFC 3261 8.1.1.8)."""
    return request.uri.scheme == "sips"


def secure_refusal(request: Request, hop: str, *, has_tls: bool) -> Response | None:
    """
    Return the refusal of a request for a `sips` URI, None when the request is acceptable.

    Without TLS of our own the scheme is unsupported (416). A request that did not arrive over TLS has already
    broken the guarantee of `sips`, and accepting it would fake that guarantee (480). ACK and CANCEL are never
    refused.

    Source: RFC 3261 8.2.2.1, 26.4.4; RFC 5630 5.
    """
    if request.uri.scheme != "sips" or request.method in ("ACK", "CANCEL"):
        return None
    if not has_tls:
        return reply(request, 416)
    if hop == "tls":
        return None
    return reply(request, 480, headers=(("Warning", '399 sip "A sips request must come over TLS"'),))
