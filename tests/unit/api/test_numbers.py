"""The phone number and wiring endpoints."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from api.http.errors import status_of
from api.routes import ENDPOINTS
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import (
    BindFailed,
    DomainError,
    InboundBound,
    InboundConflict,
    NotConfigured,
    ServiceUnavailable,
)
from callcontrol.models import Binding
from tests.support.api_facts import ACCOUNT, KEY, NOWHERE, NUMBER, NUMBER_ID
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

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


async def test_list(client: Client, storage: Storage) -> None:
    lists = asked(storage.numbers, "list")
    answer = await client.get("/v1/phone-numbers?status=active&number_type=local&region=+9180")
    assert answer.status == 200
    assert answer.data == [
        {
            "id": NUMBER_ID,
            "number": NUMBER,
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
    behind = await client.get("/v1/phone-numbers?page=2")
    assert (behind.json()["meta"]["page"], behind.data) == (2, [])
    assert lists == [(ACCOUNT, 1, 20, "active", "local", "+9180"), (ACCOUNT, 2, 20, None, None, None)]


async def test_the_states_of_a_number_are_those_that_occur(client: Client) -> None:
    for status in ("active", "suspended", "released"):
        assert (await client.get(f"/v1/phone-numbers?status={status}")).status == 200
    answer = await client.get("/v1/phone-numbers?status=pending")
    assert (answer.status, answer.fields) == (
        400,
        {"status": "must be one of active, suspended or released"},
    )


async def test_a_number_is_not_forwarded_to_itself(client: Client) -> None:
    answer = await client.put(INBOUND, {"target": "forward", "forward_to": NUMBER})
    assert (answer.status, answer.code, set(answer.fields)) == (400, "bind_failed", {"forward_to"})


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


async def test_wiring_goes_through_its_states(client: Client, storage: Storage) -> None:
    await storage.numbers.deregister(ACCOUNT, NUMBER_ID)
    state = {
        "phone_number_id": NUMBER_ID,
        "number": NUMBER,
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


async def test_the_agents_fields_are_shown_with_their_target(client: Client, storage: Storage) -> None:
    agent_id = (await storage.agents.create(ACCOUNT, {"name": "Asha"})).agent_id
    binding = Binding("voice_agent", agent_id=agent_id, workspace_id=NUMBER_ID)
    await storage.numbers.bind(ACCOUNT, NUMBER_ID, binding)
    answer = await client.get(TELEPHONY)
    assert (answer.data["agent_id"], answer.data["workspace_id"]) == (agent_id, NUMBER_ID)


async def test_force(client: Client, storage: Storage) -> None:
    deregistered, bound = (asked(storage.numbers, name) for name in ("deregister", "bind"))
    await client.delete(CARRIER)
    await client.delete(CARRIER + "?force=true")
    await client.delete(CARRIER + "?force=false")
    await client.put(INBOUND, STREAM)
    await client.put(INBOUND, {**STREAM, "force": True})
    assert deregistered == [(ACCOUNT, NUMBER_ID, force) for force in (False, True, False)]
    assert [force for *_, force in bound] == [False, True]


async def test_a_binding_carries_its_fields(client: Client, storage: Storage) -> None:
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
    assert (await storage.numbers.get(ACCOUNT, NUMBER_ID)).binding == Binding(
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
            "force": True,
            "target": "forward",
            "forward_to": "+919800000001",
            "caller_id": "passthrough",
            "timeout": 30,
            "record": True,
        },
    )
    assert (await storage.numbers.get(ACCOUNT, NUMBER_ID)).binding == Binding(
        target="forward", forward_to="+919800000001", caller_id="passthrough", timeout_s=30, record=True
    )


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["target"]),
        ({"target": 1, "force": "yes", "colour": 1}, ["target", "force", "colour"]),
        ({**STREAM, "sample_rate": "8000"}, ["sample_rate"]),
        ({**STREAM, "stream_max_retries": 11, "colour": 1}, ["stream_max_retries", "colour"]),
    ],
)
async def test_bodies_that_are_wrong(client: Client, body: Any, fields: list[str]) -> None:
    answer = await client.put(INBOUND, body)
    assert (answer.status, answer.code) == (400, "validation")
    assert sorted(answer.fields) == sorted(fields)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"stream_max_retries": 11}, ["stream_max_retries"]),
        ({"stream_max_retries": -1, "encoding": 7}, ["encoding", "stream_max_retries"]),
        ({"stream_auth": {"type": "digest"}}, ["stream_auth.type"]),
        ({"stream_auth": {"type": "bearer", "token": "t", "realm": "x"}}, ["stream_auth.realm"]),
        ({"custom_parameters": {"customer": 42}}, ["custom_parameters.customer"]),
        ({"stream_track": "outbound"}, ["stream_track"]),
    ],
)
async def test_unknown_values_of_the_stream_reject_the_binding(
    client: Client, changes: Any, fields: list[str]
) -> None:
    answer = await client.put(INBOUND, {**STREAM, **changes})
    assert (answer.status, answer.code) == (400, "bind_failed")
    assert sorted(answer.fields) == fields


@pytest.mark.parametrize(("method", "what", "body"), REQUESTS)
async def test_identifiers(client: Client, method: str, what: str, body: Any) -> None:
    for bad in ("nonsense", "%00", NUMBER_ID + "0"):
        answer = await client.request(method, f"/v1/phone-numbers/{bad}/{what}", json_body=body)
        assert (answer.status, answer.code, list(answer.fields)) == (400, "validation", ["id"])
    answer = await client.request(method, f"/v1/phone-numbers/{NOWHERE}/{what}", json_body=body)
    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (BindFailed, 400, "bind_failed"),
        (InboundConflict, 409, "inbound_conflict"),
        (InboundBound, 409, "inbound_bound"),
        (NotConfigured, 503, "not_configured"),
        (ServiceUnavailable, 503, "not_configured"),
    ],
)
@pytest.mark.parametrize(("method", "what"), [(method, what) for method, what, _ in REQUESTS])
def test_codes_of_refusals(
    refusal: type[DomainError], status: int, code: str, method: str, what: str
) -> None:
    (endpoint,) = [
        one for one in ENDPOINTS if (one.method, one.path) == (method, f"/v1/phone-numbers/{{id}}/{what}")
    ]
    assert status_of(refusal, endpoint.style) == (status, code)


async def bind(stage: ApiStage) -> None:
    """Bind the number to another target than the requests have."""
    await stage.storage.numbers.bind(ACCOUNT, NUMBER_ID, Binding("missed_call"))


async def lose_the_disk(stage: ApiStage) -> None:
    """Make every row unreadable; the key is known without them."""
    await stage.storage.keys.authenticate(KEY)

    async def look_up(_: object) -> None:
        failure = sqlite3.OperationalError("disk I/O error")
        failure.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise failure

    setattr(stage.storage.database, "_look_up", look_up)  # noqa: B010 - mypy refuses to assign a method.


@pytest.mark.parametrize(
    ("before", "request_line", "changes", "status", "code"),
    [
        (None, 3, {"stream_url": "https://bot.example.com/"}, 400, "bind_failed"),
        (bind, 3, {}, 409, "inbound_conflict"),
        (bind, 2, None, 409, "inbound_bound"),
        (ApiStage.stop_platform_carrier, 1, None, 503, "not_configured"),
        (ApiStage.stop_platform_carrier, 2, None, 503, "not_configured"),
        (ApiStage.stop_platform_carrier, 3, {}, 503, "not_configured"),
        (lose_the_disk, 0, None, 503, "not_configured"),
        (ApiStage.stop_writer, 1, None, 503, "not_configured"),
        (ApiStage.stop_writer, 2, None, 503, "not_configured"),
        (ApiStage.stop_writer, 3, {}, 503, "not_configured"),
        (ApiStage.stop_writer, 4, None, 503, "not_configured"),
    ],
)
async def test_refusals(
    client: Client,
    stage: ApiStage,
    before: Callable[[ApiStage], Awaitable[None]] | None,
    request_line: int,
    changes: dict[str, Any] | None,
    status: int,
    code: str,
) -> None:
    if before is not None:
        await before(stage)
    method, what, body = REQUESTS[request_line]
    body = None if changes is None else {**body, **changes}
    answer = await client.request(method, f"/v1/phone-numbers/{NUMBER_ID}/{what}", json_body=body)
    assert (answer.status, answer.code) == (status, code)
