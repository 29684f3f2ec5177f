"""What an engine's streams have dropped, those included that are closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter, itemgetter

from media.types import StreamStats

__all__ = ["DropTally"]


class DropTally:
    """Packets of far ends that were not used, by reason."""

    def __init__(self) -> None:
        self._closed: Counter[str] = Counter()

    def closed(self, stats: StreamStats) -> None:
        """Keep the figures of a stream that is closed."""
        for reason, figure in zip(_FIGURES, _of_stats(stats), strict=True):
            if figure:  # of most streams all are 0
                self._closed[reason] += figure

    def total(self, up: Iterable[Mapping[str, object]]) -> dict[str, int]:
        """
        All drops by reason, with those of the streams that are up.

        Of these the figures are taken as the native engine has them: there may be thousands of streams, and
        making ``StreamStats`` of each would hold the loop for milliseconds.
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
"""Each reason, and the figure of a stream that counts it."""

_of_stats = attrgetter(*_FIGURES.values())
_of_native = itemgetter(*_FIGURES.values())
