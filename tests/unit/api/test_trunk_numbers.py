"""Numbers on carriers of an account's own."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from tests.support.api_facts import ACCOUNT, CARRIER_SID, NOWHERE, NUMBER_ID
from tests.unit.api.client import Client

NUMBERS = "/v1/trunk-portal/numbers"
NUMBER = {"number": "+918047000002", "carrier_sid": CARRIER_SID}


async def carrier_and_application(storage: Storage) -> tuple[str, str]:
    """A carrier of the account, and an application of its calls."""
    carrier = await storage.trunks.create_carrier(ACCOUNT, {"name": "Own trunk"})
    values = {"name": "Bot", "target": "media_stream", "stream_url": "wss://a.example/"}
    return carrier.carrier_sid, (await storage.applications.create(ACCOUNT, values)).app_sid


async def test_a_number_is_registered(client: Client, storage: Storage) -> None:
    carrier_sid, app_sid = await carrier_and_application(storage)
    body = {**NUMBER, "carrier_sid": carrier_sid, "app_sid": app_sid, "friendly_name": "Desk"}
    made = await client.post(NUMBERS, {**body, "number": "918047000002"})
    assert made.status == 201
    assert made.data["number_sid"] == made.data["sid"]
    assert body.items() <= made.data.items()


async def test_numbers_are_listed_changed_and_removed(client: Client, storage: Storage) -> None:
    carrier_sid, app_sid = await carrier_and_application(storage)
    number = await storage.trunk_numbers.register(ACCOUNT, "+918047000002", carrier_sid, app_sid=app_sid)
    path = f"{NUMBERS}/{number.phone_number_id}"
    listed = await client.get(f"{NUMBERS}?carrier_sid={carrier_sid}&per_page=5")
    assert (listed.json()["meta"]["per_page"], listed.json()["meta"]["total"]) == (5, 1)
    assert listed.data[0]["carrier_sid"] == carrier_sid
    assert (await client.get(f"{NUMBERS}?carrier_sid={NOWHERE}")).data == []
    wrong = await client.get(f"{NUMBERS}?carrier_sid=x&app_sid=x")
    assert (wrong.status, wrong.fields) == (
        400,
        {name: "must be a UUID" for name in ("carrier_sid", "app_sid")},
    )
    changed = await client.patch(path, {"app_sid": None, "friendly_name": "Door"})
    assert (changed.status, changed.data["friendly_name"]) == (200, "Door")
    assert (changed.data["app_sid"], changed.data["carrier_sid"]) == (None, carrier_sid)
    assert (await client.delete(path)).status == 204
    for method, body in (("PATCH", {}), ("DELETE", None)):
        missing = await client.request(method, f"{NUMBERS}/{NOWHERE}", json_body=body)
        assert (missing.status, missing.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "body", "fields"),
    [
        ("POST", {}, ["carrier_sid", "number"]),
        ("POST", {**NUMBER, "number": 91, "number_sid": "mine"}, ["number", "number_sid"]),
        ("POST", {"number": "91804700000"}, ["carrier_sid", "number"]),
        ("POST", {**NUMBER, "friendly_name": "", "app_sid": ""}, ["app_sid", "friendly_name"]),
        (
            "POST",
            {"number": "x", "carrier_sid": "nope", "app_sid": "nope"},
            ["app_sid", "carrier_sid", "number"],
        ),
        ("PATCH", {"carrier_sid": None}, ["carrier_sid"]),
        ("PATCH", {"number": "+918047000003"}, ["number"]),
    ],
)
async def test_numbers_that_are_wrong(client: Client, method: str, body: Any, fields: list[str]) -> None:
    path = NUMBERS if method == "POST" else f"{NUMBERS}/{NUMBER_ID}"
    answer = await client.request(method, path, json_body=body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert sorted(answer.fields) == fields


async def test_a_number_cannot_become_another_one(client: Client) -> None:
    answer = await client.patch(f"{NUMBERS}/{NUMBER_ID}", {"number": "+918047000003"})
    assert answer.fields == {"number": "cannot be changed; remove the number, and register the other one"}
