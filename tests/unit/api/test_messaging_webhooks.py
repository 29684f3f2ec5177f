"""The webhook endpoints of messaging, before real services."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.models import Principal
from callcontrol.webhooks.subscriptions import Trial
from tests.unit.api.client import Answer, Client
from tests.unit.api.fakes import ACCOUNT, CALL_SID, DELIVERY_ID, NOWHERE, SUBSCRIPTION_ID, Fakes
from tests.unit.api.fakes.subscriptions import SECRET

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
def _keys(fakes: Fakes) -> None:
    known = fakes.keys.principals
    for key, scopes in (
        (KEY, {"webhooks.read", "webhooks.write"}),
        (READER, {"webhooks.read"}),
        (SENDER, {"messages.send"}),
    ):
        known[key] = Principal(ACCOUNT, f"key-{key[3]}", "messaging", frozenset(scopes))


def refusal(answer: Answer) -> tuple[int, str]:
    """Return the error of a refusal, in the one form that messaging has for it."""
    body = answer.json()
    assert set(body) - {"details"} == {"success", "error", "code", "message"} and body["success"] is False
    return answer.status, body["code"]


async def test_the_secret_is_shown_once(client: Client, fakes: Fakes) -> None:
    made = await client.post(PATH, BODY, key=KEY)
    assert (made.status, made.json()) == (201, {"success": True, "data": {**SHOWN, "secret": SECRET}})
    assert fakes.webhook_endpoints.asked == [{"url": URL, "event_types": ["message.sent"]}]
    later = [await client.get(PATH, key=KEY), await client.get(ONE, key=KEY)]
    later.append(await client.patch(ONE, {"description": "CRM"}, key=KEY))
    assert [answer.status for answer in later] == [200, 200, 200]
    assert not any(SECRET.encode() in answer.body for answer in later)


async def test_only_what_is_given_is_changed(client: Client, fakes: Fakes) -> None:
    answer = await client.patch(ONE, {"isActive": False, "events": ["message.read"]}, key=KEY)
    assert answer.data["isActive"] is False and answer.data["events"] == ["message.read"]
    assert fakes.webhook_endpoints.asked == [{"is_active": False, "event_types": ["message.read"]}]


async def test_what_was_deleted_is_named(client: Client, fakes: Fakes) -> None:
    answer = await client.delete(ONE, key=KEY)
    assert (answer.status, answer.json()) == (200, {"success": True, "data": {"id": 1, "deleted": True}})
    assert fakes.webhook_endpoints.asked == [SUBSCRIPTION_ID]


@pytest.mark.parametrize(
    ("trial", "data"),
    [
        (Trial(204), {"success": True, "statusCode": 204, "error": ""}),
        (Trial(0, "no answer"), {"success": False, "statusCode": 0, "error": "no answer"}),
    ],
    ids=["taken", "no answer"],
)
async def test_a_test_is_answered_with_200_whatever_came_of_it(
    client: Client, fakes: Fakes, trial: Trial, data: dict[str, Any]
) -> None:
    fakes.webhook_endpoints.trial = trial
    answer = await client.post(f"{ONE}/test", {}, key=KEY)
    assert (answer.status, answer.json()) == (200, {"success": True, "data": data})


async def test_the_log_is_spelled_as_messaging_is(client: Client) -> None:
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


async def test_one_delivery_and_all_that_failed_are_sent_again(client: Client) -> None:
    one = await client.post(f"{ONE}/deliveries/{DELIVERY_ID}/replay", {}, key=KEY)
    assert (one.status, one.data) == (200, {"replayed": 1})
    several = await client.post(f"{ONE}/deliveries/replay", {"status": "failed"}, key=KEY)
    assert (several.status, several.data) == (200, {"replayed": 10_000, "truncated": True})


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


async def test_every_refusal_has_the_one_form(client: Client, fakes: Fakes) -> None:
    """Also those of the edge, which come before anything is known of the request."""
    assert refusal(await client.request("PUT", PATH, json_body=BODY, key=KEY)) == (405, "METHOD_NOT_ALLOWED")
    assert refusal(await client.request("PUT", ONE, json_body={}, key=KEY)) == (405, "METHOD_NOT_ALLOWED")
    assert refusal(await client.get(PATH, key=None)) == (401, "UNAUTHORIZED")
    assert refusal(await client.post(PATH, {"colour": 1}, key=KEY)) == (400, "VALIDATION_ERROR")
    large = await client.request("POST", PATH, body=b" " * (1024 * 1024 + 1), key=KEY)
    assert refusal(large) == (413, "PAYLOAD_TOO_LARGE")
    del fakes.webhook_endpoints.held
    assert refusal(await client.get(PATH, key=KEY)) == (500, "INTERNAL_ERROR")


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [
        (None, {"X-API-Key": KEY}, 200),
        (KEY, {}, 200),
        (KEY, {"X-API-Key": KEY}, 401),
        (None, {"X-API-Key": f"Bearer {KEY}"}, 401),
        (READER, {}, 200),
        (SENDER, {}, 403),
        (None, {"X-API-Key": SENDER}, 403),
    ],
    ids=["plain", "bearer", "both", "plain with a scheme", "read only", "no scope", "no scope, plain"],
)
async def test_which_key_reads(client: Client, key: str | None, headers: dict[str, str], status: int) -> None:
    answer = await client.get(PATH, key=key, headers=headers)
    assert answer.status == status
    if status == 403:
        assert "webhooks.read" in answer.json()["message"]


@pytest.mark.parametrize(
    "headers", [{}, {"X-API-Key": KEY, "Authorization": f"Bearer {KEY}"}], ids=["none", "both"]
)
async def test_who_sends_no_one_key_is_told_of_both_headers(client: Client, headers: dict[str, str]) -> None:
    answer = await client.get(PATH, key=None, headers=headers)
    assert refusal(answer) == (401, "UNAUTHORIZED")
    assert "X-API-Key: vm_... or Authorization: Bearer vm_..." in answer.json()["message"]


async def test_a_key_that_only_reads_changes_nothing(client: Client, fakes: Fakes) -> None:
    for answer in (
        await client.post(PATH, BODY, key=READER),
        await client.patch(ONE, {"isActive": False}, key=READER),
        await client.delete(ONE, key=READER),
        await client.post(f"{ONE}/test", {}, key=READER),
        await client.post(f"{ONE}/deliveries/replay", {}, key=READER),
    ):
        assert refusal(answer) == (403, "FORBIDDEN") and "webhooks.write" in answer.json()["message"]
    assert fakes.webhook_endpoints.asked == []


async def test_every_key_of_messaging_has_requests_of_its_own(client: Client) -> None:
    """Those of the platform are counted elsewhere, however few they are."""
    for _ in range(21):
        await client.get("/v1/calls")
    answers = [await client.get(PATH, key=key) for key in (KEY, READER, KEY)]
    assert [answer.headers["X-RateLimit-Limit"] for answer in answers] == ["600"] * 3
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["599", "599", "598"]


async def test_tests_are_limited_for_each_key(client: Client) -> None:
    answers = [await client.post(f"{ONE}/test", {}, key=KEY) for _ in range(61)]
    assert [answer.status for answer in answers] == [200] * 60 + [429]
    assert refusal(answers[-1]) == (429, "RATE_LIMITED") and int(answers[-1].headers["Retry-After"]) > 0
