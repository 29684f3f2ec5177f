"""Call logs: what may be asked of them, and how an entry looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.api.client import Client
from tests.unit.api.fakes import CARRIER_SID, Fakes

LOGS = "/v1/trunk-portal/call-logs"


async def test_an_entry(client: Client) -> None:
    answer = await client.get(LOGS)
    assert (answer.status, answer.json()["meta"]["total"]) == (200, 1)
    (entry,) = answer.data
    assert (entry["from"], entry["answered"], entry["duration"]) == ("+918047000001", True, 61)
    assert entry["attempted_at"] == entry["terminated_at"] == "2026-01-31T12:00:00.123Z"
    assert (entry["trunk"], entry["remote_host"], entry["mos"]) == ("Own trunk", "192.0.2.1", 4.2)


async def test_filters(client: Client, fakes: Fakes) -> None:
    query = f"?start=2026-01-01&end=2026-01-31&direction=inbound&answered=false&carrier_sid={CARRIER_SID}"
    assert (await client.get(LOGS + query + "&filter=+9180&page=2&per_page=5")).status == 200
    (asked,) = fakes.call_logs.filters
    assert (asked.start, asked.end) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert (asked.direction, asked.answered, asked.carrier_sid) == ("inbound", False, CARRIER_SID)
    assert asked.text == "+9180"


@pytest.mark.parametrize(("query", "days"), [("", 30), ("?days=1", 1), ("?days=30", 30)])
async def test_the_last_days(client: Client, fakes: Fakes, query: str, days: int) -> None:
    assert (await client.get(LOGS + query)).status == 200
    (asked,) = fakes.call_logs.filters
    assert asked.end - asked.start == timedelta(days=days)
    assert timedelta(0) <= asked.end - datetime.now(UTC) + timedelta(minutes=1) <= timedelta(minutes=2)
    assert asked.end.second == 0


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?days=0", "days"),
        ("?days=31", "days"),
        ("?days=1&start=2026-01-01", "days"),
        ("?start=yesterday", "start"),
        ("?start=2026-01-02&end=2026-01-01", "end"),
        ("?start=2026-01-01&end=2026-02-01", "start"),
        ("?start=2020-01-01", "start"),
        ("?answered=perhaps", "answered"),
        ("?filter=", "filter"),
        ("?colour=red", "colour"),
    ],
)
async def test_what_may_not_be_asked(client: Client, query: str, field: str) -> None:
    answer = await client.get(LOGS + query)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert list(answer.fields) == [field]
