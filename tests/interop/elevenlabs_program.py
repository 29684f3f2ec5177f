"""
ElevenLabs' own library: `elevenlabs_program.py URL`, with our messages as a list in JSON on standard input.

It holds each message against what the library writes, or its types, then converses with the server at URL. It
writes what it heard as an object in JSON, and fails at the first thing that it does not know.
"""

import json
import sys
import threading
from typing import Any

from elevenlabs.client import ElevenLabs
from elevenlabs.conversational_ai.conversation import (
    AudioInterface,
    ClientTools,
    ClientToOrchestratorEvent,
    ContextualUpdateClientToOrchestratorEvent,
    Conversation,
    ConversationInitiationData,
    UserMessageClientToOrchestratorEvent,
)
from elevenlabs.types.conversation_config_client_override_input import ConversationConfigClientOverrideInput
from pydantic import BaseModel

PATIENCE_S = 60
KINDS = {kind.value for kind in ClientToOrchestratorEvent}


def unknown(value: Any) -> list[str]:
    """Fields that a type has not; the library's types let them pass."""
    if isinstance(value, list):
        return [name for item in value for name in unknown(item)]
    if not isinstance(value, BaseModel):
        return []
    inner = [name for field in type(value).model_fields for name in unknown(getattr(value, field))]
    return [*(value.model_extra or {}), *inner]


def check(message: dict[str, Any]) -> None:
    """Hold one of our messages against the library."""
    kind = message.get("type")
    assert kind in KINDS or set(message) == {"user_audio_chunk"}, message
    if kind == "conversation_initiation_client_data":
        assert set(message) <= {"type", "conversation_config_override"}, message
        override = message.get("conversation_config_override", {})
        assert unknown(ConversationConfigClientOverrideInput.model_validate(override)) == [], message
    elif kind == "user_message":
        assert UserMessageClientToOrchestratorEvent(text=message["text"]).to_dict() == message
    elif kind == "contextual_update":
        assert ContextualUpdateClientToOrchestratorEvent(text=message["text"]).to_dict() == message
    elif kind == "client_tool_result":
        # As `ClientTools.execute_tool` writes it.
        assert set(message) == {"type", "tool_call_id", "result", "is_error"}, message
    elif kind == "pong":
        assert set(message) == {"type", "event_id"}, message


class Audio(AudioInterface):
    """Counts what it is given, and says a piece of silence."""

    def __init__(self) -> None:
        self.heard = 0
        self.interruptions = 0

    def start(self, input_callback: Any) -> None:
        input_callback(bytes(640))

    def stop(self) -> None:
        """Nothing was opened."""

    def output(self, audio: bytes) -> None:
        self.heard += len(audio)

    def interrupt(self) -> None:
        self.interruptions += 1


def converse(url: str) -> dict[str, Any]:
    """Converse until the server ends it."""
    said: list[list[str]] = []
    used: list[Any] = []
    audio, over, tools = Audio(), threading.Event(), ClientTools()

    def look_up(given: dict[str, Any]) -> str:
        used.append(given["order"])
        return "shipped"

    tools.register("look_up", look_up)
    conversation = Conversation(
        ElevenLabs(base_url=url, api_key="model-key"),
        "agent_1",
        # The library asks for a signed URL then, as we do.
        requires_auth=True,
        audio_interface=audio,
        client_tools=tools,
        config=ConversationInitiationData(conversation_config_override={"agent": {"first_message": "Hi."}}),
        callback_agent_response=lambda text: said.append(["agent", text]),
        callback_user_transcript=lambda text: said.append(["user", text]),
        callback_disconnect=lambda _: over.set(),
    )
    conversation.start_session()
    assert over.wait(PATIENCE_S), "the server does not end the conversation"
    conversation.wait_for_session_end()
    return {"said": said, "used": used, "heard": audio.heard, "interruptions": audio.interruptions}


def main() -> None:
    for message in json.load(sys.stdin):
        check(message)
    print(json.dumps(converse(sys.argv[1])))


if __name__ == "__main__":
    main()
