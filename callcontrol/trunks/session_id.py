"""
End-to-end session identifier of a call, kept across both of its dialogs.

Source: RFC 7989. The older form without ``remote`` (RFC 7329) is accepted.
"""

import re
from typing import Final

from callcontrol.ids import LegId

NIL: Final = "0" * 32
"""Nil UUID: identifier of a party that has sent none."""

_SESSION_ID: Final = re.compile(r"\s*([0-9a-f]{32})\s*(?:;.*)?", re.ASCII | re.DOTALL)


class SessionIds:
    """
    Session identifiers of a call's parties; ``own`` is ours, and stands in for parties without one.

    Source: RFC 7989 6, 7.
    """

    def __init__(self, own: str) -> None:
        self.own = own
        self._of_party: dict[LegId, str] = {}

    def learn(self, leg: LegId, value: str | None) -> None:
        """Store the identifier of a party's Session-ID header field; ignore a malformed or nil one."""
        match = _SESSION_ID.fullmatch(value or "")
        if match is not None and match[1] != NIL:
            self._of_party[leg] = match[1]

    def forget(self, leg: LegId) -> None:
        """Drop a leg that has ended."""
        self._of_party.pop(leg, None)

    def header(self, leg: LegId, other: LegId | None) -> str:
        """Session-ID value for a leg whose peer is the leg ``other``, or this server."""
        local = self.own if other is None else self._of_party.get(other, self.own)
        return f"{local};remote={self._of_party.get(leg, NIL)}"
