"""
The Reason header field: why a request or a response was sent (RFC 3326, RFC 6432).

What a peer writes there is a hint, never a command: anything that cannot be read is passed over.
"""

from typing import NamedTuple

from sip.message.grammar import is_token, split_list, unquote, without_controls
from sip.message.headers import Headers

__all__ = ["Reason", "read_reasons", "reason_value"]

MAX_CHARACTERS = 1024
"""Longer values are no reasons but a burden."""

MAX_REASONS = 8


class Reason(NamedTuple):
    """One reason: the protocol whose cause it is (`SIP`, `Q.850`), the cause and its text."""

    protocol: str
    cause: int
    text: str = ""


def reason_value(headers: Headers) -> str | None:
    """
    Return all Reason header fields of a message as one value; None when there is none, or too much of it.

    Source: RFC 3326 2.
    """
    if headers.first("reason") is None:
        return None
    value = ", ".join(headers.get_all("Reason"))
    return value if value and len(value) <= MAX_CHARACTERS else None


def read_reasons(value: str | None) -> list[Reason]:
    """
    Return the reasons of a header value that can be read, in order.

    A reason without a cause, such as `Preemption`, says nothing here and is left out, as is one whose cause
    is no number.
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
    readable = cause is not None and cause.isascii() and cause.isdecimal() and len(cause) <= 4
    if not is_token(protocol.strip()) or not readable:
        return None
    assert cause is not None
    return Reason(protocol.strip(), int(cause), text)
