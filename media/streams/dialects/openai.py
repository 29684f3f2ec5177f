"""
OpenAI Realtime over WebSocket, with G.711 mu-law both ways.

The vendor detects speech and ends its answer itself when the party interrupts; we drop what was not played,
and truncate the conversation to what was.

Source: https://developers.openai.com/api/reference/resources/realtime/client-events and /server-events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from media._engine import to_base64
from media.streams.audio_event import AudioEvent
from media.streams.commands import read_audio, read_object
from media.streams.dialects.base import AUDIO
from media.streams.dialects.json_audio import compact
from media.streams.dialects.speech_model import (
    Handler,
    ModelDialect,
    clean_text,
    failed,
    optional_part,
    read_id,
    read_part,
    tool_call,
    usage_of,
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

_DEFAULT_TRANSCRIPTION: Final = "gpt-transcribe"
_BYTES_PER_MS: Final = 8
# Items whose audio may still wait in the playout queue, and those whose further audio is dropped.
_MAX_ITEMS: Final = 64
_MAX_PENDING_CALLS: Final = 64
_MAX_FAILURES: Final = 2

_AUDIO_DELTA: Final = "response.output_audio.delta"
_AUDIO_BEGIN: Final = b'{"type":"input_audio_buffer.append","audio":"'
_AUDIO_END: Final = b'"}'

# Errors after which the session is of no more use; others concern one event of ours.
_EXPIRED: Final = "session_expired"
_FATAL: Final = frozenset(
    {_EXPIRED, "insufficient_quota", "invalid_api_key", "account_deactivated", "model_not_found"}
)


@dataclass(slots=True)
class _Item:
    """Audio of one item of the conversation that was passed to the playout queue."""

    item_id: str
    content_index: int
    size_bytes: int = 0


class OpenAIDialect(ModelDialect):
    """Encodes and decodes the frames of one session."""

    name: ClassVar[str] = "openai"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("mulaw", 8000),)

    __slots__ = (
        "_audio_event",
        "_calls",
        "_cut",
        "_failures",
        "_is_answering",
        "_items",
        "_wants_response",
    )

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._items: list[_Item] = []
        self._audio_event: AudioEvent | None = None
        """Messages of audio of the last item."""
        self._cut: list[str] = []
        self._calls: set[str] = set()
        self._is_answering = False
        self._wants_response = False
        self._failures = 0

    def connected(self) -> bytes:
        """Write the configuration of the session."""
        choice = self._session.choice
        transcription = choice.transcription or _DEFAULT_TRANSCRIPTION
        heard: dict[str, Any] = {
            "format": {"type": "audio/pcmu"},
            "turn_detection": {"type": "server_vad", "create_response": True, "interrupt_response": True},
        }
        if transcription != "none":
            heard["transcription"] = {"model": transcription}
            if choice.language is not None:
                heard["transcription"]["language"] = choice.language.partition("-")[0]
        spoken: dict[str, Any] = {"format": {"type": "audio/pcmu"}}
        if choice.voice is not None:
            spoken["voice"] = choice.voice
        session: dict[str, Any] = {
            "type": "realtime",
            "output_modalities": ["audio"],
            "audio": {"input": heard, "output": spoken},
        }
        if choice.instructions is not None:
            session["instructions"] = choice.instructions
        if self._session.tools:
            session["tool_choice"] = "auto"
            session["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                }
                for tool in self._session.tools
            ]
        return _frame("session.update", session=session)

    def audio_template(self, track: Track) -> tuple[bytes, int]:
        """Return a frame of audio with its place."""
        return _AUDIO_BEGIN + AUDIO.encode() + _AUDIO_END, 0

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio."""
        return to_base64(_AUDIO_BEGIN, audio, _AUDIO_END)

    @property
    def envelope(self) -> AudioEvent | None:
        """Messages with more audio of the item whose audio came last."""
        return self._audio_event

    def played(self, size_bytes: int) -> None:
        """Count audio of that item."""
        self._items[-1].size_bytes += size_bytes

    def _greet(self, greeting: str) -> tuple[bytes, ...]:
        words = f"Greet the caller now. Say exactly this, and nothing else: {greeting}"
        self._is_answering = True
        return (_frame("response.create", response={"instructions": words}),)

    def _restored(self) -> tuple[bytes, ...]:
        return tuple(
            _message("assistant", "output_text", turn.text)
            if turn.role == "agent"
            else _message("user", "input_text", turn.text)
            for turn in self._session.turns
        )

    def pressed(self, keys: str) -> tuple[bytes, ...]:
        """Write the keys that the party pressed, and ask for an answer."""
        text = f"I pressed these keys of my telephone: {keys}"
        return (_message("user", "input_text", text), *self._ask())

    def tool_result(self, call_id: str, name: str, result: str, *, is_error: bool) -> tuple[bytes, ...]:
        """Write the result of a tool; when none is missing, ask for an answer."""
        self._calls.discard(call_id)
        item = {"type": "function_call_output", "call_id": call_id, "output": result}
        written = _frame("conversation.item.create", item=item)
        return (written,) if self._calls else (written, *self._ask())

    def _ask(self) -> tuple[bytes, ...]:
        """Ask for an answer, now or, since there is one at a time, when the present one is complete."""
        if self._is_answering:
            self._wants_response = True
            return ()
        self._is_answering = True
        return (_frame("response.create"),)

    def interrupted(self, unplayed_ms: int) -> tuple[bytes, ...]:
        """Truncate the items of which `unplayed_ms` in all, from the end, were not played."""
        frames = []
        for item in reversed(self._items):
            length_ms = item.size_bytes // _BYTES_PER_MS
            if unplayed_ms <= 0:
                break
            cut_ms = min(length_ms, unplayed_ms)
            unplayed_ms -= cut_ms
            frames.append(
                _frame(
                    "conversation.item.truncate",
                    item_id=item.item_id,
                    content_index=item.content_index,
                    audio_end_ms=length_ms - cut_ms,
                )
            )
            self._cut.append(item.item_id)
        if self._is_answering and self._items:
            # The vendor stops this answer; what is still on its way was not asked for any more.
            self._cut.append(self._items[-1].item_id)
        del self._cut[:-_MAX_ITEMS]
        self._items.clear()
        self._audio_event = None
        return tuple(frames)

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame; kinds that have no effect here are passed over."""
        message = read_object(data)
        kind = message.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        return AgentBatch() if handler is None else handler(self, message)

    def _audio(self, message: Mapping[str, Any]) -> bytes | AgentCommand:
        item_id = read_id(message.get("item_id"), "item_id")
        index = message.get("content_index", 0)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < 1000:
            raise CommandError("content_index must be a whole number from 0")
        audio = read_audio(message.get("delta"), "delta", _AUDIO_DELTA, 1)
        if item_id in self._cut:
            return AgentBatch()
        last = self._items[-1] if self._items else None
        if last is None or (last.item_id, last.content_index) != (item_id, index):
            last = _Item(item_id, index)
            self._items.append(last)
            same: dict[str, str | int] = {"/type": _AUDIO_DELTA, "/item_id": item_id, "/content_index": index}
            self._audio_event = AudioEvent("/delta", same)
            del self._items[:-_MAX_ITEMS]
        last.size_bytes += len(audio)
        return audio

    def _updated(self, message: Mapping[str, Any]) -> AgentCommand:
        return AgentBatch() if self._is_ready else self._ready()

    def _speech(self, message: Mapping[str, Any]) -> AgentCommand:
        return AgentInterrupted()

    def _begun(self, message: Mapping[str, Any]) -> AgentCommand:
        self._is_answering = True
        return AgentBatch()

    def _item_done(self, message: Mapping[str, Any]) -> AgentCommand:
        item = optional_part(message, "item")
        if item.get("type") != "function_call" or item.get("status") == "incomplete":
            return AgentBatch()
        call = tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        if len(self._calls) >= _MAX_PENDING_CALLS:
            raise CommandError("too many tools are in use")
        self._calls.add(call.call_id)
        return call

    def _response_done(self, message: Mapping[str, Any]) -> AgentCommand:
        self._is_answering = False
        response = read_part(message, "response")
        usage = optional_part(response, "usage")
        heard, spoken = (
            optional_part(usage, "input_token_details"),
            optional_part(usage, "output_token_details"),
        )
        parts: list[AgentCommand] = [
            usage_of(
                responses=1,
                input_tokens=usage.get("input_tokens"),
                output_tokens=usage.get("output_tokens"),
                input_audio_tokens=heard.get("audio_tokens"),
                cached_tokens=heard.get("cached_tokens"),
                output_audio_tokens=spoken.get("audio_tokens"),
            )
        ]
        if response.get("status") == "failed":
            error = optional_part(optional_part(response, "status_details"), "error")
            self._failures += 1
            if error.get("code") in _FATAL or self._failures >= _MAX_FAILURES:
                parts.append(failed(error.get("code") or error.get("type"), error.get("message")))
            else:
                # Told once more; the party would wait in silence otherwise.
                self._wants_response = True
        else:
            self._failures = 0
        if self._wants_response and not self._calls:
            self._wants_response = False
            parts.append(AgentReply(self._ask()))
        return AgentBatch(tuple(parts))

    def _agent_said(self, message: Mapping[str, Any]) -> AgentCommand:
        return self._said("agent", message.get("transcript"))

    def _user_said(self, message: Mapping[str, Any]) -> AgentCommand:
        return self._said("user", message.get("transcript"))

    def _error(self, message: Mapping[str, Any]) -> AgentCommand:
        """Evaluate an error; before the session is accepted, every one is fatal."""
        error = read_part(message, "error")
        code = error.get("code") or error.get("type")
        if not self._is_ready or clean_text(code, 100) in _FATAL:
            return failed(code, error.get("message"), may_continue=code == _EXPIRED)
        return AgentBatch()


def _frame(kind: str, **fields: Any) -> bytes:
    return compact({"type": kind, **fields}).encode()


def _message(role: str, kind: str, text: str) -> bytes:
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return _frame("conversation.item.create", item=item)


_HANDLERS: Final[Mapping[str, Handler]] = {
    "session.updated": OpenAIDialect._updated,
    _AUDIO_DELTA: OpenAIDialect._audio,
    "input_audio_buffer.speech_started": OpenAIDialect._speech,
    "response.created": OpenAIDialect._begun,
    "response.output_item.done": OpenAIDialect._item_done,
    "response.done": OpenAIDialect._response_done,
    "response.output_audio_transcript.done": OpenAIDialect._agent_said,
    "conversation.item.input_audio_transcription.completed": OpenAIDialect._user_said,
    "error": OpenAIDialect._error,
}
