"""Searching and buying numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Services
from callcontrol.clock import timestamp
from callcontrol.numbers.inventory import Listing, ListingFilter
from callcontrol.numbers.orders import PurchaseRequest
from tests.support.api_facts import ACCOUNT
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

PURCHASE = "/v1/dids/purchase-live"
LISTING = Listing("did_1", "+911110000100", "Delhi", "local", 24_950, 50_000)


@pytest.fixture(autouse=True)
async def one_number_for_sale(stage: ApiStage) -> None:
    stage.inventory.listings = {"did_1": LISTING}
    await stage.storage.wallet.top_up(ACCOUNT, 34_850)


async def test_a_search_shows_what_is_for_sale(client: Client, services: Services) -> None:
    searches = asked(services.market, "search")
    answer = await client.get("/v1/dids/available?region=Delhi&number_type=local&contains=100&per_page=5")
    assert answer.data == [
        {
            "live_ref": "did_1",
            "number": "+911110000100",
            "region": "Delhi",
            "number_type": "local",
            "monthly_cost": 249.5,
            "setup_cost": 500.0,
            "currency": "INR",
            "voice_enabled": True,
            "sms_enabled": False,
        }
    ]
    assert answer.json()["meta"]["per_page"] == 5
    assert searches == [(ListingFilter("Delhi", "local", "100"), 1, 5)]
    for wrong in ("abc", "", "1" * 16):
        answer = await client.get(f"/v1/dids/available?contains={wrong}")
        assert (answer.status, answer.fields) == (400, {"contains": "must be 1 to 15 digits"})


async def test_a_purchase_answers_exactly_its_fields(client: Client, services: Services) -> None:
    purchases = asked(services.market, "purchase")
    body = {"live_ref": "did_1", "friendly_name": "Sales", "months": 3, "acknowledged_total": 1248.50}
    answer = await client.post(PURCHASE, body)
    bought = await services.storage.numbers.get(ACCOUNT, answer.data["phone_number_id"])
    assert bought.billing is not None and bought.friendly_name == "Sales"
    assert (answer.status, answer.data) == (
        201,
        {
            "phone_number_id": bought.phone_number_id,
            "number": "+911110000100",
            "total_charged": 1248.5,
            "currency": "INR",
            "new_wallet_balance": 100.5,
            "next_billing_at": timestamp(bought.billing.next_at),
        },
    )
    wanted = PurchaseRequest(live_ref="did_1", friendly_name="Sales", months=3, acknowledged_paise=124_850)
    assert purchases == [(ACCOUNT, wanted)]


async def test_one_month_is_bought_unless_said(client: Client, services: Services) -> None:
    purchases = asked(services.market, "purchase")
    await client.post(PURCHASE, {"live_ref": "did_1"})
    assert purchases == [(ACCOUNT, PurchaseRequest(live_ref="did_1"))]


async def test_a_repeated_purchase_is_one(client: Client, services: Services) -> None:
    purchases = asked(services.market, "purchase")
    headers = {"Idempotency-Key": "k1"}
    first = await client.post(PURCHASE, {"live_ref": "did_1"}, headers=headers)
    again = await client.post(PURCHASE, {"live_ref": "did_1"}, headers=headers)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(purchases) == 1


async def withdraw_kyc(stage: ApiStage) -> None:
    await stage.storage.accounts.update(ACCOUNT, {"kyc_complete": False})


async def unlist(stage: ApiStage) -> None:
    stage.inventory.listings.clear()


async def sell(stage: ApiStage) -> None:
    stage.inventory.taken["did_1"] = "an order of somebody"


async def reprice(stage: ApiStage) -> None:
    stage.inventory.behaviours["did_1"] = "price_moves"


async def silence(stage: ApiStage) -> None:
    stage.inventory.behaviours["did_1"] = "silent"


@pytest.mark.parametrize(
    ("before", "status", "code"),
    [
        (withdraw_kyc, 403, "KYC_REQUIRED"),
        (ApiStage.empty_wallet, 402, "INSUFFICIENT_BALANCE"),
        (unlist, 404, "NOT_FOUND"),
        (sell, 409, "NUMBER_NOT_OWNED"),
        (reprice, 409, "QUOTE_STALE"),
        (silence, 503, "SERVICE_UNAVAILABLE"),
    ],
)
async def test_refusals(
    client: Client, stage: ApiStage, before: Callable[[ApiStage], Awaitable[None]], status: int, code: str
) -> None:
    await before(stage)
    answer = await client.post(PURCHASE, {"live_ref": "did_1"})
    assert (answer.status, answer.code) == (status, code)


async def test_a_released_number_is_not_listed_rather_than_sold(client: Client, stage: ApiStage) -> None:
    await stage.storage.wallet.top_up(ACCOUNT, 100_000)
    bought = await client.post(PURCHASE, {"live_ref": "did_1"})
    again = await client.post(PURCHASE, {"live_ref": "did_1"})
    assert (again.status, again.code) == (409, "NUMBER_NOT_OWNED")
    assert "is yours already" in again.json()["error"]["message"]
    released = await client.delete(f"/v1/phone-numbers/{bought.data['phone_number_id']}")
    assert released.status == 204
    [kept] = (await client.get("/v1/phone-numbers?status=released")).data
    assert (kept["id"], kept["status"]) == (bought.data["phone_number_id"], "released")
    assert (kept["next_billing_at"], kept["payment_deadline_at"]) == (None, None)
    assert kept["updated_at"] > kept["created_at"]
    again = await client.post(PURCHASE, {"live_ref": "did_1"})
    assert (again.status, again.code) == (404, "NOT_FOUND")
    assert (await client.get("/v1/dids/available")).data == []


async def test_a_number_that_is_being_bought_may_be_the_buyers_own(client: Client, stage: ApiStage) -> None:
    await sell(stage)
    message = (await client.post(PURCHASE, {"live_ref": "did_1"})).json()["error"]["message"]
    assert "possibly by you" in message and "GET /v1/phone-numbers" in message


@pytest.mark.parametrize("path", ["/v1/dids/available", "/v1/phone-numbers"])
async def test_a_region_is_a_name_or_the_beginning_of_a_number(
    client: Client, stage: ApiStage, path: str
) -> None:
    bought = (await client.post(PURCHASE, {"live_ref": "did_1"})).data["number"]
    stage.inventory.listings = {"did_2": replace(LISTING, live_ref="did_2", number="+911110000101")}
    for region in ("delhi", "%2B9111", "+9111", "%2B91%2011", "+91-11", "009111", "00911110"):
        answer = await client.get(f"{path}?region={region}")
        assert [item["number"][:-1] for item in answer.data] == [bought[:-1]], region
    assert (await client.get(f"{path}?region=%2B9122")).data == []
    for region in ("9111", "011", "91%2011", "", "+", "%20", "%2B", "+91x"):
        answer = await client.get(f"{path}?region={region}")
        assert (answer.status, set(answer.fields)) == (400, {"region"}), region


async def test_a_stale_quote_says_the_new_price(client: Client) -> None:
    body = {"live_ref": "did_1", "months": 2, "acknowledged_total": 749.5}
    error = (await client.post(PURCHASE, body)).json()["error"]
    assert error["code"] == "QUOTE_STALE"
    assert error["details"]["total"] == 999.0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "live_ref"),
        ({"live_ref": ""}, "live_ref"),
        ({"live_ref": 5}, "live_ref"),
        ({"live_ref": "x", "months": 0}, "months"),
        ({"live_ref": "x", "months": 25}, "months"),
        ({"live_ref": "x", "months": 1.5}, "months"),
        ({"live_ref": "x", "acknowledged_total": -1}, "acknowledged_total"),
        ({"live_ref": "x", "acknowledged_total": 199.005}, "acknowledged_total"),
        ({"live_ref": "x", "acknowledged_total": "199"}, "acknowledged_total"),
        ({"live_ref": "x", "acknowledged_total": True}, "acknowledged_total"),
        ({"live_ref": "x", "friendly_name": ""}, "friendly_name"),
        ({"live_ref": "x", "number": "+911110000100"}, "number"),
    ],
)
async def test_wrong_fields_are_named(client: Client, body: Any, field: str) -> None:
    answer = await client.post(PURCHASE, body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert [error["field"] for error in answer.json()["error"]["details"]["errors"]] == [field]
