"""
Interface of a supplier of phone numbers: search and assignment.

A supplier is an external system. It may fail, be slow, or have assigned a number although its response was
lost, so every number is taken for an order, and an order can always be returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Listing:
    """
    Number for sale, with the supplier's opaque reference ``live_ref``; prices are in paise.

    ``is_available`` is false for a listed number that is sold.
    """

    live_ref: str
    number: str
    region: str
    number_type: str
    monthly_cost_paise: int
    setup_cost_paise: int = 0
    voice_enabled: bool = True
    sms_enabled: bool = False
    is_available: bool = True

    def total_paise(self, months: int) -> int:
        """Price of the number with its first months, in paise."""
        return self.setup_cost_paise + months * self.monthly_cost_paise


@dataclass(frozen=True, slots=True)
class ListingFilter:
    """Search filter; ``region`` is a name, or the beginning of a number, e.g. ``+9111``."""

    region: str | None = None
    number_type: str | None = None
    contains: str | None = None

    def admits(self, listing: Listing) -> bool:
        """Return True if a listing matches the filter."""
        return (
            (self.region is None or in_region(self.region, listing.number, listing.region))
            and self.number_type in (None, listing.number_type)
            and (self.contains is None or self.contains in listing.number)
        )


class Taking(Enum):
    """Result of taking a number for an order."""

    TAKEN = "taken"
    NOT_LISTED = "not listed"
    SNATCHED = "snatched"
    REPRICED = "repriced"


class InventoryFailure(Exception):
    """The supplier failed; it may or may not have assigned the number."""


class Inventory(Protocol):
    """Supplier of numbers; each method may raise ``InventoryFailure`` and has a time limit."""

    async def search(
        self, wanted: ListingFilter, *, offset: int, limit: int
    ) -> tuple[Sequence[Listing], int]:
        """Page of the available numbers in a stable order, and the total."""

    async def find(self, live_ref: str) -> Listing | None:
        """Current offer of a number; None if it is not listed, or no longer."""

    async def take(self, order_id: str, listing: Listing) -> Taking:
        """
        Assign a number to an order, at exactly the prices of the listing.

        Repeating it for the same order changes nothing. A returned order takes no number.
        """

    async def give_back(self, order_id: str) -> None:
        """Return the number of an order to the supplier, if it has one; repeating it is safe."""


def in_region(wanted: str, number: str, region: str | None) -> bool:
    """Return True if a number is in a region, given by name or by the beginning of the number."""
    if wanted.startswith("+"):
        return number.startswith(wanted)
    return region is not None and region.casefold() == wanted.casefold()
