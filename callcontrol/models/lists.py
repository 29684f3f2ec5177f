"""Pages of lists, and places in them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a list that is sorted by moment, then identifier, newest first: right after that item."""

    at_micros: int
    identifier: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; pages count from 1. ``after`` is where the list goes on, in lists that say so."""

    items: list[T]
    total: int
    page: int
    per_page: int
    after: Position | None = None

    @property
    def total_pages(self) -> int:
        """The number of pages that ``total`` items fill; 0 when there are none."""
        return -(-self.total // self.per_page)
