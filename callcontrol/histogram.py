"""Distributions of what is measured, as Prometheus reads them."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """How many values came, by upper bounds; above the last bound there is one more class."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count a value; one that equals a bound is within it."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values came."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Each bound with how many values are within it; the last bound is infinity."""
        found, total = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self._counts, strict=True):
            total += count
            found.append((bound, total))
        return found
