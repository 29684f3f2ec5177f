"""Numbers on carriers of an account's own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.client import Client
from tests.unit.api.fakes import APP_SID, CARRIER_SID, NOWHERE, NUMBER_ID, Fakes

NUMBERS = "/v1/trunk-portal/numbers"
NUMBER = {"number": "+918047000002", "carrier_sid": CARRIER_SID}


async def test_a_number_is_registered(client: Client, fakes: Fakes) -> None:
    made = await client.post(NUMBERS, {**NUMBER, "app_sid": APP_SID, "friendly_name": "Desk"})
    assert made.status == 201
    assert made.data["number_sid"] == made.data["sid"] == NUMBER_ID
    assert (made.data["number"], made.data["app_sid"]) == ("+918047000002", APP_SID)
    assert fakes.trunk_numbers.values == [{**NUMBER, "app_sid": APP_SID, "friendly_name": "Desk"}]


async def test_numbers_are_listed_changed_and_removed(client: Client, fakes: Fakes) -> None:
    listed = await client.get(f"{NUMBERS}?carrier_sid={CARRIER_SID}&per_page=5")
    assert listed.json()["meta"]["per_page"] == 5
    assert listed.data[0]["carrier_sid"] == CARRIER_SID
    changed = await client.patch(f"{NUMBERS}/{NUMBER_ID}", {"app_sid": None, "friendly_name": "Door"})
    assert (changed.status, changed.data["friendly_name"]) == (200, "Door")
    assert fakes.trunk_numbers.values == [
        {"carrier_sid": CARRIER_SID},
        {"app_sid": None, "friendly_name": "Door"},
    ]
    assert (await client.delete(f"{NUMBERS}/{NUMBER_ID}")).status == 204
    for method, body in (("PATCH", {}), ("DELETE", None)):
        missing = await client.request(method, f"{NUMBERS}/{NOWHERE}", json_body=body)
        assert (missing.status, missing.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "body", "fields"),
    [
        ("POST", {}, ["carrier_sid", "number"]),
        ("POST", {**NUMBER, "number": 91, "number_sid": "mine"}, ["number", "number_sid"]),
        ("POST", {"number": "918047000002"}, ["carrier_sid", "number"]),
        ("POST", {**NUMBER, "friendly_name": "", "app_sid": ""}, ["app_sid", "friendly_name"]),
        ("PATCH", {"carrier_sid": None}, ["carrier_sid"]),
        ("PATCH", {"number": "+918047000003"}, ["number"]),
    ],
)
async def test_numbers_that_are_wrong(client: Client, method: str, body: Any, fields: list[str]) -> None:
    path = NUMBERS if method == "POST" else f"{NUMBERS}/{NUMBER_ID}"
    answer = await client.request(method, path, json_body=body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert sorted(answer.fields) == fields
