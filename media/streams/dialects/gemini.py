"""
Gemini Live over WebSocket: 16-bit samples, at 16 kHz to the vendor and 24 kHz from it.

The vendor sends its JSON in binary frames. It reports an interruption, and needs not be told what was heard.
It announces the end of a connection, after which the session is continued by its token.

Source: https://ai.google.dev/api/live and https://ai.google.dev/gemini-api/docs/live-session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from media._engine import to_base64
from media.streams.audio_event import AudioEvent
from media.streams.commands import read_audio, read_object
from media.streams.conversion import RATES_HZ, AudioConverter
from media.streams.dialects.base import AUDIO
from media.streams.dialects.json_audio import compact
from media.streams.dialects.speech_model import (
    Handler,
    ModelDialect,
    clean_text,
    failed,
    optional_part,
    tool_call,
    usage_of,
)
from media.streams.model import (
    AgentBatch,
    AgentCommand,
    AgentInterrupted,
    CommandError,
    Encoding,
    StreamSetup,
    Track,
)

_RATE_HZ: Final = 16_000
_DEFAULT_RATE_HZ: Final = 24_000
_MIME: Final = re.compile(r"audio/(?:pcm|l16)(?:;\s*rate=([0-9]{4,6}))?", re.IGNORECASE)
_AUDIO_BEGIN: Final = b'{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"'
_AUDIO_END: Final = b'"}}}'
# A message of one part, of audio, and nothing that says more about the turn.
_PARTS: Final = "/serverContent/modelTurn/parts"
_DATA: Final = f"{_PARTS}/0/inlineData"
_ALONE: Final = ("", "/serverContent", _PARTS)
_MAX_MIME_CHARS: Final = 64
_MAX_PARTS: Final = 64
_MAX_TEXT_CHARS: Final = 4000
_MAX_TOKEN_CHARS: Final = 4096


class GeminiDialect(ModelDialect):
    """Encodes and decodes the frames of one session."""

    name: ClassVar[str] = "gemini"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("l16", _RATE_HZ),)

    __slots__ = ("_audio_event", "_converters", "_heard", "_is_leaving", "_mime", "_resumption", "_spoken")

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._converters: dict[int, AudioConverter] = {}
        self._audio_event: AudioEvent | None = None
        self._mime = ""
        """Type of the audio in these messages."""
        self._heard = ""
        self._spoken = ""
        self._is_leaving = False
        self._resumption: str | None = None

    @property
    def resumption(self) -> str | None:
        """The vendor's newest token for continuing this session."""
        return self._resumption

    def connected(self) -> bytes:
        """Write the configuration of the session."""
        session, choice = self._session, self._session.choice
        generation: dict[str, Any] = {"responseModalities": ["AUDIO"]}
        speech: dict[str, Any] = {}
        if choice.voice is not None:
            speech["voiceConfig"] = {"prebuiltVoiceConfig": {"voiceName": choice.voice}}
        if choice.language is not None:
            speech["languageCode"] = choice.language
        if speech:
            generation["speechConfig"] = speech
        model = choice.model if "/" in choice.model else f"models/{choice.model}"
        setup: dict[str, Any] = {
            "model": model,
            "generationConfig": generation,
            "inputAudioTranscription": {},
            "outputAudioTranscription": {},
            "contextWindowCompression": {"slidingWindow": {}},
            "sessionResumption": {"handle": session.resumption} if session.resumption else {},
        }
        if choice.instructions is not None:
            setup["systemInstruction"] = {"parts": [{"text": choice.instructions}]}
        if session.tools:
            declared = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.parameters,
                }
                for tool in session.tools
            ]
            setup["tools"] = [{"functionDeclarations": declared}]
        return _frame(setup=setup)

    def audio_template(self, track: Track) -> tuple[bytes, int]:
        """Return a frame of audio with its place."""
        return _AUDIO_BEGIN + AUDIO.encode() + _AUDIO_END, 0

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio."""
        return to_base64(_AUDIO_BEGIN, audio, _AUDIO_END)

    @property
    def envelope(self) -> AudioEvent | None:
        """Messages with more audio; the first of an answer ends what the user was saying, and is parsed."""
        return None if self._heard else self._audio_event

    def _greet(self, greeting: str) -> tuple[bytes, ...]:
        words = f"(The caller is on the line now. Say exactly this, and nothing else: {greeting})"
        return (_frame(realtimeInput={"text": words}),)

    def _restored(self) -> tuple[bytes, ...]:
        """Write the conversation so far, if the vendor has no token for it."""
        session = self._session
        if not session.turns or session.resumption is not None:
            return ()
        turns = [
            {"role": "model" if turn.role == "agent" else "user", "parts": [{"text": turn.text}]}
            for turn in session.turns
        ]
        return (_frame(clientContent={"turns": turns, "turnComplete": False}),)

    def pressed(self, keys: str) -> tuple[bytes, ...]:
        """Write the keys that the party pressed as a text of it."""
        return (_frame(realtimeInput={"text": f"I pressed these keys of my telephone: {keys}"}),)

    def tool_result(self, call_id: str, name: str, result: str, *, is_error: bool) -> tuple[bytes, ...]:
        """Write the result of a tool."""
        response = {"id": call_id, "name": name, "response": {"error" if is_error else "output": result}}
        return (_frame(toolResponse={"functionResponses": [response]}),)

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """Parse a binary frame, which holds JSON."""
        return self.decode(data)

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a frame; parts that have no effect here are passed over."""
        message = read_object(data)
        parts: list[bytes | AgentCommand] = []
        for name, handler in _HANDLERS.items():
            if isinstance(message.get(name), dict):
                read = handler(self, message[name])
                parts += read.parts if isinstance(read, AgentBatch) else [read]
        return parts[0] if len(parts) == 1 else AgentBatch(tuple(parts))

    def _complete(self, _: Mapping[str, Any]) -> AgentCommand:
        return AgentBatch() if self._is_ready else self._ready()

    def _content(self, content: Mapping[str, Any]) -> AgentCommand:
        parts: list[bytes | AgentCommand] = []
        self._heard = _joined(self._heard, optional_part(content, "inputTranscription"))
        self._spoken = _joined(self._spoken, optional_part(content, "outputTranscription"))
        turn = optional_part(content, "modelTurn").get("parts", [])
        if not isinstance(turn, list) or len(turn) > _MAX_PARTS:
            raise CommandError(f"modelTurn.parts must be a list of at most {_MAX_PARTS}")
        if turn:
            parts.append(self._transcript("user"))
        parts += [self._audio(part["inlineData"]) for part in turn if _has_audio(part)]
        if content.get("interrupted") is True:
            for converter in self._converters.values():
                converter.reset()
            parts.append(AgentInterrupted())
        if content.get("turnComplete") is True or content.get("interrupted") is True:
            parts += [converter.flush() for converter in self._converters.values()]
            parts += [self._transcript("user"), self._transcript("agent")]
            if self._is_leaving:
                parts.append(failed("go_away", "the connection is at its longest time", may_continue=True))
        return AgentBatch(tuple(parts))

    def _audio(self, data: Mapping[str, Any]) -> bytes:
        said = str(data.get("mimeType", ""))[:_MAX_MIME_CHARS]
        mime = _MIME.fullmatch(said)
        rate_hz = int(mime[1] or _DEFAULT_RATE_HZ) if mime is not None else 0
        if rate_hz not in RATES_HZ:
            raise CommandError("inlineData.mimeType must be audio/pcm with a rate")
        converter = self._converters.get(rate_hz)
        if converter is None:
            converter = self._converters[rate_hz] = AudioConverter(("l16", rate_hz), ("l16", _RATE_HZ))
        audio = read_audio(data.get("data"), "inlineData.data", "serverContent", 2)
        if said != self._mime:
            self._mime = said
            self._audio_event = AudioEvent(
                f"{_DATA}/data",
                {f"{_DATA}/mimeType": said},
                alone=_ALONE,
                in_binary=True,
                converter=converter,
            )
        return converter.convert(audio)

    def _transcript(self, role: str) -> AgentCommand:
        if role == "user":
            text, self._heard = self._heard, ""
            return self._said("user", text)
        text, self._spoken = self._spoken, ""
        return self._said("agent", text)

    def _tools(self, called: Mapping[str, Any]) -> AgentCommand:
        calls = called.get("functionCalls")
        if not isinstance(calls, list) or len(calls) > _MAX_PARTS:
            raise CommandError(f"toolCall.functionCalls must be a list of at most {_MAX_PARTS}")
        given = [item for item in calls if isinstance(item, dict)]
        return AgentBatch(
            tuple(tool_call(item.get("id"), item.get("name"), item.get("args") or {}) for item in given)
        )

    def _usage(self, usage: Mapping[str, Any]) -> AgentCommand:
        return usage_of(
            responses=1,
            input_tokens=usage.get("promptTokenCount"),
            output_tokens=usage.get("responseTokenCount"),
            cached_tokens=usage.get("cachedContentTokenCount"),
        )

    def _go_away(self, _: Mapping[str, Any]) -> AgentCommand:
        """Leave at the end of the present turn."""
        self._is_leaving = True
        return AgentBatch()

    def _resumable(self, update: Mapping[str, Any]) -> AgentCommand:
        token = update.get("newHandle")
        if update.get("resumable") is True and isinstance(token, str) and 0 < len(token) <= _MAX_TOKEN_CHARS:
            self._resumption = token
        return AgentBatch()


def _joined(text: str, transcription: Mapping[str, Any]) -> str:
    piece = transcription.get("text")
    # Pieces begin with their blank; only the whole is stripped.
    return (text + piece)[:_MAX_TEXT_CHARS] if isinstance(piece, str) else text


def _has_audio(part: object) -> bool:
    data = part.get("inlineData") if isinstance(part, dict) else None
    return isinstance(data, dict) and clean_text(data.get("mimeType"), _MAX_MIME_CHARS).lower().startswith(
        "audio/"
    )


def _frame(**fields: Any) -> bytes:
    return compact(fields).encode()


_HANDLERS: Final[Mapping[str, Handler]] = {
    "setupComplete": GeminiDialect._complete,
    "serverContent": GeminiDialect._content,
    "toolCall": GeminiDialect._tools,
    "usageMetadata": GeminiDialect._usage,
    "goAway": GeminiDialect._go_away,
    "sessionResumptionUpdate": GeminiDialect._resumable,
}
