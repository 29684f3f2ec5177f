"""Histograms of measured values, in the form of Prometheus."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of values by upper bound; values above the last bound have a class of their own."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count a value; a value equal to a bound belongs to that bound."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """Number of values observed."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Return each bound with the number of values up to it; the last bound is infinity."""
        found, total = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self._counts, strict=True):
            total += count
            found.append((bound, total))
        return found
