"""What an agent says before its call is answered."""

from __future__ import annotations

from media.aio.agent_types import PlayoutTap
from media.streams import AgentMark

__all__ = ["EarlyPlayout"]


class EarlyPlayout:
    """Keeps audio and marks in order until there is somebody to hear them."""

    def __init__(self, max_bytes: int) -> None:
        self._items: list[bytearray | AgentMark] = []
        self._bytes = 0
        self._max_bytes = max_bytes

    def audio(self, audio: bytes) -> bool:
        """Keep audio; False if there is no room, and it is dropped."""
        if self._bytes + len(audio) > self._max_bytes:
            return False
        if audio:
            # In one piece: a list of many small ones would be many times as large as what is in them.
            if self._items and isinstance(self._items[-1], bytearray):
                self._items[-1] += audio
            else:
                self._items.append(bytearray(audio))
            self._bytes += len(audio)
        return True

    def mark(self, mark: AgentMark) -> None:
        """Keep a mark after the audio so far; its caller bounds their number."""
        self._items.append(mark)

    def clear(self) -> list[AgentMark]:
        """Drop everything; the marks that were waiting."""
        marks = [item for item in self._items if isinstance(item, AgentMark)]
        self._items.clear()
        self._bytes = 0
        return marks

    def play(self, tap: PlayoutTap) -> None:
        """Hand everything to a tap."""
        for item in self._items:
            if isinstance(item, AgentMark):
                tap.mark(item.name)
            else:
                tap.write(bytes(item))
        self.clear()
