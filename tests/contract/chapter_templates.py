"""Templates of messages, and the channel that these come from."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from callcontrol.aio.tokens import utc_now
from callcontrol.messaging.aio import templates as template_service
from callcontrol.messaging.aio.campaigns import CampaignRequest
from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import limited
from tests.contract.stage import Answer, Stage
from tests.support.waiting import until

_TEMPLATES = "/api/v1/templates"
_CHANNEL = "/api/v1/channel"
_TEXT = "Hello {{1}}, your order {{2}} is on its way."
_NOWHERE = {"id": "4611686018427387904"}
_names = itertools.count(1)


async def fresh_name(_: Stage) -> str:
    """A name that no template has."""
    return f"contract_{next(_names)}"


async def a_template(stage: Stage) -> str:
    """A template of the account, by its identifier, whatever the network says of it."""
    body = {"name": await fresh_name(stage), "body": _TEXT}
    return str((await stage.data("POST", _TEMPLATES, body=body))["id"])


async def approved_template(stage: Stage) -> str:
    """A template of the account that the network has approved; one for all cases."""
    if "approved_template" not in stage.kept:
        template_id = await a_template(stage)

        async def approved() -> bool:
            shown = await stage.data("GET", f"{_TEMPLATES}/{template_id}")
            return bool(shown["status"] == "APPROVED")

        await until(approved)
        stage.kept["approved_template"] = template_id
    return str(stage.kept["approved_template"])


async def _used_template(stage: Stage) -> str:
    """A template that a campaign of tomorrow is to send."""
    template_id = await approved_template(stage)
    template = await stage.data("GET", f"{_TEMPLATES}/{template_id}")
    request = CampaignRequest(
        name="Tomorrow",
        template_name=template["name"],
        phone_numbers=["+919800100001"],
        variables={"1": "Asha", "2": "4711"},
        scheduled_for=utc_now() + timedelta(days=1),
    )
    await stage.server.storage.campaigns.create(stage.own.account_sid, request)
    return template_id


async def _taken_name(stage: Stage) -> str:
    name = await fresh_name(stage)
    await stage.data("POST", _TEMPLATES, body={"name": name, "body": _TEXT})
    return name


async def _reading_key(stage: Stage) -> str:
    key = await stage.server.storage.keys.create(stage.own.account_sid, "messaging", ["templates.read"])
    return f"Bearer {key}"


async def _own_number(stage: Stage) -> str:
    number = stage.fresh_number()
    await stage.server.storage.numbers.add(stage.own.account_sid, number)
    return number


async def _foreign_number(stage: Stage) -> str:
    number = stage.fresh_number()
    await stage.server.storage.numbers.add(stage.accounts["other"].account_sid, number)
    return number


@asynccontextmanager
async def _disconnected(stage: Stage) -> AsyncIterator[None]:
    await stage.data("PATCH", _CHANNEL, body={"isConnected": False})
    try:
        yield
    finally:
        await stage.data("PATCH", _CHANNEL, body={"isConnected": True})


async def _is_pending(_: Stage, answer: Answer) -> None:
    data = answer.data
    assert (data["status"], data["submitted"], data["variables"]) == ("PENDING", True, 2)
    assert (data["category"], data["language"]) == ("UTILITY", "en_US")


async def _is_left_out(stage: Stage, answer: Answer) -> None:
    listed = await stage.data("GET", _TEMPLATES, query={"status": "ALL", "pageSize": "100"})
    assert not any("refused_at_once" in shown["name"] for shown in listed)
    assert "sandbox" in answer.message


async def _names_the_other(_: Stage, answer: Answer) -> None:
    assert answer.error["details"]["id"] > 0


async def _belongs_to_the_other(stage: Stage, answer: Answer) -> None:
    refusal = await stage.ask("GET", f"{_TEMPLATES}/{answer.data['id']}")
    assert (refusal.status, refusal.code) == (404, "NOT_FOUND")


async def _is_listed(stage: Stage, answer: Answer) -> None:
    assert await approved_template(stage) in {str(shown["id"]) for shown in answer.data}
    assert {shown["status"] for shown in answer.data} == {"APPROVED"}
    assert answer.body["pagination"]["totalPages"] == 1, "the approved ones are all there without a page"


async def _is_not_listed(stage: Stage, answer: Answer) -> None:
    assert await approved_template(stage) not in {str(shown["id"]) for shown in answer.data}


async def _is_approved(_: Stage, answer: Answer) -> None:
    assert (answer.data["status"], answer.data["rejectionReason"]) == ("APPROVED", None)


async def _is_gone(stage: Stage, answer: Answer) -> None:
    assert answer.data["deleted"] is True
    refusal = await stage.ask("GET", f"{_TEMPLATES}/{answer.data['id']}")
    assert refusal.status == 404


async def _has_a_number(_: Stage, answer: Answer) -> None:
    assert answer.data["number"].startswith("+91") and answer.data["isConnected"] is True


async def _is_the_sandbox_s(_: Stage, answer: Answer) -> None:
    assert (answer.data["isSandbox"], answer.data["displayName"]) == (True, "Sandbox")


async def _is_set(_: Stage, answer: Answer) -> None:
    shown = (answer.data["displayName"], answer.data["messagesPerSecond"], answer.data["isSandbox"])
    assert shown == ("Acme", 40, False)


async def _is_set_for_the_other_only(stage: Stage, answer: Answer) -> None:
    assert answer.data["displayName"] == "Other"
    assert (await stage.data("GET", _CHANNEL))["displayName"] != "Other"


_ONE = f"{_TEMPLATES}/{{id}}"
CASES = (
    *row(
        f"POST {_TEMPLATES}",
        ok(201, body={"name": fresh_name, "body": _TEXT}, then=_is_pending),
        ok(
            201,
            name="with all that can be said",
            body={"name": fresh_name, "category": "MARKETING", "language": "hi", "body": "नमस्ते {{1}}!"},
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"name": 7, "category": "SPAM", "colour": "red"},
            fields=("name", "category", "colour", "body"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="what no template can be",
            body={"name": "Order-Update", "language": "Hindi", "body": "Hello {{name}}"},
            fields=("name", "language", "body"),
        ),
        refused(
            400,
            "CHANNEL_NOT_CONFIGURED",
            body={"name": fresh_name, "body": _TEXT},
            during=_disconnected,
        ),
        refused(400, "PROVIDER_REJECTED", body={"name": "refused_at_once", "body": _TEXT}, then=_is_left_out),
        refused(
            403,
            "FORBIDDEN",
            name="a key that only reads",
            body={"name": fresh_name, "body": _TEXT},
            headers={"Authorization": _reading_key},
        ),
        refused(400, "ALREADY_EXISTS", body={"name": _taken_name, "body": _TEXT}, then=_names_the_other),
        refused(
            409,
            "CONFLICT",
            name="of an account that has too many",
            body={"name": fresh_name, "body": _TEXT},
            during=limited(template_service, "MAX_TEMPLATES"),
        ),
        unseen(201, body={"name": _taken_name, "body": _TEXT}, then=_belongs_to_the_other),
    ),
    *row(
        f"GET {_TEMPLATES}",
        ok(before=(approved_template, a_template), then=_is_listed),
        refused(400, "VALIDATION_ERROR", query={"status": "approved"}, fields=("status",)),
        unseen(before=(approved_template,), query={"status": "ALL"}, then=_is_not_listed),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"id": approved_template}, then=_is_approved),
        foreign(404, "NOT_FOUND", path={"id": approved_template}),
        refused(404, "NOT_FOUND", path=_NOWHERE),
    ),
    *row(
        f"POST {_ONE}/sync",
        ok(path={"id": approved_template}, then=_is_approved),
        foreign(404, "NOT_FOUND", path={"id": approved_template}),
        refused(404, "NOT_FOUND", path=_NOWHERE),
    ),
    *row(
        f"DELETE {_ONE}",
        ok(path={"id": a_template}, then=_is_gone),
        foreign(404, "NOT_FOUND", path={"id": approved_template}),
        refused(404, "NOT_FOUND", path=_NOWHERE),
        refused(409, "CONFLICT", path={"id": _used_template}),
    ),
    *row(
        f"GET {_CHANNEL}",
        ok(then=_has_a_number),
        unseen(by="poor", then=_is_the_sandbox_s),
    ),
    *row(
        f"PATCH {_CHANNEL}",
        ok(
            body={"number": _own_number, "displayName": "Acme", "messagesPerSecond": 40},
            then=_is_set,
        ),
        ok(
            name="set back",
            body={"number": None, "displayName": None, "messagesPerSecond": None, "isConnected": True},
            then=_is_the_sandbox_s,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"messagesPerSecond": 1001, "isConnected": None, "displayName": ""},
            fields=("messagesPerSecond", "isConnected", "displayName"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="the number of another account",
            body={"number": _foreign_number},
            fields=("number",),
        ),
        unseen(body={"displayName": "Other"}, then=_is_set_for_the_other_only),
    ),
)
