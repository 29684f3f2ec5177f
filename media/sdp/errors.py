"""
Errors of session descriptions.

SdpError          the text is not a session description, or exceeds a limit
NegotiationError  the description is well formed, but no session is possible
"""

from __future__ import annotations

__all__ = ["NegotiationError", "SdpError"]


class SdpError(ValueError):
    """
    A malformed session description.

    Attributes:
        reason: Description of the fault, without any of the peer's text.
        line: Number of the offending line, from 1; 0 for the description as a whole.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason = reason
        self.line = line


class NegotiationError(Exception):
    """
    An offer that we cannot accept, or an answer that does not fit our offer.

    Attributes:
        status: SIP status to refuse an offer with (488 Not Acceptable Here).
        warn_code: Code of a Warning header (RFC 3261 20.43).
        warning: Text of a Warning header; holds none of the peer's text.
    """

    status = 488

    def __init__(self, warning: str, warn_code: int = 305) -> None:
        super().__init__(warning)
        self.warning = warning
        self.warn_code = warn_code

    def warning_header(self, agent: str) -> str:
        """Value of a Warning header; `agent` is our host or pseudonym (RFC 3261 20.43)."""
        return f'{self.warn_code} {agent} "{self.warning}"'
