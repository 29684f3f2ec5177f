"""The carrier trunks chapter."""

from __future__ import annotations

from typing import Any

from callcontrol.applications import aio as application_service
from callcontrol.trunks.aio import service as trunk_service
from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    NOWHERE,
    RINGS,
    agent_url,
    application,
    attached_application,
    carrier,
    fresh_number,
    gateway,
    limited,
    nothing,
    parts,
    taken_number,
    trunk_number,
    trunk_with_call,
)
from tests.contract.stage import Answer, Stage

_CARRIERS = "/v1/trunk-portal/carriers"
_NUMBERS = "/v1/trunk-portal/numbers"
_APPLICATIONS = "/v1/trunk-portal/applications"
_GATEWAYS = _CARRIERS + "/{carrier_sid}/gateways"

_OF_GATEWAY = parts(gateway, "carrier_sid", "gateway_sid")
_ONE_GATEWAY = {"host": "192.0.2.1", "port": 5060}
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


async def _carrier_with_one_gateway(stage: Stage) -> str:
    """The SID of a carrier with a gateway, which stays known as `the gateway`."""
    carrier_sid = str(await carrier()(stage))
    path = _GATEWAYS.format(carrier_sid=carrier_sid)
    stage.kept["the gateway"] = (await stage.data("POST", path, body=_ONE_GATEWAY))["gateway_sid"]
    return carrier_sid


async def _two_gateways(stage: Stage) -> dict[str, str]:
    """The SIDs of a carrier and of its second gateway, which has another port."""
    carrier_sid = await _carrier_with_one_gateway(stage)
    path = _GATEWAYS.format(carrier_sid=carrier_sid)
    second = await stage.data("POST", path, body={**_ONE_GATEWAY, "port": 5070})
    return {"carrier_sid": carrier_sid, "gateway_sid": str(second["gateway_sid"])}


async def _names_the_gateway(stage: Stage, answer: Answer) -> None:
    assert answer.error["details"] == {"gateway_sid": stage.kept["the gateway"]}


async def _counts_calls(_: Stage, answer: Answer) -> None:
    assert answer.error["details"]["calls"] == 1


async def _counts_numbers(_: Stage, answer: Answer) -> None:
    assert answer.error["details"]["numbers"] == 1


async def _labelled(_: Stage, answer: Answer) -> None:
    assert answer.data["friendly_name"] == "Desk" and answer.data["sid"] == answer.data["number_sid"]


async def _is_logged(_: Stage, answer: Answer) -> None:
    last = answer.data[0]
    assert (last["to"], last["direction"], last["answered"]) == (RINGS, "outbound", False)
    assert last["trunk"] == "Own trunk" and last["sip_call_id"] and last["attempted_at"]
    assert answer.meta["total"] >= len(answer.data)


async def _streams(stage: Stage, answer: Answer) -> None:
    assert (answer.data["stream_url"], answer.data["sample_rate"]) == (stage.agent.url, 16000)
    assert answer.data["sid"] == answer.data["app_sid"]


async def _is_transcribed(_: Stage, answer: Answer) -> None:
    assert (answer.data["transcribe"], answer.data["transcription_language"]) == (True, "hi-IN")


async def _is_renamed(_: Stage, answer: Answer) -> None:
    assert (answer.data["name"], answer.data["record_all_calls"]) == ("Renamed", True)


async def _belongs_to_the_other(stage: Stage, answer: Answer) -> None:
    """Trunks of one account are invisible to others."""
    refused_as = await stage.ask("GET", f"{_APPLICATIONS}/{answer.data['app_sid']}")
    assert refused_as.code == "FORBIDDEN"


def _of_one(path: dict[str, Any], body: Any = None) -> tuple[Case, ...]:
    """Refusals common to all endpoints of one carrier."""
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
        foreign(
            403,
            "FORBIDDEN",
            name="their application",
            by="own",
            body={"name": "x", "app_sid": application("other")},
        ),
        refused(409, "CONFLICT", body={"name": "x"}, during=limited(trunk_service, "_MAX_CARRIERS")),
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
        refused(409, "CONFLICT", path=parts(trunk_with_call, "carrier_sid"), then=_counts_calls),
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
        refused(
            409,
            "CONFLICT",
            path={"carrier_sid": carrier()},
            body={"host": "192.0.2.1"},
            during=limited(trunk_service, "_MAX_GATEWAYS"),
        ),
        refused(
            409,
            "CONFLICT",
            name="the same gateway again",
            path={"carrier_sid": _carrier_with_one_gateway},
            body=_ONE_GATEWAY,
            then=_names_the_gateway,
        ),
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
        refused(
            409,
            "CONFLICT",
            path=parts(_two_gateways, "carrier_sid", "gateway_sid"),
            body=_ONE_GATEWAY,
            then=_names_the_gateway,
        ),
    ),
    *row(
        f"DELETE {_GATEWAYS}/{{gateway_sid}}",
        ok(204, path=_OF_GATEWAY, then=_is_gone),
        refused(404, "NOT_FOUND", path={"carrier_sid": carrier(), "gateway_sid": NOWHERE}),
        *_of_one(_OF_GATEWAY),
        refused(
            409,
            "CONFLICT",
            path=parts(trunk_with_call, "carrier_sid", "gateway_sid"),
            then=_counts_calls,
        ),
    ),
)

_NUMBER_BODY = {"number": fresh_number, "carrier_sid": carrier(), "friendly_name": "Desk"}
_NUMBER_CASES = (
    *row(
        f"POST {_NUMBERS}",
        ok(201, body=_NUMBER_BODY, then=_labelled),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"number": "12", "colour": "red"},
            fields=("number", "carrier_sid", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no such carrier",
            body={**_NUMBER_BODY, "carrier_sid": NOWHERE},
            fields=("carrier_sid",),
        ),
        foreign(403, "FORBIDDEN", name="their carrier", body=_NUMBER_BODY),
        foreign(
            403,
            "FORBIDDEN",
            name="their application",
            by="own",
            body={**_NUMBER_BODY, "app_sid": application("other")},
        ),
        refused(409, "CONFLICT", body={**_NUMBER_BODY, "number": taken_number}),
    ),
    *row(
        f"GET {_NUMBERS}",
        ok(before=(trunk_number,), then=_counted),
        refused(400, "VALIDATION_ERROR", query={"per_page": "0", "colour": "red"}, fields=("per_page",)),
        unseen(before=(trunk_number,), then=nothing),
    ),
    *row(
        f"PATCH {_NUMBERS}/{{number_sid}}",
        ok(path={"number_sid": trunk_number}, body={"friendly_name": "Desk"}, then=_labelled),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"number_sid": trunk_number},
            body={"friendly_name": "", "colour": "red"},
            fields=("friendly_name", "colour"),
        ),
        refused(404, "NOT_FOUND", path={"number_sid": NOWHERE}, body={"friendly_name": "Desk"}),
        foreign(403, "FORBIDDEN", path={"number_sid": trunk_number}, body={"friendly_name": "Desk"}),
    ),
    *row(
        f"DELETE {_NUMBERS}/{{number_sid}}",
        ok(204, path={"number_sid": trunk_number}, then=_is_gone),
        refused(404, "NOT_FOUND", path={"number_sid": NOWHERE}),
        foreign(403, "FORBIDDEN", path={"number_sid": trunk_number}),
        refused(409, "CONFLICT", path=parts(trunk_with_call, "number_sid"), then=_counts_calls),
    ),
)

_APPLICATION = {"app_sid": application()}
_APPLICATION_BODY = {
    "name": "Front desk",
    "target": "media_stream",
    "stream_url": agent_url,
    "sample_rate": 16000,
}
_APPLICATION_CASES = (
    *row(
        f"POST {_APPLICATIONS}",
        ok(201, body=_APPLICATION_BODY, then=_streams),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"target": "odd", "colour": "red"},
            fields=("name", "target", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="without its address",
            body={"name": "x", "target": "media_stream"},
            fields=("stream_url",),
        ),
        refused(
            409, "CONFLICT", body=_APPLICATION_BODY, during=limited(application_service, "_MAX_APPLICATIONS")
        ),
        unseen(201, body=_APPLICATION_BODY, then=_belongs_to_the_other),
    ),
    *row(
        f"GET {_APPLICATIONS}",
        ok(before=(application(),), then=_counted),
        refused(400, "VALIDATION_ERROR", query={"page": "x"}, fields=("page",)),
        unseen(by="poor", before=(application(),), then=nothing),
    ),
    *row(
        f"GET {_APPLICATIONS}/{{app_sid}}",
        ok(path=_APPLICATION),
        refused(404, "NOT_FOUND", path={"app_sid": NOWHERE}),
        foreign(403, "FORBIDDEN", path=_APPLICATION),
    ),
    *row(
        f"PATCH {_APPLICATIONS}/{{app_sid}}",
        ok(path=_APPLICATION, body={"name": "Renamed", "record_all_calls": True}, then=_is_renamed),
        ok(
            path=_APPLICATION,
            name="transcribed",
            body={"transcribe": True, "transcription_language": "hi-IN"},
            then=_is_transcribed,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            path=_APPLICATION,
            body={"name": "", "colour": "red", "transcription_language": "?"},
            fields=("name", "colour", "transcription_language"),
        ),
        refused(404, "NOT_FOUND", path={"app_sid": NOWHERE}, body={"name": "Renamed"}),
        foreign(403, "FORBIDDEN", path=_APPLICATION, body={"name": "Renamed"}),
    ),
    *row(
        f"DELETE {_APPLICATIONS}/{{app_sid}}",
        ok(204, path=_APPLICATION, then=_is_gone),
        refused(404, "NOT_FOUND", path={"app_sid": NOWHERE}),
        foreign(403, "FORBIDDEN", path=_APPLICATION),
        refused(409, "CONFLICT", path={"app_sid": attached_application}, then=_counts_numbers),
    ),
)

_LOG_CASES = row(
    "GET /v1/trunk-portal/call-logs",
    ok(before=(trunk_with_call,), query={"filter": RINGS, "answered": "false"}, then=_is_logged),
    refused(
        400,
        "VALIDATION_ERROR",
        query={"days": "31", "direction": "up", "answered": "perhaps", "carrier_sid": "1", "colour": "red"},
        fields=("days", "direction", "answered", "carrier_sid"),
    ),
    refused(400, "VALIDATION_ERROR", name="no moment", query={"start": "soon"}, fields=("start",)),
    unseen(before=(trunk_with_call,), query={"filter": RINGS}, then=nothing),
)

CASES = (*_CARRIER_CASES, *_GATEWAY_CASES, *_NUMBER_CASES, *_APPLICATION_CASES, *_LOG_CASES)
