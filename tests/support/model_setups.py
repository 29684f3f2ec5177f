"""Sessions with speech models for tests of their dialects."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from media.streams import (
    MODEL_DIALECTS,
    AgentBatch,
    AgentReply,
    ModelDialect,
    ModelSession,
    ModelTool,
    ModelTurn,
    StreamSetup,
    choose_model,
)
from media.streams.session_requests import session_request

LOOK_UP = ModelTool(
    "look_up",
    "Looks up an order.",
    {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
)
TURNS = (ModelTurn("user", "My name is Asha."), ModelTurn("agent", "Hello Asha."))
ACCEPTS: dict[str, dict[str, Any]] = {
    "openai": {"type": "session.updated"},
    "deepgram": {"type": "SettingsApplied"},
    "gemini": {"setupComplete": {}},
    "elevenlabs": {
        "type": "conversation_initiation_metadata",
        "conversation_initiation_metadata_event": {
            "conversation_id": "c",
            "agent_output_audio_format": "pcm_16000",
            "user_input_audio_format": "pcm_16000",
        },
    },
    "ultravox": {"type": "call_started", "callId": "c"},
}
"""Messages that accept a session, by vendor."""


def make_dialect(
    provider: str,
    *,
    turns: tuple[ModelTurn, ...] = (),
    tools: tuple[ModelTool, ...] = (),
    resumption: str | None = None,
    **model: Any,
) -> ModelDialect:
    """A session's dialect, with a key that no frame may hold."""
    choice = choose_model({"provider": provider, "model": "model-1", "api_key": "sk-secret", **model})
    assert choice.model is not None
    session = ModelSession(
        choice=choice.model, api_key="sk-secret", tools=tools, turns=turns, resumption=resumption
    )
    setup = StreamSetup(
        url=choice.url,
        stream_sid="s",
        call_sid="c",
        account_sid="a",
        from_="+919811111111",
        to="+918047000000",
        dialect=provider,
        encoding=choice.encoding,
        sample_rate=choice.sample_rate,
        model=session,
    )
    return MODEL_DIALECTS[provider](setup)


def request_of(dialect: ModelDialect) -> bytes | None:
    """The body of the request that creates the session, of vendors that want one."""
    request = session_request(dialect._session, dialect._setup.url)
    return None if request is None else request.body


def read(dialect: ModelDialect, **message: Any) -> Any:
    """Decode a message of the vendor."""
    return dialect.decode(json.dumps(message).encode())


def parts_of(meant: Any) -> list[Any]:
    """The commands and the audio of one message."""
    if isinstance(meant, AgentBatch):
        return [inner for part in meant.parts for inner in parts_of(part)]
    return [meant]


def frames_of(meant: Any) -> list[dict[str, Any]]:
    """The frames that answer a message."""
    replies = [part for part in parts_of(meant) if isinstance(part, AgentReply)]
    return [json.loads(frame) for reply in replies for frame in reply.frames]


def accepted(provider: str, **more: Any) -> ModelDialect:
    """A dialect whose session was accepted, in a call that is answered."""
    dialect = make_dialect(provider, **more)
    dialect.connected()
    dialect.start()
    read(dialect, **ACCEPTS[provider])
    return dialect


def everything(dialect: ModelDialect, provider: str) -> list[dict[str, Any]]:
    """One message of each kind that a session may send."""
    configured, audio = dialect.connected(), b""
    replies = frames_of(read(dialect, **ACCEPTS[provider]))
    if not dialect.binary_audio:
        audio = dialect.media(bytes(320), 20)
    frames: Iterable[bytes | None] = (
        configured,
        dialect.keep_alive(),
        dialect.start(),
        audio or None,
        *dialect._greet("Namaste."),
        *dialect.pressed("12#"),
        *dialect.tool_result("call_1", "look_up", '{"status":"shipped"}', is_error=False),
        *dialect.interrupted(100),
    )
    return [*replies, *(json.loads(frame) for frame in frames if frame is not None)]


def delta(item: str, ms: int) -> dict[str, Any]:
    """OpenAI's message with audio of an item."""
    return {
        "type": "response.output_audio.delta",
        "item_id": item,
        "content_index": 0,
        "delta": b64encode(bytes(ms * 8)).decode(),
    }


def truncations(frames: tuple[bytes, ...]) -> list[tuple[str, int]]:
    """Items and their lengths in ms in messages to OpenAI."""
    return [(frame["item_id"], frame["audio_end_ms"]) for frame in map(json.loads, frames)]
