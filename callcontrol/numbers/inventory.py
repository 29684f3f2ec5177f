"""
What a supplier of phone numbers is asked: which are for sale, and to hand one over.

A supplier lies outside the edge. It may fail, take long, or have handed over a number when its answer got
lost, so every number is taken for an order, and an order can always be given back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Listing:
    """
    A number for sale, under the supplier's opaque reference ``live_ref``; prices are in paise.

    ``is_available`` is false for a number that was listed and is sold.
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
        """What the number costs with its first months."""
        return self.setup_cost_paise + months * self.monthly_cost_paise


@dataclass(frozen=True, slots=True)
class ListingFilter:
    """What a search is narrowed to; ``region`` is a name, or the beginning of a number such as ``+9111``."""

    region: str | None = None
    number_type: str | None = None
    contains: str | None = None

    def admits(self, listing: Listing) -> bool:
        """Whether a listing is among those wanted."""
        return (
            (self.region is None or in_region(self.region, listing.number, listing.region))
            and self.number_type in (None, listing.number_type)
            and (self.contains is None or self.contains in listing.number)
        )


class Taking(Enum):
    """What became of taking a number for an order."""

    TAKEN = "taken"
    NOT_LISTED = "not listed"
    SNATCHED = "snatched"
    REPRICED = "repriced"


class InventoryFailure(Exception):
    """The supplier did not answer as it should; whether it took the number is not known."""


class Inventory(Protocol):
    """A supplier of numbers; each method may raise ``InventoryFailure``, and none waits for ever."""

    async def search(
        self, wanted: ListingFilter, *, offset: int, limit: int
    ) -> tuple[Sequence[Listing], int]:
        """A stretch of the available numbers, always in the same order, and how many there are."""

    async def find(self, live_ref: str) -> Listing | None:
        """A number as it is offered now; None when it is not listed, or not any more."""

    async def take(self, order_id: str, listing: Listing) -> Taking:
        """
        Hand a number over to an order, at exactly the prices of the listing.

        Taking it again for the same order changes nothing. An order that was given back takes nothing.
        """

    async def give_back(self, order_id: str) -> None:
        """Take back what an order holds, if it holds anything; repeating it is safe."""


def in_region(wanted: str, number: str, region: str | None) -> bool:
    """Whether a number lies in a region, by the region's name or the beginning of the number."""
    if wanted.startswith("+"):
        return number.startswith(wanted)
    return region is not None and region.casefold() == wanted.casefold()
