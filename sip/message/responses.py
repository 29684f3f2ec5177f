"""Responses of this user agent, and the checks that refuse a request before it is handled."""

import hashlib

from sip.message.encoding import to_bytes
from sip.message.grammar import parse_number
from sip.message.message import Request, Response, reply

ALLOW = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, PRACK, UPDATE, REFER, NOTIFY"
"""The methods this user agent handles."""

SUPPORTED: tuple[str, ...] = ("100rel", "199", "timer", "replaces", "norefersub")
"""Option tags of the supported extensions, announced in Supported and accepted in Require."""

ACCEPT = "application/sdp"
"""The media type of offers and answers."""

KNOWN_METHODS = frozenset(
    (
        *ALLOW.split(", "),
        *("REGISTER", "SUBSCRIBE", "PUBLISH", "MESSAGE"),
    )
)
"""Standard methods: an unsupported one gets 405, any other method 501."""

MIN_SESSION_EXPIRES_S = 90
"""Default of the shortest session interval a peer may request (RFC 4028 5)."""

_HANDLED = frozenset(ALLOW.split(", "))
_UNDERSTOOD = frozenset(SUPPORTED)


def supported_fields(*without: str) -> tuple[tuple[str, str], ...]:
    """
    Return the Supported header field of our messages without the named tags; empty if no tag is left.

    Source: RFC 3261 20.37.
    """
    tags = [tag for tag in SUPPORTED if tag not in without]
    return (("Supported", ", ".join(tags)),) if tags else ()


def stateless_tag(secret: bytes, request: Request) -> str:
    """
    Return a To tag that is the same for every repetition of a request, without keeping state.

    Source: RFC 3261 8.2.7.
    """
    via = request.via
    text = f"{via.branch}\n{via.host}\n{request.call_id}\n{request.from_.tag}\n{request.cseq.number}"
    return hashlib.blake2s(to_bytes(text), key=secret, digest_size=8).hexdigest()


def refusal(request: Request, min_se_s: int, hop: str, *, has_tls: bool) -> Response | None:
    """
    Return the response to a request that must be refused, None when it can be handled.

    `min_se_s` is the shortest accepted session interval, `hop` the transport by which the request came.

    ACK and CANCEL are never refused: an ACK has no response, a CANCEL must not depend on options.

    Source: RFC 3261 8.2.1 to 8.2.3, RFC 7332 5 (Max-Forwards), RFC 4028 9.
    """
    method = request.method
    if method in ("ACK", "CANCEL"):
        return None
    if method == "REFER" and request.to.tag is None:
        return reply(request, 603)  # A REFER outside a dialog must not make us call a third party.
    if method not in _HANDLED:
        return reply(request, 405 if method in KNOWN_METHODS else 501, headers=(("Allow", ALLOW),))
    if method == "INVITE" and request.max_forwards == 0 and request.to.tag is None:
        # A request that ends here needs no further hop, but a forwarded call does (RFC 7332 5).
        return reply(request, 483)
    headers = request.headers
    if headers.first("require") is not None:
        unknown = [tag for tag in request.option_tags("Require") if tag not in _UNDERSTOOD]
        if unknown:
            return reply(request, 420, headers=(("Unsupported", ", ".join(unknown)),))
    refused = _refuse_offer(request, min_se_s) if method in ("INVITE", "UPDATE", "PRACK") else None
    if refused is None and request.uri.scheme == "sips":
        return _refuse_insecure(request, hop, has_tls)
    return refused


def _refuse_offer(request: Request, min_se_s: int) -> Response | None:
    if request.headers.first("accept") is not None and not _accepts_answers(request):
        return reply(request, 406)
    if request.body and request.content_type != ACCEPT:
        return reply(request, 415, headers=(("Accept", ACCEPT),))
    coding = request.headers.first("content-encoding") or "identity"
    if request.body and coding.strip().lower() != "identity":
        return reply(request, 415, headers=(("Accept-Encoding", "identity"),))
    value = request.headers.first("session-expires")
    if value is None:
        return None
    interval_s = parse_number(value.partition(";")[0].strip())
    if interval_s is None:
        return reply(request, 400, "Malformed Session-Expires")
    # A proxy may request a short interval for a caller without session timers: accept it.
    if interval_s < min_se_s and "timer" in request.option_tags("Supported"):
        return reply(request, 422, headers=(("Min-SE", str(min_se_s)),))
    return None


def _accepts_answers(request: Request) -> bool:
    """
    Return True when the Accept of a request allows SDP in the response; an empty one does not.

    Source: RFC 3261 20.1.
    """
    kinds = {value.partition(";")[0].strip().lower() for value in request.headers.get_all("Accept")}
    return not kinds.isdisjoint((ACCEPT, "application/*", "*/*"))


def _refuse_insecure(request: Request, hop: str, has_tls: bool) -> Response | None:
    """
    Refuse a request for a `sips` URI that TLS does not protect.

    Without TLS of our own the scheme is unsupported (416). A request that did not arrive over TLS has already
    broken the guarantee of `sips`, and accepting it would fake that guarantee (480).

    Source: RFC 3261 8.2.2.1, 26.4.4; RFC 5630 5.
    """
    if not has_tls:
        return reply(request, 416)
    if hop == "tls":
        return None
    return reply(request, 480, headers=(("Warning", '399 sip "A sips request must come over TLS"'),))
