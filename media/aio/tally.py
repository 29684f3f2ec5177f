"""What an engine's streams have dropped, those included that are closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from media.types import StreamStats

__all__ = ["DropTally"]


class DropTally:
    """Packets of far ends that were not used, by reason."""

    def __init__(self) -> None:
        self._closed: Counter[str] = Counter()

    def closed(self, stats: StreamStats) -> None:
        """Keep the figures of a stream that is closed."""
        for reason, figure in zip(_REASONS, _drops(stats), strict=True):
            if figure:  # of most streams all are 0
                self._closed[reason] += figure

    def total(self, up: Iterable[StreamStats]) -> dict[str, int]:
        """All drops by reason, with those of the streams that are up."""
        total = Counter(self._closed)
        for stats in up:
            total.update(dict(zip(_REASONS, _drops(stats), strict=True)))
        return {reason: total[reason] for reason in _REASONS}


_REASONS = ("foreign", "invalid", "unwanted", "unauthentic", "duplicate", "late")


def _drops(stats: StreamStats) -> tuple[int, ...]:
    return (
        stats.dropped_foreign,
        stats.dropped_invalid,
        stats.dropped_unwanted,
        stats.dropped_unauthentic,
        stats.duplicates,
        stats.late,
    )
