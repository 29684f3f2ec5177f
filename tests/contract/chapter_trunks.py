"""The carrier trunks chapter."""

from __future__ import annotations

from typing import Any

from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, Kept, carrier, carrier_with_gateway
from tests.contract.stage import Answer, Stage

_CARRIERS = "/v1/trunk-portal/carriers"
_GATEWAYS = _CARRIERS + "/{carrier_sid}/gateways"

_GATEWAY = Kept("gateway")
_OF_GATEWAY = {"carrier_sid": _GATEWAY.first(carrier_with_gateway), "gateway_sid": _GATEWAY.second}
_CARRIER_BODY = {
    "name": "Own trunk",
    "trunk_type": "auth",
    "register_username": "me",
    "register_password": "s3cret-of-the-trunk",
    "codecs": ["PCMA"],
}


async def _created(_: Stage, answer: Answer) -> None:
    assert answer.data["name"] == "Own trunk" and answer.data["sid"] == answer.data["carrier_sid"]
    assert b"s3cret" not in answer.raw, "a secret is written, and never read"


async def _renamed(_: Stage, answer: Answer) -> None:
    assert answer.data["name"] == "Renamed" and answer.data["codecs"] == ["PCMU", "PCMA"]


async def _counted(_: Stage, answer: Answer) -> None:
    assert answer.meta["total"] >= len(answer.data) >= 1
    assert answer.meta["page"] == 1 and answer.meta["per_page"] == 20


async def _are_their_own(stage: Stage, answer: Answer) -> None:
    own = await stage.data("GET", _CARRIERS, query={"per_page": "100"})
    assert own and not {item["carrier_sid"] for item in own} & {item["carrier_sid"] for item in answer.data}


async def _is_gone(stage: Stage, answer: Answer) -> None:
    assert answer.raw == b""


async def _made_for(stage: Stage, answer: Answer) -> None:
    assert answer.data["host"] == "192.0.2.1" and answer.data["health"]["state"]


def _of_one(path: dict[str, Any], body: Any = None) -> tuple[Case, ...]:
    """What all endpoints of one carrier refuse alike."""
    return (
        foreign(403, "FORBIDDEN", path=path, body=body),
        refused(404, "NOT_FOUND", path={**path, "carrier_sid": NOWHERE}, body=body),
        refused(404, "NOT_FOUND", name="no UUID", path={**path, "carrier_sid": "42"}, body=body),
    )


_CARRIER_CASES = (
    *row(
        f"POST {_CARRIERS}",
        ok(201, body=_CARRIER_BODY, then=_created),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"trunk_type": "odd", "colour": "red", "codecs": []},
            fields=("name", "trunk_type", "colour", "codecs"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="half of the credentials",
            body={"name": "x", "register_username": "me"},
            fields=("register_password",),
        ),
    ),
    *row(
        f"GET {_CARRIERS}",
        ok(before=(carrier(),), then=_counted),
        refused(400, "VALIDATION_ERROR", query={"page": "none"}, fields=("page",)),
        unseen(before=(carrier(),), then=_are_their_own),
    ),
    *row(
        f"GET {_CARRIERS}/{{carrier_sid}}",
        ok(path={"carrier_sid": carrier()}, then=_created),
        refused(403, "FORBIDDEN", path={"carrier_sid": carrier("other")}),
        *_of_one({"carrier_sid": carrier()}),
    ),
    *row(
        f"PATCH {_CARRIERS}/{{carrier_sid}}",
        ok(path={"carrier_sid": carrier()}, body={"name": "Renamed"}, then=_renamed),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"carrier_sid": carrier()},
            body={"srtp": "perhaps", "colour": "red"},
            fields=("srtp", "colour"),
        ),
        *_of_one({"carrier_sid": carrier()}, {"name": "Renamed"}),
    ),
    *row(
        f"DELETE {_CARRIERS}/{{carrier_sid}}",
        ok(204, path={"carrier_sid": carrier()}, then=_is_gone),
        *_of_one({"carrier_sid": carrier()}),
    ),
)

_GATEWAY_CASES = (
    *row(
        f"POST {_GATEWAYS}",
        ok(201, path={"carrier_sid": carrier()}, body={"host": "192.0.2.1"}, then=_made_for),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"carrier_sid": carrier()},
            body={"host": "not a host", "port": 0, "colour": "red"},
            fields=("host", "port", "colour"),
        ),
        *_of_one({"carrier_sid": carrier()}, {"host": "192.0.2.1"}),
    ),
    *row(
        f"GET {_GATEWAYS}",
        ok(path={"carrier_sid": _OF_GATEWAY["carrier_sid"]}, then=_counted),
        *_of_one({"carrier_sid": carrier()}),
    ),
    *row(
        f"GET {_GATEWAYS}/{{gateway_sid}}",
        ok(path=_OF_GATEWAY),
        refused(404, "NOT_FOUND", path={"carrier_sid": carrier(), "gateway_sid": NOWHERE}),
        *_of_one(_OF_GATEWAY),
    ),
    *row(
        f"PATCH {_GATEWAYS}/{{gateway_sid}}",
        ok(path=_OF_GATEWAY, body={"weight": 3}),
        refused(400, "VALIDATION_ERROR", path=_OF_GATEWAY, body={"weight": -1}, fields=("weight",)),
        refused(
            404, "NOT_FOUND", path={"carrier_sid": carrier(), "gateway_sid": NOWHERE}, body={"weight": 3}
        ),
        *_of_one(_OF_GATEWAY, {"weight": 3}),
    ),
    *row(
        f"DELETE {_GATEWAYS}/{{gateway_sid}}",
        ok(204, path=_OF_GATEWAY, then=_is_gone),
        refused(404, "NOT_FOUND", path={"carrier_sid": carrier(), "gateway_sid": NOWHERE}),
        *_of_one(_OF_GATEWAY),
    ),
)

CASES = (*_CARRIER_CASES, *_GATEWAY_CASES)
