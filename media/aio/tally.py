"""Counters of packets that an engine's streams dropped, closed streams included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter, itemgetter

from media.types import StreamStats

__all__ = ["DropTally"]


class DropTally:
    """Dropped packets of far ends, by reason."""

    def __init__(self) -> None:
        self._closed: Counter[str] = Counter()

    def closed(self, stats: StreamStats) -> None:
        """Add the counters of a closed stream."""
        for reason, figure in zip(_FIGURES, _of_stats(stats), strict=True):
            if figure:  # for most streams all are 0
                self._closed[reason] += figure

    def total(self, up: Iterable[Mapping[str, object]]) -> dict[str, int]:
        """
        Return all drops by reason, including those of the open streams.

        The counters of open streams are read in the native engine's form: there may be thousands of streams,
        and building ``StreamStats`` for each would block the loop for milliseconds.
        """
        totals = [self._closed[reason] for reason in _FIGURES]
        for figures in up:
            drops = _of_native(figures)
            if any(drops):
                totals = [total + drop for total, drop in zip(totals, drops, strict=True)]
        return dict(zip(_FIGURES, totals, strict=True))


_FIGURES = {
    "foreign": "dropped_foreign",
    "invalid": "dropped_invalid",
    "unwanted": "dropped_unwanted",
    "unauthentic": "dropped_unauthentic",
    "duplicate": "duplicates",
    "late": "late",
}
"""Each reason, and the counter of a stream for it."""

_of_stats = attrgetter(*_FIGURES.values())
_of_native = itemgetter(*_FIGURES.values())
