"""
Errors of the SIP stack.

::

    SipError
    +-- ParseError       input from a peer cannot be read
    +-- InvalidValue     a value from the application cannot be written (also a ValueError)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sip.message.message import Response


class SipError(Exception):
    """Base of every error this package raises on purpose."""


class ParseError(SipError):
    """
    Bytes or text from a peer that are not acceptable SIP.

    ``reason`` is our own wording and never quotes the peer, so it is safe in
    a log line and as a reason phrase. ``offset`` is where the transport_error starts,
    in bytes of the message (or characters of the text) that was parsed, as
    nearly as it is known; ``near`` is the peer's text there, not for showing.
    ``status`` is the status of the response a request deserves.

    ``answer`` is that response, ready but for the ``received`` and ``rport``
    of its top Via. It is None when there is nobody to answer: the input was a
    response, an ACK, or lacks a header field that a response must repeat.

    Source: RFC 3261 8.2.6, 16.3, 18.3.
    """

    def __init__(self, reason: str, offset: int = 0, *, status: int = 400, near: str = "") -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset
        self.status = status
        self.near = near
        self.answer: Response | None = None

    def __str__(self) -> str:
        return f"{self.reason} (at offset {self.offset})"


class InvalidValue(SipError, ValueError):
    """A value that would break its message, for example one with a line end."""
