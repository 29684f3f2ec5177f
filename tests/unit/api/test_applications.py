"""Applications of the trunk portal, and calls that name one."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Services, Storage
from tests.support.api_facts import ACCOUNT, NOWHERE, NUMBER, OTHER_ACCOUNT
from tests.support.api_stage import asked
from tests.unit.api.client import Client

APPLICATIONS = "/v1/trunk-portal/applications"
STREAM = {"name": "Bot", "target": "media_stream", "stream_url": "wss://a.example/"}


async def test_an_application_is_created_and_shows_no_secret(client: Client, storage: Storage) -> None:
    made = await client.post(
        APPLICATIONS,
        {
            **STREAM,
            "sample_rate": 16000,
            "stream_auth": {"type": "bearer", "token": "s3cret"},
            "stream_max_retries": 3,
        },
    )
    assert made.status == 201
    assert made.data["app_sid"] == made.data["sid"]
    assert (made.data["sample_rate"], made.data["stream_protocol"]) == (16000, "exotel")
    assert made.data["stream_max_retries"] == 3
    assert (made.data["forward_to"], made.data["record_all_calls"]) == (None, False)
    assert "s3cret" not in made.body.decode()
    kept = await storage.applications.get(ACCOUNT, made.data["sid"])
    assert kept.binding.stream_auth == {"type": "bearer", "token": "s3cret"}


async def test_read_change_and_delete(client: Client, storage: Storage) -> None:
    app_sid = (await storage.applications.create(ACCOUNT, STREAM)).app_sid
    listed = await client.get(APPLICATIONS + "?page=1&per_page=1")
    assert listed.json()["meta"]["total"] == 1
    got = await client.get(f"{APPLICATIONS}/{app_sid}")
    assert got.data == listed.data[0]
    changed = await client.patch(
        f"{APPLICATIONS}/{app_sid}", {"target": "forward", "forward_to": "+919800000001", "timeout": 20}
    )
    assert (changed.status, changed.data["target"], changed.data["timeout"]) == (200, "forward", 20)
    assert (await storage.applications.get(ACCOUNT, app_sid)).binding.timeout_s == 20
    gone = await client.delete(f"{APPLICATIONS}/{app_sid}")
    assert (gone.status, gone.body) == (204, b"")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_applications_of_others_and_of_nobody(client: Client, storage: Storage, method: str) -> None:
    others = await storage.applications.create(OTHER_ACCOUNT, STREAM)
    body: Any = {} if method == "PATCH" else None
    other = await client.request(method, f"{APPLICATIONS}/{others.app_sid}", json_body=body)
    assert (other.status, other.code) == (403, "FORBIDDEN")
    missing = await client.request(method, f"{APPLICATIONS}/{NOWHERE}", json_body=body)
    assert (missing.status, missing.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["name", "target"]),
        ({**STREAM, "name": ""}, ["name"]),
        ({**STREAM, "target": "void", "app_sid": "mine"}, ["app_sid", "target"]),
        ({**STREAM, "stream_url": "http://a.example/"}, ["stream_url"]),
        ({**STREAM, "timeout": 20}, ["timeout"]),
        ({**STREAM, "record_all_calls": "yes"}, ["record_all_calls"]),
    ],
)
async def test_applications_that_are_wrong(client: Client, body: Any, fields: list[str]) -> None:
    answer = await client.post(APPLICATIONS, body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert sorted(answer.fields) == fields


async def test_a_call_may_leave_all_to_its_application(client: Client, services: Services) -> None:
    app_sid = (await services.storage.applications.create(ACCOUNT, STREAM)).app_sid
    requests = asked(services.calls, "create_call")
    body = {"from": NUMBER, "to": "+919800000001", "app_sid": app_sid}
    assert (await client.post("/v1/calls", {**body, "sample_rate": 16000})).status == 201
    account = requests[0][0]
    assert (await client.post(f"/v1/Accounts/{account}/Calls", body)).status == 201
    first, second = (request for _, request in requests)
    assert (first.app_sid, first.stream, first.stream_fields) == (app_sid, None, {"sample_rate": 16000})
    assert (first.needs_stream, second.needs_stream) == (False, True)
    del body["app_sid"]
    for path in ("/v1/calls", f"/v1/Accounts/{account}/Calls"):
        assert list((await client.post(path, body)).fields) == ["stream_url"]
