"""The wallet and the ledger over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from api.schemas.wallet import wallet_json
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.statements import to_micros
from callcontrol.models import LedgerFilter, Position, Wallet
from callcontrol.wallet.money import hour_of
from tests.support.api_facts import ACCOUNT, ENDED_SID, MOMENT
from tests.support.api_stage import asked
from tests.unit.api.client import Client


async def test_the_wallet_in_rupees(client: Client, storage: Storage) -> None:
    await storage.accounts.update(ACCOUNT, {"max_spend_paise_per_hour": 50_000})
    answer = await client.get("/v1/wallet")
    assert answer.status == 200
    shown = answer.data
    assert {name: shown[name] for name in ("balance", "reserved", "available", "currency")} == {
        "balance": 1000.5,
        "reserved": 3.0,
        "available": 997.5,
        "currency": "INR",
    }
    assert (shown["spent_this_hour"], shown["spend_limit_per_hour"]) == (0.0, 500.0)


def test_what_was_spent_counts_until_its_hour_is_over() -> None:
    now = datetime(2026, 8, 1, 10, 59, 59, tzinfo=UTC)
    wallet = Wallet(ACCOUNT, 100, 0, MOMENT, spent_hour=hour_of(now), spent_paise=60)
    shown = wallet_json(wallet, None, now)
    assert (shown["spent_this_hour"], shown["spend_limit_per_hour"]) == (0.6, None)
    assert shown["spend_resets_at"] == "2026-08-01T11:00:00.000Z"
    assert wallet_json(wallet, None, now + timedelta(seconds=1))["spent_this_hour"] == 0.0


async def test_the_ledger_by_page_and_by_cursor(client: Client, storage: Storage) -> None:
    lists = asked(storage.wallet, "ledger")
    answer = await client.get("/v1/wallet/ledger")
    assert [(entry["id"], entry["amount"]) for entry in answer.data] == [(2, -0.6), (1, 1001.1)]
    assert answer.data[0]["call_sid"] == ENDED_SID
    found = await client.get("/v1/wallet/ledger?kind=charge&start_date=2026-01-01&end_date=2026-01-31")
    assert [entry["id"] for entry in found.data] == [2]
    span = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert lists[-1][3:] == (LedgerFilter("charge", *span), None)
    cursor = (await client.get("/v1/wallet/ledger?per_page=1")).json()["meta"]["next_cursor"]
    later = await client.get(f"/v1/wallet/ledger?cursor={cursor}")
    assert (later.status, [entry["id"] for entry in later.data]) == (200, [1])
    assert lists[-1][3:] == (LedgerFilter(), Position(to_micros(MOMENT), "2"))


@pytest.mark.parametrize("cut", range(1, 4))
async def test_a_cursor_belongs_to_its_list_whole(client: Client, cut: int) -> None:
    cursor = (await client.get("/v1/wallet/ledger?per_page=1")).json()["meta"]["next_cursor"]
    calls = (await client.get("/v1/calls?per_page=1")).json()["meta"]["next_cursor"]
    assert (await client.get(f"/v1/calls?cursor={calls}")).status == 200
    for path, foreign in (
        ("/v1/wallet/ledger", calls),
        ("/v1/calls", cursor),
        ("/v1/calls", calls[:-cut]),
        ("/v1/wallet/ledger", cursor[:-cut]),
    ):
        answer = await client.get(f"{path}?cursor={foreign}")
        assert (answer.status, set(answer.fields)) == (400, {"cursor"}), (path, foreign)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("kind=Charge!", ["kind"]),
        ("start_date=x", ["start_date"]),
        ("cursor=MTo1OmFiYw", ["cursor"]),
        ("kind=zzz", ["kind"]),
        ("page=2&cursor=MTo1OjI", ["page", "cursor"]),
        ("cursor=MTo1OjI", ["cursor"]),
    ],
)
async def test_queries_that_are_wrong(client: Client, query: str, fields: list[str]) -> None:
    answer = await client.get(f"/v1/wallet/ledger?{query}")
    assert (answer.status, answer.code, list(answer.fields)) == (400, "VALIDATION_ERROR", fields)
