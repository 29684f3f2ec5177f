"""Campaigns over HTTP: what is asked for, what is shown, what is refused before anything is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from api.openapi.examples import EXAMPLES
from callcontrol.accounts.keys import SCOPES
from callcontrol.messaging.campaigns import CampaignState
from tests.unit.api.client import Client
from tests.unit.api.fakes import MESSAGING_KEY, MOMENT, Fakes

_BODY = EXAMPLES["send_campaign"]


@pytest.fixture(autouse=True)
def every_scope(fakes: Fakes) -> None:
    """The key of messaging opens everything of it."""
    narrow = fakes.keys.principals[MESSAGING_KEY]
    fakes.keys.principals[MESSAGING_KEY] = replace(narrow, scopes=frozenset(SCOPES["messaging"]))


async def test_a_campaign_is_asked_for_as_it_was_written(client: Client, fakes: Fakes) -> None:
    body = {
        **_BODY,
        "language": "hi",
        "sendImmediately": False,
        "scheduledFor": "2026-12-24T17:30:00.5+05:30",
    }
    answer = await client.post("/api/v1/send", body, key=MESSAGING_KEY)
    assert answer.status == 201
    (asked,) = fakes.campaigns.asked
    assert (asked.name, asked.template_name, asked.language) == (
        _BODY["campaignName"],
        _BODY["templateName"],
        "hi",
    )
    assert (asked.phone_numbers, asked.variables) == (_BODY["phoneNumbers"], _BODY["variables"])
    assert asked.immediately is False
    assert asked.scheduled_for == datetime(2026, 12, 24, 12, 0, 0, 500_000, UTC)
    assert answer.json()["success"] is True
    assert answer.data["counts"] == {
        "queued": 2,
        "sent": 0,
        "delivered": 1,
        "read": 0,
        "failed": 0,
        "cancelled": 0,
    }
    assert answer.data["progress"] == 33.3
    assert (answer.data["duplicates"], answer.data["invalid"], answer.data["optedOut"]) == (
        ["+91 98001 00001"],
        ["x"],
        ["+919800100002"],
    )


@pytest.mark.parametrize("given", [{}, {"sendImmediately": True}], ids=["left out", "said"])
async def test_whether_at_once_was_said_is_told_apart(client: Client, fakes: Fakes, given: Any) -> None:
    assert (await client.post("/api/v1/send", {**_BODY, **given}, key=MESSAGING_KEY)).status == 201
    assert fakes.campaigns.asked[0].immediately is (True if given else None)


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
async def test_a_time_has_to_be_one(client: Client, fakes: Fakes, moment: Any) -> None:
    answer = await client.post("/api/v1/send", {**_BODY, "scheduledFor": moment}, key=MESSAGING_KEY)
    assert answer.status == 400
    assert [error["field"] for error in answer.json()["details"]["errors"]] == ["scheduledFor"]
    assert fakes.campaigns.asked == []


async def test_times_are_shown_for_what_became_of_a_campaign(client: Client, fakes: Fakes) -> None:
    shown = (await client.get("/api/v1/7/status", key=MESSAGING_KEY)).data
    assert shown["completedAt"] is None and shown["cancelledAt"] is None
    assert shown["estimatedCompletionAt"] > shown["startedAt"]
    ended = replace(fakes.campaigns.view.campaign, state=CampaignState.COMPLETED, ended_at=MOMENT)
    fakes.campaigns.view = replace(fakes.campaigns.view, campaign=ended, estimated_end=None)
    shown = (await client.get("/api/v1/7/status", key=MESSAGING_KEY)).data
    assert shown["completedAt"] and shown["cancelledAt"] is None
    shown = (await client.post("/api/v1/campaigns/7/cancel", key=MESSAGING_KEY)).data
    assert shown["cancelledAt"] and shown["completedAt"] is None


async def test_campaigns_are_listed_by_their_status(client: Client) -> None:
    for query, total in (("", 1), ("?status=running&pageSize=1", 1), ("?status=cancelled", 0)):
        answer = await client.get(f"/api/v1/campaigns{query}", key=MESSAGING_KEY)
        assert answer.json()["pagination"]["total"] == total == len(answer.data)


@pytest.mark.parametrize("campaign_id", ["8", "0", "-1", "9223372036854775808", "x", "1e3"])
async def test_a_campaign_that_is_none_is_not_found(client: Client, campaign_id: str) -> None:
    answer = await client.get(f"/api/v1/{campaign_id}/status", key=MESSAGING_KEY)
    assert (answer.status, answer.json()["code"]) == (404, "NOT_FOUND")
