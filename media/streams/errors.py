"""
Errors of agent streams.

StreamError           base of all
├─ StreamSetupError   the customer's request is invalid
├─ StreamConnectError the socket to the agent could not be opened
└─ CommandError       an invalid frame from the agent
"""

from __future__ import annotations

from typing import Literal

__all__ = ["CommandError", "ConnectFailure", "StreamConnectError", "StreamError", "StreamSetupError"]

ConnectFailure = Literal["dns", "connect", "tls", "http_status", "timeout", "protocol", "forbidden"]


class StreamError(Exception):
    """Base of the errors of agent streams."""


class StreamSetupError(StreamError):
    """
    An invalid description of a stream.

    Attributes:
        field: Name of the wrong field of the request.
        reason: The fault, or the requirement.
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
        http_status: Status of the answer if it was not 101, or None.
        attempts: Number of connection attempts.
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
    An invalid frame from the agent, which gets an `error` event.

    Attributes:
        code: Code of that event.
        ref: Event name of the agent's frame, if readable.
        counts: True if the frame counts towards the limit on malformed frames.
    """

    def __init__(
        self, message: str, *, code: str = "invalid_command", ref: str | None = None, counts: bool = True
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.ref = ref
        self.counts = counts
