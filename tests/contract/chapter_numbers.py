"""The phone numbers chapter: wiring."""

from __future__ import annotations

from typing import Any

from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    NOWHERE,
    a_purchase,
    agent_url,
    bought_number,
    bound_number,
    database_refuses,
    for_sale,
    no_platform_carrier,
    number_with_call,
    price_of_two_months,
    registered_number,
    unwired_number,
    used_key,
)
from tests.contract.stage import Answer, Stage

_TELEPHONY = "/v1/phone-numbers/{id}"
_STREAM = {"target": "media_stream", "stream_url": agent_url, "sample_rate": 8000}


def _wired(**expected: Any) -> Any:
    async def then(_: Stage, answer: Answer) -> None:
        state = answer.data
        assert state["outbound_capable"] == state["carrier_registered"]
        assert {name: state[name] for name in expected} == expected

    return then


async def _is_listed(stage: Stage, answer: Answer) -> None:
    own = await stage.server.storage.numbers.list(stage.own.account_sid)
    assert answer.meta["total"] == own.total and answer.meta["page"] == 1 and answer.meta["per_page"] == 20
    assert {"id", "number", "status", "number_type", "inbound_target_type"} <= answer.data[0].keys()


async def _are_their_own(stage: Stage, answer: Answer) -> None:
    own = await stage.server.storage.numbers.list(stage.own.account_sid, 1, 100)
    assert own.total > 0
    assert not {number.phone_number_id for number in own.items} & {item["id"] for item in answer.data}


async def _is_active(_: Stage, answer: Answer) -> None:
    assert answer.data["status"] == "active" and answer.data["inbound_target_type"] == "none"


async def _lacks_one(_: Stage, answer: Answer) -> None:
    assert answer.error["details"]["errors"], answer


def _wiring(body: Any = None) -> tuple[Case, ...]:
    """Refusals common to all wiring endpoints."""
    return (
        refused(400, "validation", path={"id": "not-a-uuid"}, body=body, fields=("id",)),
        refused(404, "not_found", path={"id": NOWHERE}, body=body),
        foreign(404, "not_found", path={"id": registered_number}, body=body),
    )


_BUY = {"live_ref": for_sale, "friendly_name": "Desk", "months": 2, "acknowledged_total": price_of_two_months}


async def _is_theirs(stage: Stage, answer: Answer) -> None:
    """The number is on the account, paid for as acknowledged, and not wired yet."""
    bought = answer.data
    assert bought["total_charged"] == stage.kept["price"] and bought["currency"] == "INR"
    wired = await stage.data("GET", f"/v1/phone-numbers/{bought['phone_number_id']}/telephony", by="buyer")
    assert (wired["number"], wired["carrier_registered"], wired["inbound_bound"]) == (
        bought["number"],
        False,
        False,
    )
    wallet = await stage.server.storage.wallet.balance(stage.accounts["buyer"].account_sid)
    assert bought["new_wallet_balance"] == wallet / 100


async def _costs_nothing(stage: Stage, _: Answer) -> None:
    assert await stage.server.storage.wallet.balance(stage.accounts["poor"].account_sid) == 0


async def _is_for_sale(_: Stage, answer: Answer) -> None:
    assert answer.meta["total"] >= len(answer.data) > 0
    assert {item["number_type"] for item in answer.data} == {"mobile"}


async def _is_not_for_sale(stage: Stage, answer: Answer) -> None:
    """A number bought by one account is offered to no other."""
    assert answer.data and stage.kept["bought"] not in [item["number"] for item in answer.data]


_BUYING = (
    *row(
        "GET /v1/dids/available",
        ok(query={"number_type": "mobile"}, then=_is_for_sale),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"number_type": "odd", "contains": "x", "page": "0", "colour": "red"},
            fields=("number_type", "contains", "page"),
        ),
        unseen(before=(bought_number,), query={"per_page": "100"}, then=_is_not_for_sale),
    ),
    *row(
        "POST /v1/dids/purchase-live",
        ok(201, by="buyer", body=_BUY, then=_is_theirs),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"months": 0, "acknowledged_total": -1, "colour": "red"},
            fields=("live_ref", "months", "acknowledged_total", "colour"),
        ),
        refused(402, "INSUFFICIENT_BALANCE", by="poor", body={"live_ref": for_sale}, then=_costs_nothing),
        refused(403, "KYC_REQUIRED", by="unknown", body={"live_ref": for_sale}),
        refused(404, "NOT_FOUND", body={"live_ref": "nothing"}),
        refused(404, "NOT_FOUND", name="withdrawn", body={"live_ref": "sandbox-vanishes"}),
        refused(409, "NUMBER_NOT_OWNED", body={"live_ref": "sandbox-snatched"}),
        foreign(409, "NUMBER_NOT_OWNED", name="sold to another", body={"live_ref": bought_number}),
        refused(409, "QUOTE_STALE", body={"live_ref": for_sale, "months": 1, "acknowledged_total": 1}),
        refused(409, "QUOTE_STALE", name="price moves", body={"live_ref": "sandbox-price-moves"}),
        refused(
            409,
            "IDEMPOTENCY_CONFLICT",
            body={"live_ref": for_sale},
            headers={"Idempotency-Key": used_key("/v1/dids/purchase-live", a_purchase)},
        ),
        refused(503, "SERVICE_UNAVAILABLE", body={"live_ref": "sandbox-silent"}),
    ),
)

CASES = (
    *_BUYING,
    *row(
        "GET /v1/phone-numbers",
        ok(before=(registered_number,), query={"status": "active"}, then=_is_listed),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"status": "gone", "number_type": "odd", "page": "0", "per_page": "1000", "colour": "red"},
            fields=("status", "number_type", "page", "per_page"),
        ),
        unseen(before=(registered_number,), then=_are_their_own),
    ),
    *row(
        f"GET {_TELEPHONY}",
        ok(path={"id": unwired_number}, then=_is_active),
        foreign(403, "FORBIDDEN", path={"id": unwired_number}),
        refused(404, "NOT_FOUND", path={"id": NOWHERE}),
    ),
    *row(
        f"PATCH {_TELEPHONY}",
        ok(path={"id": unwired_number}, body={"friendly_name": "Desk"}, then=_is_active),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"id": unwired_number},
            body={"colour": "red"},
            fields=("friendly_name", "colour"),
        ),
        foreign(403, "FORBIDDEN", path={"id": unwired_number}, body={"friendly_name": "Desk"}),
        refused(404, "NOT_FOUND", path={"id": NOWHERE}, body={"friendly_name": "Desk"}),
    ),
    *row(
        f"DELETE {_TELEPHONY}",
        ok(204, path={"id": bound_number}),
        foreign(403, "FORBIDDEN", path={"id": unwired_number}),
        refused(404, "NOT_FOUND", path={"id": NOWHERE}),
        refused(409, "CONFLICT", path={"id": number_with_call}),
    ),
    *row(
        f"GET {_TELEPHONY}/telephony",
        ok(path={"id": unwired_number}, then=_wired(carrier_registered=False, inbound_bound=False)),
        ok(
            name="bound",
            path={"id": bound_number},
            then=_wired(carrier_registered=True, inbound_bound=True, inbound_target="media_stream"),
        ),
        *_wiring(),
    ),
    *row(
        f"POST {_TELEPHONY}/carrier",
        ok(path={"id": unwired_number}, then=_wired(carrier_registered=True, inbound_bound=False)),
        ok(name="again", path={"id": registered_number}, then=_wired(carrier_registered=True)),
        *_wiring(),
        refused(503, "not_configured", path={"id": unwired_number}, during=no_platform_carrier),
    ),
    *row(
        f"DELETE {_TELEPHONY}/carrier",
        ok(path={"id": registered_number}, then=_wired(status="deregistered", carrier_registered=False)),
        ok(
            name="forced",
            path={"id": bound_number},
            query={"force": "true"},
            then=_wired(status="deregistered"),
        ),
        *_wiring(),
        refused(400, "validation", name="a word", path={"id": bound_number}, query={"force": "perhaps"}),
        refused(409, "inbound_bound", path={"id": bound_number}),
        refused(503, "not_configured", path={"id": registered_number}, during=no_platform_carrier),
    ),
    *row(
        f"PUT {_TELEPHONY}/inbound",
        ok(
            path={"id": unwired_number},
            body=_STREAM,
            then=_wired(carrier_registered=True, inbound_bound=True, inbound_target="media_stream"),
        ),
        ok(
            name="forced",
            path={"id": bound_number},
            body={"target": "forward", "forward_to": "+919800000001", "transcribe": True, "force": True},
            then=_wired(inbound_target="forward"),
        ),
        ok(
            name="another address of the stream",
            path={"id": bound_number},
            body={**_STREAM, "stream_url": "ws://127.0.0.1:9/new"},
            then=_wired(inbound_target="media_stream"),
        ),
        *_wiring(_STREAM),
        refused(
            400,
            "validation",
            name="unknown and missing fields",
            path={"id": registered_number},
            body={"colour": "red"},
            fields=("target", "colour"),
        ),
        refused(
            400,
            "bind_failed",
            path={"id": registered_number},
            body={"target": "media_stream", "stream_url": "https://agent.example/ws", "sample_rate": 11025},
            then=_lacks_one,
        ),
        refused(
            409,
            "inbound_conflict",
            path={"id": bound_number},
            body={"target": "forward", "forward_to": "+919800000001"},
        ),
        refused(503, "not_configured", path={"id": unwired_number}, body=_STREAM, during=no_platform_carrier),
    ),
    *row(
        f"DELETE {_TELEPHONY}/inbound",
        ok(path={"id": bound_number}, then=_wired(inbound_bound=False, carrier_registered=True)),
        *_wiring(),
        # It asks nothing of a carrier, and does not work while nothing can be stored.
        refused(503, "not_configured", path={"id": bound_number}, during=database_refuses),
    ),
)
