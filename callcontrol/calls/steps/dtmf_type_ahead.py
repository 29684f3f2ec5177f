"""Keys that a party presses before they are asked for, kept for the step that asks."""

from callcontrol.calls.events import DigitReceived

MAX_KEPT = 32
"""More keys than that are no answer to anything; the newest are dropped."""


class TypedKeys:
    """The keys that the first party pressed ahead, in their order."""

    def __init__(self) -> None:
        self._keys = ""

    def note(self, event: DigitReceived) -> None:
        """Keep a key."""
        if len(self._keys) < MAX_KEPT:
            self._keys += event.digit

    def take(self) -> str:
        """All keys that were kept; they are kept no longer."""
        keys, self._keys = self._keys, ""
        return keys
