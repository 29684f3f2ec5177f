"""
Parsing and writing of REFER and of the NOTIFYs that report its progress.

Source: RFC 3515, RFC 3420 (sipfrag), RFC 3892 (Referred-By), RFC 4488 (Refer-Sub).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sip.errors import InvalidValue, ParseError
from sip.message.fields import NameAddr
from sip.message.grammar import find_param, parse_params
from sip.message.message import Request, Response
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri
from sip.session.replaces import Replaces, uri_headers

SIPFRAG = "message/sipfrag;version=2.0"
"""Media type of a NOTIFY body."""

MAX_REFER_TO_CHARS = 2048
"""Limit of the target's length: it is stored for the duration of the transfer."""

# Brackets may also occur in the display name and in a parameter.
_BRACKETED = re.compile(r'[ \t]*(?:"(?:[^"\\]|\\.)*"|[^"<]*)[ \t]*<([^>]*)>', re.DOTALL)
_STATUS_LINE = re.compile(rb"SIP/2\.0[ \t]+([1-6][0-9]{2})(?:[ \t]+([^\r\n]{0,200})[^\r\n]*)?(?:\r?\n|$)")


@dataclass(frozen=True, slots=True)
class Refer:
    """
    Content of a REFER from the peer.

    ``target`` is the URI to call, with its parameters and header fields; ``text`` is the URI exactly as
    written. ``replaces`` is the dialog the new call replaces. ``wants_news`` is False when the peer declines
    the subscription and its NOTIFYs.
    """

    target: SipUri
    text: str
    replaces: Replaces | None = None
    referred_by: str | None = None
    wants_news: bool = True


def parse_refer(request: Request) -> Refer:
    """
    Parse a REFER.

    Raises:
        ParseError: There is not exactly one Refer-To, it is malformed (400) or has an unsupported scheme
            (416) or method (603), or Refer-Sub or Referred-By is malformed.

    Source: RFC 3515 2.4.2, RFC 4488 4, RFC 3892 2.1.
    """
    values = request.headers.get_all("Refer-To")
    if len(values) != 1:
        raise ParseError("A REFER needs exactly one Refer-To")
    value = values[0]
    if len(value) > MAX_REFER_TO_CHARS:
        raise ParseError("The Refer-To is too long")
    target = NameAddr.parse(value).uri
    method = target.param("method")
    if method is not None and method != "INVITE":
        raise ParseError("Only an INVITE may be referred to", status=603)
    named = [field for name, field in uri_headers(target.headers) if name.lower() == "replaces"]
    if len(named) > 1:
        raise ParseError("The Refer-To names more than one dialog to replace")
    return Refer(
        target,
        _written(value),
        Replaces.parse(named[0]) if named else None,
        _referred_by(request),
        subscribes(request),
    )


def _written(value: str) -> str:
    """Return the URI of a valid Refer-To value as written."""
    match = _BRACKETED.match(value)
    return value.partition(";")[0].strip() if match is None else match[1].strip()


def _referred_by(request: Request) -> str | None:
    values = request.headers.get_all("Referred-By")
    if len(values) > 1:
        raise ParseError("More than one Referred-By header field")
    if values:
        NameAddr.parse(values[0])
    return values[0] if values else None


def subscribes(message: Request | Response) -> bool:
    """
    Return True when a REFER or its 2xx agrees to a subscription; False for Refer-Sub: false.

    Raises:
        ParseError: Refer-Sub is neither true nor false.

    Source: RFC 4488 4.
    """
    value = message.headers.get("Refer-Sub")
    if value is None:
        return True
    word = value.partition(";")[0].strip().lower()
    if word not in ("true", "false"):
        raise ParseError("Malformed Refer-Sub")
    return word == "true"


def refer_to(target: str, replaces: Replaces | None = None) -> str:
    """
    Return the Refer-To value of a target: a ``sip:``, ``sips:`` or ``tel:`` URI, sent as given.

    Raises:
        InvalidValue: The target is no such URI; or with `replaces`, it is a ``tel:`` URI or already has a
            Replaces header field.
    """
    try:
        uri = SipUri.parse(target)
        names = [name.lower() for name, _ in uri_headers(uri.headers)]
    except ParseError as error:
        raise InvalidValue(f"The target of a transfer is unusable: {error.reason}") from None
    if replaces is None:
        return f"<{target}>"
    if uri.scheme == "tel" or "replaces" in names:
        raise InvalidValue("The target of a transfer cannot carry the dialog to replace")
    return f"<{target}{'?' if uri.headers is None else '&'}{replaces.in_uri()}>"


def sipfrag(status: int, reason: str = "") -> bytes:
    """Return the NOTIFY body with the status of the referred call."""
    return f"SIP/2.0 {status} {reason or reason_phrase(status)}\r\n".encode()


def parse_sipfrag(body: bytes) -> tuple[int, str] | None:
    """Return the status and reason in a NOTIFY body, None without a status line."""
    match = _STATUS_LINE.match(body)
    if match is None:
        return None
    reason = (match[2] or b"").decode("utf-8", "replace")
    return int(match[1]), "".join(character for character in reason if character.isprintable())


def is_terminated(notify: Request) -> bool:
    """
    Return True when a NOTIFY is the last of its subscription.

    Source: RFC 6665 4.1.3.
    """
    return (notify.headers.get("Subscription-State") or "").partition(";")[0].strip().lower() == "terminated"


def event_id(notify: Request) -> tuple[str, str | None]:
    """
    Return the event package of a NOTIFY and its id parameter, None without one.

    Raises:
        ParseError: The Event header field is malformed.
    """
    package, semicolon, rest = (notify.headers.get("Event") or "").partition(";")
    return package.strip().lower(), find_param(parse_params(semicolon + rest), "id")
