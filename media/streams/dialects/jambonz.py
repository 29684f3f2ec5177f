"""
Binary L16 with text frames of JSON, compatible with servers for jambonz's `listen` verb.

The first text frame describes the call and has neither `event` nor `type`. Marks are text frames, never part
of the audio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from media.audio import WavError, read_wav
from media.streams.commands import read_audio, read_mark_name, read_object
from media.streams.conversion import AudioConverter, read_rate, resampled
from media.streams.dialects.binary_audio import MARK_PREFIX, BinaryAudioDialect
from media.streams.dialects.json_audio import compact, reconnect_fields
from media.streams.model import (
    AgentClear,
    AgentClearMarks,
    AgentCommand,
    AgentHangup,
    AgentPlay,
    CommandError,
    StreamSetup,
)

_PLAY_PREFIX = "play:"
# Durations of DTMF keys are in RTP timestamp units at 8 kHz.
_RTP_UNITS_PER_MS = 8


class JambonzDialect(BinaryAudioDialect):
    """Encodes and decodes the frames of one stream."""

    name: ClassVar[str] = "jambonz"
    subprotocols: ClassVar[tuple[str, ...]] = ("audio.drachtio.org",)

    __slots__ = ("_converters",)

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._converters: dict[int, AudioConverter] = {}

    def start(self, unix_ms: int = 0) -> bytes:
        """Write the frame that describes the call and its audio format."""
        setup = self._setup
        body: dict[str, Any] = {
            "sampleRate": setup.sample_rate,
            "mixType": "mono",
            "callSid": setup.call_sid,
            "direction": setup.direction,
            "from": setup.from_,
            "to": setup.to,
            "callId": setup.sip_call_id,
            "callStatus": "in-progress",
            "sipStatus": 200,
            "accountSid": setup.account_sid,
            "applicationSid": "",
            "customerData": dict(setup.custom_parameters),
        }
        return compact(body | reconnect_fields(setup)).encode()

    def mark(self, name: str, *, cleared: bool) -> bytes:
        """Write that the audio before a mark was played or cleared, or that a piece of audio is done."""
        if name.startswith(_PLAY_PREFIX):
            done = {"id": name.removeprefix(_PLAY_PREFIX)}
            return _typed("playDone", done | {"status": "cleared"} if cleared else done)
        event = "cleared" if cleared else "playout"
        return _typed("mark", {"name": name.removeprefix(MARK_PREFIX), "event": event})

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        body = {"event": "dtmf", "dtmf": digit, "duration": duration_ms * _RTP_UNITS_PER_MS}
        return compact(body).encode()

    def stop(self, reason: str, detail: str) -> bytes:
        """Write the last frame."""
        body = {"callSid": self._setup.call_sid, "reason": reason, "detail": detail}
        return self.event("stop", "stop", body)

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """Parse a binary frame: audio, or an empty one, by which a server ends the call."""
        return super().decode_binary(data) if data else AgentHangup()

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame."""
        message = read_object(data)
        kind = message.get("type")
        if kind is None:
            return self._common(message)
        own = _COMMANDS.get(kind) if isinstance(kind, str) else None
        if own is not None:
            return own(self, message.get("data"))
        if not isinstance(kind, str):
            return self._common({})
        # The commands of every dialect may come in this dialect's form.
        return self._common({kind: message.get("data")}, word=kind)

    def play_audio(self, data: object) -> AgentPlay:
        """
        Parse a piece of audio; it replaces the queued audio, unless `queuePlay` is true.

        Raises:
            CommandError: A field is missing or wrong, or the audio cannot be decoded.
        """
        body = data if isinstance(data, dict) else {}
        mark = body.get("id")
        if mark is not None:
            mark = _PLAY_PREFIX + read_mark_name(mark, "data.id")
        queued = body.get("queuePlay", False)
        if not isinstance(queued, bool):
            raise CommandError("data.queuePlay must be true or false", ref="playAudio")
        if not queued:
            self._forget()
        return AgentPlay(self._audio_of(body), mark, replaces=not queued)

    def _audio_of(self, body: Mapping[str, Any]) -> bytes:
        kind, content = body.get("audioContentType"), body.get("audioContent")
        if kind not in ("raw", "wav", "wave"):
            raise CommandError("data.audioContentType must be raw, wav or wave", ref="playAudio")
        audio = read_audio(content, "data.audioContent", "playAudio", 2 if kind == "raw" else 1)
        if kind != "raw":
            return self._from_wav(audio)
        return self._converter(read_rate(body, self._setup.sample_rate)).whole(audio)

    def _from_wav(self, data: bytes) -> bytes:
        try:
            clip = read_wav(data).for_engine()
        except WavError as error:
            raise CommandError(f"data.audioContent is no WAV file: {error}", ref="playAudio") from None
        return resampled(clip.pcm, clip.sample_rate, self._setup.sample_rate)

    def _converter(self, rate_hz: int) -> AudioConverter:
        converter = self._converters.get(rate_hz)
        if converter is None:
            converter = AudioConverter(("l16", rate_hz), ("l16", self._setup.sample_rate))
            self._converters[rate_hz] = converter
        return converter

    def kill_audio(self, data: object) -> AgentClear:
        """Clear the audio that was not played yet."""
        self._forget()
        return AgentClear()

    def _forget(self) -> None:
        for converter in self._converters.values():
            converter.reset()


_COMMANDS: dict[str, Callable[[JambonzDialect, object], AgentCommand]] = {
    "playAudio": JambonzDialect.play_audio,
    "killAudio": JambonzDialect.kill_audio,
    "clearMarks": lambda dialect, data: AgentClearMarks(MARK_PREFIX),
    "disconnect": lambda dialect, data: AgentHangup(),
}


def _typed(kind: str, data: Mapping[str, Any]) -> bytes:
    return compact({"type": kind, "data": data}).encode()
