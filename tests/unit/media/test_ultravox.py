"""Ultravox' calls: the request that creates one, and what its messages mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from media.streams import (
    AgentFailed,
    AgentInterrupted,
    AgentReady,
    AgentToolCall,
    AgentTranscript,
    CommandError,
    ModelTool,
)
from media.streams.dialects.ultravox import UltravoxDialect, read_call
from media.streams.session_requests import read_refusal
from tests.support.model_setups import LOOK_UP, TURNS, accepted, make_dialect, parts_of, read, request_of


def requested(**more: Any) -> dict[str, Any]:
    body = request_of(make_dialect("ultravox", **more))
    assert body is not None and b"sk-secret" not in body
    request: dict[str, Any] = json.loads(body)
    return request


def transcript(role: str, ordinal: int, **more: Any) -> dict[str, Any]:
    return {"type": "transcript", "role": role, "medium": "voice", "ordinal": ordinal, "final": False, **more}


def test_the_request_has_the_whole_configuration() -> None:
    assert requested(instructions="Be brief.", voice="Mark", language="en-IN", tools=(LOOK_UP,)) == {
        "model": "model-1",
        "systemPrompt": "Be brief.",
        "voice": "Mark",
        "languageHint": "en-IN",
        "firstSpeakerSettings": {"user": {}},
        "maxDuration": "3600s",
        "medium": {
            "serverWebSocket": {
                "inputSampleRate": 16000,
                "outputSampleRate": 16000,
                "clientBufferSizeMs": 30000,
            }
        },
        "selectedTools": [
            {
                "temporaryTool": {
                    "modelToolName": "look_up",
                    "description": "Looks up an order.",
                    "client": {},
                    "timeout": "40s",
                    "dynamicParameters": [
                        {
                            "name": "order",
                            "location": "PARAMETER_LOCATION_BODY",
                            "schema": {"type": "string"},
                            "required": True,
                        }
                    ],
                }
            }
        ],
    }
    assert requested().keys() == {"model", "firstSpeakerSettings", "maxDuration", "medium"}


def test_a_call_that_continues_another_has_its_conversation() -> None:
    assert requested(turns=TURNS, greeting="Namaste.")["initialMessages"] == [
        {"role": "MESSAGE_ROLE_USER", "text": "My name is Asha."},
        {"role": "MESSAGE_ROLE_AGENT", "text": "Hello Asha."},
    ]


def test_the_schema_of_a_parameter_refers_to_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "$defs": {
            "item": {"type": "object", "properties": {"size": {"$ref": "#/$defs/size", "title": "Size"}}},
            "size": {"enum": ["s", "l"]},
        },
    }
    request = requested(tools=(ModelTool("order", "Orders.", schema),))
    (parameter,) = request["selectedTools"][0]["temporaryTool"]["dynamicParameters"]
    item = {"type": "object", "properties": {"size": {"enum": ["s", "l"], "title": "Size"}}}
    assert parameter["schema"] == {"type": "array", "items": item} and not parameter["required"]


def test_the_schema_of_a_parameter_that_may_be_anything_is_an_object() -> None:
    schema = {
        "type": "object",
        "properties": {"a": True, "b": {"$ref": "#/$defs/any", "title": "B"}},
        "$defs": {"any": True},
    }
    request = requested(tools=(ModelTool("order", "Orders.", schema),))
    parameters = request["selectedTools"][0]["temporaryTool"]["dynamicParameters"]
    assert [parameter["schema"] for parameter in parameters] == [{}, {"title": "B"}]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"x": schema}
    return schema


@pytest.mark.parametrize(
    "definitions",
    [
        {"d0": {"default": {"$ref": "#/$defs/d0"}}},
        {f"d{n}": {"default": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(64)},
        {"d0": {"default": [{"$ref": "#/$defs/long"}] * 64}, "long": {"description": "x" * 8000}},
        {"d0": {"default": nested(2000)}},
    ],
    ids=["cycle", "many", "long", "deep"],
)
def test_schemas_that_grow_without_end_create_no_call(definitions: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    with pytest.raises(CommandError):
        requested(tools=(ModelTool("order", "Orders.", schema),))


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"nonsense", b"[]", b"{}", b'{"joinUrl":7}', b'{"joinUrl":"https://x.example/"}'),
        *(b'{"joinUrl":"ws://x.example/"}', b'{"joinUrl":"wss://u:p@x.example/"}'),
    ],
)
def test_an_answer_without_a_socket_is_refused(body: bytes) -> None:
    with pytest.raises(CommandError):
        read_call(body)


def test_a_socket_has_the_version_of_its_messages() -> None:
    assert read_call(b'{"joinUrl":"wss://x.example/c"}') == "wss://x.example/c?apiVersion=1"
    assert read_call(b'{"joinUrl":"wss://x.example/c?a=b"}') == "wss://x.example/c?a=b&apiVersion=1"


@pytest.mark.parametrize(
    ("status", "body", "message", "is_quota"),
    [
        (401, b'{"detail":"Invalid API key."}', "Invalid API key.", False),
        (402, b'{"detail":"Subscribe."}', "Subscribe.", True),
        (429, b"", "", True),
        (400, b'{"voice":["No such voice."]}', '{"voice":["No such voice."]}', False),
        (500, b"<html>", "", False),
    ],
)
def test_refusals(status: int, body: bytes, message: str, is_quota: bool) -> None:
    assert read_refusal(status, body) == (AgentFailed(f"http_{status}", message), is_quota)


def test_a_call_that_is_being_made_ready_is_not_accepted() -> None:
    dialect = make_dialect("ultravox")
    assert parts_of(read(dialect, type="state", state="idle")) == [] and not dialect.is_ready
    assert AgentReady() in parts_of(read(dialect, type="state", state="listening"))
    assert parts_of(read(dialect, type="call_started", callId="c")) == [], "that was told already"


def test_transcripts_are_put_together_from_their_pieces() -> None:
    dialect = accepted("ultravox")
    assert parts_of(read(dialect, **transcript("agent", 2, text="It is "))) == []
    user = read(dialect, **transcript("user", 1, text="Where is it?", final=True))
    assert parts_of(user) == [AgentTranscript("user", "Where is it?")]
    assert parts_of(read(dialect, **transcript("agent", 2, delta="on its way."))) == []
    agent = read(dialect, **transcript("agent", 2, delta="", final=True))
    assert parts_of(agent) == [AgentTranscript("agent", "It is on its way.")]
    assert parts_of(read(dialect, **transcript("agent", 2, delta="", final=True))) == [], "it is told once"
    written = transcript("user", 3, text="I pressed", medium="text", final=True)
    assert parts_of(read(dialect, **written)) == [], "the caller has not said that"


def test_utterances_without_an_end_take_no_memory() -> None:
    dialect = accepted("ultravox")
    for ordinal in range(30):
        read(dialect, **transcript("agent", ordinal, text="x" * 10_000))
        read(dialect, **transcript("agent", ordinal, delta="x" * 10_000))
    assert isinstance(dialect, UltravoxDialect) and sum(map(len, dialect._spoken.values())) <= 32_000
    assert parts_of(read(dialect, **transcript("agent", 0, delta="end", final=True))) == [
        AgentTranscript("agent", "end")
    ]


def test_what_the_vendor_asks_for() -> None:
    dialect = accepted("ultravox")
    assert read(dialect, type="playback_clear_buffer") == AgentInterrupted()
    invocation = {"toolName": "look_up", "invocationId": "i", "parameters": {"order": "7"}}
    used = read(dialect, type="client_tool_invocation", **invocation)
    assert used == AgentToolCall("i", "look_up", '{"order": "7"}')
    (result,) = dialect.tool_result("i", "look_up", '{"error":"x"}', is_error=True)
    assert json.loads(result) == {
        "type": "client_tool_result",
        "invocationId": "i",
        "result": '{"error":"x"}',
    }
    assert dialect.decode_binary(bytes(640)) == bytes(640)
    with pytest.raises(CommandError):
        dialect.decode_binary(bytes(641))


def test_the_end_of_the_longest_call_is_continued() -> None:
    dialect = accepted("ultravox")
    dialect.tell_time(3_000_000)
    assert dialect.closed(1000, "") is None
    dialect.tell_time(3_590_000)
    assert dialect.closed(1000, "") == AgentFailed("max_duration", "", may_continue=True)


@pytest.mark.parametrize(("code", "may_continue"), [(4503, True), (4598, True), (4429, False), (1008, False)])
def test_faults_in_close_codes(code: int, may_continue: bool) -> None:
    error = AgentFailed(f"close_{code}", "why", may_continue=may_continue)
    assert accepted("ultravox").closed(code, "why") == error
