"""
Frames of kind, length and payload over TCP, compatible with servers for Asterisk's AudioSocket.

A frame is one byte of kind, two of length (big-endian) and the payload. There is neither JSON nor a
handshake: what the protocol cannot say, the agent is not told.

Source: Asterisk documentation, Channel Drivers, AudioSocket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, UUID, uuid5

from media.streams.commands import read_digits
from media.streams.conversion import AudioConverter
from media.streams.dialects.base import Dialect
from media.streams.model import (
    AgentCommand,
    AgentDtmf,
    AgentHangup,
    CommandError,
    Encoding,
    StreamSetup,
    Track,
)

HEADER_BYTES = 3

_HANGUP, _UUID, _DTMF, _ERROR = 0x00, 0x01, 0x03, 0xFF
# Signed linear audio by rate; a server chooses the kind that it sends.
_AUDIO_HZ: Mapping[int, int] = {
    0x10: 8000,
    0x11: 12_000,
    0x12: 16_000,
    0x13: 24_000,
    0x14: 32_000,
    0x15: 44_100,
    0x16: 48_000,
    0x17: 96_000,
    0x18: 192_000,
}
_KINDS: Mapping[int, int] = {rate_hz: kind for kind, rate_hz in _AUDIO_HZ.items()}
_UUID_PARAMETER = "uuid"


def frame_length(header: bytes | bytearray) -> int:
    """Return the bytes of a whole frame, from the beginning of it."""
    return HEADER_BYTES + int.from_bytes(header[1:HEADER_BYTES], "big")


class AudioSocketDialect(Dialect):
    """Encodes and decodes the frames of one stream; each is binary, with its header."""

    name: ClassVar[str] = "audiosocket"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("l16", 8000), ("l16", 16_000))
    binary_audio: ClassVar[bool] = True
    both_tracks: ClassVar[bool] = False
    schemes: ClassVar[tuple[str, ...]] = ("audiosocket",)

    __slots__ = ("_converter", "_kind")

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._kind = _KINDS[setup.sample_rate]
        self._converter: tuple[int, AudioConverter] | None = None

    def start(self, unix_ms: int = 0) -> bytes:
        """
        Write the identifier of the stream: the parameter `uuid`, else the call's.

        A call whose identifier is no UUID has one that is derived from it.
        """
        asked = dict(self._setup.custom_parameters).get(_UUID_PARAMETER)
        identifier = _uuid(asked) or _uuid(self._setup.call_sid)
        return _frame(_UUID, (identifier or uuid5(NAMESPACE_URL, self._setup.call_sid)).bytes)

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio."""
        return _frame(self._kind, audio)

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        return _frame(_DTMF, digit.encode())

    def stop(self, reason: str, detail: str) -> bytes:
        """Write the hangup."""
        return _frame(_HANGUP, b"")

    def mark(self, name: str, *, cleared: bool) -> bytes | None:
        """Write nothing: there are no marks."""
        return None

    def event(self, event: str, key: str, body: Mapping[str, Any]) -> bytes | None:
        """Write nothing: there are no events."""
        return None

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Refuse a text frame: there are none."""
        raise CommandError("The audiosocket protocol has no text frames")

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """Parse a whole frame, header included."""
        if len(data) < HEADER_BYTES or len(data) != frame_length(data):
            raise CommandError("The frame has another length than it states")
        kind, payload = data[0], data[HEADER_BYTES:]
        if kind in _AUDIO_HZ:
            return self._audio(payload, _AUDIO_HZ[kind])
        if kind == _HANGUP:
            return AgentHangup(drain=False)
        if kind == _ERROR:
            return AgentHangup(drain=False, reason="error")
        if kind == _DTMF:
            return AgentDtmf(read_digits(payload.decode("latin-1")))
        raise CommandError(f"There is no frame of kind 0x{kind:02x} from a server", code="unknown_event")

    def _audio(self, audio: bytes, rate_hz: int) -> bytes:
        if len(audio) % 2:
            raise CommandError("A frame of audio must hold whole samples of 16 bits", code="invalid_audio")
        if rate_hz == self._setup.sample_rate:
            return audio
        if self._converter is None or self._converter[0] != rate_hz:
            converter = AudioConverter(("l16", rate_hz), ("l16", self._setup.sample_rate))
            self._converter = rate_hz, converter
        return self._converter[1].convert(audio)


def _frame(kind: int, payload: bytes) -> bytes:
    return bytes((kind,)) + len(payload).to_bytes(2, "big") + payload


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
