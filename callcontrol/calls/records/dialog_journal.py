"""What ends each leg of a call in SIP, kept in its record for a process that finds the call cut off."""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from callcontrol.ids import LegId


def _unheard() -> None:
    """Stand in where nobody waits for news."""


class LegJournal:
    """Keeps ``dialogs`` up to date, leg by leg, and tells ``on_change`` that there is something to write."""

    def __init__(
        self, dialogs: MutableMapping[str, Mapping[str, Any]], on_change: Callable[[], None] = _unheard
    ) -> None:
        self._dialogs = dialogs
        self._on_change = on_change

    def note(self, leg: LegId, saved: dict[str, Any] | None, carrier_sid: str) -> None:
        """Take down what ends a leg as it is now; None when there is nothing new to know."""
        if self.keep(leg, saved, carrier_sid):
            self._on_change()

    def keep(self, leg: LegId, saved: dict[str, Any] | None, carrier_sid: str) -> bool:
        """The same for a call that is about to be inserted, and tells nobody; whether it was anything."""
        if saved is None:
            return False
        # A challenge of the carrier's is answered with what is agreed with it: no password is written here.
        saved["carrier"] = carrier_sid
        self._dialogs[str(leg)] = saved
        return True

    def drop(self, leg: LegId) -> None:
        """Forget a leg that is over."""
        self._dialogs.pop(str(leg), None)
