"""The endpoints of templates and of the channel, before real services."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from callcontrol.errors import ChannelNotConfigured, Conflict, ProviderRejected
from callcontrol.models import Principal
from tests.unit.api.client import Client
from tests.unit.api.fakes import ACCOUNT, Fakes
from tests.unit.api.fakes.templates import TEMPLATE_ID

PATH = "/api/v1/templates"
CHANNEL = "/api/v1/channel"
KEY = "vm_" + "b" * 43
HEADERS = {"X-API-Key": KEY}
BODY = {"name": "order_update", "body": "Hello {{1}}."}


@pytest.fixture(autouse=True)
async def key(fakes: Fakes) -> AsyncIterator[None]:
    scopes = frozenset({"templates.read", "templates.write"})
    fakes.keys.principals[KEY] = Principal(ACCOUNT, "key-m", "messaging", scopes)
    yield


async def test_a_template_is_created_with_what_is_usual(client: Client) -> None:
    answer = await client.post(PATH, BODY, headers=HEADERS, key=None)
    assert (answer.status, answer.json()["success"]) == (201, True)
    assert set(answer.data) == {
        *("id", "name", "category", "language", "body", "variables", "status"),
        *("rejectionReason", "submitted", "createdAt", "updatedAt"),
    }
    assert (answer.data["category"], answer.data["language"]) == ("UTILITY", "en_US")
    assert (answer.data["variables"], answer.data["status"], answer.data["submitted"]) == (
        1,
        "PENDING",
        False,
    )


async def test_every_wrong_field_of_a_template_is_named(client: Client) -> None:
    answer = await client.post(PATH, {"category": "SPAM", "colour": 1}, headers=HEADERS, key=None)
    body = answer.json()
    assert (answer.status, body["success"], body["code"]) == (400, False, "VALIDATION_ERROR")
    assert {error["field"] for error in body["details"]["errors"]} == {"name", "body", "category", "colour"}
    wrong = {"name": "Order", "language": "english", "body": "Hello {{2}}"}
    answer = await client.post(PATH, wrong, headers=HEADERS, key=None)
    assert {error["field"] for error in answer.json()["details"]["errors"]} == {"name", "language", "body"}


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (ChannelNotConfigured("no channel"), 400, "CHANNEL_NOT_CONFIGURED"),
        (ProviderRejected("no"), 400, "PROVIDER_REJECTED"),
        (Conflict("twice"), 409, "CONFLICT"),
    ],
    ids=["channel", "network", "name"],
)
async def test_what_the_service_refuses_is_told(
    client: Client, fakes: Fakes, failure: Conflict, status: int, code: str
) -> None:
    fakes.templates.failure = failure
    answer = await client.post(PATH, BODY, headers=HEADERS, key=None)
    assert (answer.status, answer.json()["code"]) == (status, code)


async def test_the_list_has_the_approved_ones_unless_others_are_asked_for(
    client: Client, fakes: Fakes
) -> None:
    answer = await client.get(PATH, headers=HEADERS, key=None)
    assert [shown["id"] for shown in answer.data] == [TEMPLATE_ID]
    assert answer.json()["pagination"] == {"page": 1, "pageSize": 1000, "total": 1, "totalPages": 1}
    await client.get(f"{PATH}?status=REJECTED", headers=HEADERS, key=None)
    await client.get(f"{PATH}?status=ALL", headers=HEADERS, key=None)
    assert [set(asked) for asked in fakes.templates.statuses] == [
        {"APPROVED"},
        {"REJECTED"},
        {"PENDING", "APPROVED", "REJECTED", "PAUSED"},
    ]
    assert (await client.get(f"{PATH}?status=approved", headers=HEADERS, key=None)).status == 400


async def test_a_template_is_shown_synced_and_deleted(client: Client, fakes: Fakes) -> None:
    one = f"{PATH}/{TEMPLATE_ID}"
    shown = await client.get(one, headers=HEADERS, key=None)
    assert (shown.data["name"], shown.data["submitted"]) == ("order_update", True)
    synced = await client.post(f"{one}/sync", None, headers=HEADERS, key=None)
    assert (synced.data, fakes.templates.synced) == (shown.data, [TEMPLATE_ID])
    gone = await client.request("DELETE", one, headers=HEADERS, key=None)
    assert (gone.status, gone.data) == (200, {"id": TEMPLATE_ID, "deleted": True})
    assert (await client.get(f"{PATH}/8", headers=HEADERS, key=None)).status == 404


async def test_only_what_is_given_of_the_channel_is_changed(client: Client, fakes: Fakes) -> None:
    shown = await client.get(CHANNEL, headers=HEADERS, key=None)
    assert (shown.data["isSandbox"], shown.data["messagesPerSecond"]) == (True, 80)
    body = {"displayName": "Acme", "number": None}
    changed = await client.request("PATCH", CHANNEL, json_body=body, headers=HEADERS, key=None)
    assert (changed.status, changed.data["displayName"]) == (200, "Acme")
    assert fakes.channels.changes == [{"display_name": "Acme", "number": None}]


async def test_every_wrong_field_of_the_channel_is_named(client: Client, fakes: Fakes) -> None:
    body = {"messagesPerSecond": 0, "isConnected": None, "number": "911", "display_name": "Acme"}
    answer = await client.request("PATCH", CHANNEL, json_body=body, headers=HEADERS, key=None)
    assert answer.status == 400
    assert {error["field"] for error in answer.json()["details"]["errors"]} == set(body)
    assert fakes.channels.changes == []
