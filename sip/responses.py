"""Responses as this user agent writes them, and the requests it refuses whatever they are about."""

import hashlib
from collections.abc import Iterable

from sip.headers import Entry, Headers
from sip.message import Request, Response
from sip.reasons import reason_phrase

__all__ = ["ACCEPT", "ALLOW", "KNOWN_METHODS", "MIN_SESSION_EXPIRES_S", "refusal", "reply", "stateless_tag"]

ALLOW = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE"
"""The methods this user agent handles."""

ACCEPT = "application/sdp"
"""The media type of offers and answers."""

KNOWN_METHODS = frozenset(
    (
        *ALLOW.split(", "),
        *("REGISTER", "PRACK", "SUBSCRIBE", "NOTIFY", "PUBLISH", "MESSAGE", "REFER"),
    )
)
"""Methods of the standards; any other is not merely refused but unknown (501)."""

MIN_SESSION_EXPIRES_S = 90
"""RFC 4028 5."""

_REPEATED = frozenset(("via", "from", "to", "call-id", "cseq"))
_HANDLED = frozenset(ALLOW.split(", "))
_UNDERSTOOD: frozenset[str] = frozenset()
"""Option tags a Require may name."""


def reply(
    request: Request,
    status: int,
    reason: str = "",
    *,
    to_tag: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
) -> Response:
    """
    Build a response with the fields every response repeats; `to_tag` is added to a To without one.

    Source: RFC 3261 8.2.6.2.
    """
    entries: list[Entry] = []
    for entry in request.headers.entries():
        if entry[0] in _REPEATED:
            if to_tag is not None and entry[0] == "to" and request.to.tag is None:
                entry = ("to", "To", f"{entry[2]};tag={to_tag}")
            entries.append(entry)
    response = Response(status, reason or reason_phrase(status), Headers.from_entries(entries))
    for name, value in headers:
        response.headers.add(name, value)
    return response


def stateless_tag(secret: bytes, request: Request) -> str:
    """
    A To tag that is the same for every repetition of a request, though nothing is remembered of it.

    Source: RFC 3261 8.2.7.
    """
    via = request.via
    text = f"{via.branch}\n{via.host}\n{request.call_id}\n{request.from_.tag}\n{request.cseq.number}"
    return hashlib.blake2s(text.encode("utf-8", "replace"), key=secret, digest_size=8).hexdigest()


def refusal(request: Request) -> Response | None:
    """
    The response to a request that is refused whatever it is about, None when it can be handled.

    ACK and CANCEL are never refused: the one has no response, the other must not depend on options.

    Source: RFC 3261 8.2.1 to 8.2.3, 16.3 (Max-Forwards), RFC 4028 9.
    """
    method = request.method
    if method in ("ACK", "CANCEL"):
        return None
    if method not in _HANDLED:
        return reply(request, 405 if method in KNOWN_METHODS else 501, headers=(("Allow", ALLOW),))
    if method != "BYE" and request.max_forwards == 0:
        return reply(request, 483)
    headers = request.headers
    if "Require" in headers:
        unknown = [tag for tag in request.option_tags("Require") if tag not in _UNDERSTOOD]
        if unknown:
            return reply(request, 420, headers=(("Unsupported", ", ".join(unknown)),))
    return _refuse_offer(request) if method in ("INVITE", "UPDATE") else None


def _refuse_offer(request: Request) -> Response | None:
    if request.body and request.content_type != ACCEPT:
        return reply(request, 415, headers=(("Accept", ACCEPT),))
    value = request.headers.get("Session-Expires")
    if value is None:
        return None
    interval_s = value.partition(";")[0].strip()
    if not (interval_s.isascii() and interval_s.isdecimal() and len(interval_s) < 10):
        return reply(request, 400, "Malformed Session-Expires")
    if int(interval_s) < MIN_SESSION_EXPIRES_S:
        return reply(request, 422, headers=(("Min-SE", str(MIN_SESSION_EXPIRES_S)),))
    return None
