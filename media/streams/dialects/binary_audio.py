"""What the dialects share whose audio travels in binary frames, beside text frames of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from media.streams.commands import CommandReader, decode_command
from media.streams.dialects.base import Dialect
from media.streams.dialects.json_audio import compact
from media.streams.errors import CommandError
from media.streams.model import AgentCommand, AgentMark, Encoding, Track

__all__ = ["MARK_PREFIX", "BinaryAudioDialect"]

# Marks of an agent come back under several guises; their names say which it was.
MARK_PREFIX = "mark:"


class BinaryAudioDialect(Dialect):
    """Passes audio on as it is. It is L16, as servers of these dialects take for granted."""

    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("l16", 8000), ("l16", 16000))
    binary_audio: ClassVar[bool] = True
    both_tracks: ClassVar[bool] = False

    __slots__ = ()

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio, which is the audio."""
        return audio

    def event(self, event: str, key: str, body: Mapping[str, Any]) -> bytes:
        """Write an event; nothing is numbered here."""
        return compact({"event": event, key: body}).encode()

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """Read a binary frame: audio of any length."""
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
        """Read a command that every dialect takes, or one of `more`, whose marks have names of their own."""
        command = decode_command(message, more, word=word)
        if isinstance(command, AgentMark) and (message.get("event") if word is None else word) not in more:
            return AgentMark(MARK_PREFIX + command.name)
        return command
