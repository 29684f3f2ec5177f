"""Dialog state of a call's legs, kept in its record so that the next process can end them after a crash."""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from callcontrol.ids import LegId


def _unheard() -> None:
    """Ignore a change."""


class LegJournal:
    """Keeps ``dialogs`` up to date, leg by leg, and calls ``on_change`` when there is something to write."""

    def __init__(
        self, dialogs: MutableMapping[str, Mapping[str, Any]], on_change: Callable[[], None] = _unheard
    ) -> None:
        self._dialogs = dialogs
        self._on_change = on_change

    def note(self, leg: LegId, saved: dict[str, Any] | None, carrier_sid: str) -> None:
        """Save the dialog of a leg and report the change; ``saved`` is None when nothing has changed."""
        if self.keep(leg, saved, carrier_sid):
            self._on_change()

    def keep(self, leg: LegId, saved: dict[str, Any] | None, carrier_sid: str) -> bool:
        """Save the dialog of a leg without a report, for a call about to be inserted; True if changed."""
        if saved is None:
            return False
        # Credentials are read from the carrier when needed: no password is written here.
        saved["carrier"] = carrier_sid
        self._dialogs[str(leg)] = saved
        return True

    def drop(self, leg: LegId) -> None:
        """Remove the dialog of an ended leg."""
        self._dialogs.pop(str(leg), None)
