"""
ElevenLabs Agents over WebSocket, in the formats that the agent has: mu-law, or 16-bit samples.

The vendor keeps the agent, with its prompt, voice and tools; what a session gives overrides it, as far as the
agent allows. The greeting is spoken as soon as a session begins, so that begins when the call is answered.

The URL of the WebSocket is signed by a request with the key (`media.streams.session_requests`).

Source: https://elevenlabs.io/docs/agents-platform/api-reference/agents-platform/websocket, and
https://elevenlabs.io/docs/api-reference/conversations/get-signed-url.
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
    read_part,
    tool_call,
)
from media.streams.model import (
    AgentBatch,
    AgentCommand,
    AgentInterrupted,
    AgentReply,
    CommandError,
    Encoding,
    StreamSetup,
    Track,
)
from media.streams.speech_models import ModelTurn

_RATE_HZ: Final = 16_000
_FORMAT: Final = re.compile(r"(ulaw|pcm)_([0-9]{4,6})")
_CODINGS: Final[Mapping[str, Encoding]] = {"ulaw": "mulaw", "pcm": "l16"}


class ElevenLabsDialect(ModelDialect):
    """Encodes and decodes the frames of one session."""

    name: ClassVar[str] = "elevenlabs"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("l16", _RATE_HZ),)
    begins_with_call: ClassVar[bool] = True

    __slots__ = ("_audio_event", "_cut_to", "_from_vendor", "_to_vendor")

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._to_vendor: AudioConverter | None = None
        self._from_vendor: AudioConverter | None = None
        self._audio_event: AudioEvent | None = None
        self._cut_to = -1
        """Identifier of the last event whose audio was interrupted."""

    def start(self, unix_ms: int = 0) -> bytes:
        """Write what begins the session: the call is answered."""
        self._is_started = True
        session, choice = self._session, self._session.choice
        agent: dict[str, Any] = {}
        if choice.instructions is not None:
            agent["prompt"] = {"prompt": choice.instructions}
        if session.turns:
            # The conversation goes on: it is told in a text of its own, and nobody is greeted again.
            agent["first_message"] = ""
        elif choice.greeting is not None:
            agent["first_message"] = choice.greeting
        if choice.language is not None:
            agent["language"] = choice.language.partition("-")[0]
        override: dict[str, Any] = {"agent": agent} if agent else {}
        if choice.voice is not None:
            override["tts"] = {"voice_id": choice.voice}
        fields = {"conversation_config_override": override} if override else {}
        return _frame("conversation_initiation_client_data", **fields)

    @property
    def envelope(self) -> AudioEvent | None:
        """Messages with audio that was not interrupted, once the vendor has said its format."""
        return self._audio_event

    @property
    def audio_converter(self) -> AudioConverter | None:
        """Converter to the vendor's format, once it has said that."""
        return self._to_vendor

    def audio_template(self, track: Track) -> tuple[bytes, int]:
        """Return a frame of audio with its place."""
        return b'{"user_audio_chunk":"%s"}' % AUDIO.encode(), 0

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio that is in the vendor's format."""
        return to_base64(b'{"user_audio_chunk":"', audio, b'"}')

    def _restored(self) -> tuple[bytes, ...]:
        turns = self._session.turns
        if not turns:
            return ()
        text = "The conversation was interrupted for a moment. Until then it was:\n" + "\n".join(
            map(_line, turns)
        )
        return (_frame("contextual_update", text=text),)

    def pressed(self, keys: str) -> tuple[bytes, ...]:
        """Write the keys that the party pressed as a text of it."""
        return (_frame("user_message", text=f"I pressed these keys of my telephone: {keys}"),)

    def tool_result(self, call_id: str, name: str, result: str, *, is_error: bool) -> tuple[bytes, ...]:
        """Write the result of a tool."""
        return (_frame("client_tool_result", tool_call_id=call_id, result=result, is_error=is_error),)

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame; kinds that have no effect here are passed over."""
        message = read_object(data)
        kind = message.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        return AgentBatch() if handler is None else handler(self, message)

    def _metadata(self, message: Mapping[str, Any]) -> AgentCommand:
        if self._is_ready:
            return AgentBatch()
        event = read_part(message, "conversation_initiation_metadata_event")
        ours: tuple[Encoding, int] = ("l16", _RATE_HZ)
        heard, spoken = _format(event, "user_input_audio_format"), _format(event, "agent_output_audio_format")
        if heard is None or spoken is None:
            return failed("audio_format", "the agent's audio format is neither PCM nor mu-law")
        self._to_vendor = AudioConverter(ours, heard)
        self._from_vendor = AudioConverter(spoken, ours)
        self._expect_audio()
        return self._ready()

    def _expect_audio(self) -> None:
        self._audio_event = AudioEvent(
            "/audio_event/audio_base_64",
            {"/type": "audio"},
            {"/audio_event/event_id": self._cut_to + 1},
            converter=self._from_vendor,
            whole=True,
        )

    def _audio(self, message: Mapping[str, Any]) -> bytes | AgentCommand:
        event = read_part(message, "audio_event")
        if self._from_vendor is None:
            raise CommandError("audio before the metadata")
        size = self._from_vendor.sample_bytes
        audio = read_audio(event.get("audio_base_64"), "audio_event.audio_base_64", "audio", size)
        if _event_id(event) <= self._cut_to:
            return AgentBatch()
        # Each event is a piece of speech of its own; nothing of it waits for the next.
        return self._from_vendor.whole(audio)

    def _interruption(self, message: Mapping[str, Any]) -> AgentCommand:
        self._cut_to = max(self._cut_to, _event_id(read_part(message, "interruption_event")))
        if self._from_vendor is not None:
            self._expect_audio()
        return AgentInterrupted()

    def _ping(self, message: Mapping[str, Any]) -> AgentCommand:
        return AgentReply((_frame("pong", event_id=_event_id(read_part(message, "ping_event"))),))

    def _user_said(self, message: Mapping[str, Any]) -> AgentCommand:
        return self._said("user", read_part(message, "user_transcription_event").get("user_transcript"))

    def _agent_said(self, message: Mapping[str, Any]) -> AgentCommand:
        return self._said("agent", read_part(message, "agent_response_event").get("agent_response"))

    def _tool(self, message: Mapping[str, Any]) -> AgentCommand:
        called = read_part(message, "client_tool_call")
        return tool_call(called.get("tool_call_id"), called.get("tool_name"), called.get("parameters") or {})

    def _error(self, message: Mapping[str, Any]) -> AgentCommand:
        event = message.get("error_event")
        event = event if isinstance(event, dict) else message
        code = event.get("error_type") or event.get("code")
        return failed(code if isinstance(code, str) else str(code), event.get("message"))


def _line(turn: ModelTurn) -> str:
    return f"{'You' if turn.role == 'agent' else 'Caller'}: {turn.text}"


def _event_id(event: Mapping[str, Any]) -> int:
    value = event.get("event_id")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise CommandError("event_id must be a whole number")
    return value


def _format(event: Mapping[str, Any], name: str) -> tuple[Encoding, int] | None:
    found = _FORMAT.fullmatch(clean_text(event.get(name, f"pcm_{_RATE_HZ}"), 32))
    if found is None or int(found[2]) not in RATES_HZ:
        return None
    return _CODINGS[found[1]], int(found[2])


def _frame(kind: str, **fields: Any) -> bytes:
    return compact({"type": kind, **fields}).encode()


_HANDLERS: Final[Mapping[str, Handler]] = {
    "conversation_initiation_metadata": ElevenLabsDialect._metadata,
    "audio": ElevenLabsDialect._audio,
    "interruption": ElevenLabsDialect._interruption,
    "ping": ElevenLabsDialect._ping,
    "user_transcript": ElevenLabsDialect._user_said,
    "agent_response": ElevenLabsDialect._agent_said,
    "client_tool_call": ElevenLabsDialect._tool,
    "error": ElevenLabsDialect._error,
    "client_error": ElevenLabsDialect._error,
}
