"""Call logs: what may be asked of them, and how an entry looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.models import CallStatus, Quality
from tests.support.api_facts import (
    ACCOUNT,
    CARRIER_SID,
    GATEWAY_HOST,
    GATEWAY_SID,
    MOMENT,
    NOWHERE,
    OTHER_CARRIER_SID,
    call,
)
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

LOGS = "/v1/trunk-portal/call-logs"


async def test_an_entry(client: Client, stage: ApiStage) -> None:
    answered = call(
        NOWHERE,
        status=CallStatus.COMPLETED,
        carrier_sid=CARRIER_SID,
        gateway_sid=GATEWAY_SID,
        answered_at=MOMENT,
        ended_at=MOMENT,
        duration_sec=61,
        quality=Quality(mos=4.2, codec="PCMA"),
    )
    await stage.add_call(answered)
    answer = await client.get(LOGS + "?start=2026-01-31&end=2026-01-31&answered=true")
    assert (answer.status, answer.json()["meta"]["total"]) == (200, 1)
    (entry,) = answer.data
    assert (entry["from"], entry["answered"], entry["duration"]) == ("+918047000001", True, 61)
    assert entry["attempted_at"] == entry["terminated_at"] == "2026-01-31T12:00:00.123Z"
    assert (entry["trunk"], entry["remote_host"], entry["mos"]) == ("Own trunk", GATEWAY_HOST, 4.2)
    for carrier in (OTHER_CARRIER_SID, ACCOUNT):
        found = await client.get(f"{LOGS}?start=2026-01-31&end=2026-01-31&carrier_sid={carrier}")
        assert (found.status, found.data) == (200, [])


@pytest.mark.parametrize(
    "span", ["start=2026-01-01&end=2026-01-31", "start_date=2026-01-01&end_date=2026-01-31"]
)
async def test_filters(client: Client, storage: Storage, span: str) -> None:
    lists = asked(storage.call_logs, "list")
    text = f"?{span}&direction=inbound&answered=false&carrier_sid={CARRIER_SID}"
    assert (await client.get(LOGS + text + "&filter=+9180&page=2&per_page=5")).status == 200
    ((account_sid, query, *_),) = lists
    assert account_sid == ACCOUNT
    assert (query.start, query.end) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert (query.direction, query.answered, query.carrier_sid) == ("inbound", False, CARRIER_SID)
    assert query.text == "+9180"


@pytest.mark.parametrize(
    "text",
    ["09800000777", "98000 00777", "+91-98000-00777", "919800000777", "tel:9800000777;phone-context=+91"]
    + ["00007", "98000 007", "0-00777", "ID 7-7@host"],
)
async def test_a_number_is_found_in_any_writing_and_by_its_parts(
    client: Client, stage: ApiStage, text: str
) -> None:
    await stage.add_call(call(NOWHERE, to="+919800000777", sip_call_id="id 7-7@host.example"))
    path = f"{LOGS}?start=2026-01-31&end=2026-01-31&filter={quote(text)}"
    assert [entry["to"] for entry in (await client.get(path)).data] == ["+919800000777"]


async def test_the_period_has_at_most_31_days(client: Client) -> None:
    for first in ("2026-10-25", "2026-10-24T23:59:59.999Z"):
        assert (await client.get(f"{LOGS}?start={first}&end=2026-11-24T23:59:59.999Z")).status == 200
    assert (await client.get(f"{LOGS}?start=2026-10-25&end=2026-11-24")).status == 200
    refused = await client.get(f"{LOGS}?start=2026-10-24&end=2026-11-24")
    assert refused.fields == {
        "start": "must be at most 31 days before end, whose whole day counts if it is a date"
    }


@pytest.mark.parametrize(("query", "days"), [("", 30), ("?days=1", 1), ("?days=30", 30)])
async def test_the_last_days(client: Client, storage: Storage, query: str, days: int) -> None:
    lists = asked(storage.call_logs, "list")
    assert (await client.get(LOGS + query)).status == 200
    ((_, wanted, *_),) = lists
    assert wanted.end - wanted.start == timedelta(days=days)
    assert timedelta(0) <= wanted.end - datetime.now(UTC) + timedelta(minutes=1) <= timedelta(minutes=2)
    assert wanted.end.second == 0


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?days=0", "days"),
        ("?days=31", "days"),
        ("?days=1&start=2026-01-01", "days"),
        ("?start=yesterday", "start"),
        ("?start=2026-01-01&start_date=2026-01-01", "start_date"),
        ("?end=2026-01-01&end_date=2026-01-02&start=2026-01-01", "end_date"),
        ("?start=2026-01-02&end=2026-01-01", "end"),
        ("?start=2026-01-01&end=2026-02-01", "start"),
        ("?start=2020-01-01", "start"),
        ("?answered=perhaps", "answered"),
        ("?filter=", "filter"),
        ("?carrier_sid=x", "carrier_sid"),
    ],
)
async def test_what_may_not_be_asked(client: Client, query: str, field: str) -> None:
    answer = await client.get(LOGS + query)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert list(answer.fields) == [field]
