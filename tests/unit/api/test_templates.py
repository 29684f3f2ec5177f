"""The endpoints of templates and of the channel, before real services."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from callcontrol.bootstrap.aio.services import Services
from callcontrol.messaging.store import templates
from callcontrol.messaging.templates import new_template
from tests.support.api_facts import ACCOUNT, MOMENT
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

PATH = "/api/v1/templates"
CHANNEL = "/api/v1/channel"
KEY = "vm_" + "b" * 43
HEADERS = {"X-API-Key": KEY}
BODY = {"name": "order_update", "body": "Hello {{1}}."}


@pytest.fixture(autouse=True)
async def key(stage: ApiStage) -> None:
    await stage.add_key(KEY, "messaging", ["templates.read", "templates.write"])


@pytest.fixture
async def template_id(stage: ApiStage) -> int:
    """A template that the network has approved."""
    template = new_template(
        "ref-7",
        ACCOUNT,
        name="order_update",
        category="UTILITY",
        language="en_US",
        body="Hello {{1}}, your order {{2}} is on its way.",
        now=MOMENT,
    )
    approved = replace(template, status="APPROVED", network_ref=f"usual/{MOMENT.isoformat()}/ref-7")
    made = await stage.write(
        partial(templates.insert, template=approved, check_at=MOMENT + timedelta(days=36_500))
    )
    assert made is not None
    return made.template_id


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
        True,
    )
    body = {**BODY, "name": "unreachable_network"}
    assert (await client.post(PATH, body, headers=HEADERS, key=None)).data["submitted"] is False


async def test_every_wrong_field_of_a_template_is_named(client: Client) -> None:
    answer = await client.post(PATH, {"category": "SPAM", "colour": 1}, headers=HEADERS, key=None)
    body = answer.json()
    assert (answer.status, body["success"], body["code"]) == (400, False, "VALIDATION_ERROR")
    assert {error["field"] for error in body["details"]["errors"]} == {"name", "body", "category", "colour"}
    wrong = {"name": "Order", "language": "english", "body": "Hello {{2}}"}
    answer = await client.post(PATH, wrong, headers=HEADERS, key=None)
    assert {error["field"] for error in answer.json()["details"]["errors"]} == {"name", "language", "body"}


async def disconnect(stage: ApiStage) -> None:
    await stage.services.channels.update(ACCOUNT, {"is_connected": False})


async def create(stage: ApiStage) -> None:
    await stage.services.templates.create(
        ACCOUNT, name="order_update", category="UTILITY", language="en_US", body="Hello."
    )


@pytest.mark.parametrize(
    ("before", "name", "status", "code"),
    [
        (disconnect, "order_update", 400, "CHANNEL_NOT_CONFIGURED"),
        (None, "refused_at_once", 400, "PROVIDER_REJECTED"),
        (create, "order_update", 400, "ALREADY_EXISTS"),
    ],
    ids=["channel", "network", "name"],
)
async def test_what_the_service_refuses_is_told(
    client: Client,
    stage: ApiStage,
    before: Callable[[ApiStage], Awaitable[None]] | None,
    name: str,
    status: int,
    code: str,
) -> None:
    if before is not None:
        await before(stage)
    answer = await client.post(PATH, {**BODY, "name": name}, headers=HEADERS, key=None)
    assert (answer.status, answer.json()["code"]) == (status, code)


async def test_the_list_has_the_approved_ones_unless_others_are_asked_for(
    client: Client, services: Services, template_id: int
) -> None:
    lists = asked(services.templates, "list")
    answer = await client.get(PATH, headers=HEADERS, key=None)
    assert [shown["id"] for shown in answer.data] == [template_id]
    assert answer.json()["pagination"] == {"page": 1, "pageSize": 1000, "total": 1, "totalPages": 1}
    await client.get(f"{PATH}?status=REJECTED", headers=HEADERS, key=None)
    await client.get(f"{PATH}?status=ALL", headers=HEADERS, key=None)
    assert [set(statuses) for _, statuses, *_ in lists] == [
        {"APPROVED"},
        {"REJECTED"},
        {"PENDING", "APPROVED", "REJECTED", "PAUSED"},
    ]
    assert (await client.get(f"{PATH}?status=approved", headers=HEADERS, key=None)).status == 400


async def test_a_template_is_shown_synced_and_deleted(
    client: Client, services: Services, template_id: int
) -> None:
    synced_ids = asked(services.templates, "sync")
    one = f"{PATH}/{template_id}"
    shown = await client.get(one, headers=HEADERS, key=None)
    assert (shown.data["name"], shown.data["submitted"]) == ("order_update", True)
    synced = await client.post(f"{one}/sync", None, headers=HEADERS, key=None)
    assert (synced.data, synced_ids) == (shown.data, [(ACCOUNT, template_id)])
    gone = await client.request("DELETE", one, headers=HEADERS, key=None)
    assert (gone.status, gone.data) == (200, {"id": template_id, "deleted": True})
    assert (await client.get(one, headers=HEADERS, key=None)).status == 404
    assert (await client.get(f"{PATH}/8", headers=HEADERS, key=None)).status == 404


async def test_only_what_is_given_of_the_channel_is_changed(client: Client, services: Services) -> None:
    changes = asked(services.channels, "update")
    shown = await client.get(CHANNEL, headers=HEADERS, key=None)
    assert (shown.data["isSandbox"], shown.data["messagesPerSecond"]) == (True, 80)
    body = {"displayName": "Acme", "number": None}
    changed = await client.request("PATCH", CHANNEL, json_body=body, headers=HEADERS, key=None)
    assert (changed.status, changed.data["displayName"]) == (200, "Acme")
    assert changes == [(ACCOUNT, {"display_name": "Acme", "number": None})]


async def test_every_wrong_field_of_the_channel_is_named(client: Client, services: Services) -> None:
    changes = asked(services.channels, "update")
    body = {"messagesPerSecond": 0, "isConnected": None, "number": "911", "display_name": "Acme"}
    answer = await client.request("PATCH", CHANNEL, json_body=body, headers=HEADERS, key=None)
    assert answer.status == 400
    assert {error["field"] for error in answer.json()["details"]["errors"]} == set(body)
    assert changes == []
