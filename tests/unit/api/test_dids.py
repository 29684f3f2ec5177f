"""Searching and buying numbers."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.errors import (
    DomainError,
    InsufficientBalance,
    KycRequired,
    NotFound,
    NumberTaken,
    QuoteStale,
    ServiceUnavailable,
)
from callcontrol.numbers.inventory import ListingFilter
from callcontrol.numbers.orders import PurchaseRequest, stale
from tests.unit.api.client import Client
from tests.unit.api.fakes import NUMBER_ID, Fakes

PURCHASE = "/v1/dids/purchase-live"


async def test_a_search_shows_what_is_for_sale(client: Client, fakes: Fakes) -> None:
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
    assert fakes.market.searches == [ListingFilter("Delhi", "local", "100")]
    assert (await client.get("/v1/dids/available?contains=abc")).status == 400


async def test_a_purchase_answers_exactly_its_fields(client: Client, fakes: Fakes) -> None:
    body = {"live_ref": "did_1", "friendly_name": "Sales", "months": 3, "acknowledged_total": 1248.50}
    answer = await client.post(PURCHASE, body)
    assert (answer.status, answer.data) == (
        201,
        {
            "phone_number_id": NUMBER_ID,
            "number": "+911110000100",
            "total_charged": 1248.5,
            "currency": "INR",
            "new_wallet_balance": 100.5,
            "next_billing_at": "2026-01-31T12:00:00.123Z",
        },
    )
    assert fakes.market.requests == [
        PurchaseRequest(live_ref="did_1", friendly_name="Sales", months=3, acknowledged_paise=124_850)
    ]


async def test_one_month_is_bought_unless_said(client: Client, fakes: Fakes) -> None:
    await client.post(PURCHASE, {"live_ref": "did_1"})
    assert fakes.market.requests == [PurchaseRequest(live_ref="did_1")]


async def test_a_repeated_purchase_is_one(client: Client, fakes: Fakes) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await client.post(PURCHASE, {"live_ref": "did_1"}, headers=headers)
    again = await client.post(PURCHASE, {"live_ref": "did_1"}, headers=headers)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(fakes.market.requests) == 1


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (KycRequired("x"), 403, "KYC_REQUIRED"),
        (InsufficientBalance("x"), 402, "INSUFFICIENT_BALANCE"),
        (NotFound("x"), 404, "NOT_FOUND"),
        (NumberTaken("x"), 409, "NUMBER_NOT_OWNED"),
        (QuoteStale("x"), 409, "QUOTE_STALE"),
        (ServiceUnavailable("x"), 503, "SERVICE_UNAVAILABLE"),
    ],
)
async def test_refusals(client: Client, fakes: Fakes, failure: DomainError, status: int, code: str) -> None:
    fakes.market.failure = failure
    answer = await client.post(PURCHASE, {"live_ref": "did_1"})
    assert (answer.status, answer.code) == (status, code)


async def test_a_stale_quote_says_the_new_price(client: Client, fakes: Fakes) -> None:
    fakes.market.failure = stale(fakes.market.listing, 2)
    error = (await client.post(PURCHASE, {"live_ref": "did_1"})).json()["error"]
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
