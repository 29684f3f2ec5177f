"""Campaigns over HTTP: what is asked for, what is shown, what is refused before anything is done."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest

from api.openapi.examples import EXAMPLES
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Services, Storage
from tests.support.api_facts import ACCOUNT, MESSAGING_KEY
from tests.support.api_stage import asked
from tests.support.campaigns import approve, messages_of, numbers, receive
from tests.unit.api.client import Client

_BODY = EXAMPLES["send_campaign"]
_INDIA = timezone(timedelta(hours=5, minutes=30))


@pytest.fixture
async def template(storage: Storage) -> None:
    """The approved template that campaigns name."""
    await approve(storage, ACCOUNT, _BODY["templateName"])


@pytest.fixture
async def path(client: Client, template: None) -> str:
    """The path of a campaign that is under way."""
    made = await client.post("/api/v1/send", {**_BODY, "phoneNumbers": numbers(3)}, key=MESSAGING_KEY)
    return f"/api/v1/{made.data['campaignId']}/status"


@pytest.mark.usefixtures("template")
async def test_a_campaign_is_asked_for_as_it_was_written(client: Client, storage: Storage) -> None:
    opted_out = await storage.contacts.create(ACCOUNT, {"phone_number": "+919800100002"})
    await storage.contacts.update(ACCOUNT, opted_out.contact_id, {"opted_out": True})
    requests = asked(storage.campaigns, "create")
    later = (utc_now() + timedelta(days=1)).replace(microsecond=500_000)
    phone_numbers = [*_BODY["phoneNumbers"], "98002 00011", "x", "+919800100002"]
    body = {
        **_BODY,
        "phoneNumbers": phone_numbers,
        "language": "en_US",
        "sendImmediately": False,
        "scheduledFor": later.astimezone(_INDIA).isoformat(),
    }
    answer = await client.post("/api/v1/send", body, key=MESSAGING_KEY)
    assert answer.status == 201
    ((_, request),) = requests
    assert (request.name, request.template_name, request.language) == (
        _BODY["campaignName"],
        _BODY["templateName"],
        "en_US",
    )
    assert (request.phone_numbers, request.variables) == (phone_numbers, _BODY["variables"])
    assert request.immediately is False
    assert request.scheduled_for == later
    assert answer.json()["success"] is True
    assert answer.data["counts"] == {
        "queued": 2,
        "sent": 0,
        "delivered": 0,
        "read": 0,
        "failed": 0,
        "cancelled": 0,
    }
    assert answer.data["progress"] == 0.0
    assert (answer.data["duplicates"], answer.data["invalid"], answer.data["optedOut"]) == (
        ["98002 00011"],
        ["x"],
        ["+919800100002"],
    )


@pytest.mark.usefixtures("template")
async def test_a_draft_is_sent_by_a_later_request(client: Client, storage: Storage) -> None:
    body = {**_BODY, "phoneNumbers": numbers(3), "sendImmediately": False}
    draft = (await client.post("/api/v1/send", body, key=MESSAGING_KEY)).data
    assert (draft["status"], draft["startedAt"], draft["estimatedCompletionAt"]) == ("draft", None, None)
    await storage.campaigns.run(utc_now())
    assert await messages_of(storage, draft["campaignId"]) == []
    path = f"/api/v1/campaigns/{draft['campaignId']}/send"
    for _ in range(2):
        sent = await client.post(path, key=MESSAGING_KEY)
        assert (sent.status, sent.data["status"]) == (200, "running") and sent.data["startedAt"]
    await storage.campaigns.run(utc_now())
    assert len(await messages_of(storage, draft["campaignId"])) == 3
    await client.post(path.replace("send", "cancel"), key=MESSAGING_KEY)
    answer = await client.post(path, key=MESSAGING_KEY)
    assert (answer.status, answer.json()["details"]) == (409, {"status": "cancelled"})


async def test_a_draft_needs_its_template(client: Client, services: Services, storage: Storage) -> None:
    template = await approve(storage, ACCOUNT, _BODY["templateName"])
    body = {**_BODY, "sendImmediately": False}
    draft = (await client.post("/api/v1/send", body, key=MESSAGING_KEY)).data
    await services.templates.delete(ACCOUNT, template.template_id)
    answer = await client.post(f"/api/v1/campaigns/{draft['campaignId']}/send", key=MESSAGING_KEY)
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")
    assert _BODY["templateName"] in answer.json()["message"]


@pytest.mark.parametrize(
    "moment",
    [
        "2026-12-24",
        "2026-12-24T12:00:00",
        "2026-12-24 12:00:00Z",
        "2026-W52-4T12:00:00Z",
        "2026-13-24T12:00:00Z",
        "2026-12-24T25:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "٢٠٢٦-12-24T12:00:00Z",
        "tomorrow",
        "",
        7,
        True,
    ],
)
async def test_a_time_has_to_be_one(client: Client, storage: Storage, moment: Any) -> None:
    requests = asked(storage.campaigns, "create")
    answer = await client.post("/api/v1/send", {**_BODY, "scheduledFor": moment}, key=MESSAGING_KEY)
    assert answer.status == 400
    assert [error["field"] for error in answer.json()["details"]["errors"]] == ["scheduledFor"]
    assert requests == []


@pytest.mark.usefixtures("template")
async def test_wrong_values_of_variables_are_named_with_other_errors(client: Client) -> None:
    body = {
        **_BODY,
        "phoneNumbers": ["12"],
        "scheduledFor": "2020-01-01T00:00:00Z",
        "variables": {"1": "Asha", "3": "x"},
    }
    for template, variables in ((_BODY["templateName"], ["variables.2", "variables.3"]), ("none", [])):
        answer = await client.post("/api/v1/send", {**body, "templateName": template}, key=MESSAGING_KEY)
        assert answer.status == 400
        fields = [error["field"] for error in answer.json()["details"]["errors"]]
        assert fields == ["scheduledFor", "phoneNumbers", *variables]


async def test_times_are_shown_for_what_became_of_a_campaign(
    client: Client, storage: Storage, path: str
) -> None:
    shown = (await client.get(path, key=MESSAGING_KEY)).data
    assert shown["completedAt"] is None and shown["cancelledAt"] is None
    assert shown["estimatedCompletionAt"] > shown["startedAt"]
    await storage.campaigns.run(utc_now())
    messages = await messages_of(storage, shown["campaignId"])
    await receive(storage, messages[:1], "delivered", utc_now())
    shown = (await client.get(path, key=MESSAGING_KEY)).data
    assert (shown["counts"]["delivered"], shown["counts"]["queued"], shown["progress"]) == (1, 2, 33.3)
    await receive(storage, messages[1:], "delivered", utc_now())
    shown = (await client.get(path, key=MESSAGING_KEY)).data
    assert shown["completedAt"] and shown["cancelledAt"] is None


async def test_a_cancelled_campaign_is_shown_with_its_end(client: Client, path: str) -> None:
    campaign_id = path.split("/")[-2]
    shown = (await client.post(f"/api/v1/campaigns/{campaign_id}/cancel", key=MESSAGING_KEY)).data
    assert shown["cancelledAt"] and shown["completedAt"] is None


@pytest.mark.usefixtures("path")
async def test_campaigns_are_listed_by_their_status(client: Client) -> None:
    for query, total in (("", 1), ("?status=running&pageSize=1", 1), ("?status=cancelled", 0)):
        answer = await client.get(f"/api/v1/campaigns{query}", key=MESSAGING_KEY)
        assert answer.json()["pagination"]["total"] == total == len(answer.data)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("campaign_id", ["8", "0", "-1", "9223372036854775808", "x", "1e3"])
async def test_a_campaign_that_is_none_is_not_found(client: Client, campaign_id: str) -> None:
    answer = await client.get(f"/api/v1/{campaign_id}/status", key=MESSAGING_KEY)
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")
