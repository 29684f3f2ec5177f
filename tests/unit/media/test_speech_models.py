"""Choice of a session with a speech model from a customer's object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from media.streams import (
    CommandError,
    ModelSession,
    StreamSetup,
    StreamSetupError,
    choose_model,
    upgrade_headers,
)
from media.streams.session_requests import session_request
from tests.support.model_setups import make_dialect

GOOD: dict[str, Any] = {"provider": "openai", "model": "gpt-realtime-2", "api_key": "sk-1"}


def faults(**fields: Any) -> dict[str, str]:
    with pytest.raises(StreamSetupError) as caught:
        choose_model({name: value for name, value in {**GOOD, **fields}.items() if value is not None})
    return dict(caught.value.faults)


def test_the_vendors_address_names_the_model() -> None:
    assert choose_model(GOOD).url == "wss://api.openai.com/v1/realtime?model=gpt-realtime-2"
    eleven = choose_model(
        {**GOOD, "provider": "elevenlabs", "model": "agent_1", "url": "wss://eu.example/c?x=1"}
    )
    assert eleven.url == "wss://eu.example/c?x=1&agent_id=agent_1"
    deepgram = choose_model({**GOOD, "provider": "deepgram"})
    assert deepgram.url == "wss://agent.deepgram.com/v1/agent/converse"


@pytest.mark.parametrize(
    ("provider", "encoding", "rate"),
    [
        ("openai", "mulaw", 8000),
        ("deepgram", "mulaw", 8000),
        ("gemini", "l16", 16000),
        ("elevenlabs", "l16", 16000),
        ("ultravox", "l16", 16000),
    ],
)
def test_each_vendor_has_its_audio(provider: str, encoding: str, rate: int) -> None:
    choice = choose_model({**GOOD, "provider": provider})
    assert (choice.protocol, choice.encoding, choice.sample_rate, choice.tls) == (
        provider,
        encoding,
        rate,
        True,
    )


@pytest.mark.parametrize("fields", [None, 7, [], "openai"])
def test_no_object_is_no_session(fields: Any) -> None:
    with pytest.raises(StreamSetupError) as caught:
        choose_model(fields)
    assert caught.value.field == ""


def test_every_wrong_field_is_named_at_once() -> None:
    wrong: dict[str, Any] = {
        "provider": "acme",
        "model": "a b",
        "instructions": "",
        "voice": 7,
        "greeting": "\ud800",
        "language": "English",
        "tools": ["a", "a"],
        "api_key": "with blank",
        "url": "http://x",
        "transcription": "",
        "max_retries": 11,
        "colour": "red",
    }
    assert faults(**wrong).keys() == wrong.keys()
    assert faults(model=None, provider=None).keys() == {"model", "provider"}


@pytest.mark.parametrize("tools", [["x"] * 33, "hangup", [7], ["no blanks"], {"a": 1}])
def test_tools_are_a_short_list_of_names(tools: Any) -> None:
    assert faults(tools=tools).keys() == {"tools"}


def test_there_is_one_key() -> None:
    assert faults(api_key=None).keys() == {"api_key"}
    assert faults(key="stored").keys() == {"key"}
    stored = choose_model({**GOOD, "api_key": None, "key": "stored"}).model
    assert stored is not None and (stored.api_key, stored.key) == (None, "stored")


def test_a_vendor_that_creates_sessions_by_request_has_an_address_of_http() -> None:
    ours: dict[str, Any] = {**GOOD, "provider": "ultravox"}
    usual = choose_model(ours)
    assert (usual.url, usual.tls) == ("https://api.ultravox.ai/api/calls", True)
    assert choose_model({**ours, "url": "http://10.1.2.3/api/calls"}).url == "http://10.1.2.3/api/calls"
    for url in ("wss://x.example/", "http://x.example/", "ws://10.1.2.3/"):
        assert faults(provider="ultravox", url=url).keys() == {"url"}
    assert upgrade_headers(make_dialect("ultravox")._setup, 0) == [("User-Agent", "trunkline/1.0")]


@pytest.mark.parametrize(
    "url", ["ws://127.0.0.1:9/x", "ws://10.1.2.3/", "ws://vendor:8080/x", "wss://x.example/"]
)
def test_a_key_goes_in_clear_to_private_addresses_only(url: str) -> None:
    assert choose_model({**GOOD, "url": url}).url.startswith(url)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ws://api.openai.com/v1",
            "ws://8.8.8.8/",
            "https://x.example/",
            "wss://u:p@x.example/",
            "wss://x/#f",
        ),
        *("wss://", "wss://x:0/", "wss://[::1/", "wss://x/ y", "wss://x/" + "a" * 2048),
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    assert faults(url=url).keys() == {"url"}


@pytest.mark.parametrize(
    ("provider", "header"),
    [
        ("openai", ("Authorization", "Bearer sk-secret")),
        ("deepgram", ("Authorization", "Token sk-secret")),
        ("gemini", ("x-goog-api-key", "sk-secret")),
    ],
)
def test_a_vendor_gets_the_key_and_nothing_of_the_account(provider: str, header: tuple[str, str]) -> None:
    setup: StreamSetup = make_dialect(provider)._setup
    assert upgrade_headers(setup, 0) == [("User-Agent", "trunkline/1.0"), header]


def test_elevenlabs_signs_the_address_that_the_socket_has() -> None:
    setup = make_dialect("elevenlabs", url="wss://eu.example/v1/c?x=1")._setup
    assert setup.model is not None
    request = session_request(setup.model, setup.url)
    assert request is not None
    assert request.url == f"https://eu.example/v1/c/get-signed-url?{setup.url.partition('?')[2]}"
    assert "agent_id=" in request.url and "sk-secret" not in f"{request.url} {request}"
    assert (request.body, request.headers) == (None, {"xi-api-key": "sk-secret"})
    assert request.read(b'{"signed_url":"wss://eu.example/v1/c?a=b"}') == "wss://eu.example/v1/c?a=b"
    assert upgrade_headers(setup, 0) == [("User-Agent", "trunkline/1.0")]
    plain = session_request(setup.model, "ws://10.0.0.1/c?agent_id=a")
    assert plain is not None and plain.url.startswith("http://10.0.0.1/c/get-signed-url?")


@pytest.mark.parametrize(
    "url",
    [None, 7, "", "https://x.example/", "ws://8.8.8.8/", "wss://u:p@x.example/", "wss://x/" + "a" * 2048],
)
def test_an_answer_without_a_signed_address_is_refused(url: object) -> None:
    setup = make_dialect("elevenlabs")._setup
    assert setup.model is not None
    request = session_request(setup.model, setup.url)
    assert request is not None
    with pytest.raises(CommandError):
        request.read(json.dumps({"signed_url": url}).encode())
    for body in (b"", b"[]", b"{" * 100_000):
        with pytest.raises(CommandError):
            request.read(body)


@pytest.mark.parametrize("provider", ["openai", "deepgram", "gemini"])
def test_other_vendors_want_no_request(provider: str) -> None:
    setup = make_dialect(provider)._setup
    assert setup.model is not None and session_request(setup.model, setup.url) is None


def test_no_repr_shows_a_key() -> None:
    choice = choose_model(GOOD)
    assert choice.model is not None
    session = ModelSession(choice=choice.model, api_key="sk-1", resumption="token-1")
    assert "sk-1" not in repr(choice) + repr(session) and "token-1" not in repr(session)
