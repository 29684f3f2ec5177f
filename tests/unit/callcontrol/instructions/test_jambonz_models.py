"""jambonz's verb for speech models: the options of each vendor, and what of them is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.calls.plan import Stream
from callcontrol.instructions.jambonz.models import PLACES
from media.streams import ModelChoice
from tests.unit.callcontrol.instructions.test_jambonz import hook, problems, read

OPENAI = {
    "vendor": "openai",
    "model": "gpt-realtime-2",
    "auth": {"apiKey": "sk-1"},
    "llmOptions": {
        "session_update": {
            "type": "realtime",
            "instructions": "Be brief.",
            "voice": "marin",
            "modalities": ["audio", "text"],
            "input_audio_format": "pcm16",
            "turn_detection": {"type": "server_vad", "silence_duration_ms": 700},
            "input_audio_transcription": {"model": "whisper-1", "language": "hi"},
            "tools": [{"type": "function", "name": "transfer"}, {"name": "check_order"}],
        }
    },
}
GOOGLE = {
    "vendor": "google",
    "model": "models/gemini-live",
    "auth": {"apiKey": "g-1"},
    "llmOptions": {
        "setup": {
            "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
            "generationConfig": {
                "responseModalities": ["AUDIO"],
                "speechConfig": {
                    "languageCode": "hi-IN",
                    "voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Puck"}},
                },
            },
            "tools": [{"functionDeclarations": [{"name": "hangup"}]}],
            "inputAudioTranscription": {},
        }
    },
}
DEEPGRAM = {
    "vendor": "deepgram",
    "auth": {"apiKey": "d-1"},
    "llmOptions": {
        "Settings": {
            "type": "Settings",
            "agent": {
                "language": "en",
                "greeting": "Namaste.",
                "listen": {"provider": {"type": "deepgram", "model": "nova-3"}},
                "think": {
                    "provider": {"type": "open_ai", "model": "gpt-4o"},
                    "prompt": "Be brief.",
                    "functions": [{"name": "hangup"}],
                },
                "speak": {"provider": {"type": "deepgram", "model": "aura-2-thalia-en"}},
            },
        }
    },
}
ELEVENLABS = {
    "vendor": "elevenlabs",
    "auth": {"agent_id": "agent_1", "api_key": "xi-1"},
    "llmOptions": {
        "input_sample_rate": 16000,
        "conversation_initiation_client_data": {
            "conversation_config_override": {
                "agent": {"prompt": {"prompt": "Be brief."}, "first_message": "Namaste.", "language": "hi"},
                "tts": {"voice_id": "voice_1"},
            }
        },
    },
}
ULTRAVOX = {
    "vendor": "ultravox",
    "model": "ultravox-v0.7",
    "auth": {"apiKey": "u-1"},
    "llmOptions": {
        "model": "ultravox-v0.7",
        "systemPrompt": "Be brief.",
        "voice": "Mark",
        "languageHint": "hi-IN",
        "firstSpeakerSettings": {"agent": {"text": "Namaste."}},
        "selectedTools": [{"temporaryTool": {"modelToolName": "hangup", "client": {}}}],
        "transcriptOptional": True,
    },
}


def model(verb: dict[str, Any], name: str = "llm") -> ModelChoice:
    (step,) = read([{"verb": name, **verb}])
    assert isinstance(step, Stream) and step.choice.model is not None
    return step.choice.model


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        (
            OPENAI,
            ModelChoice(
                provider="openai",
                model="gpt-realtime-2",
                api_key="sk-1",
                instructions="Be brief.",
                voice="marin",
                language="hi",
                transcription="whisper-1",
                tools=("transfer", "check_order"),
            ),
        ),
        (
            GOOGLE,
            ModelChoice(
                provider="gemini",
                model="models/gemini-live",
                api_key="g-1",
                instructions="Be brief.\nBe kind.",
                voice="Puck",
                language="hi-IN",
                tools=("hangup",),
            ),
        ),
        (
            DEEPGRAM,
            ModelChoice(
                provider="deepgram",
                model="gpt-4o",
                api_key="d-1",
                instructions="Be brief.",
                voice="aura-2-thalia-en",
                greeting="Namaste.",
                language="en",
                transcription="nova-3",
                tools=("hangup",),
            ),
        ),
        (
            ELEVENLABS,
            ModelChoice(
                provider="elevenlabs",
                model="agent_1",
                api_key="xi-1",
                instructions="Be brief.",
                voice="voice_1",
                greeting="Namaste.",
                language="hi",
            ),
        ),
        (
            ULTRAVOX,
            ModelChoice(
                provider="ultravox",
                model="ultravox-v0.7",
                api_key="u-1",
                instructions="Be brief.",
                voice="Mark",
                greeting="Namaste.",
                language="hi-IN",
                tools=("hangup",),
            ),
        ),
    ],
    ids=lambda value: value["vendor"] if isinstance(value, dict) else "",
)
def test_the_options_of_each_vendor_are_fields_of_the_model(
    verb: dict[str, Any], expected: ModelChoice
) -> None:
    assert model(verb) == model(verb, "s2s") == expected
    short = {name: value for name, value in verb.items() if name != "vendor"}
    assert model(short, f"{verb['vendor']}_s2s") == expected


def test_it_is_the_verb_model_and_its_hook_follows() -> None:
    messages = [{"role": "system", "content": "Be brief."}]
    verb = {"verb": "llm", "vendor": "openai", "model": "gpt-realtime", "auth": {"key": "front-desk"}}
    stream, then = read([{**verb, "llmOptions": {"messages": messages}, "actionHook": "/after"}])
    assert isinstance(stream, Stream) and then == hook("call.streamed")
    assert stream.choice.model == ModelChoice(
        provider="openai", model="gpt-realtime", key="front-desk", instructions="Be brief."
    )


def test_the_model_behind_deepgram_may_be_of_another_vendor() -> None:
    think = {"provider": {"type": "anthropic", "model": "claude-sonnet-4"}}
    options = {"Settings": {"agent": {"think": think}}}
    verb = {"vendor": "deepgram", "auth": {"apiKey": "d-1"}, "llmOptions": options}
    assert model(verb).model == "anthropic/claude-sonnet-4"


BASE = {"verb": "llm", "vendor": "openai", "model": "gpt-realtime", "auth": {"apiKey": "sk-1"}}
HISTORY = [{"role": "user", "content": "Hello"}]
TOLD = [{"name": "look", "description": "Look something up.", "parameters": {"type": "object"}}]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"vendor": "anthropic"}, "vendor"),
        ({"vendor": None}, "vendor"),
        ({"vendor": 7}, "vendor"),
        ({"verb": "google_s2s"}, "vendor"),
        ({"model": None}, "model"),
        ({"model": "a b"}, "model"),
        ({"auth": None}, "auth.apiKey"),
        ({"auth": {"apiKey": "a b"}}, "auth.apiKey"),
        ({"auth": {"apiKey": "sk-1", "key": "front-desk"}}, "auth.key"),
        ({"auth": {"apiKey": "sk-1", "organization": "x"}}, "auth.organization"),
        ({"toolHook": "/tool"}, "toolHook"),
        ({"eventHook": "/event"}, "eventHook"),
        ({"events": ["all"]}, "events"),
        ({"mcpServers": [{"url": "https://mcp.example/"}]}, "mcpServers"),
        ({"connectOptions": {"host": "example.com"}}, "connectOptions"),
        ({"llmOptions": 7}, "llmOptions"),
        ({"llmOptions": {"temperature": 0.7}}, "llmOptions.temperature"),
        ({"llmOptions": {"response_create": {"instructions": "Greet."}}}, "llmOptions.response_create"),
        ({"llmOptions": {"messages": HISTORY}}, "llmOptions.messages"),
        ({"llmOptions": {"session_update": {"speed": 2}}}, "llmOptions.session_update.speed"),
        ({"llmOptions": {"session_update": {"voice": "a b"}}}, "llmOptions.session_update.voice"),
        ({"llmOptions": {"session_update": {"tools": TOLD}}}, "llmOptions.session_update.tools"),
        ({"llmOptions": {"session_update": {"tools": [7]}}}, "llmOptions.session_update.tools"),
        (
            {"vendor": "ultravox", "llmOptions": {"firstSpeaker": "FIRST_SPEAKER_AGENT"}},
            "llmOptions.firstSpeaker",
        ),
        (
            {"vendor": "ultravox", "llmOptions": {"selectedTools": [{"toolName": "x"}]}},
            "llmOptions.selectedTools",
        ),
        (
            {
                "vendor": "ultravox",
                "llmOptions": {
                    "selectedTools": [{"temporaryTool": {"modelToolName": "hangup", "client": {"a": 1}}}]
                },
            },
            "llmOptions.selectedTools",
        ),
        ({"vendor": "ultravox", "llmOptions": {"medium": {"webRtc": {}}}}, "llmOptions.medium"),
        ({"llmOptions": {"setup": {}}}, "llmOptions.setup"),
    ],
)
def test_what_is_not_done_is_refused_by_its_place(change: dict[str, Any], field: str) -> None:
    assert list(problems({"verb": "answer"}, {**BASE, **change})) == [f"verbs[1].{field}"]


def test_instructions_at_two_places_are_refused() -> None:
    options = {
        "messages": [{"role": "system", "content": "a"}],
        "session_update": {"instructions": "b"},
    }
    (field,) = problems({**BASE, "llmOptions": options})
    assert field in ("verbs[0].llmOptions.messages", "verbs[0].llmOptions.session_update.instructions")


def test_a_deep_object_is_refused_and_not_followed() -> None:
    deep: dict[str, Any] = {}
    for _ in range(6):
        deep = {"session_update": deep}
    assert list(problems({**BASE, "llmOptions": deep})) == [
        "verbs[0].llmOptions.session_update.session_update"
    ]


def test_a_key_is_not_in_an_error() -> None:
    found = problems({**BASE, "auth": {"apiKey": "sk secret"}, "model": "a b"})
    assert "secret" not in str(found) and len(found) == 2


def test_what_is_no_object_is_refused_with_what_is_missing_for_it() -> None:
    assert set(problems({**BASE, "auth": "sk-1"})) == {"verbs[0].auth", "verbs[0].auth.apiKey"}


@pytest.mark.parametrize("vendor", PLACES)
def test_every_vendor_needs_a_model_and_a_key(vendor: str) -> None:
    fields = {field for field, _ in PLACES[vendor].values()}
    assert {"model", "api_key", "key", "instructions", "voice", "language"} <= fields
    assert len(problems({"verb": "llm", "vendor": vendor})) == 2
