"""
Errors of agent streams.

StreamError           base of all
├─ StreamSetupError   what the customer asked for cannot be
├─ StreamConnectError the socket to the agent could not be opened
└─ CommandError       a frame from the agent that means nothing to us
"""

from __future__ import annotations

from typing import Literal

__all__ = ["CommandError", "ConnectFailure", "StreamConnectError", "StreamError", "StreamSetupError"]

ConnectFailure = Literal["dns", "connect", "tls", "http_status", "timeout", "protocol", "forbidden"]


class StreamError(Exception):
    """Base of the errors of agent streams."""


class StreamSetupError(StreamError):
    """
    A stream that cannot be as it is described.

    Attributes:
        field: Name of the field of the request that is wrong.
        reason: What is wrong with it, and what would be right.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class StreamConnectError(StreamError):
    """
    The socket to the agent could not be opened.

    Attributes:
        reason: Kind of the last failure.
        http_status: Status of the answer that was not 101, if there was one.
        attempts: How often a connection was tried.
    """

    def __init__(
        self, reason: ConnectFailure, http_status: int | None = None, attempts: int = 0, detail: str = ""
    ) -> None:
        status = f" {http_status}" if http_status is not None else ""
        super().__init__(f"{reason}{status}{': ' if detail else ''}{detail}")
        self.reason: ConnectFailure = reason
        self.http_status = http_status
        self.attempts = attempts
        self.detail = detail


class CommandError(StreamError):
    """
    A frame from the agent that cannot be obeyed; the agent is told by an `error` event.

    Attributes:
        code: Code of that event.
        ref: Event that the agent sent, where it could be read.
        counts: Whether the frame counts towards the limit on malformed frames.
    """

    def __init__(
        self, message: str, *, code: str = "invalid_command", ref: str | None = None, counts: bool = True
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.ref = ref
        self.counts = counts
