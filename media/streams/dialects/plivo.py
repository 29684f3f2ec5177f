"""
Text frames of JSON, mu-law at 8 kHz or L16, compatible with servers for Plivo's audio streams and for Vobiz.

The agent states the format of each piece of audio, which is converted if it differs from the stream's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import quote

from media.streams.commands import CommandReader, decode_command, read_clear, read_mark_name, read_object
from media.streams.conversion import AudioConverter, read_rate
from media.streams.dialects.base import AUDIO, CHUNK, NUMBER, TIME
from media.streams.dialects.json_audio import (
    JsonAudioDialect,
    compact,
    ending,
    reconnect_fields,
    tracks_of,
)
from media.streams.model import (
    AgentClear,
    AgentCommand,
    AgentMark,
    AgentPlay,
    CommandError,
    Encoding,
    StreamSetup,
    Track,
)

# Every frame of audio repeats the headers; long ones are only in `start`.
_MAX_REPEATED_HEADERS_CHARS = 512

_CONTENT_TYPES: dict[str, Encoding] = {"audio/x-mulaw": "mulaw", "audio/x-alaw": "alaw", "audio/x-l16": "l16"}
_CONTENT_NAMES: dict[Encoding, str] = {encoding: name for name, encoding in _CONTENT_TYPES.items()}


def _checkpoint(message: Mapping[str, Any]) -> AgentMark:
    return AgentMark(read_mark_name(message.get("name"), "name"))


class PlivoDialect(JsonAudioDialect):
    """Encodes and decodes the frames of one stream; answers to a checkpoint or a clear have no number."""

    name: ClassVar[str] = "plivo"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("mulaw", 8000), ("l16", 8000), ("l16", 16000))
    audio_event: ClassVar[str] = "playAudio"
    readers: ClassVar[Mapping[str, CommandReader]] = MappingProxyType(
        {"checkpoint": _checkpoint, "clearAudio": read_clear}
    )
    sequence_name: ClassVar[str] = "sequenceNumber"
    stream_name: ClassVar[str] = "streamId"
    numbers_are_text: ClassVar[bool] = False

    __slots__ = ("_converters", "_learnt", "_started_unix_ms")

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._started_unix_ms = 0
        self._converters: dict[tuple[Encoding, int], AudioConverter] = {}
        self._learnt: AudioConverter | None = None

    def start(self, unix_ms: int = 0) -> bytes:
        """Write the frame that describes the call and its audio format."""
        setup = self._setup
        self._started_unix_ms = unix_ms
        body: dict[str, Any] = {
            "callId": setup.call_sid,
            "streamId": setup.stream_sid,
            "accountId": setup.account_sid,
            "tracks": tracks_of(setup),
            "mediaFormat": {"encoding": _CONTENT_NAMES[setup.encoding], "sampleRate": setup.sample_rate},
        }
        head = f'{{"event":"start","sequenceNumber":{self._number()},'
        start, headers = compact(body | reconnect_fields(setup)), json.dumps(_headers_of(setup))
        return f'{head}"start":{start},"extra_headers":{headers}}}'.encode()

    def _origin_ms(self) -> int:
        return self._started_unix_ms

    def mark(self, name: str, *, cleared: bool) -> bytes | None:
        """Write that the audio before a checkpoint was played; None for a cleared one."""
        return None if cleared else self._played(name)

    def cleared(self) -> bytes:
        """Write that the audio was cleared."""
        return f'{{"event":"clearedAudio","streamId":{self._sid_json}}}'.encode()

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        body = {"track": "inbound", "digit": digit, "timestamp": str(self._started_unix_ms + self._now_ms)}
        return self.event("dtmf", "dtmf", body)

    def stop(self, reason: str, detail: str) -> bytes:
        """Write the last frame."""
        body = {"callId": self._setup.call_sid, "accountId": self._setup.account_sid}
        return self.event("stop", "stop", body | ending(reason, detail))

    @property
    def envelope(self) -> tuple[bytes, bytes] | None:
        """Text around the audio of the agent's frames, once learned, if it has the format of the stream."""
        return self._envelope.around if self._learnt is not None and self._learnt.unchanged else None

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame."""
        audio = self._envelope.open(data)
        learnt = self._learnt
        if audio is not None and learnt is not None and not len(audio) % learnt.sample_bytes:
            return learnt.convert(audio)
        message = read_object(data)
        if message.get("event") == self.audio_event:
            return self._read_audio(data, message)
        command = decode_command(message, self.readers)
        if isinstance(command, AgentClear):
            for converter in self._converters.values():
                converter.reset()
        return self._behind_the_rest(command) if isinstance(command, AgentMark) else command

    def _read_audio(self, data: bytes, message: Mapping[str, Any]) -> bytes:
        converter = self._converter(message.get("media"))
        payload, audio = self._payload(message, converter.sample_bytes)
        if self._envelope.learn(data, payload):
            self._learnt = converter
        return converter.convert(audio)

    def _converter(self, media: object) -> AudioConverter:
        """Return the converter from a described format to the stream's."""
        described = media if isinstance(media, dict) else {}
        source = (_encoding_of(described, self._setup), read_rate(described, self._setup.sample_rate))
        converter = self._converters.get(source)
        if converter is None:
            target = (self._setup.encoding, self._setup.sample_rate)
            converter = self._converters[source] = AudioConverter(source, target)
        return converter

    def _behind_the_rest(self, mark: AgentMark) -> AgentCommand:
        """Set a checkpoint after all audio, including the audio that converters hold back."""
        rest = b"".join(converter.flush() for converter in self._converters.values())
        return AgentPlay(rest, mark.name) if rest else mark

    def _played(self, name: str) -> bytes:
        head = f'{{"event":"playedStream","streamId":{self._sid_json}'
        return f'{head},"name":{json.dumps(name)}}}'.encode()

    def _template(self, track: Track) -> str:
        headers = json.dumps(_headers_of(self._setup))
        repeated = headers if len(headers) <= _MAX_REPEATED_HEADERS_CHARS else '""'
        return (
            f'{{"event":"media","sequenceNumber":{NUMBER},"streamId":{self._sid_json},'
            f'"media":{{"track":"{track}","timestamp":"{TIME}","chunk":{CHUNK},"payload":"{AUDIO}"}},'
            f'"extra_headers":{repeated}}}'
        )


class VobizDialect(PlivoDialect):
    """The same under another name; its answer to a checkpoint lacks the stream's id."""

    name: ClassVar[str] = "vobiz"

    __slots__ = ()

    def _played(self, name: str) -> bytes:
        return f'{{"event":"playedStream","name":{json.dumps(name)}}}'.encode()


def _headers_of(setup: StreamSetup) -> str:
    """Join custom parameters in this dialect's form; separators in names and values are escaped."""
    return ";".join(f"{_escaped(name)}={_escaped(value)}" for name, value in setup.custom_parameters)


def _escaped(text: str) -> str:
    return quote(text, safe=" !#$&'()*+,/:<>?@[]^_`{|}~-.", errors="replace")


def _encoding_of(described: Mapping[str, Any], setup: StreamSetup) -> Encoding:
    content_type = described.get("contentType")
    if content_type is None:
        return setup.encoding
    kind = content_type.partition(";")[0].strip().lower() if isinstance(content_type, str) else None
    if kind not in _CONTENT_TYPES:
        known = ", ".join(_CONTENT_TYPES)
        raise CommandError(f"media.contentType must be one of {known}", ref="playAudio")
    return _CONTENT_TYPES[kind]
