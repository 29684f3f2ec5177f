"""
Our messages to vendors, held against the types of the vendors' own libraries.

Those of ElevenLabs' library, which is 80 MB, are in tests/interop. Ultravox' libraries have none: they speak
WebRTC.
"""

from __future__ import annotations

from typing import Any

import pytest
from deepgram.agent.v1.types.agent_v1inject_agent_message import AgentV1InjectAgentMessage
from deepgram.agent.v1.types.agent_v1inject_user_message import AgentV1InjectUserMessage
from deepgram.agent.v1.types.agent_v1keep_alive import AgentV1KeepAlive
from deepgram.agent.v1.types.agent_v1send_function_call_response import AgentV1SendFunctionCallResponse
from deepgram.agent.v1.types.agent_v1settings import AgentV1Settings
from google.genai import types as gemini
from openai.types.realtime import (
    ConversationItemCreateEvent,
    ConversationItemTruncateEvent,
    InputAudioBufferAppendEvent,
    ResponseCreateEvent,
    SessionUpdateEvent,
)
from pydantic import BaseModel

from tests.support.model_setups import LOOK_UP, TURNS, everything, make_dialect, read

FULL: dict[str, Any] = {
    "instructions": "Be brief.",
    "voice": "marin",
    "greeting": "Namaste.",
    "language": "en-IN",
    "tools": (LOOK_UP,),
    "turns": TURNS,
}
OPENAI: dict[str, type[BaseModel]] = {
    "session.update": SessionUpdateEvent,
    "input_audio_buffer.append": InputAudioBufferAppendEvent,
    "conversation.item.create": ConversationItemCreateEvent,
    "conversation.item.truncate": ConversationItemTruncateEvent,
    "response.create": ResponseCreateEvent,
}
DEEPGRAM: dict[str, type[BaseModel]] = {
    "Settings": AgentV1Settings,
    "InjectAgentMessage": AgentV1InjectAgentMessage,
    "InjectUserMessage": AgentV1InjectUserMessage,
    "FunctionCallResponse": AgentV1SendFunctionCallResponse,
    "KeepAlive": AgentV1KeepAlive,
}


def unknown(value: object) -> list[str]:
    """Fields that a parsed message has and its type has not; these libraries let them pass."""
    if isinstance(value, list | tuple):
        return [name for item in value for name in unknown(item)]
    if not isinstance(value, BaseModel):
        return []
    inner = [name for field in type(value).model_fields for name in unknown(getattr(value, field))]
    return [*(value.model_extra or {}), *inner]


@pytest.mark.parametrize("more", [{}, FULL])
def test_openai_takes_our_messages(more: dict[str, Any]) -> None:
    dialect = make_dialect("openai", **more)
    read(dialect, type="session.updated")
    delta = {"item_id": "item_1", "content_index": 0, "delta": "f" * 4000}
    read(dialect, type="response.output_audio.delta", **delta)
    messages = everything(dialect, "openai") + everything(make_dialect("openai", **more), "openai")
    kinds = {message["type"] for message in messages}
    assert kinds >= {"session.update", "conversation.item.create", "conversation.item.truncate"}
    for message in messages:
        assert unknown(OPENAI[message["type"]].model_validate(message, strict=True)) == [], message


@pytest.mark.parametrize("more", [{}, FULL])
def test_deepgram_takes_our_messages(more: dict[str, Any]) -> None:
    messages = everything(make_dialect("deepgram", **more), "deepgram")
    assert {message["type"] for message in messages} == set(DEEPGRAM)
    for message in messages:
        assert unknown(DEEPGRAM[message["type"]].model_validate(message)) == [], message


@pytest.mark.parametrize("more", [{}, FULL, {**FULL, "resumption": "token"}])
def test_gemini_takes_our_messages(more: dict[str, Any]) -> None:
    messages = everything(make_dialect("gemini", **more), "gemini")
    assert {name for message in messages for name in message} >= {"setup", "realtimeInput", "toolResponse"}
    for message in messages:
        # Its types refuse fields that they do not know.
        gemini.LiveClientMessage.model_validate(message)
