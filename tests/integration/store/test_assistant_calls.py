"""Calls with voice agents listed and added up, over a real database, written as calls are."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id
from callcontrol.assistant import store as assistant_calls
from callcontrol.assistant.aio.service import AssistantService
from callcontrol.assistant.analytics import AnalyticsQuery, AssistantCallFilter, analytics_object
from callcontrol.assistant.calls import PRODUCT, assistant_details, status_of
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.assistant import assistant_calls as table
from callcontrol.models import Account, CallRecord, CallStatus
from tests.support.domain import CALLEE, new_record
from tests.support.query_plans import plans

START = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 5
AGENTS = (new_id(), new_id())
ENDS = (CallStatus.COMPLETED, CallStatus.FAILED, CallStatus.BUSY, CallStatus.NO_ANSWER, CallStatus.CANCELED)


def service(storage: Storage) -> AssistantService:
    no_calls: Any = None  # Nothing is placed or looked up.
    return AssistantService(
        storage.database,
        storage.writer,
        no_calls,
        storage.agents,
        storage.transcripts,
        {"IN"},
        lambda: None,
    )


async def some_calls(storage: Storage, account: Account, count: int) -> list[CallRecord]:
    """Calls of every kind, written as calls are; a few are still up."""
    chance = random.Random(4711)
    made = []
    for _ in range(count):
        at = START + timedelta(microseconds=chance.randrange(DAYS * 86_400_000_000))
        record = new_record(
            account.account_sid,
            created_at=at,
            direction=chance.choice(("inbound", "outbound")),
            product=PRODUCT,
            details=assistant_details(
                chance.choice(AGENTS),
                language="en-IN",
                sandbox_carrier=chance.choice((None, None, "sandbox")),
            ),
        )
        await storage.calls.insert(record)
        made.append(record)
        if chance.random() < 0.1:
            continue
        record.status = chance.choice(ENDS)
        record.ended_at = at + timedelta(seconds=40)
        price_paise = 0
        if record.status is CallStatus.COMPLETED:
            record.answered_at = at + timedelta(seconds=4)
            record.duration_sec, price_paise = chance.randrange(1, 3000), chance.randrange(500)
            record.answered_by = chance.choice((None, "human", "machine"))
        storage.calls.finish(record, charge_paise=price_paise)
    await storage.calls.flush()
    return made


def naive(made: list[CallRecord], query: AnalyticsQuery) -> dict[str, int]:
    """A count that is as plain as can be."""
    found = [
        record
        for record in made
        if query.start <= record.created_at < query.end
        and bool((record.details or {})["sandbox"]) == query.sandbox
        and query.agent_id in (None, (record.details or {})["agent_id"])
    ]
    statuses: list[str] = [status_of(record.status, record.answered_by) for record in found]
    return {
        "total_calls": len(found),
        "in_progress_calls": sum(not record.status.ended for record in found),
        **{
            f"{name}_calls": statuses.count(status)
            for name, status in (
                ("completed", "completed"),
                ("failed", "failed"),
                ("no_answer", "no-answer"),
                ("busy", "busy"),
                ("voicemail", "voicemail"),
            )
        },
        "seconds": sum(record.duration_sec or 0 for record in found),
    }


async def test_analytics_are_those_of_a_plain_count(storage: Storage, account: Account) -> None:
    made = await some_calls(storage, account, 150)
    chance = random.Random(1)
    for _ in range(25):
        first, last = sorted(chance.sample(range(DAYS * 24 * 60), 2))
        start, end = START + timedelta(minutes=first), START + timedelta(minutes=last)
        agent_id, sandbox = chance.choice((None, *AGENTS)), chance.random() < 0.3
        query, counts = await service(storage).analytics(
            account.account_sid, start, end, agent_id=agent_id, sandbox=sandbox
        )
        shown = analytics_object(query, counts, "INR")
        wanted = naive(made, query)
        assert {name: shown[name] for name in wanted if name != "seconds"} == {
            name: value for name, value in wanted.items() if name != "seconds"
        }
        assert shown["total_minutes"] == round(wanted["seconds"] / 60, 2)
        assert sum(day["total_calls"] for day in shown["by_day"]) == shown["total_calls"]
        for day in shown["by_day"]:
            at = datetime.fromisoformat(day["date"]).replace(tzinfo=UTC)
            of_day = AnalyticsQuery(
                start=max(at, start),
                end=min(at + timedelta(days=1), end),
                agent_id=agent_id,
                sandbox=sandbox,
            )
            assert day["total_calls"] == naive(made, of_day)["total_calls"]


async def test_lists_are_narrowed_by_all_that_may_be_asked(storage: Storage, account: Account) -> None:
    made = await some_calls(storage, account, 60)
    made.sort(key=lambda record: (record.created_at, record.call_sid), reverse=True)
    asked = (
        AssistantCallFilter(),
        AssistantCallFilter(agent_id=AGENTS[0]),
        AssistantCallFilter(status="voicemail"),
        AssistantCallFilter(status="queued"),
        AssistantCallFilter(status="no-answer", agent_id=AGENTS[1], direction="inbound"),
        AssistantCallFilter(sandbox=True),
        AssistantCallFilter(sandbox=False, phone_number=CALLEE),
        AssistantCallFilter(start=START + timedelta(days=1), end=START + timedelta(days=2)),
    )
    for query in asked:
        page = await service(storage).list_calls(account.account_sid, query, 1, 100)
        wanted = [record.call_sid for record in made if _meets(record, query)]
        assert [record.call_sid for record in page.items] == wanted, query
        assert page.total == len(wanted)


def _meets(record: CallRecord, query: AssistantCallFilter) -> bool:
    details = record.details or {}
    party = record.to if record.direction == "outbound" else record.from_
    return (
        query.status in (None, status_of(record.status, record.answered_by))
        and query.direction in (None, record.direction)
        and query.agent_id in (None, details["agent_id"])
        and query.phone_number in (None, party)
        and query.sandbox in (None, bool(details["sandbox"]))
        and (query.start is None or record.created_at >= query.start)
        and (query.end is None or record.created_at < query.end)
    )


async def test_a_call_without_an_agent_has_no_row(storage: Storage, account: Account) -> None:
    plain = new_record(account.account_sid)
    await storage.calls.insert(plain)
    plain.status, plain.ended_at = CallStatus.COMPLETED, plain.created_at
    storage.calls.finish(plain)
    await storage.calls.flush()
    count = sa.select(sa.func.count()).select_from(table)
    assert await storage.database.read(lambda connection: connection.scalar(count)) == 0


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("agent_id", "index"), [(None, "list"), (AGENTS[0], "agent")], ids=("all", "one"))
async def test_days_are_added_up_from_an_index_alone(
    storage: Storage, agent_id: str | None, index: str
) -> None:
    query = AnalyticsQuery(start=START, end=START + timedelta(days=DAYS), agent_id=agent_id)
    said = await storage.database.read(
        plans(lambda connection: assistant_calls.day_counts(connection, "a", query))
    )
    assert any(f"USING COVERING INDEX ix_assistant_calls_{index}" in step for step in said), said
