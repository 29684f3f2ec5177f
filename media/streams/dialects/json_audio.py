"""Base class of dialects with JSON frames only, and audio in base64."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from media._engine import from_base64, to_base64
from media.streams.commands import CommandReader, decode_command, read_audio, read_object
from media.streams.dialects.base import AUDIO, CHUNK, NUMBER, TIME, Dialect
from media.streams.model import AgentCommand, StreamSetup, Track, frame_bytes

# A sender that numbers its frames never repeats an envelope; after this many tries we stop looking for one.
_MAX_LESSONS = 4
_PROBE = "UFJPQkU="


class JsonAudioDialect(Dialect):
    """
    Numbers frames, writes audio frames by a template, and parses them on a fast path.

    Attributes:
        audio_event: Event name of the agent's frames of audio.
        readers: Commands in addition to those of all dialects.
        sequence_name: Name of the field with the frame's number.
        stream_name: Name of the field with the stream's id.
        numbers_are_text: True if the number of a frame is a string.
    """

    audio_event: ClassVar[str] = "media"
    readers: ClassVar[Mapping[str, CommandReader]] = {}
    sequence_name: ClassVar[str]
    stream_name: ClassVar[str]
    numbers_are_text: ClassVar[bool] = True

    __slots__ = (
        "_chunks",
        "_envelope",
        "_heads",
        "_sample_bytes",
        "_sequence",
        "_sid_json",
        "_tails",
    )

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._sequence = 0
        self._chunks: dict[Track, int] = {"inbound": 0, "outbound": 0}
        self._envelope = MediaEnvelope(self.audio_event)
        self._sample_bytes = frame_bytes(setup.encoding, 1000) // 20
        self._sid_json = json.dumps(setup.stream_sid)
        # The audio frame, sent fifty times a second, is filled in from a template.
        self._heads: dict[Track, bytes] = {}
        self._tails: dict[Track, bytes] = {}
        tracks: tuple[Track, ...] = ("inbound", "outbound")
        for track in tracks:
            head, _, tail = self._template(track).partition(AUDIO)
            self._heads[track] = _formatted(head)
            self._tails[track] = tail.encode()

    def audio_template(self, track: Track) -> tuple[bytes, int]:
        """Return a frame of audio with its places, and the time in ms to count from."""
        return self._template(track).encode(), self._origin_ms()

    def _origin_ms(self) -> int:
        return 0

    def _number(self) -> str:
        """Return the number of the frame being written, or its place."""
        if self._places:
            return NUMBER
        self._sequence += 1
        return str(self._sequence)

    @property
    def envelope(self) -> tuple[bytes, bytes] | None:
        """Text around the audio of the agent's frames, once learned."""
        return self._envelope.around

    def _template(self, track: Track) -> str:
        """Return a frame of audio with its places."""
        return (
            f'{{"event":"media","{self.sequence_name}":"{NUMBER}","{self.stream_name}":{self._sid_json},'
            f'"media":{{{self._track_field(track)}"chunk":"{CHUNK}","timestamp":"{TIME}","payload":"{AUDIO}"}}}}'
        )

    def _track_field(self, track: Track) -> str:
        return f'"track":"{track}",'

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio."""
        self._sequence += 1
        self._now_ms = timestamp_ms
        chunk = self._chunks[track] = self._chunks[track] + 1
        values = {b"number": self._sequence, b"chunk": chunk, b"time": self._origin_ms() + timestamp_ms}
        return to_base64(self._heads[track] % values, audio, self._tails[track])

    def event(self, event: str, key: str, body: Mapping[str, Any]) -> bytes:
        """Write a frame with its number and the stream's id."""
        number = f'"{self._number()}"' if self.numbers_are_text else self._number()
        head = f'{{"event":"{event}","{self.sequence_name}":{number},"{self.stream_name}":{self._sid_json}'
        return f'{head},"{key}":{compact(body)}}}'.encode()

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame."""
        audio = self._envelope.open(data)
        if audio is not None and not len(audio) % self._sample_bytes:
            return audio
        message = read_object(data)
        if message.get("event") == self.audio_event:
            return self._audio(data, message)
        return decode_command(message, self.readers)

    def _audio(self, data: bytes, message: Mapping[str, Any]) -> bytes:
        payload, audio = self._payload(message, self._sample_bytes)
        self._envelope.learn(data, payload)
        return audio

    def _payload(self, message: Mapping[str, Any], sample_bytes: int) -> tuple[str, bytes]:
        """Return the audio of a frame, as base64 and decoded."""
        media = message.get("media")
        payload = media.get("payload") if isinstance(media, dict) else None
        return str(payload), read_audio(payload, "media.payload", self.audio_event, sample_bytes)

    def _unnumbered(self, event: str, key: str, body: Mapping[str, Any]) -> bytes:
        head = f'{{"event":"{event}","{self.stream_name}":{self._sid_json}'
        return f'{head},"{key}":{compact(body)}}}'.encode()


def _formatted(head: str) -> bytes:
    """Return the beginning of a frame with its places as those of a format."""
    head = head.replace("%", "%%").replace(NUMBER, "%(number)d")
    return head.replace(CHUNK, "%(chunk)d").replace(TIME, "%(time)d").encode()


def compact(body: Mapping[str, Any]) -> str:
    """Write JSON without spaces."""
    return json.dumps(body, separators=(",", ":"))


def reconnect_fields(setup: StreamSetup) -> dict[str, Any]:
    """Return the additional fields of `start` for a stream that continues another."""
    if setup.reconnect is None:
        return {}
    return {
        "reconnect": True,
        "attempt": setup.reconnect.attempt,
        "previous_stream_sid": setup.reconnect.previous_stream_sid,
    }


def tracks_of(setup: StreamSetup) -> list[str]:
    """Return the names of a stream's tracks."""
    return ["inbound", "outbound"] if setup.track == "both" else ["inbound"]


def ending(reason: str, detail: str) -> dict[str, str]:
    """Return the fields that a dialect adds to its last frame: none if the other party hung up."""
    return {} if reason == "callended" else {"detail": detail}


class MediaEnvelope:
    """
    Recognises frames of audio that differ from an earlier one only in the payload.

    A sender writes the same text around the payload each time. After a frame was parsed as JSON, its
    beginning and end are stored. A later frame with both, and pure base64 between them, must be the same
    message with another payload, and needs no JSON parser.
    """

    __slots__ = ("_event", "_lessons", "around")

    def __init__(self, event: str = "media") -> None:
        self.around: tuple[bytes, bytes] | None = None
        """The text before and after the payload, once learned."""
        self._event = event
        self._lessons = 0

    def open(self, data: bytes) -> bytes | None:
        """Return the audio of a matching frame; None if the frame must be parsed as JSON."""
        if self.around is None:
            return None
        # Strict base64, so that no quote or backslash can hide between beginning and end.
        return from_base64(data, *self.around)

    def learn(self, data: bytes, payload: str) -> bool:
        """Store the text around the payload of a frame parsed as JSON; True if that was possible."""
        if self._lessons >= _MAX_LESSONS or not payload:
            return False
        self._lessons += 1
        prefix, found, suffix = data.partition(payload.encode())
        # The payload may be escaped in the frame, or occur first as another value.
        if found and self._payload_of(prefix + _PROBE.encode() + suffix) == _PROBE:
            self.around = prefix, suffix
            return True
        return False

    def _payload_of(self, data: bytes) -> object:
        try:
            message = json.loads(data)
            return message["media"]["payload"] if message["event"] == self._event else None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
