"""Logs, statistics, billing and settings of masking over HTTP, before the domain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.clock import MILLISECOND
from callcontrol.masking.logs import MaskedCallFilter
from callcontrol.masking.sessions import MaskingSession
from callcontrol.masking.store import sessions
from callcontrol.webhooks.aio import subscriptions
from callcontrol.webhooks.aio.client import Answer
from tests.support.api_facts import ACCOUNT, MOMENT, NOWHERE, READER_KEY
from tests.support.api_stage import ApiStage, asked
from tests.support.api_webhooks import DELIVERY_ID, PENDING_ID, add_deliveries, answer_webhooks
from tests.support.masked_records import MASKED, masked_record, move, store
from tests.unit.api.client import Client

LOGS, STATS, SETTINGS = "/v1/masking/call-logs", "/v1/masking/stats", "/v1/masking/settings"
DAY = datetime(2026, 1, 31, tzinfo=UTC)
SECRET = "a long random text"
SESSION_ID = "01a2004e-7b5c-7d7e-8f0a-3f0e6f1c2d3b"


async def test_masked_calls_are_listed_with_their_total(client: Client, storage: Storage) -> None:
    records = [masked_record(ACCOUNT, MOMENT + timedelta(seconds=number)) for number in range(41)]
    await store(storage, records)
    lists = asked(storage.masking_logs, "list")
    answer = await client.get(f"{LOGS}?page=2&per_page=40")
    assert answer.status == 200
    assert [shown["id"] for shown in answer.data] == [records[0].call_sid]
    assert (answer.data[0]["target_number"], answer.data[0]["status"]) == ("9800000002", "initiated")
    meta = answer.json()["meta"]
    assert (meta["total"], meta["page"], meta["per_page"], meta["total_pages"]) == (41, 2, 40, 2)
    assert lists == [(ACCOUNT, MaskedCallFilter(), 2, 40)]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("status=b_ringing&direction=inbound", MaskedCallFilter(status="b_ringing", direction="inbound")),
        ("party=9812345678", MaskedCallFilter(party="+919812345678")),
        ("party=%2B919812345678", MaskedCallFilter(party="+919812345678")),
        ("party=+919812345678", MaskedCallFilter(party="+919812345678")),
        (f"session_id={SESSION_ID.upper()}", MaskedCallFilter(session_id=SESSION_ID)),
        (
            "start_date=2026-01-31&end_date=2026-01-31",
            MaskedCallFilter(start=DAY, end=DAY + timedelta(days=1)),
        ),
        (
            "start_date=2026-01-31T00:00:00Z&end_date=2026-01-31T05:30:00%2B05:30",
            MaskedCallFilter(start=DAY, end=DAY + MILLISECOND),
        ),
        ("end_date=9999-12-30", MaskedCallFilter(end=datetime(9999, 12, 31, tzinfo=UTC))),
    ],
)
async def test_filters_mean_what_they_say(
    client: Client, storage: Storage, query: str, wanted: MaskedCallFilter
) -> None:
    lists = asked(storage.masking_logs, "list")
    assert (await client.get(f"{LOGS}?{query}")).status == 200
    assert lists == [(ACCOUNT, wanted, 1, 20)]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("status=busy&direction=outbound&page=0&per_page=101", {"status", "direction", "page", "per_page"}),
        ("party=hello", {"party"}),
        ("session_id=", {"session_id"}),
        ("session_id=abc", {"session_id"}),
        ("start_date=yesterday&end_date=2026-13-01", {"start_date", "end_date"}),
        ("start_date=2026-02-01&end_date=2026-01-31", {"end_date"}),
        ("end_date=9999-12-31", {"end_date"}),
    ],
)
async def test_every_wrong_filter_is_named(
    client: Client, storage: Storage, query: str, named: set[str]
) -> None:
    lists = asked(storage.masking_logs, "list")
    answer = await client.get(f"{LOGS}?{query}")
    assert (answer.status, answer.code) == (400, "validation")
    assert answer.fields.keys() == named
    assert lists == []


async def add_usage(stage: ApiStage) -> None:
    """Add nine calls, of which six were answered, and three sessions, of which one is closed."""
    records = [masked_record(ACCOUNT, MOMENT) for _ in range(9)]
    for record in records[:4]:
        move(record, "completed", billed_s=75, price_paise=300)
    statuses = ("in-progress", "failed", "failed", "no-answer")
    for record, status in zip(records[4:8], statuses, strict=True):
        move(record, status)
    move(records[8], "completed", billed_s=50, price_paise=34)
    await store(stage.storage, records)
    for number in range(3):
        session = MaskingSession(
            session_id=new_id(),
            account_sid=ACCOUNT,
            party_a=f"+91981000000{number}",
            party_b=f"+91982000000{number}",
            masked_number=MASKED,
            expires_at=MOMENT + timedelta(days=36_500),
            created_at=MOMENT,
            updated_at=MOMENT,
            ended="closed" if number == 0 else None,
            ended_at=MOMENT if number == 0 else None,
        )
        await stage.write(partial(sessions.insert, session=session))


async def test_statistics_in_rupees_and_minutes(client: Client, stage: ApiStage) -> None:
    await add_usage(stage)
    windows = asked(stage.storage.masking_logs, "stats")
    answer = await client.get(f"{STATS}?start_date=2026-01-31&end_date=2026-01-31")
    assert answer.status == 200
    assert answer.data == {
        "period": {"start": "2026-01-31T00:00:00.000Z", "end": "2026-01-31T23:59:59.999Z"},
        "total_sessions": 3,
        "active_sessions": 2,
        "total_mappings": 6,
        "total_calls": 9,
        "answered_calls": 6,
        "failed_calls": 2,
        "no_answer_calls": 1,
        "in_progress_calls": 1,
        "total_minutes": 5.83,
        "total_cost": 12.34,
        "currency": "INR",
    }
    assert windows == [(ACCOUNT, DAY, DAY + timedelta(days=1))]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("start_date=2026-02-01&end_date=2026-01-31", {"end_date"}),
        ("start_date=9998-01-01", {"start_date"}),
        ("end_date=0001-01-02", {"end_date"}),
    ],
)
async def test_windows_that_are_none(client: Client, query: str, named: set[str]) -> None:
    answer = await client.get(f"{STATS}?{query}")
    assert (answer.status, answer.code) == (400, "validation")
    assert answer.fields.keys() == named


async def test_billing_is_the_wallet(client: Client) -> None:
    answer = await client.get("/v1/masking/billing")
    assert answer.status == 200
    assert answer.data.keys() == {"wallet_balance", "currency", "updated_at"}
    assert (answer.data["wallet_balance"], answer.data["currency"]) == (1000.5, "INR")


async def test_settings_are_changed_one_by_one_and_never_show_the_secret(
    client: Client, storage: Storage
) -> None:
    changes = asked(storage.masking_settings, "update")
    assert (await client.get(SETTINGS)).data == {
        "webhook_url": None,
        "has_webhook_secret": False,
        "webhook_active": True,
        "routing_url": None,
        "record_calls": True,
        "updated_at": None,
    }
    url = "https://app.example.com/masking"
    answer = await client.patch(SETTINGS, {"webhook_url": url, "webhook_secret": SECRET})
    assert answer.status == 200 and SECRET not in answer.body.decode()
    assert (answer.data["webhook_url"], answer.data["has_webhook_secret"]) == (url, True)
    changed = await client.patch(SETTINGS, {"record_calls": False, "webhook_secret": None})
    assert (changed.data["record_calls"], changed.data["has_webhook_secret"]) == (False, False)
    assert changes == [
        (ACCOUNT, {"webhook_url": url, "webhook_secret": SECRET}),
        (ACCOUNT, {"record_calls": False, "webhook_secret": None}),
    ]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (
            {"webhook_url": "nowhere", "webhook_secret": "short", "record_calls": "yes", "colour": "red"},
            {"webhook_url", "webhook_secret", "record_calls", "colour"},
        ),
        ({"routing_url": "ftp://app.example.com/"}, {"routing_url"}),
        ({"record_calls": None, "webhook_active": None}, {"record_calls", "webhook_active"}),
    ],
)
async def test_every_wrong_setting_is_named(
    client: Client, storage: Storage, body: dict[str, Any], named: set[str]
) -> None:
    changes = asked(storage.masking_settings, "update")
    answer = await client.patch(SETTINGS, body)
    assert (answer.status, answer.code) == (400, "validation")
    assert answer.fields.keys() == named
    assert changes == []


async def test_a_key_for_reading_changes_no_setting(client: Client, storage: Storage) -> None:
    changes = asked(storage.masking_settings, "update")
    assert (await client.patch(SETTINGS, {"record_calls": True}, key=READER_KEY)).status == 403
    assert changes == []


WEBHOOK = f"{SETTINGS}/webhook"


async def test_the_webhook_is_tested_and_its_log_shown(
    client: Client, stage: ApiStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = {"webhook_url": "https://app.example.com/masking"}
    settings = await stage.storage.masking_settings.update(ACCOUNT, change)
    assert settings.subscription_id is not None
    await add_deliveries(stage, settings.subscription_id, "masking.call.completed", failed=3)
    logs = asked(stage.storage.masking_webhooks, "deliveries")
    answer_webhooks(stage, Answer(204))
    tested = await client.post(f"{WEBHOOK}/test", {})
    assert (tested.status, tested.data) == (200, {"success": True, "status_code": 204, "error": ""})
    shown = await client.get(f"{WEBHOOK}/deliveries?limit=4")
    assert [entry["id"] for entry in shown.data][::3] == [DELIVERY_ID, PENDING_ID]
    assert logs == [(ACCOUNT, settings.subscription_id, 4)]
    replayed = await client.post(f"{WEBHOOK}/deliveries/{DELIVERY_ID}/replay", {})
    assert (replayed.status, replayed.data) == (200, {"replayed": 1})
    assert (await client.post(f"{WEBHOOK}/deliveries/{NOWHERE}/replay", {})).code == "not_found"
    monkeypatch.setattr(subscriptions, "MAX_REPLAYED", 1)
    many = await client.post(f"{WEBHOOK}/deliveries/replay", {"since": "2026-01-01T00:00:00Z"})
    assert (many.status, many.data) == (200, {"replayed": 1, "truncated": True})
    refused = await client.post(f"{WEBHOOK}/deliveries/replay", {"status": "delivered"})
    assert (refused.status, refused.code) == (400, "validation")
    assert refused.fields.keys() == {"status"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "test"),
        ("GET", "deliveries"),
        ("POST", f"deliveries/{DELIVERY_ID}/replay"),
        ("POST", "deliveries/replay"),
    ],
)
async def test_without_a_webhook_there_is_nothing_to_test_or_replay(
    client: Client, method: str, path: str
) -> None:
    answer = await (
        client.get(f"{WEBHOOK}/{path}") if method == "GET" else client.post(f"{WEBHOOK}/{path}", {})
    )
    assert (answer.status, answer.code) == (404, "not_found")
