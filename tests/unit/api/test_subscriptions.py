"""The endpoints of webhook subscriptions, before real services."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from callcontrol.models import Principal
from callcontrol.webhooks.subscriptions import Trial
from tests.unit.api.client import Client
from tests.unit.api.fakes import ACCOUNT, CALL_SID, DELIVERY_ID, NOWHERE, SUBSCRIPTION_ID, Fakes

PATH = "/v1/webhooks/subscriptions"
ONE = f"{PATH}/{SUBSCRIPTION_ID}"
URL = "https://app.example.com/missed"
BODY = {"url": URL, "secret": "t0p-s3cret", "event_types": ["call.missed"]}
SHOWN = {
    "id": SUBSCRIPTION_ID,
    "url": URL,
    "event_types": ["call.missed"],
    "has_secret": True,
    "is_active": True,
    "created_at": "2026-01-31T12:00:00.123Z",
    "updated_at": "2026-01-31T12:00:00.123Z",
}


async def test_a_subscription_is_created_and_shown_without_its_secret(client: Client, fakes: Fakes) -> None:
    answer = await client.post(PATH, BODY)
    assert (answer.status, answer.data) == (201, SHOWN)
    assert b"s3cret" not in answer.body
    assert fakes.subscriptions.asked == [BODY]
    bare = await client.post(PATH, {"url": URL, "event_types": ["call.missed"]})
    assert bare.data["has_secret"] is False


async def test_all_subscriptions_are_listed(client: Client) -> None:
    answer = await client.get(PATH)
    assert (answer.status, answer.data) == (200, [SHOWN])


async def test_only_what_is_given_is_changed(client: Client, fakes: Fakes) -> None:
    answer = await client.patch(ONE, {"is_active": False})
    assert (answer.status, answer.data) == (200, SHOWN | {"is_active": False})
    bare = await client.patch(ONE, {"secret": None})
    assert bare.data["has_secret"] is False
    assert fakes.subscriptions.asked == [{"is_active": False}, {"secret": None}]


async def test_a_subscription_is_deleted(client: Client, fakes: Fakes) -> None:
    answer = await client.delete(ONE)
    assert (answer.status, answer.body) == (204, b"")
    assert fakes.subscriptions.asked == [SUBSCRIPTION_ID]


@pytest.mark.parametrize(
    ("trial", "data"),
    [
        (Trial(204), {"success": True, "status_code": 204, "error": ""}),
        (Trial(500, "answered 500"), {"success": False, "status_code": 500, "error": "answered 500"}),
        (Trial(0, "no answer"), {"success": False, "status_code": 0, "error": "no answer"}),
    ],
)
async def test_a_test_is_answered_with_200_whatever_came_of_it(
    client: Client, fakes: Fakes, trial: Trial, data: dict[str, Any]
) -> None:
    fakes.subscriptions.trial = trial
    answer = await client.post(f"{ONE}/test", {})
    assert (answer.status, answer.data) == (200, data)


async def test_the_log_shows_deliveries_with_no_null_where_texts_are_expected(
    client: Client, fakes: Fakes
) -> None:
    answer = await client.get(f"{ONE}/deliveries")
    failed, pending = answer.data
    assert failed == {
        "id": DELIVERY_ID,
        "subscription_id": SUBSCRIPTION_ID,
        "event_type": "call.missed",
        "call_sid": CALL_SID,
        "status": "failed",
        "attempts": 8,
        "max_attempts": 8,
        "response_code": 500,
        "error": "answered 500",
        "created_at": "2026-01-31T12:00:00.123Z",
        "next_attempt_at": None,
        "delivered_at": None,
    }
    assert (pending["call_sid"], pending["error"], pending["response_code"]) == ("", "", 0)
    await client.get(f"{ONE}/deliveries?limit=200")
    assert fakes.subscriptions.asked == [50, 200]


@pytest.mark.parametrize("limit", ["0", "201", "ten", "-1"])
async def test_a_limit_that_is_none_is_refused(client: Client, limit: str) -> None:
    answer = await client.get(f"{ONE}/deliveries?limit={limit}")
    assert answer.status == 400
    assert answer.json()["error"].startswith("limit: ")


async def test_one_delivery_and_all_that_failed_are_sent_again(client: Client, fakes: Fakes) -> None:
    one = await client.post(f"{ONE}/deliveries/{DELIVERY_ID}/replay", {})
    assert (one.status, one.data) == (200, {"replayed": 1})
    window = {"status": "failed", "since": "2026-01-30T05:30:00+05:30", "until": "2026-01-31T00:00:00Z"}
    several = await client.post(f"{ONE}/deliveries/replay", window)
    assert (several.status, several.data) == (200, {"replayed": 10_000, "truncated": True})
    await client.post(f"{ONE}/deliveries/replay", {})
    day = datetime(2026, 1, 30, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC)
    assert fakes.subscriptions.asked == [day, (None, None)]


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", PATH, {"colour": "red"}, ["url", "event_types", "colour"]),
        ("POST", PATH, BODY | {"event_types": ["call.found"]}, ["event_types"]),
        ("POST", PATH, BODY | {"secret": 7}, ["secret"]),
        ("POST", PATH, BODY | {"url": "x" * 2049}, ["url"]),
        ("PATCH", ONE, {"is_active": "no", "url": None}, ["is_active", "url"]),
        ("PATCH", ONE, {"event_types": []}, ["event_types"]),
        # What is wrong with a value is named although another one has not even the right type.
        (
            "PATCH",
            ONE,
            {"is_active": "no", "event_types": [], "secret": "ab"},
            ["is_active", "event_types", "secret"],
        ),
        ("POST", PATH, {"secret": "ab", "event_types": ["call.found"]}, ["url", "event_types", "secret"]),
        ("POST", f"{ONE}/deliveries/replay", {"status": "delivered"}, ["status"]),
        ("POST", f"{ONE}/deliveries/replay", {"since": "yesterday", "until": "never"}, ["since", "until"]),
        ("POST", f"{ONE}/deliveries/replay", {"since": "2026-02-01", "until": "2026-01-01"}, ["until"]),
    ],
)
async def test_what_is_wrong_is_said_in_plain_text_with_every_field(
    client: Client, method: str, path: str, body: dict[str, Any], words: list[str]
) -> None:
    answer = await client.request(method, path, json_body=body)
    assert answer.status == 400
    error = answer.json()
    assert set(error) == {"error"} and isinstance(error["error"], str)
    assert all(f"{word}: " in error["error"] for word in words), error


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", f"{PATH}/{NOWHERE}"),
        ("DELETE", f"{PATH}/{NOWHERE}"),
        ("POST", f"{PATH}/{NOWHERE}/test"),
        ("GET", f"{PATH}/{NOWHERE}/deliveries"),
        ("POST", f"{PATH}/{NOWHERE}/deliveries/replay"),
        ("POST", f"{PATH}/{NOWHERE}/deliveries/{DELIVERY_ID}/replay"),
        ("POST", f"{ONE}/deliveries/{NOWHERE}/replay"),
    ],
)
async def test_what_is_not_there_is_said_in_plain_text(client: Client, method: str, path: str) -> None:
    answer = await client.request(method, path, json_body=None if method in ("GET", "DELETE") else {})
    assert answer.status == 404
    assert answer.json()["error"].startswith("There is no such ")


async def test_a_key_without_the_scope_is_refused_in_plain_text(client: Client, fakes: Fakes) -> None:
    reader = "vp_" + "r" * 40
    fakes.keys.principals[reader] = Principal(ACCOUNT, "key-r", "platform", frozenset({"webhooks.read"}))
    headers = {"Authorization": f"Bearer {reader}"}
    assert (await client.get(PATH, headers=headers)).status == 200
    answer = await client.post(PATH, BODY, headers=headers)
    assert answer.status == 403
    assert "webhooks.write" in answer.json()["error"]
