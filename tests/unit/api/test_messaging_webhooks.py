"""The webhook endpoints of messaging, before real services."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.clock import timestamp
from callcontrol.messaging.events import EVENTS
from callcontrol.webhooks.aio import client as webhooks
from callcontrol.webhooks.aio import subscriptions
from tests.support.api_facts import ACCOUNT, CALL_SID, NOWHERE
from tests.support.api_stage import ApiStage, asked
from tests.support.api_webhooks import (
    DELIVERY_ID,
    SUBSCRIPTION_ID,
    add_deliveries,
    add_subscription,
    answer_webhooks,
)
from tests.unit.api.client import Answer, Client

PATH = "/api/webhook-endpoints"
ONE = f"{PATH}/1"
URL = "https://app.example.com/messaging"
BODY = {"url": URL, "events": ["message.sent"]}
KEY, READER, SENDER = ("vm_" + letter * 43 for letter in "krs")
SHOWN = {
    "id": 1,
    "url": URL,
    "events": ["message.sent"],
    "description": None,
    "isActive": True,
    "createdAt": "2026-01-31T12:00:00.123Z",
    "updatedAt": "2026-01-31T12:00:00.123Z",
}


@pytest.fixture(autouse=True)
async def _keys(stage: ApiStage) -> None:
    for key, scopes in (
        (KEY, ["webhooks.read", "webhooks.write"]),
        (READER, ["webhooks.read"]),
        (SENDER, ["messages.send"]),
    ):
        await stage.add_key(key, "messaging", scopes)


@pytest.fixture
async def endpoint(stage: ApiStage) -> None:
    """The first endpoint of the account."""
    await add_subscription(stage, EVENTS, URL)


def refusal(answer: Answer) -> tuple[int, str]:
    """Return the error of a refusal, in the one form that messaging has for it."""
    body = answer.json()
    assert set(body) - {"details"} == {"success", "error", "code", "message"} and body["success"] is False
    return answer.status, body["code"]


async def test_the_secret_is_shown_once(client: Client, storage: Storage) -> None:
    requests = asked(storage.webhook_endpoints, "create")
    made = await client.post(PATH, BODY, key=KEY)
    (kept,) = await storage.webhook_endpoints.list(ACCOUNT)
    dates = dict.fromkeys(("createdAt", "updatedAt"), timestamp(kept.created_at))
    data = {**SHOWN, **dates, "secret": kept.secret}
    assert (made.status, made.json()) == (201, {"success": True, "data": data})
    assert requests == [(ACCOUNT, {"url": URL, "event_types": ["message.sent"]})]
    assert kept.secret is not None and kept.secret.startswith("whsec_")
    secret = kept.secret.encode()
    later = [await client.get(PATH, key=KEY), await client.get(ONE, key=KEY)]
    later.append(await client.patch(ONE, {"description": "CRM"}, key=KEY))
    assert [answer.status for answer in later] == [200, 200, 200]
    assert not any(secret in answer.body for answer in later)


@pytest.mark.usefixtures("endpoint")
async def test_only_what_is_given_is_changed(client: Client, storage: Storage) -> None:
    changes = asked(storage.webhook_endpoints, "update")
    answer = await client.patch(ONE, {"isActive": False, "events": ["message.read"]}, key=KEY)
    assert answer.data["isActive"] is False and answer.data["events"] == ["message.read"]
    assert changes == [(ACCOUNT, SUBSCRIPTION_ID, {"is_active": False, "event_types": ["message.read"]})]


@pytest.mark.usefixtures("endpoint")
async def test_what_was_deleted_is_named(client: Client, storage: Storage) -> None:
    answer = await client.delete(ONE, key=KEY)
    assert (answer.status, answer.json()) == (200, {"success": True, "data": {"id": 1, "deleted": True}})
    assert await storage.webhook_endpoints.list(ACCOUNT) == []


@pytest.mark.usefixtures("endpoint")
@pytest.mark.parametrize(
    ("given", "data"),
    [
        (webhooks.Answer(204), {"success": True, "statusCode": 204, "error": ""}),
        (
            webhooks.Answer(0, "no answer"),
            {"success": False, "statusCode": 0, "error": "no answer"},
        ),
    ],
    ids=["taken", "no answer"],
)
async def test_a_test_is_answered_with_200_whatever_came_of_it(
    client: Client, stage: ApiStage, given: webhooks.Answer, data: dict[str, Any]
) -> None:
    answer_webhooks(stage, given)
    answer = await client.post(f"{ONE}/test", {}, key=KEY)
    assert (answer.status, answer.json()) == (200, {"success": True, "data": data})


@pytest.mark.usefixtures("endpoint")
async def test_the_log_is_spelled_as_messaging_is(client: Client, stage: ApiStage) -> None:
    await add_deliveries(stage, SUBSCRIPTION_ID, "message.sent")
    failed, pending = (await client.get(f"{ONE}/deliveries", key=KEY)).data
    assert failed == {
        "id": DELIVERY_ID,
        "endpointId": 1,
        "event": "message.sent",
        "messageId": CALL_SID,
        "status": "failed",
        "attempts": 8,
        "maxAttempts": 8,
        "responseCode": 500,
        "error": "answered 500",
        "createdAt": "2026-01-31T12:00:00.123Z",
        "nextAttemptAt": None,
        "deliveredAt": None,
    }
    assert (pending["messageId"], pending["error"]) == (None, "")


@pytest.mark.usefixtures("endpoint")
async def test_one_delivery_and_all_that_failed_are_sent_again(
    client: Client, stage: ApiStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_deliveries(stage, SUBSCRIPTION_ID, "message.sent", failed=3)
    monkeypatch.setattr(subscriptions, "MAX_REPLAYED", 1)
    one = await client.post(f"{ONE}/deliveries/{DELIVERY_ID}/replay", {}, key=KEY)
    assert (one.status, one.data) == (200, {"replayed": 1})
    several = await client.post(f"{ONE}/deliveries/replay", {"status": "failed"}, key=KEY)
    assert (several.status, several.data) == (200, {"replayed": 1, "truncated": True})


@pytest.mark.usefixtures("endpoint")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{PATH}/2"),
        ("GET", f"{PATH}/0"),
        ("GET", f"{PATH}/01"),
        ("GET", f"{PATH}/9223372036854775808"),
        ("GET", f"{PATH}/{NOWHERE}"),
        ("PATCH", f"{PATH}/2"),
        ("DELETE", f"{PATH}/2"),
        ("POST", f"{PATH}/2/test"),
        ("GET", f"{PATH}/2/deliveries"),
        ("POST", f"{PATH}/2/deliveries/replay"),
        ("POST", f"{PATH}/2/deliveries/{DELIVERY_ID}/replay"),
        ("POST", f"{ONE}/deliveries/{NOWHERE}/replay"),
        ("POST", f"{ONE}/deliveries/1/replay"),
        # Nothing is served there at all.
        ("GET", f"{ONE}/secret"),
        ("GET", f"{PATH}/1/2/3/4"),
    ],
)
async def test_what_is_not_there_is_refused_as_messaging_does(client: Client, method: str, path: str) -> None:
    body: dict[str, Any] | None = None if method in ("GET", "DELETE") else {}
    assert refusal(await client.request(method, path, json_body=body, key=KEY)) == (404, "NOT_FOUND")


async def test_every_refusal_has_the_one_form(client: Client, stage: ApiStage) -> None:
    """Also those of the edge, which come before anything is known of the request."""
    assert refusal(await client.request("PUT", PATH, json_body=BODY, key=KEY)) == (405, "METHOD_NOT_ALLOWED")
    assert refusal(await client.request("PUT", ONE, json_body={}, key=KEY)) == (405, "METHOD_NOT_ALLOWED")
    assert refusal(await client.get(PATH, key=None)) == (401, "UNAUTHORIZED")
    assert refusal(await client.post(PATH, {"colour": 1}, key=KEY)) == (400, "VALIDATION_ERROR")
    large = await client.request("POST", PATH, body=b" " * (1024 * 1024 + 1), key=KEY)
    assert refusal(large) == (413, "PAYLOAD_TOO_LARGE")
    await stage.drop_table("webhook_endpoints")
    assert refusal(await client.get(PATH, key=KEY)) == (500, "INTERNAL_ERROR")


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [
        (None, {"X-API-Key": KEY}, 200),
        (KEY, {}, 200),
        (KEY, {"X-API-Key": KEY}, 200),
        (KEY, {"X-API-Key": READER}, 401),
        (None, {"X-API-Key": f"Bearer {KEY}"}, 401),
        (READER, {}, 200),
        (SENDER, {}, 403),
        (None, {"X-API-Key": SENDER}, 403),
    ],
    ids=[
        "plain",
        "bearer",
        "both",
        "two keys",
        "plain with a scheme",
        "read only",
        "no scope",
        "no scope, plain",
    ],
)
async def test_which_key_reads(client: Client, key: str | None, headers: dict[str, str], status: int) -> None:
    answer = await client.get(PATH, key=key, headers=headers)
    assert answer.status == status
    if status == 403:
        assert "webhooks.read" in answer.json()["message"]


@pytest.mark.parametrize(
    "headers", [{}, {"X-API-Key": KEY, "Authorization": f"Bearer {READER}"}], ids=["none", "two"]
)
async def test_who_sends_no_one_key_is_told_of_both_headers(client: Client, headers: dict[str, str]) -> None:
    answer = await client.get(PATH, key=None, headers=headers)
    assert refusal(answer) == (401, "UNAUTHORIZED")
    assert "X-API-Key: KEY or Authorization: Bearer KEY" in answer.json()["message"]


@pytest.mark.usefixtures("endpoint")
async def test_a_key_that_only_reads_changes_nothing(client: Client, storage: Storage) -> None:
    before = await storage.webhook_endpoints.list(ACCOUNT)
    for answer in (
        await client.post(PATH, BODY, key=READER),
        await client.patch(ONE, {"isActive": False}, key=READER),
        await client.delete(ONE, key=READER),
        await client.post(f"{ONE}/test", {}, key=READER),
        await client.post(f"{ONE}/deliveries/replay", {}, key=READER),
    ):
        assert refusal(answer) == (403, "FORBIDDEN") and "webhooks.write" in answer.json()["message"]
    assert await storage.webhook_endpoints.list(ACCOUNT) == before


async def test_every_key_of_messaging_has_requests_of_its_own(client: Client) -> None:
    """Those of the platform are counted elsewhere, however few they are."""
    for _ in range(21):
        await client.get("/v1/calls")
    answers = [await client.get(PATH, key=key) for key in (KEY, READER, KEY)]
    assert [answer.headers["X-RateLimit-Limit"] for answer in answers] == ["600"] * 3
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["599", "599", "598"]


@pytest.mark.usefixtures("endpoint")
async def test_tests_are_limited_for_each_key(client: Client, stage: ApiStage) -> None:
    answer_webhooks(stage, webhooks.Answer(204))
    answers = [await client.post(f"{ONE}/test", {}, key=KEY) for _ in range(61)]
    assert [answer.status for answer in answers] == [200] * 60 + [429]
    assert refusal(answers[-1]) == (429, "RATE_LIMITED") and int(answers[-1].headers["Retry-After"]) > 0
