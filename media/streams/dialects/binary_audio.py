"""Base class of dialects with audio in binary frames and JSON in text frames."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from media.streams.commands import CommandReader, decode_command
from media.streams.dialects.base import Dialect
from media.streams.dialects.json_audio import compact
from media.streams.model import AgentCommand, AgentMark, CommandError, Encoding, Track

# Marks are reported in several forms; a prefix of the name selects the form.
MARK_PREFIX = "mark:"


class BinaryAudioDialect(Dialect):
    """Forwards audio unchanged, as L16, which servers of these dialects assume."""

    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("l16", 8000), ("l16", 16000))
    binary_audio: ClassVar[bool] = True
    both_tracks: ClassVar[bool] = False

    __slots__ = ()

    @property
    def envelope(self) -> tuple[bytes, bytes] | None:
        """Nothing: a binary frame is all audio."""
        return b"", b""

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio, which is the audio itself."""
        return audio

    def event(self, event: str, key: str, body: Mapping[str, Any]) -> bytes:
        """Write an event; frames are not numbered here."""
        return compact({"event": event, key: body}).encode()

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """Parse a binary frame: audio of any length."""
        if len(data) % 2:
            raise CommandError("A binary frame must hold whole samples of 16 bits", code="invalid_audio")
        return data

    def _common(
        self,
        message: Mapping[str, Any],
        more: Mapping[str, CommandReader] = MappingProxyType({}),
        *,
        word: object = None,
    ) -> AgentCommand:
        """Parse a command of every dialect, or one of `more`, whose marks have their own names."""
        command = decode_command(message, more, word=word)
        if isinstance(command, AgentMark) and (message.get("event") if word is None else word) not in more:
            return AgentMark(MARK_PREFIX + command.name)
        return command
