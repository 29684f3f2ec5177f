"""Webhook subscriptions: what makes sense of one, and what changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from callcontrol.errors import ValidationFailed
from callcontrol.webhooks.subscriptions import (
    CALL_EVENTS,
    SubscribedService,
    Subscription,
    Trial,
    changed_subscription,
    new_subscription,
)
from tests.support.domain import ACCOUNT_SID, NOW
from tests.support.subscribed import SERVICE_EVENTS

SID = "0a6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
URL = "https://app.example.com/missed"
LATER = NOW + timedelta(hours=1)


def make(service: SubscribedService = "calls", **values: Any) -> Subscription:
    return new_subscription(
        SID, ACCOUNT_SID, SERVICE_EVENTS[service], {"url": URL, "event_types": ["call.missed"], **values}, NOW
    )


def wrong(**values: Any) -> set[str]:
    with pytest.raises(ValidationFailed) as refusal:
        make(**values)
    return {error.field for error in refusal.value.errors}


def test_a_subscription_begins_active_and_unsigned() -> None:
    made = make()
    assert (made.url, made.event_types, made.is_active, made.has_secret) == (
        URL,
        ("call.missed",),
        True,
        False,
    )


def test_no_representation_shows_the_secret() -> None:
    made = make(secret="t0p-s3cret")
    assert made.has_secret and "t0p-s3cret" not in repr(made)


def test_an_event_that_is_named_twice_is_sent_once() -> None:
    assert make(event_types=["call.missed", "call.missed"]).event_types == ("call.missed",)


@pytest.mark.parametrize(
    "secret",
    ["short", " " * 32, "x" * 257, "line\nbreak", "whsec_", "whsec_not base64!", "whsec_====", "whsec_YQ"],
)
def test_a_secret_that_could_not_sign_is_refused(secret: str) -> None:
    assert wrong(secret=secret) == {"secret"}


@pytest.mark.parametrize("secret", ["secret", "x" * 256, "पासवर्ड", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_a_secret_that_can_sign_is_taken(secret: str) -> None:
    assert make(secret=secret).secret == secret


def test_everything_that_is_wrong_is_named_at_once() -> None:
    values = {"url": None, "event_types": ["call.found"], "secret": "x", "colour": "red"}
    assert wrong(**values) == {"url", "event_types", "secret", "colour"}
    assert wrong(event_types=[]) == {"event_types"}
    assert wrong(description="x" * 257) == {"description"}


@pytest.mark.parametrize("service", list(SERVICE_EVENTS))
def test_each_service_knows_its_own_events_and_no_others(service: SubscribedService) -> None:
    own = SERVICE_EVENTS[service].names
    assert make(service, event_types=list(own)).event_types == own
    strange = next(
        name for other, events in SERVICE_EVENTS.items() if other != service for name in events.names
    )
    with pytest.raises(ValidationFailed):
        make(service, event_types=[*own, strange])


def test_only_what_is_given_changes() -> None:
    former = make(secret="t0p-s3cret", description="Missed calls")
    assert changed_subscription(former, CALL_EVENTS, {}, LATER) == former
    paused = changed_subscription(former, CALL_EVENTS, {"is_active": False}, LATER)
    assert paused.updated_at == LATER
    assert (paused.is_active, paused.secret, paused.url, paused.created_at) == (
        False,
        "t0p-s3cret",
        URL,
        NOW,
    )
    bare = changed_subscription(former, CALL_EVENTS, {"secret": None, "description": None}, LATER)
    assert (bare.has_secret, bare.description) == (False, None)


@pytest.mark.parametrize("field", ["url", "event_types", "is_active"])
def test_what_every_subscription_has_cannot_be_taken_away(field: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        changed_subscription(make(), CALL_EVENTS, {field: None}, LATER)
    assert [error.field for error in refusal.value.errors] == [field]


def test_a_test_succeeds_when_nothing_went_wrong() -> None:
    assert Trial(204).success and not Trial(500, "answered 500").success and not Trial(0, "silent").success
