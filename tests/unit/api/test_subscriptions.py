"""The endpoints of webhook subscriptions, before real services."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.clock import MILLISECOND
from callcontrol.webhooks.aio import subscriptions
from callcontrol.webhooks.aio.client import Answer
from callcontrol.webhooks.subscriptions import CALL_EVENTS
from tests.support.api_facts import ACCOUNT, CALL_SID, NOWHERE
from tests.support.api_stage import ApiStage, asked
from tests.support.api_webhooks import (
    DELIVERY_ID,
    SUBSCRIPTION_ID,
    add_deliveries,
    add_subscription,
    answer_webhooks,
)
from tests.unit.api.client import Client

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


@pytest.fixture
async def subscribed(stage: ApiStage) -> None:
    await add_subscription(stage, CALL_EVENTS, URL)


async def test_a_subscription_is_created_and_shown_without_its_secret(
    client: Client, storage: Storage
) -> None:
    requests = asked(storage.subscriptions, "create")
    answer = await client.post(PATH, BODY)
    made = {name: answer.data[name] for name in ("id", "created_at")}
    assert (answer.status, answer.data) == (201, SHOWN | made | {"updated_at": made["created_at"]})
    assert b"s3cret" not in answer.body
    assert requests == [(ACCOUNT, BODY)]
    assert (await storage.subscriptions.get(ACCOUNT, made["id"])).secret == BODY["secret"]
    bare = await client.post(PATH, {"url": URL, "event_types": ["call.missed"]})
    assert bare.data["has_secret"] is False


@pytest.mark.usefixtures("subscribed")
async def test_all_subscriptions_are_listed(client: Client) -> None:
    answer = await client.get(PATH)
    assert (answer.status, answer.data) == (200, [SHOWN])


@pytest.mark.usefixtures("subscribed")
async def test_only_what_is_given_is_changed(client: Client, storage: Storage) -> None:
    changes = asked(storage.subscriptions, "update")
    answer = await client.patch(ONE, {"is_active": False})
    changed = {"is_active": False, "updated_at": answer.data["updated_at"]}
    assert (answer.status, answer.data) == (200, SHOWN | changed)
    assert answer.data["updated_at"] > SHOWN["updated_at"]
    bare = await client.patch(ONE, {"secret": None})
    assert bare.data["has_secret"] is False
    assert changes == [
        (ACCOUNT, SUBSCRIPTION_ID, {"is_active": False}),
        (ACCOUNT, SUBSCRIPTION_ID, {"secret": None}),
    ]


@pytest.mark.usefixtures("subscribed")
async def test_a_subscription_is_deleted(client: Client, storage: Storage) -> None:
    answer = await client.delete(ONE)
    assert (answer.status, answer.body) == (204, b"")
    assert await storage.subscriptions.list(ACCOUNT) == []


@pytest.mark.usefixtures("subscribed")
@pytest.mark.parametrize(
    ("given", "data"),
    [
        (Answer(204), {"success": True, "status_code": 204, "error": ""}),
        (Answer(500, "answered 500"), {"success": False, "status_code": 500, "error": "answered 500"}),
        (Answer(0, "no answer"), {"success": False, "status_code": 0, "error": "no answer"}),
    ],
)
async def test_a_test_is_answered_with_200_whatever_came_of_it(
    client: Client, stage: ApiStage, given: Answer, data: dict[str, Any]
) -> None:
    answer_webhooks(stage, given)
    answer = await client.post(f"{ONE}/test", {})
    assert (answer.status, answer.data) == (200, data)


@pytest.mark.usefixtures("subscribed")
async def test_the_log_shows_deliveries_with_no_null_where_texts_are_expected(
    client: Client, stage: ApiStage
) -> None:
    await add_deliveries(stage, SUBSCRIPTION_ID, "call.missed")
    logs = asked(stage.storage.subscriptions, "deliveries")
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
    assert logs == [(ACCOUNT, SUBSCRIPTION_ID, 50), (ACCOUNT, SUBSCRIPTION_ID, 200)]


@pytest.mark.parametrize("limit", ["0", "201", "ten", "-1"])
async def test_a_limit_that_is_none_is_refused(client: Client, limit: str) -> None:
    answer = await client.get(f"{ONE}/deliveries?limit={limit}")
    assert answer.status == 400
    assert answer.json()["error"].startswith("limit: ")


@pytest.mark.usefixtures("subscribed")
async def test_one_delivery_and_all_that_failed_are_sent_again(
    client: Client, stage: ApiStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_at = datetime(2026, 1, 30, 12, tzinfo=UTC)
    await add_deliveries(stage, SUBSCRIPTION_ID, "call.missed", failed_at=failed_at, failed=4)
    replays = asked(stage.storage.subscriptions, "replay_failed")
    monkeypatch.setattr(subscriptions, "MAX_REPLAYED", 2)
    one = await client.post(f"{ONE}/deliveries/{DELIVERY_ID}/replay", {})
    assert (one.status, one.data) == (200, {"replayed": 1})
    window = {"status": "failed", "since": "2026-01-30T05:30:00+05:30", "until": "2026-01-31T00:00:00Z"}
    several = await client.post(f"{ONE}/deliveries/replay", window)
    assert (several.status, several.data) == (200, {"replayed": 2, "truncated": True})
    rest = await client.post(f"{ONE}/deliveries/replay", {})
    assert rest.data == {"replayed": 1, "truncated": False}
    day = datetime(2026, 1, 30, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC) + MILLISECOND
    assert replays == [(ACCOUNT, SUBSCRIPTION_ID, *day), (ACCOUNT, SUBSCRIPTION_ID, None, None)]


@pytest.mark.usefixtures("subscribed")
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


@pytest.mark.usefixtures("subscribed")
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


async def test_a_key_without_the_scope_is_refused_in_plain_text(client: Client, stage: ApiStage) -> None:
    reader = "vp_" + "w" * 43
    await stage.add_key(reader, "platform", ["webhooks.read"])
    headers = {"Authorization": f"Bearer {reader}"}
    assert (await client.get(PATH, headers=headers)).status == 200
    answer = await client.post(PATH, BODY, headers=headers)
    assert answer.status == 403
    assert "webhooks.write" in answer.json()["error"]
