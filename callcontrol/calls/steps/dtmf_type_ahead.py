"""DTMF type-ahead: keys pressed before a step collects them."""

from callcontrol.calls.events import DigitReceived

MAX_KEPT = 32
"""Limit of kept keys; later ones are dropped, since no input is that long."""


class TypedKeys:
    """The keys that the first party pressed ahead, in order."""

    def __init__(self) -> None:
        self._keys = ""

    def note(self, event: DigitReceived) -> None:
        """Append a key."""
        if len(self._keys) < MAX_KEPT:
            self._keys += event.digit

    def take(self) -> str:
        """Return all kept keys and clear them."""
        keys, self._keys = self._keys, ""
        return keys
