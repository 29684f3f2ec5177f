"""The phone numbers chapter: wiring."""

from __future__ import annotations

from typing import Any

from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    NOWHERE,
    agent_url,
    bound_number,
    database_refuses,
    no_platform_carrier,
    registered_number,
    unwired_number,
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


async def _lacks_one(_: Stage, answer: Answer) -> None:
    assert answer.error["details"]["errors"], answer


def _wiring(body: Any = None) -> tuple[Case, ...]:
    """What all wiring endpoints refuse alike."""
    return (
        refused(400, "validation", path={"id": "not-a-uuid"}, body=body, fields=("id",)),
        refused(404, "not_found", path={"id": NOWHERE}, body=body),
        foreign(404, "not_found", path={"id": registered_number}, body=body),
    )


CASES = (
    *row(
        "GET /v1/phone-numbers",
        ok(before=(registered_number,), query={"status": "active"}, then=_is_listed),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"status": "gone", "number_type": "odd", "page": "0", "per_page": "1000", "colour": "red"},
            fields=("status", "number_type", "page", "per_page", "colour"),
        ),
        unseen(before=(registered_number,), then=_are_their_own),
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
            body={"target": "forward", "forward_to": "+919800000001", "force": True},
            then=_wired(inbound_target="forward"),
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
            body={"target": "media_stream", "stream_url": "wss://another.example/ws"},
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
