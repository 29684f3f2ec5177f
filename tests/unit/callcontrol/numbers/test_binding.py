"""The wiring of numbers: every state of the table with every request, and every wrong field of a binding."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from callcontrol.errors import BindFailed, InboundBound, InboundConflict, NotConfigured
from callcontrol.masking.steps.route_by_caller import PROMPT
from callcontrol.models import Binding, NumberConfiguration, PhoneNumber
from callcontrol.numbers import binding as numbers
from fixtures.prompts import DIRECTORY

NOW = datetime(2026, 8, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
STREAM = Binding(target="media_stream", stream_url="wss://agent.example/ws")
FORWARD = Binding(target="forward", forward_to="+919800000001")
NEW = PhoneNumber("id", "account", "+918047491899", NOW, NOW)
REGISTERED = replace(NEW, registered=True)
BOUND = replace(REGISTERED, binding=STREAM)


@pytest.mark.parametrize("number", [NEW, REGISTERED, BOUND])
def test_registering_is_idempotent_and_keeps_the_binding(number: PhoneNumber) -> None:
    once = numbers.register(number, configured=True, now=LATER)
    assert once.registered
    assert once.binding == number.binding
    assert numbers.register(once, configured=True, now=LATER) is once


def test_deregistering() -> None:
    assert numbers.deregister(NEW, configured=True, force=False, now=LATER) is NEW
    done = numbers.deregister(REGISTERED, configured=True, force=False, now=LATER)
    assert (done.registered, done.binding, done.updated_at) == (False, None, LATER)


def test_deregistering_a_bound_number_needs_force_and_unbinds_it() -> None:
    with pytest.raises(InboundBound):
        numbers.deregister(BOUND, configured=True, force=False, now=LATER)
    done = numbers.deregister(BOUND, configured=True, force=True, now=LATER)
    assert (done.registered, done.binding) == (False, None)


@pytest.mark.parametrize("number", [NEW, REGISTERED])
def test_binding_registers_too(number: PhoneNumber) -> None:
    done = numbers.bind(number, STREAM, configured=True, force=False, now=LATER)
    assert (done.registered, done.binding) == (True, STREAM)


def test_binding_again_to_the_same_target_changes_nothing() -> None:
    assert numbers.bind(BOUND, STREAM, configured=True, force=False, now=LATER) is BOUND


def test_binding_elsewhere_needs_force() -> None:
    with pytest.raises(InboundConflict):
        numbers.bind(BOUND, FORWARD, configured=True, force=False, now=LATER)
    assert numbers.bind(BOUND, FORWARD, configured=True, force=True, now=LATER).binding == FORWARD


@pytest.mark.parametrize(
    "former",
    [STREAM, Binding(target="webhook", webhook_url="https://shop.example/calls")],
    ids=lambda binding: binding.target,
)
def test_the_own_server_moves_without_force(former: Binding) -> None:
    moved = replace(former, stream_url=former.stream_url and "wss://new.example/ws", record=True)
    bound = replace(REGISTERED, binding=former)
    assert numbers.bind(bound, moved, configured=True, force=False, now=LATER).binding == moved


@pytest.mark.parametrize(
    "changed",
    [
        replace(FORWARD, timeout_s=10),
        Binding("voice_agent", agent_id="a", record=True),
        Binding("masking", language="hi"),
        Binding("missed_call", timeout_s=10),
    ],
    ids=lambda binding: binding.target,
)
def test_options_change_without_force(changed: Binding) -> None:
    former = replace(changed, timeout_s=None, record=None, language=None)
    bound = replace(REGISTERED, binding=former)
    assert numbers.bind(bound, changed, configured=True, force=False, now=LATER).binding == changed


@pytest.mark.parametrize(
    ("former", "other"),
    [
        (FORWARD, replace(FORWARD, forward_to="+919800000002")),
        (Binding("voice_agent", agent_id="a"), Binding("voice_agent", agent_id="b")),
        (STREAM, Binding("missed_call")),
    ],
    ids=lambda binding: binding.target,
)
def test_another_party_needs_force(former: Binding, other: Binding) -> None:
    with pytest.raises(InboundConflict):
        numbers.bind(replace(REGISTERED, binding=former), other, configured=True, force=False, now=LATER)


def test_a_number_is_not_forwarded_to_itself() -> None:
    itself = replace(FORWARD, forward_to=NEW.number)
    with pytest.raises(BindFailed) as refusal:
        numbers.bind(NEW, itself, configured=True, force=True, now=LATER)
    assert [error.field for error in refusal.value.errors] == ["forward_to"]


def test_unbinding_keeps_the_registration() -> None:
    done = numbers.unbind(BOUND, now=LATER)
    assert (done.registered, done.binding) == (True, None)
    assert numbers.unbind(REGISTERED, now=LATER) is REGISTERED


def test_without_a_platform_carrier_a_platform_number_cannot_be_provisioned() -> None:
    with pytest.raises(NotConfigured):
        numbers.register(NEW, configured=False, now=LATER)
    with pytest.raises(NotConfigured):
        numbers.deregister(REGISTERED, configured=False, force=True, now=LATER)
    with pytest.raises(NotConfigured):
        numbers.bind(NEW, STREAM, configured=False, force=True, now=LATER)
    own = replace(NEW, carrier_sid="own")
    assert numbers.register(own, configured=False, now=LATER).registered


def test_the_wiring_state_names_the_target() -> None:
    assert NumberConfiguration.of(NEW) == NumberConfiguration("id", "+918047491899", False, False, False)
    assert NumberConfiguration.of(BOUND) == NumberConfiguration(
        "id", "+918047491899", True, True, True, "media_stream"
    )


def test_a_binding_gets_its_defaults() -> None:
    stream = numbers.check_binding(STREAM)
    assert (stream.sample_rate, stream.stream_protocol, stream.encoding) == (8000, "exotel", "l16")
    forward = numbers.check_binding(FORWARD)
    assert (forward.caller_id, forward.timeout_s, forward.record) == ("passthrough", 60, False)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"target": "voice_agent", "agent_id": "x"}, {"agent_id", "workspace_id"}),
        ({"target": "voice_agent", "stream_url": "wss://x"}, {"agent_id", "workspace_id", "stream_url"}),
        ({"target": "webhook"}, {"webhook_url"}),
        (
            {"target": "webhook", "webhook_url": "x" * 3000, "webhook_method": "PUT", "timeout_s": 121},
            {"webhook_url", "webhook_method", "timeout"},
        ),
        ({"target": "webhook", "webhook_url": "https://x", "agent_id": "x"}, {"agent_id"}),
        ({"target": "carrier_pigeon"}, {"target"}),
        ({"target": "media_stream"}, {"stream_url"}),
        ({"target": "media_stream", "stream_url": "https://agent.example"}, {"stream_url"}),
        ({"target": "media_stream", "stream_url": "wss://"}, {"stream_url"}),
        ({"target": "media_stream", "stream_url": "ws://a b"}, {"stream_url"}),
        ({"target": "media_stream", "stream_url": "ws://x\r\nEvil: 1"}, {"stream_url"}),
        ({"target": "media_stream", "stream_url": "ws://[::1"}, {"stream_url"}),
        ({"target": "media_stream", "stream_url": "ws://x:99999"}, {"stream_url"}),
        ({"target": "media_stream", "stream_url": "wss://x/" + "y" * 3000}, {"stream_url"}),
        (
            {"target": "media_stream", "stream_url": "http://x", "sample_rate": 44100},
            {"stream_url", "sample_rate"},
        ),
        (
            {"target": "media_stream", "stream_url": "wss://x", "stream_protocol": "x", "encoding": "opus"},
            {"stream_protocol", "encoding"},
        ),
        (
            {
                "target": "media_stream",
                "stream_url": "wss://x",
                "custom_parameters": {str(n): "" for n in range(40)},
            },
            {"custom_parameters"},
        ),
        ({"target": "media_stream", "stream_url": "wss://x", "encoding": "mulaw"}, {"encoding"}),
        (
            {"target": "media_stream", "stream_url": "wss://x?sample-rate=16000", "sample_rate": 8000},
            {"sample_rate"},
        ),
        ({"target": "media_stream", "stream_url": "wss://x?sample-rate=44100"}, {"sample_rate"}),
        ({"target": "media_stream", "stream_url": "wss://x?stream_protocol=x"}, {"stream_protocol"}),
        ({"target": "media_stream", "stream_url": "wss://x", "stream_track": "outbound"}, {"stream_track"}),
        (
            {"target": "media_stream", "stream_url": "wss://x", "stream_max_retries": 11},
            {"stream_max_retries"},
        ),
        ({"target": "media_stream", "stream_url": "wss://x", "stream_auth": {"type": "x"}}, {"stream_auth"}),
        (
            {
                "target": "media_stream",
                "stream_url": "wss://x",
                "forward_to": "+919800000001",
                "timeout_s": 9,
            },
            {"forward_to", "timeout"},
        ),
        (
            {"target": "forward", "forward_to": "+919800000001", "stream_url": "wss://x", "agent_id": "x"},
            {"stream_url", "agent_id"},
        ),
        ({"target": "forward"}, {"forward_to"}),
        ({"target": "forward", "forward_to": "12345"}, {"forward_to"}),
        ({"target": "forward", "forward_to": "+91980000000"}, {"forward_to"}),
        ({"target": "forward", "forward_to": "sip:x@y>evil"}, {"forward_to"}),
        ({"target": "forward", "forward_to": "sip:bob@10.0.0.1:5070\r\nX: y"}, {"forward_to"}),
        (
            {"target": "forward", "forward_to": "+919800000001", "timeout_s": 4, "caller_id": "x"},
            {"timeout", "caller_id"},
        ),
        (
            {
                "target": "webhook",
                "webhook_url": "ftp://shop.example",
                "timeout_s": 4,
                "status_webhook_url": "shop",
            },
            {"webhook_url", "timeout", "status_webhook_url"},
        ),
        ({"target": "missed_call", "timeout_s": 61, "record": True}, {"timeout", "record"}),
        ({"target": "missed_call", "transcribe": True}, {"transcribe"}),
        (
            {"target": "forward", "forward_to": "+919800000001", "transcription_language": "a b"},
            {"transcription_language"},
        ),
        ({"target": "missed_call", "timeout_s": 4, "forward_to": "+919800000001"}, {"timeout", "forward_to"}),
    ],
)
def test_wrong_fields_of_a_binding_are_all_named(fields: dict[str, Any], wrong: set[str]) -> None:
    with pytest.raises(BindFailed) as caught:
        numbers.check_binding(Binding(**fields))
    assert {error.field for error in caught.value.errors} == wrong
    assert {item["field"] for item in caught.value.details["errors"]} == wrong


def test_a_binding_keeps_to_what_its_url_says() -> None:
    """Filling in the default rate would contradict the URL, and every call would be refused."""
    given = Binding(target="media_stream", stream_url="wss://x/?sample-rate=16000&customer=42")
    stored = numbers.check_binding(given)
    assert stored.sample_rate == 16000
    assert numbers.choice_of(stored).sample_rate == 16000


@pytest.mark.parametrize(
    "target", ["+919800000001", "sip:bob@10.0.0.1:5070", "sip:+91@gw.example", "sip:a@[::1]:5060"]
)
def test_forward_targets(target: str) -> None:
    assert numbers.check_binding(Binding(target="forward", forward_to=target)).forward_to == target


@pytest.mark.parametrize("text", ["919800000001", "00 91 9800 000 001", "09800000001", "tel:+919800000001"])
def test_numbers_of_a_binding_are_kept_in_e164(text: str) -> None:
    bound = numbers.check_binding(Binding(target="forward", forward_to=text, caller_id="080 4749 1899"))
    assert (bound.forward_to, bound.caller_id) == ("+919800000001", "+918047491899")


def test_a_stored_binding_comes_back_and_passes_over_what_it_does_not_know() -> None:
    stored = numbers.check_binding(STREAM).to_json()
    assert Binding.from_json({**stored, "of_a_later_version": 1}) == numbers.check_binding(STREAM)


def test_a_number_that_is_there_to_be_missed_rings_for_half_a_minute() -> None:
    assert numbers.check_binding(Binding("missed_call")).timeout_s == 30
    assert numbers.check_binding(Binding("missed_call", timeout_s=60)).timeout_s == 60


@pytest.mark.parametrize(("given", "kept"), [(None, "en"), ("hi-IN", "hi"), ("TA", "ta")])
def test_a_masking_number_speaks_one_of_the_languages(given: str | None, kept: str) -> None:
    assert numbers.check_binding(Binding("masking", language=given)) == Binding("masking", language=kept)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"language": "fr"}, {"language"}),
        ({"transcribe": True, "transcription_language": "?"}, {"transcribe", "transcription_language"}),
        ({"record": True, "status_webhook_url": "https://a.example/"}, {"record", "status_webhook_url"}),
    ],
)
def test_what_a_masking_number_does_not_take(fields: dict[str, Any], wrong: set[str]) -> None:
    with pytest.raises(BindFailed) as caught:
        numbers.check_binding(Binding("masking", **fields))
    assert {error.field for error in caught.value.errors} == wrong


def test_there_is_a_prompt_in_every_language_that_callers_are_told_in() -> None:
    assert all((DIRECTORY / language / f"{PROMPT}.wav").is_file() for language in numbers.PROMPT_LANGUAGES)
