"""The account and its keys: who asks, keys of all services, rotation, and the webhook secret."""

from __future__ import annotations

import aiohttp
import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.shapes import assert_fits, assert_platform_error
from tests.acceptance.stage import Customer, Line, mobile
from tests.support.server_process import ServerProcess


@pytest.fixture
async def owner(session: aiohttp.ClientSession, server: ServerProcess, customer: Customer) -> Api:
    """The API for a key with every scope of all services."""
    return Api(session, server.url, customer.key_of("all", "*"))


async def test_the_account_says_who_asks(owner: Api, customer: Customer) -> None:
    for key in (customer.key_of("all", "*"), customer.key, customer.key_of("messaging")):
        found = (await owner.with_key(key).get("/v1/account")).expect(200)
        assert_fits(found.body, {"data": {"account_sid": customer.account_sid}, "meta": dict})
    assert_platform_error(await owner.with_key(None).get("/v1/account"), 401, "UNAUTHORIZED")


@pytest.mark.parametrize(
    ("service", "scope", "path"),
    [
        ("platform", "calls.read", "/v1/calls"),
        ("messaging", "contacts.read", "/api/v1/contacts"),
        ("assistant", "assistant", "/api/v1/agents"),
        ("tools", "tools", "/integrations/v1/tools"),
        ("admin", "admin", "/integrations/admin/tools"),
    ],
)
async def test_keys_of_every_service_are_made_rotated_and_revoked(
    owner: Api, service: str, scope: str, path: str
) -> None:
    body = {"service": service, "name": "Reports", "scopes": [scope]}
    made = (await owner.post("/v1/keys", body)).expect(201).data
    assert_fits(made, {"id": str, **body, "key": str})
    (await owner.with_key(made["key"]).get(path)).expect(200)
    listed = (await owner.get("/v1/keys")).expect(200)
    assert made["id"] in [key["id"] for key in listed.data]
    assert made["key"].encode() not in listed.content
    rotated = (await owner.post(f"/v1/keys/{made['id']}/rotate", {"overlap_seconds": 60})).expect(201).data
    assert rotated["key"] != made["key"]
    for key in (made["key"], rotated["key"]):
        (await owner.with_key(key).get(path)).expect(200)
    (await owner.delete(f"/v1/keys/{rotated['id']}")).expect(204)
    assert (await owner.with_key(rotated["key"]).get(path)).status == 401


async def test_a_key_gives_no_more_than_it_has(owner: Api, customer: Customer) -> None:
    weak = owner.with_key(customer.key_of("platform", "calls.read", "keys.write"))
    for service, scope in (("platform", "calls.write"), ("messaging", "contacts.read"), ("all", "*")):
        body = {"service": service, "name": "More", "scopes": [scope]}
        assert_platform_error(await weak.post("/v1/keys", body), 403, "FORBIDDEN")


async def test_the_webhook_secret_is_rotated(owner: Api, line: Line, receiver: Receiver) -> None:
    made = (await owner.post("/v1/account/webhook-secret/rotate", {"overlap_seconds": 0})).expect(200).data
    line.phone.manner = Manner(status=486)
    await line.place(mobile(), status_webhook_url=receiver.url("/status"))
    assert_signed(await receiver.event("call.completed", "/status"), made["webhook_secret"])
