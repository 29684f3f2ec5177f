"""Pages of lists, and positions in them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Position:
    """Position right after an item in a list sorted by time, then identifier, newest first."""

    at_micros: int
    identifier: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Page of a list; pages count from 1. ``after`` is the position of the next page, if supported."""

    items: list[T]
    total: int
    page: int
    per_page: int
    after: Position | None = None

    @property
    def total_pages(self) -> int:
        """Number of pages that ``total`` items fill; 0 for none."""
        return -(-self.total // self.per_page)
