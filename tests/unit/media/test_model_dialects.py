"""Dialects of speech models: what they write, and what vendors' messages mean."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.audio import tone
from media.streams import (
    MODEL_DIALECTS,
    AgentFailed,
    AgentInterrupted,
    AgentReady,
    AgentToolCall,
    AgentTranscript,
    AgentUsage,
    CommandError,
    Dialect,
    ModelDialect,
)
from media.streams.commands import MAX_TRANSCRIPT_CHARS
from media.streams.dialects.base import AUDIO
from tests.support.examples import examples
from tests.support.levels import tone_level_dbfs
from tests.support.model_setups import (
    ACCEPTS,
    LOOK_UP,
    TURNS,
    accepted,
    delta,
    frames_of,
    make_dialect,
    parts_of,
    read,
    request_of,
    truncations,
)

VENDORS = sorted(MODEL_DIALECTS)
EVERY_VENDOR = pytest.mark.parametrize("provider", VENDORS)


def b64(data: bytes) -> str:
    return b64encode(data).decode()


@EVERY_VENDOR
def test_audio_flows_and_a_greeting_is_asked_for_once_both_are_there(provider: str) -> None:
    dialect = make_dialect(provider, greeting="Namaste.", tools=(LOOK_UP,))
    configured = request_of(dialect) or dialect.connected()
    meant = read(dialect, **ACCEPTS[provider])
    assert AgentReady() in parts_of(meant) and dialect.is_ready
    begun = dialect.start()
    written = [frame for frame in (configured, begun) if frame is not None]
    assert sum("Namaste." in frame.decode() for frame in written) == 1
    assert all(b"sk-secret" not in frame for frame in written)


@EVERY_VENDOR
def test_a_session_that_continues_another_greets_nobody(provider: str) -> None:
    dialect = make_dialect(provider, greeting="Namaste.", turns=TURNS)
    written = [request_of(dialect), dialect.connected(), dialect.start()]
    replies = frames_of(read(dialect, **ACCEPTS[provider]))
    everything = b" ".join(frame for frame in written if frame is not None).decode() + json.dumps(replies)
    assert "Namaste." not in everything
    assert "My name is Asha." in everything and "Hello Asha." in everything
    assert dialect.turns == TURNS


@EVERY_VENDOR
def test_a_model_is_told_of_nothing_but_its_own(provider: str) -> None:
    dialect: Dialect = accepted(provider)
    assert dialect.error("code", "message") is dialect.speech(True) is dialect.held(True) is None
    assert dialect.stop("stopped", "x") is dialect.transfer("ringing", 180, None) is None


@EVERY_VENDOR
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
        max_leaves=12,
    ),
    st.data(),
)
@settings(max_examples=examples(100))
def test_any_json_is_taken_or_refused(provider: str, value: Any, data: st.DataObject) -> None:
    dialect = accepted(provider)
    kinds = sorted(_KINDS[provider])
    kind = data.draw(st.sampled_from(kinds))
    shapes: list[Any] = [value, {"type": kind, **{name: value for name in _NAMES}}, {kind: value}]
    for shape in shapes:
        text = json.dumps(shape).encode()
        try:
            meant = dialect.decode(text)
        except CommandError:
            continue
        for part in parts_of(meant):
            if isinstance(part, AgentTranscript):
                assert 0 < len(part.text) <= MAX_TRANSCRIPT_CHARS


_NAMES = (
    *("item_id", "content_index", "delta", "item", "response", "transcript", "error", "functions", "role"),
    *("content", "audio_event", "interruption_event", "ping_event", "client_tool_call", "error_event"),
    *("user_transcription_event", "agent_response_event", "conversation_initiation_metadata_event"),
    *("ordinal", "text", "medium", "final", "toolName", "invocationId", "parameters", "state"),
)
_KINDS: dict[str, set[str]] = {
    "openai": {
        *("session.updated", "response.output_audio.delta", "response.done", "response.output_item.done"),
        *("error", "response.output_audio_transcript.done", "response.created"),
    },
    "deepgram": {"ConversationText", "FunctionCallRequest", "Error", "UserStartedSpeaking"},
    "gemini": {"serverContent", "toolCall", "usageMetadata", "goAway", "sessionResumptionUpdate"},
    "elevenlabs": {"audio", "interruption", "ping", "client_tool_call", "user_transcript", "error"},
    "ultravox": {"call_started", "state", "transcript", "playback_clear_buffer", "client_tool_invocation"},
}


@pytest.mark.parametrize("text", [b"", b"nonsense", b"[]", b"\xff", b'{"a":' * 5000 + b"1" + b"}" * 5000])
@EVERY_VENDOR
def test_no_object_is_refused(provider: str, text: bytes) -> None:
    with pytest.raises(CommandError):
        accepted(provider).decode(text)


# --- OpenAI -------------------------------------------------------------------------------------------------


def test_openai_items_are_truncated_to_what_was_played() -> None:
    dialect = accepted("openai")
    read(dialect, type="response.created")
    for _ in range(10):
        assert read(dialect, **delta("one", 100)) == bytes(800)
    read(dialect, **delta("two", 500))
    assert read(dialect, type="input_audio_buffer.speech_started") == AgentInterrupted()
    # Of 1500 ms 700 were played: the second item not at all, the first to 700 ms.
    assert truncations(dialect.interrupted(800)) == [("two", 0), ("one", 700)]
    assert parts_of(read(dialect, **delta("two", 100))) == [], "its further audio was not asked for"
    assert read(dialect, **delta("three", 100)) == bytes(800)
    assert truncations(dialect.interrupted(0)) == []
    # More than was written cannot wait.
    read(dialect, type="response.done", response={"status": "cancelled"})
    read(dialect, **delta("four", 100))
    assert truncations(dialect.interrupted(9999)) == [("four", 0)]


def test_openai_is_asked_for_one_answer_at_a_time() -> None:
    dialect = accepted("openai")
    read(dialect, type="response.created")
    assert [json.loads(frame)["type"] for frame in dialect.pressed("1")] == ["conversation.item.create"]
    done = read(dialect, type="response.done", response={"status": "completed"})
    assert [frame["type"] for frame in frames_of(done)] == ["response.create"]
    again = read(dialect, type="response.done", response={"status": "completed"})
    assert frames_of(again) == []


def test_openai_answers_when_the_last_tool_has_its_result() -> None:
    dialect = accepted("openai", tools=(LOOK_UP,))
    for call in ("a", "b"):
        item = {"type": "function_call", "call_id": call, "name": "look_up", "arguments": '{"order":"7"}'}
        assert read(dialect, type="response.output_item.done", item=item) == AgentToolCall(
            call, "look_up", '{"order":"7"}'
        )
    assert len(dialect.tool_result("a", "look_up", "1", is_error=False)) == 1
    assert [
        json.loads(frame)["type"] for frame in dialect.tool_result("b", "look_up", "2", is_error=False)
    ] == [
        "conversation.item.create",
        "response.create",
    ]


def test_openai_errors_end_a_session_or_concern_one_event() -> None:
    early = make_dialect("openai")
    assert read(early, type="error", error={"code": "unknown_parameter", "message": "tools"}) == AgentFailed(
        "unknown_parameter", "tools"
    )
    dialect = accepted("openai")
    assert parts_of(read(dialect, type="error", error={"code": "item_truncate_invalid_item_id"})) == []
    expired = read(dialect, type="error", error={"code": "session_expired", "message": "60 minutes"})
    assert expired == AgentFailed("session_expired", "60 minutes", may_continue=True)


def test_openai_a_failed_answer_is_asked_for_again_once() -> None:
    dialect = accepted("openai")
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    failure = {"status": "failed", "status_details": {"error": error}}
    assert [frame["type"] for frame in frames_of(read(dialect, type="response.done", response=failure))] == [
        "response.create"
    ]
    assert AgentFailed("rate_limit_exceeded", "slow down") in parts_of(
        read(dialect, type="response.done", response=failure)
    )
    quota = {
        "status": "failed",
        "status_details": {"error": {"code": "insufficient_quota", "message": "pay"}},
    }
    assert AgentFailed("insufficient_quota", "pay") in parts_of(
        read(accepted("openai"), type="response.done", response=quota)
    )


# --- the others -------------------------------------------------------------------------------------------


def test_deepgram_thinks_with_the_vendor_of_the_model() -> None:
    def provider(model: str) -> Any:
        configured = make_dialect("deepgram", model=model).connected()
        assert configured is not None
        return json.loads(configured)["agent"]["think"]["provider"]

    assert provider("gpt-4o-mini") == {"type": "open_ai", "model": "gpt-4o-mini"}
    assert provider("claude-sonnet-4") == {"type": "anthropic", "model": "claude-sonnet-4"}
    assert provider("groq/llama-4") == {"type": "groq", "model": "llama-4"}


def test_deepgram_is_kept_alive_until_the_call_is_answered() -> None:
    dialect = make_dialect("deepgram")
    assert dialect.keep_alive() is None
    read(dialect, **ACCEPTS["deepgram"])
    assert dialect.keep_alive() == b'{"type":"KeepAlive"}'
    dialect.start()
    assert dialect.keep_alive() is None


def test_deepgram_uses_functions_of_the_client_alone() -> None:
    ours = {"id": "1", "name": "look_up", "arguments": "{}", "client_side": True}
    theirs = {"id": "2", "name": "web", "arguments": "{}", "client_side": False}
    meant = read(accepted("deepgram"), type="FunctionCallRequest", functions=[ours, theirs])
    assert parts_of(meant) == [AgentToolCall("1", "look_up", "{}")]


def test_gemini_audio_is_resampled_without_a_joint() -> None:
    dialect = accepted("gemini")
    pcm, heard = tone(1000, 600, sample_rate=24_000), b""
    for at in range(0, len(pcm), 1000):
        part = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": b64(pcm[at : at + 1000])}}
        meant = read(dialect, serverContent={"modelTurn": {"parts": [part, {"text": "thought"}]}})
        heard += b"".join(piece for piece in parts_of(meant) if isinstance(piece, bytes))
    last = read(dialect, serverContent={"turnComplete": True})
    heard += b"".join(piece for piece in parts_of(last) if isinstance(piece, bytes))
    assert abs(len(heard) - len(tone(1000, 600, sample_rate=16_000))) <= 64
    assert tone_level_dbfs(heard[3200:-3200], 1000.0, 16_000) > -20.0


def test_gemini_transcripts_are_whole_turns() -> None:
    dialect = accepted("gemini")
    for word in ("Where ", "is it?"):
        read(dialect, serverContent={"inputTranscription": {"text": word}})
    read(dialect, serverContent={"outputTranscription": {"text": "On its way."}})
    said = parts_of(read(dialect, serverContent={"turnComplete": True}))
    assert said == [AgentTranscript("user", "Where is it?"), AgentTranscript("agent", "On its way.")]


def test_gemini_leaves_after_the_turn_and_keeps_its_token() -> None:
    dialect = accepted("gemini")
    read(dialect, sessionResumptionUpdate={"newHandle": "token", "resumable": True})
    read(dialect, goAway={"timeLeft": "10s"})
    (failure,) = [
        part
        for part in parts_of(read(dialect, serverContent={"turnComplete": True}))
        if isinstance(part, AgentFailed)
    ]
    assert failure.may_continue and dialect.resumption == "token"
    again = make_dialect("gemini", turns=TURNS, resumption="token")
    configured = again.connected()
    assert configured is not None
    assert json.loads(configured)["setup"]["sessionResumption"] == {"handle": "token"}
    assert frames_of(read(again, **ACCEPTS["gemini"])) == [], "the vendor has the conversation"


def test_gemini_counts_tokens() -> None:
    usage = read(accepted("gemini"), usageMetadata={"promptTokenCount": 7, "responseTokenCount": 3})
    assert usage == AgentUsage((("responses", 1), ("input_tokens", 7), ("output_tokens", 3)))


@EVERY_VENDOR
def test_audio_by_the_template_is_the_audio_that_the_dialect_writes(provider: str) -> None:
    dialect, audio = accepted(provider), bytes(range(160))
    template, origin_ms = dialect.audio_template("inbound")
    assert origin_ms == 0 and (dialect.audio_converter is None or dialect.audio_converter.unchanged)
    if dialect.binary_audio:
        assert (template, dialect.media(audio, 20), dialect.envelope) == (b"", audio, (b"", b""))
    else:
        assert template.replace(AUDIO.encode(), b64encode(audio)) == dialect.media(audio, 20)
        assert not isinstance(dialect.envelope, tuple), "each of its messages says more than audio"


@pytest.mark.parametrize(("audio_format", "is_ours"), [("pcm_16000", True), ("ulaw_8000", False)])
def test_elevenlabs_converts_for_agents_of_another_format(audio_format: str, is_ours: bool) -> None:
    dialect = make_dialect("elevenlabs")
    assert dialect.audio_converter is None and not dialect.is_ready, "nobody has said a format yet"
    event = {"agent_output_audio_format": "pcm_16000", "user_input_audio_format": audio_format}
    read(dialect, type="conversation_initiation_metadata", conversation_initiation_metadata_event=event)
    assert dialect.audio_converter is not None and dialect.audio_converter.unchanged is is_ours


@pytest.mark.parametrize("audio_format", ["ulaw_8000", "pcm_8000", "pcm_16000", "pcm_24000", "pcm_44100"])
def test_elevenlabs_speaks_in_the_format_of_its_agent(audio_format: str) -> None:
    dialect = make_dialect("elevenlabs")
    event = {"agent_output_audio_format": audio_format, "user_input_audio_format": "ulaw_8000"}
    read(dialect, type="conversation_initiation_metadata", conversation_initiation_metadata_event=event)
    assert dialect.is_ready
    rate = int(audio_format.partition("_")[2])
    audio = bytes(rate // 10 * (1 if audio_format.startswith("ulaw") else 2))
    heard = read(dialect, type="audio", audio_event={"audio_base_64": b64(audio), "event_id": 1})
    assert isinstance(heard, bytes) and abs(len(heard) - 3200) <= 64


def test_elevenlabs_unknown_audio_is_an_error() -> None:
    event = {"agent_output_audio_format": "mp3_44100", "user_input_audio_format": "pcm_16000"}
    meant = read(
        make_dialect("elevenlabs"),
        type="conversation_initiation_metadata",
        conversation_initiation_metadata_event=event,
    )
    assert isinstance(meant, AgentFailed) and meant.code == "audio_format"


def test_elevenlabs_drops_audio_that_was_interrupted() -> None:
    dialect = accepted("elevenlabs")
    assert read(dialect, type="interruption", interruption_event={"event_id": 5}) == AgentInterrupted()
    late = read(dialect, type="audio", audio_event={"audio_base_64": b64(bytes(320)), "event_id": 5})
    new = read(dialect, type="audio", audio_event={"audio_base_64": b64(bytes(320)), "event_id": 6})
    assert parts_of(late) == [] and new == bytes(320)
    assert frames_of(read(dialect, type="ping", ping_event={"event_id": 9})) == [
        {"type": "pong", "event_id": 9}
    ]


@pytest.mark.parametrize(
    ("code", "reason", "meant"),
    [
        (1000, "", None),
        (1005, "", None),
        (1008, "no such agent", AgentFailed("close_1008", "no such agent")),
        (1011, "try again", AgentFailed("close_1011", "try again", may_continue=True)),
        (1011, "You exceeded your quota", AgentFailed("close_1011", "You exceeded your quota")),
        (3000, "bye", AgentFailed("close_3000", "bye")),
    ],
)
def test_close_codes(code: int, reason: str, meant: AgentFailed | None) -> None:
    dialect: ModelDialect = accepted("gemini")
    assert dialect.closed(code, reason) == meant
