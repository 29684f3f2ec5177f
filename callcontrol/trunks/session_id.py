"""
The end-to-end session identifier of a call, kept through both of its dialogs.

Source: RFC 7989. Its older form, without ``remote`` (RFC 7329), is understood.
"""

import re
from typing import Final

from callcontrol.ids import LegId

NIL: Final = "0" * 32
"""The identifier of a party that has not told its own."""

_SESSION_ID: Final = re.compile(r"\s*([0-9a-f]{32})\s*(?:;.*)?", re.ASCII | re.DOTALL)


class SessionIds:
    """
    The identifiers of a call's parties; ``own`` stands for those that have none, and for ourselves.

    Source: RFC 7989 6, 7.
    """

    def __init__(self, own: str) -> None:
        self.own = own
        self._of_party: dict[LegId, str] = {}

    def learn(self, leg: LegId, value: str | None) -> None:
        """Take note of a party's Session-ID header field; a malformed one, or the nil identifier, is none."""
        match = _SESSION_ID.fullmatch(value or "")
        if match is not None and match[1] != NIL:
            self._of_party[leg] = match[1]

    def forget(self, leg: LegId) -> None:
        """Forget a leg that is over."""
        self._of_party.pop(leg, None)

    def header(self, leg: LegId, other: LegId | None) -> str:
        """The header field for a leg whose party speaks with that of the leg ``other``, or with us."""
        local = self.own if other is None else self._of_party.get(other, self.own)
        return f"{local};remote={self._of_party.get(leg, NIL)}"
