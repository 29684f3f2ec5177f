"""Cache of clips, bounded by size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from media.audio import Clip

__all__ = ["ClipCache"]


class ClipCache:
    """Clips by key, at most `capacity_bytes`; the least recently used are evicted first."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._kept: OrderedDict[Hashable, Clip] = OrderedDict()
        self.size_bytes = 0

    def get(self, key: Hashable) -> Clip | None:
        """Return the clip of a key, or None."""
        clip = self._kept.get(key)
        if clip is not None:
            self._kept.move_to_end(key)
        return clip

    def put(self, key: Hashable, clip: Clip) -> None:
        """Store a clip, unless it is larger than a quarter of the cache."""
        if len(clip.pcm) > self._capacity_bytes // 4:
            return
        before = self._kept.pop(key, None)
        self._kept[key] = clip
        self.size_bytes += len(clip.pcm) - (0 if before is None else len(before.pcm))
        while self.size_bytes > self._capacity_bytes:
            _, dropped = self._kept.popitem(last=False)
            self.size_bytes -= len(dropped.pcm)
