"""Audio and marks of an agent from before its call is answered."""

from __future__ import annotations

from media.aio.agent_types import PlayoutTap
from media.streams import AgentMark

__all__ = ["EarlyPlayout"]


class EarlyPlayout:
    """Buffers audio and marks in order until the call is answered."""

    def __init__(self, max_bytes: int) -> None:
        self._items: list[bytearray | AgentMark] = []
        self._bytes = 0
        self._max_bytes = max_bytes

    def audio(self, audio: bytes) -> bool:
        """Buffer audio; False if there is no room and it is dropped."""
        if self._bytes + len(audio) > self._max_bytes:
            return False
        if audio:
            # In one buffer: a list of many small ones would take many times their size.
            if self._items and isinstance(self._items[-1], bytearray):
                self._items[-1] += audio
            else:
                self._items.append(bytearray(audio))
            self._bytes += len(audio)
        return True

    def mark(self, mark: AgentMark) -> None:
        """Buffer a mark after the audio so far; the caller bounds their number."""
        self._items.append(mark)

    def clear(self) -> list[AgentMark]:
        """Drop everything and return the waiting marks."""
        marks = [item for item in self._items if isinstance(item, AgentMark)]
        self._items.clear()
        self._bytes = 0
        return marks

    def play(self, tap: PlayoutTap) -> None:
        """Write everything to a tap."""
        for item in self._items:
            if isinstance(item, AgentMark):
                tap.mark(item.name)
            else:
                tap.write(bytes(item))
        self.clear()
