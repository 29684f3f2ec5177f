"""
The Reason header field: the cause of a request or a response (RFC 3326, RFC 6432).

The value of a peer is informational only: malformed values are ignored.
"""

from typing import NamedTuple

from sip.message.grammar import is_token, parse_number, split_list, unquote, without_controls
from sip.message.message import Headers

MAX_CHARACTERS = 1024
"""Longer values are ignored."""

MAX_REASONS = 8


class Reason(NamedTuple):
    """One reason: the protocol of the cause (`SIP`, `Q.850`), the cause and its text."""

    protocol: str
    cause: int
    text: str = ""


def reason_value(headers: Headers) -> str | None:
    """
    Return all Reason header fields of a message as one value; None when absent or too long.

    Source: RFC 3326 2.
    """
    if headers.first("reason") is None:
        return None
    value = ", ".join(headers.get_all("Reason"))
    return value if value and len(value) <= MAX_CHARACTERS else None


def read_reasons(value: str | None) -> list[Reason]:
    """
    Return the readable reasons of a header value, in order.

    A reason without a cause, for example `Preemption`, or with a cause that is no number, is skipped.
    """
    if value is None or len(value) > MAX_CHARACTERS:
        return []
    reasons = (_read(element) for element in split_list(value)[:MAX_REASONS])
    return [reason for reason in reasons if reason is not None]


def _read(element: str) -> Reason | None:
    protocol, *parameters = split_list(element, ";") or [""]
    cause, text = None, ""
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        name, value = name.strip().lower(), value.strip()
        if name == "cause" and cause is None:
            cause = value
        elif name == "text" and equals:
            quoted = len(value) >= 2 and value[0] == value[-1] == '"'
            text = unquote(value) if quoted else without_controls(value)
    number = parse_number(cause or "", 4)
    if number is None or not is_token(protocol.strip()):
        return None
    return Reason(protocol.strip(), number, text)
