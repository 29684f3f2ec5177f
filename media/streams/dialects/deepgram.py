"""
Deepgram's Voice Agent, with mu-law at 8 kHz in binary frames both ways.

Every error of this vendor ends the session, and a report of speech means that queued audio is to be dropped.
It is not told what was heard: its protocol has no message for that.

Source: https://developers.deepgram.com/reference/voice-agent/voice-agent and
/docs/voice-agent-errors-warnings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from media.streams.commands import read_object
from media.streams.dialects.json_audio import compact
from media.streams.dialects.speech_model import Handler, ModelDialect, failed, tool_call
from media.streams.model import (
    AgentBatch,
    AgentCommand,
    AgentInterrupted,
    CommandError,
    Encoding,
    Track,
)

_LISTENS: Final = "nova-3"
_SPEAKS: Final = "aura-2-thalia-en"
_MAX_CALLS: Final = 64
# Vendors of language models by the beginning of a model's name; one may also be written before a slash.
_THINKS: Final = (("claude", "anthropic"), ("gemini", "google"))


class DeepgramDialect(ModelDialect):
    """Encodes and decodes the frames of one session."""

    name: ClassVar[str] = "deepgram"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("mulaw", 8000),)
    binary_audio: ClassVar[bool] = True

    __slots__ = ()

    def connected(self) -> bytes:
        """Write the configuration of the session."""
        choice = self._session.choice
        provider: dict[str, Any] = {"type": "deepgram", "model": choice.transcription or _LISTENS}
        if choice.language is not None:
            provider["language"] = choice.language
        think: dict[str, Any] = {"provider": _thinks(choice.model)}
        if choice.instructions is not None:
            think["prompt"] = choice.instructions
        if self._session.tools:
            think["functions"] = [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in self._session.tools
            ]
        agent: dict[str, Any] = {
            "listen": {"provider": provider},
            "think": think,
            "speak": {"provider": {"type": "deepgram", "model": choice.voice or _SPEAKS}},
        }
        if self._session.turns:
            agent["context"] = {
                "messages": [
                    {
                        "type": "History",
                        "role": "assistant" if turn.role == "agent" else "user",
                        "content": turn.text,
                    }
                    for turn in self._session.turns
                ]
            }
        audio = {
            "input": {"encoding": "mulaw", "sample_rate": 8000},
            "output": {"encoding": "mulaw", "sample_rate": 8000, "container": "none"},
        }
        return _frame("Settings", audio=audio, agent=agent)

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio, which is the audio itself."""
        return audio

    @property
    def envelope(self) -> tuple[bytes, bytes] | None:
        """Nothing: a binary frame is all audio."""
        return b"", b""

    def _greet(self, greeting: str) -> tuple[bytes, ...]:
        return (_frame("InjectAgentMessage", message=greeting),)

    def pressed(self, keys: str) -> tuple[bytes, ...]:
        """Write the keys that the party pressed as if it had said so."""
        return (_frame("InjectUserMessage", content=f"I pressed these keys of my telephone: {keys}"),)

    def tool_result(self, call_id: str, name: str, result: str, *, is_error: bool) -> tuple[bytes, ...]:
        """Write the result of a tool."""
        return (_frame("FunctionCallResponse", id=call_id, name=name, content=result),)

    def keep_alive(self) -> bytes | None:
        """Write the frame that keeps the session open while the call is not answered."""
        return _frame("KeepAlive") if self._is_ready and not self._is_started else None

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """Return the audio of a binary frame."""
        return data

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame; kinds that have no effect here are passed over."""
        message = read_object(data)
        kind = message.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        return AgentBatch() if handler is None else handler(self, message)

    def _applied(self, message: Mapping[str, Any]) -> AgentCommand:
        return AgentBatch() if self._is_ready else self._ready()

    def _speech(self, message: Mapping[str, Any]) -> AgentCommand:
        return AgentInterrupted()

    def _text(self, message: Mapping[str, Any]) -> AgentCommand:
        role = message.get("role")
        if role not in ("user", "assistant"):
            raise CommandError("role must be user or assistant")
        return self._said("user" if role == "user" else "agent", message.get("content"))

    def _functions(self, message: Mapping[str, Any]) -> AgentCommand:
        functions = message.get("functions")
        if not isinstance(functions, list) or len(functions) > _MAX_CALLS:
            raise CommandError(f"functions must be a list of at most {_MAX_CALLS}")
        calls = [item for item in functions if isinstance(item, dict) and item.get("client_side", True)]
        return AgentBatch(
            tuple(tool_call(item.get("id"), item.get("name"), item.get("arguments")) for item in calls)
        )

    def _error(self, message: Mapping[str, Any]) -> AgentCommand:
        return failed(message.get("code"), message.get("description"))


def _thinks(model: str) -> dict[str, str]:
    vendor, slash, name = model.partition("/")
    if slash:
        return {"type": vendor, "model": name}
    return {
        "type": next((kind for begin, kind in _THINKS if model.startswith(begin)), "open_ai"),
        "model": model,
    }


def _frame(kind: str, **fields: Any) -> bytes:
    return compact({"type": kind, **fields}).encode()


_HANDLERS: Final[Mapping[str, Handler]] = {
    "SettingsApplied": DeepgramDialect._applied,
    "UserStartedSpeaking": DeepgramDialect._speech,
    "ConversationText": DeepgramDialect._text,
    "FunctionCallRequest": DeepgramDialect._functions,
    "Error": DeepgramDialect._error,
}
