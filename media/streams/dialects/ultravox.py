"""
Ultravox' calls over a server's WebSocket, with 16-bit samples at 16 kHz in binary frames both ways.

A request by HTTP creates the call, with all of its configuration; the answer has the URL of the WebSocket.
The vendor sends audio ahead of time and says when to drop it (`playback_clear_buffer`); it is not told what
was heard, since it counts the time itself. A call that has ended cannot be joined again: a session that
breaks is continued by a new call that knows the conversation.

Source: https://docs.ultravox.ai/api-reference/calls/calls-post, /apps/websockets, /apps/datamessages,
/tools/custom/parameters and /tools/custom/http-vs-client-tools; close codes from
https://github.com/fixie-ai/ultravox-client-sdk-js/pull/32; all read in November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from media.streams.commands import MAX_TRANSCRIPT_CHARS, read_object
from media.streams.dialects.json_audio import compact
from media.streams.dialects.speech_model import (
    Handler,
    ModelDialect,
    failed,
    tool_call,
)
from media.streams.model import (
    AgentBatch,
    AgentCommand,
    AgentFailed,
    AgentInterrupted,
    CommandError,
    Encoding,
    StreamSetup,
    Track,
)
from media.streams.speech_models import ModelSession, ModelTool, socket_url

_RATE_HZ: Final = 16_000
# As much as the vendor's documents recommend to those that drop audio when they are told to.
_BUFFER_MS: Final = 30_000
# The longest that the vendor waits for a tool; its default of 2.5 s is shorter than a transfer rings.
_TOOL_TIMEOUT: Final = "40s"
_MAX_DURATION_S: Final = 3600
# The audio's clock begins at the answer, the vendor's when it is joined.
_NEARLY_OVER_MS: Final = (_MAX_DURATION_S - 180) * 1000
_API_VERSION: Final = "apiVersion=1"
_MAX_SPOKEN: Final = 8
_MAX_ORDINAL: Final = 1 << 53
# By the SDK's documents, a call in the state `idle` is only being made ready.
_WORKING: Final = ("listening", "thinking", "speaking")
_ROLES: Final = {"agent": "MESSAGE_ROLE_AGENT", "user": "MESSAGE_ROLE_USER"}
# Of the schemas of all tools, once references are replaced; each value in them counts as some characters.
_MAX_SCHEMAS_CHARS: Final = 256 * 1024
_VALUE_CHARS: Final = 8


def call_request(session: ModelSession) -> bytes:
    """
    Write the body of the request that creates a call.

    Raises:
        CommandError: The schemas of the tools are too long.
    """
    choice = session.choice
    medium = {"inputSampleRate": _RATE_HZ, "outputSampleRate": _RATE_HZ, "clientBufferSizeMs": _BUFFER_MS}
    body: dict[str, Any] = {
        "model": choice.model,
        # The greeting is asked for when the call is answered; see `_greet`.
        "firstSpeakerSettings": {"user": {}},
        "maxDuration": f"{_MAX_DURATION_S}s",
        "medium": {"serverWebSocket": medium},
    }
    named = {"systemPrompt": choice.instructions, "voice": choice.voice, "languageHint": choice.language}
    body |= {name: value for name, value in named.items() if value is not None}
    if session.tools:
        schemas = _Schemas()
        body["selectedTools"] = [{"temporaryTool": _tool(tool, schemas)} for tool in session.tools]
    if session.turns:
        body["initialMessages"] = [{"role": _ROLES[turn.role], "text": turn.text} for turn in session.turns]
    return json.dumps(body).encode()


def read_call(body: bytes) -> str:
    """
    Return the URL of a call's WebSocket from the answer to its creation.

    Raises:
        CommandError: The answer has no such URL.
    """
    url = read_object(body).get("joinUrl")
    fault = socket_url(url)
    if fault is not None:
        raise CommandError(f"joinUrl {fault}")
    return f"{url}{'&' if '?' in str(url) else '?'}{_API_VERSION}"


class UltravoxDialect(ModelDialect):
    """Encodes and decodes the frames of one session."""

    name: ClassVar[str] = "ultravox"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("l16", _RATE_HZ),)
    binary_audio: ClassVar[bool] = True

    __slots__ = ("_spoken",)

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._spoken: dict[int, str] = {}
        """Utterances that are not complete, by their ordinals."""

    def media(self, audio: bytes, timestamp_ms: int, track: Track = "inbound") -> bytes:
        """Write a frame of audio, which is the audio itself."""
        return audio

    @property
    def envelope(self) -> tuple[bytes, bytes] | None:
        """Nothing: a binary frame is all audio."""
        return b"", b""

    def _greet(self, greeting: str) -> tuple[bytes, ...]:
        return (_frame("forced_agent_message", content=greeting, urgency="immediate"),)

    def pressed(self, keys: str) -> tuple[bytes, ...]:
        """Write the keys that the party pressed as a text of it."""
        text = f"I pressed these keys of my telephone: {keys}"
        return (_frame("user_text_message", text=text, urgency="immediate"),)

    def tool_result(self, call_id: str, name: str, result: str, *, is_error: bool) -> tuple[bytes, ...]:
        """Write the result of a tool; an error is one too, as the model does not see `errorMessage`."""
        return (_frame("client_tool_result", invocationId=call_id, result=result),)

    def closed(self, code: int, reason: str) -> AgentFailed | None:
        """Evaluate a close frame: 4000 is added to the status of HTTP that a fault has."""
        error = super().closed(code, reason)
        if error is None and self._now_ms >= _NEARLY_OVER_MS:
            return failed("max_duration", reason, may_continue=True)
        if error is not None and 4500 <= code < 4600:
            return replace(error, may_continue=True)
        return error

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """
        Return the audio of a binary frame.

        Raises:
            CommandError: It has half a sample.
        """
        if len(data) % 2:
            raise CommandError("A binary frame must hold whole samples of 16 bits", code="invalid_audio")
        return data

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame; kinds that have no effect here are passed over."""
        message = read_object(data)
        kind = message.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        return AgentBatch() if handler is None else handler(self, message)

    def _started(self, message: Mapping[str, Any]) -> AgentCommand:
        return AgentBatch() if self._is_ready else self._ready()

    def _state(self, message: Mapping[str, Any]) -> AgentCommand:
        return self._started(message) if message.get("state") in _WORKING else AgentBatch()

    def _clear(self, message: Mapping[str, Any]) -> AgentCommand:
        return AgentInterrupted()

    def _transcript(self, message: Mapping[str, Any]) -> AgentCommand:
        role, ordinal = message.get("role"), message.get("ordinal")
        if role not in ("agent", "user"):
            raise CommandError("role must be agent or user")
        if not isinstance(ordinal, int) or isinstance(ordinal, bool) or not 0 <= ordinal < _MAX_ORDINAL:
            raise CommandError("ordinal must be a whole number")
        if role == "user" and message.get("medium") == "text":
            # What we wrote ourselves: keys that were pressed.
            return AgentBatch()
        said, text = self._spoken.pop(ordinal, ""), message.get("text")
        delta = message.get("delta")
        said = text if isinstance(text, str) and text else said + (delta if isinstance(delta, str) else "")
        if message.get("final") is True:
            return self._said("user" if role == "user" else "agent", said)
        self._spoken[ordinal] = said[:MAX_TRANSCRIPT_CHARS]
        if len(self._spoken) > _MAX_SPOKEN:
            del self._spoken[next(iter(self._spoken))]
        return AgentBatch()

    def _tool(self, message: Mapping[str, Any]) -> AgentCommand:
        return tool_call(
            message.get("invocationId"), message.get("toolName"), message.get("parameters") or {}
        )


class _Schemas:
    """
    Schemas of parameters, in which no definitions can be referred to.

    References are replaced by what they refer to. Their number is bounded: the check of a tool follows those
    of its schemas, but a default or an unknown keyword may have others, which form cycles or multiply.
    """

    def __init__(self) -> None:
        self._left = _MAX_SCHEMAS_CHARS

    def without_references(self, schema: Any, definitions: Mapping[str, Any]) -> Any:
        """
        Return a schema with its references replaced.

        Raises:
            CommandError: It is too long, or refers to itself.
        """
        try:
            # Of a boolean schema, only the tool's own check of arguments knows.
            return self._inlined(schema if isinstance(schema, Mapping) else {}, definitions)
        except RecursionError:
            raise CommandError("a schema of the tools is nested too deep, or refers to itself") from None

    def _inlined(self, schema: Any, definitions: Mapping[str, Any]) -> Any:
        self._count(schema)
        if isinstance(schema, list | tuple):
            return [self._inlined(part, definitions) for part in schema]
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return {name: self._inlined(part, definitions) for name, part in schema.items()}
        found = definitions.get(reference.rpartition("/")[2], {})
        beside = {name: part for name, part in schema.items() if name != "$ref"}
        return self._inlined({**(found if isinstance(found, Mapping) else {}), **beside}, definitions)

    def _count(self, value: Any) -> None:
        names = value if isinstance(value, Mapping) else (value,) if isinstance(value, str) else ()
        self._left -= _VALUE_CHARS + sum(map(len, names))
        if self._left < 0:
            raise CommandError("the schemas of the tools are too long without references")


def _tool(tool: ModelTool, schemas: _Schemas) -> dict[str, Any]:
    """Describe a tool of the client; each of its parameters has a schema of its own."""
    schema = tool.parameters
    required, definitions = schema.get("required", ()), schema.get("$defs", {})
    parameters = [
        {
            "name": name,
            "location": "PARAMETER_LOCATION_BODY",
            "schema": schemas.without_references(part, definitions),
            "required": name in required,
        }
        for name, part in schema.get("properties", {}).items()
    ]
    described = {"modelToolName": tool.name, "description": tool.description, "client": {}}
    return {**described, "dynamicParameters": parameters, "timeout": _TOOL_TIMEOUT}


def _frame(kind: str, **fields: Any) -> bytes:
    return compact({"type": kind, **fields}).encode()


_HANDLERS: Final[Mapping[str, Handler]] = {
    "call_started": UltravoxDialect._started,
    "state": UltravoxDialect._state,
    "transcript": UltravoxDialect._transcript,
    "playback_clear_buffer": UltravoxDialect._clear,
    "client_tool_invocation": UltravoxDialect._tool,
}
