"""Campaigns: one approved template to many recipients."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from callcontrol.aio.tokens import utc_now
from callcontrol.clock import timestamp
from callcontrol.messaging.aio import campaigns as campaign_service
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import disconnected_channel, limited, used_key
from tests.contract.stage import Answer, Stage
from tests.support.campaigns import approve
from tests.support.waiting import PATIENCE_S, look_again

_SEND, _LIST = "/api/v1/send", "/api/v1/campaigns"
_TEMPLATE = "campaign_offer"
_NUMBERS = ["+919800200011", "+91 98002 00012", "+919800200011", "12", "+919800200013"]
_NO_CAMPAIGN = "9223372036854775807"


async def _template(stage: Stage) -> str:
    """The name of a template with two variables that may be used."""
    if _TEMPLATE not in stage.kept:
        stage.kept[_TEMPLATE] = await approve(stage.server.storage, stage.own.account_sid, _TEMPLATE)
    return _TEMPLATE


def _body(**changes: Any) -> dict[str, Any]:
    return {
        "templateName": _template,
        "campaignName": "Diwali",
        "phoneNumbers": _NUMBERS,
        "variables": {"1": "Asha", "2": "10 %"},
        **changes,
    }


async def _other_body(stage: Stage) -> dict[str, Any]:
    return {**_body(campaignName="Holi"), "templateName": await _template(stage)}


async def _later(_: Stage) -> str:
    return str(timestamp(utc_now() + timedelta(days=1)))


async def _long_ago(_: Stage) -> str:
    return str(timestamp(utc_now() - timedelta(days=1)))


def _campaign(**changes: Any) -> Given:
    """The id of a campaign that was taken."""

    async def given(stage: Stage) -> str:
        body = {**_body(**changes), "templateName": await _template(stage)}
        if "scheduledFor" in body:
            body["scheduledFor"] = await _later(stage)
        return str((await stage.data("POST", _SEND, body=body))["campaignId"])

    return given


_scheduled = _campaign(scheduledFor=_later)
_draft = _campaign(sendImmediately=False)


async def _finished(stage: Stage) -> str:
    """The id of a campaign that has completed."""
    campaign_id = str(await _campaign()(stage))
    await _status_of(stage, campaign_id, "completed")
    return campaign_id


async def _status_of(stage: Stage, campaign_id: Any, status: str) -> dict[str, Any]:
    """A campaign once it has a status; its counts add up all the time."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found: dict[str, Any] = await stage.data("GET", f"/api/v1/{campaign_id}/status")
            assert sum(found["counts"].values()) == found["total"], found
            if found["status"] == status:
                return found
            await look_again()


async def _runs_to_its_end(stage: Stage, answer: Answer) -> None:
    assert answer.data["duplicates"] == ["+919800200011"] and answer.data["invalid"] == ["12"]
    assert (answer.data["optedOut"], answer.data["total"]) == ([], 3)
    found = await _status_of(stage, answer.data["campaignId"], "completed")
    assert found["progress"] == 100 and found["startedAt"] <= found["completedAt"]
    assert found["counts"]["delivered"] + found["counts"]["read"] == 3
    assert found["estimatedCompletionAt"] is None
    path, query = "/api/v1/messages", {"campaignId": str(found["campaignId"])}
    sent = await stage.data("GET", path, query=query)
    assert sorted(message["to"] for message in sent) == ["+919800200011", "+919800200012", "+919800200013"]


async def _waits(stage: Stage, answer: Answer) -> None:
    assert answer.data["status"] == "scheduled" and answer.data["startedAt"] is None
    assert answer.data["estimatedCompletionAt"] >= answer.data["scheduledFor"]


async def _is_a_draft(_: Stage, answer: Answer) -> None:
    assert (answer.data["status"], answer.data["counts"]["queued"]) == ("draft", 3)
    assert answer.data["startedAt"] is answer.data["scheduledFor"] is None
    assert answer.data["estimatedCompletionAt"] is None


async def _is_sent(stage: Stage, answer: Answer) -> None:
    campaign_id = answer.data["campaignId"]
    assert answer.data["status"] in ("running", "completed") and answer.data["startedAt"]
    again = await stage.ask("POST", f"{_LIST}/{campaign_id}/send")
    assert (again.status, again.code) in ((200, None), (409, "CONFLICT"))
    found = await _status_of(stage, campaign_id, "completed")
    assert found["counts"]["delivered"] + found["counts"]["read"] == 3


async def _adds_up(_: Stage, answer: Answer) -> None:
    assert sum(answer.data["counts"].values()) == answer.data["total"] == 3


async def _lists_some(_: Stage, answer: Answer) -> None:
    assert answer.body["pagination"]["total"] >= len(answer.data) >= 1
    assert all(sum(one["counts"].values()) == one["total"] for one in answer.data)


async def _lists_scheduled(_: Stage, answer: Answer) -> None:
    assert answer.data and {one["status"] for one in answer.data} == {"scheduled"}


async def _lists_drafts(_: Stage, answer: Answer) -> None:
    assert answer.data and {one["status"] for one in answer.data} == {"draft"}


async def _lists_none(_: Stage, answer: Answer) -> None:
    assert answer.data == [] and answer.body["pagination"]["total"] == 0


async def _is_cancelled(stage: Stage, answer: Answer) -> None:
    assert (answer.data["status"], answer.data["counts"]["cancelled"]) == ("cancelled", 3)
    assert answer.data["cancelledAt"] and answer.data["completedAt"] is None
    again = await stage.data("POST", f"{_LIST}/{answer.data['campaignId']}/cancel")
    assert again["cancelledAt"] == answer.data["cancelledAt"]


CASES = (
    *row(
        f"POST {_SEND}",
        ok(201, body=_body(), then=_runs_to_its_end),
        ok(201, name="scheduled", body=_body(scheduledFor=_later, sendImmediately=False), then=_waits),
        ok(
            201, name="scheduled, at once", body=_body(scheduledFor=_later, sendImmediately=True), then=_waits
        ),
        ok(201, name="a draft", body=_body(sendImmediately=False), then=_is_a_draft),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"phoneNumbers": [], "variables": {"1": 7}, "sendImmediately": "yes", "colour": "red"},
            fields=(
                "templateName",
                "campaignName",
                "phoneNumbers",
                "variables.1",
                "sendImmediately",
                "colour",
            ),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="nobody to send to, long ago",
            body=_body(phoneNumbers=["12", "nobody"], scheduledFor=_long_ago),
            fields=("phoneNumbers", "scheduledFor"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a time without an offset",
            body=_body(scheduledFor="2026-12-24T12:00:00"),
            fields=("scheduledFor",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="too many",
            body=_body(phoneNumbers=[f"+9198002{number:05d}" for number in range(1001)]),
            fields=("phoneNumbers",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="variables of another template",
            body=_body(variables={"2": "10 %", "name": "Asha"}),
            fields=("variables.1", "variables.name"),
        ),
        refused(400, "CHANNEL_NOT_CONFIGURED", body=_body(), during=disconnected_channel),
        refused(404, "NOT_FOUND", body=_body(templateName="no_such_template")),
        refused(404, "NOT_FOUND", name="in another language", body=_body(language="hi")),
        refused(409, "CONFLICT", body=_body(), during=limited(campaign_service, "MAX_OPEN")),
        refused(
            409,
            "CONFLICT",
            name="too many drafts",
            body=_body(sendImmediately=False),
            during=limited(campaign_service, "MAX_DRAFTS"),
        ),
        refused(
            409,
            "IDEMPOTENCY_CONFLICT",
            body=_body(),
            headers={"Idempotency-Key": used_key(_SEND, _other_body)},
        ),
        foreign(404, "NOT_FOUND", body=_body()),
    ),
    *row(
        "GET /api/v1/{campaignId}/status",
        ok(path={"campaignId": _campaign()}, then=_adds_up),
        ok(name="scheduled", path={"campaignId": _scheduled}, then=_adds_up),
        foreign(404, "NOT_FOUND", path={"campaignId": _scheduled}),
        refused(404, "NOT_FOUND", path={"campaignId": _NO_CAMPAIGN}),
        refused(404, "NOT_FOUND", name="no number", path={"campaignId": "none"}),
    ),
    *row(
        f"GET {_LIST}",
        ok(before=(_campaign(),), then=_lists_some),
        ok(name="one status", before=(_scheduled,), query={"status": "scheduled"}, then=_lists_scheduled),
        ok(name="drafts", before=(_draft,), query={"status": "draft"}, then=_lists_drafts),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"page": "0", "pageSize": "101", "status": "done"},
            fields=("page", "pageSize", "status"),
        ),
        unseen(before=(_scheduled,), then=_lists_none),
    ),
    *row(
        f"POST {_LIST}/{{campaignId}}/send",
        ok(path={"campaignId": _draft}, then=_is_sent),
        refused(400, "CHANNEL_NOT_CONFIGURED", path={"campaignId": _draft}, during=disconnected_channel),
        refused(404, "NOT_FOUND", path={"campaignId": _NO_CAMPAIGN}),
        refused(409, "CONFLICT", path={"campaignId": _scheduled}),
        foreign(404, "NOT_FOUND", path={"campaignId": _draft}),
    ),
    *row(
        f"POST {_LIST}/{{campaignId}}/cancel",
        ok(path={"campaignId": _scheduled}, then=_is_cancelled),
        ok(name="a draft", path={"campaignId": _draft}, then=_is_cancelled),
        refused(409, "CONFLICT", path={"campaignId": _finished}),
        refused(404, "NOT_FOUND", path={"campaignId": _NO_CAMPAIGN}),
        foreign(404, "NOT_FOUND", path={"campaignId": _scheduled}),
    ),
)
