"""The phone number and wiring endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.errors import (
    BindFailed,
    DomainError,
    FieldError,
    InboundBound,
    InboundConflict,
    NotConfigured,
    ServiceUnavailable,
)
from callcontrol.models import Binding
from tests.unit.api.client import Client
from tests.unit.api.fakes import NOWHERE, NUMBER_ID, Fakes

TELEPHONY = f"/v1/phone-numbers/{NUMBER_ID}/telephony"
CARRIER = f"/v1/phone-numbers/{NUMBER_ID}/carrier"
INBOUND = f"/v1/phone-numbers/{NUMBER_ID}/inbound"
STREAM = {"target": "media_stream", "stream_url": "wss://bot.example.com/ws", "sample_rate": 16000}
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "telephony", None),
    ("POST", "carrier", None),
    ("DELETE", "carrier", None),
    ("PUT", "inbound", STREAM),
    ("DELETE", "inbound", None),
]


async def test_list(client: Client, fakes: Fakes) -> None:
    answer = await client.get("/v1/phone-numbers?status=active&number_type=local&region=+9180&page=2")
    assert answer.status == 200
    assert answer.data == [
        {
            "id": NUMBER_ID,
            "number": "+918047000001",
            "friendly_name": "Front desk",
            "status": "active",
            "number_type": "local",
            "region": None,
            "voice_enabled": True,
            "sms_enabled": False,
            "monthly_cost": 0.0,
            "next_billing_at": None,
            "payment_deadline_at": None,
            "inbound_target_type": "none",
            "created_at": "2026-01-31T12:00:00.123Z",
            "updated_at": "2026-01-31T12:00:00.123Z",
        }
    ]
    assert answer.json()["meta"]["page"] == 2
    assert fakes.numbers.listed == [{"status": "active", "number_type": "local", "region": "+9180"}]


async def test_list_spells_its_codes_in_upper_case(client: Client) -> None:
    answer = await client.get("/v1/phone-numbers?page=0")
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")


async def test_one_number_is_shown_renamed_and_released(client: Client) -> None:
    path = f"/v1/phone-numbers/{NUMBER_ID}"
    assert (await client.get(path)).data["friendly_name"] == "Front desk"
    assert (await client.patch(path, {"friendly_name": "Sales"})).data["friendly_name"] == "Sales"
    assert (await client.patch(path, {"friendly_name": None})).data["friendly_name"] is None
    assert (await client.delete(path)).status == 204


@pytest.mark.parametrize("body", [{}, {"friendly_name": ""}, {"friendly_name": "x" * 129}, {"number": "+91"}])
async def test_labels_that_are_none(client: Client, body: Any) -> None:
    answer = await client.patch(f"/v1/phone-numbers/{NUMBER_ID}", body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")


async def test_one_number_spells_its_codes_in_upper_case(client: Client) -> None:
    for path in (f"/v1/phone-numbers/{NOWHERE}", "/v1/phone-numbers/x"):
        answer = await client.get(path)
        assert (answer.status, answer.code) == (404, "NOT_FOUND")


async def test_wiring_goes_through_its_states(client: Client) -> None:
    state = {
        "phone_number_id": NUMBER_ID,
        "number": "+918047000001",
        "carrier_registered": False,
        "outbound_capable": False,
        "inbound_bound": False,
        "inbound_target": None,
    }
    assert (await client.get(TELEPHONY)).data == state
    registered = {**state, "carrier_registered": True, "outbound_capable": True}
    assert (await client.post(CARRIER)).data == registered
    assert (await client.post(CARRIER)).data == registered
    bound = {**registered, "inbound_bound": True, "inbound_target": "media_stream"}
    assert (await client.put(INBOUND, STREAM)).data == bound
    assert (await client.delete(INBOUND)).data == registered
    assert (await client.delete(CARRIER)).data == {**state, "status": "deregistered"}


async def test_the_agents_fields_are_shown_with_their_target(client: Client, fakes: Fakes) -> None:
    binding = Binding("voice_agent", agent_id=NOWHERE, workspace_id=NUMBER_ID)
    await fakes.numbers.bind("", NUMBER_ID, binding, force=False)
    answer = await client.get(TELEPHONY)
    assert (answer.data["agent_id"], answer.data["workspace_id"]) == (NOWHERE, NUMBER_ID)


async def test_force(client: Client, fakes: Fakes) -> None:
    await client.delete(CARRIER)
    await client.delete(CARRIER + "?force=true")
    await client.delete(CARRIER + "?force=false")
    await client.put(INBOUND, STREAM)
    await client.put(INBOUND, {**STREAM, "force": True})
    assert fakes.numbers.forced == [False, True, False, False, True]


async def test_a_binding_carries_its_fields(client: Client, fakes: Fakes) -> None:
    await client.put(
        INBOUND,
        {
            **STREAM,
            "stream_protocol": "exotel",
            "encoding": "l16",
            "custom_parameters": {"customer": "42"},
            "stream_auth": {"type": "bearer", "token": "t"},
            "stream_track": "inbound",
            "stream_max_retries": 0,
        },
    )
    assert fakes.numbers.number.binding == Binding(
        target="media_stream",
        stream_url="wss://bot.example.com/ws",
        sample_rate=16000,
        stream_protocol="exotel",
        encoding="l16",
        custom_parameters={"customer": "42"},
        stream_auth={"type": "bearer", "token": "t"},
        stream_track="inbound",
        stream_max_retries=0,
    )
    await client.put(
        INBOUND,
        {
            "target": "forward",
            "forward_to": "+919800000001",
            "caller_id": "passthrough",
            "timeout": 30,
            "record": True,
        },
    )
    assert fakes.numbers.number.binding == Binding(
        target="forward", forward_to="+919800000001", caller_id="passthrough", timeout_s=30, record=True
    )


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["target"]),
        ({"target": 1, "force": "yes", "colour": 1}, ["target", "force", "colour"]),
        ({**STREAM, "sample_rate": "8000"}, ["sample_rate"]),
        ({**STREAM, "stream_max_retries": 11}, ["stream_max_retries"]),
    ],
)
async def test_bodies_that_are_wrong(client: Client, body: Any, fields: list[str]) -> None:
    answer = await client.put(INBOUND, body)
    assert (answer.status, answer.code) == (400, "validation")
    assert sorted(answer.fields) == sorted(fields)


@pytest.mark.parametrize(("method", "what", "body"), REQUESTS)
async def test_identifiers(client: Client, method: str, what: str, body: Any) -> None:
    for bad in ("nonsense", "%00", NUMBER_ID + "0"):
        answer = await client.request(method, f"/v1/phone-numbers/{bad}/{what}", json_body=body)
        assert (answer.status, answer.code, list(answer.fields)) == (400, "validation", ["id"])
    answer = await client.request(method, f"/v1/phone-numbers/{NOWHERE}/{what}", json_body=body)
    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (BindFailed([FieldError("stream_url", "must be ws:// or wss://")]), 400, "bind_failed"),
        (InboundConflict("Bound elsewhere; retry with force true."), 409, "inbound_conflict"),
        (InboundBound("Still bound; unbind first or pass force=true."), 409, "inbound_bound"),
        (NotConfigured("There is no platform carrier."), 503, "not_configured"),
        (ServiceUnavailable("The database is away."), 503, "not_configured"),
    ],
)
@pytest.mark.parametrize(("method", "what", "body"), REQUESTS)
async def test_refusals(
    client: Client,
    fakes: Fakes,
    failure: DomainError,
    status: int,
    code: str,
    method: str,
    what: str,
    body: Any,
) -> None:
    fakes.numbers.failure = failure
    answer = await client.request(method, f"/v1/phone-numbers/{NUMBER_ID}/{what}", json_body=body)
    assert (answer.status, answer.code) == (status, code)
