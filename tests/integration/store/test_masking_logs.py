"""Masked calls listed and added up, over a real database and the way that calls write their records."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.charges import Rates
from callcontrol.calls.hangup_cause import CRASH
from callcontrol.calls.records.end import close_record
from callcontrol.clock import MILLISECOND
from callcontrol.database.tables.masking import masked_calls as table
from callcontrol.errors import InsufficientBalance, ValidationFailed
from callcontrol.masking.calls import ENDED, MaskedStatus
from callcontrol.masking.logs import MaskedCallCounts, MaskedCallFilter
from callcontrol.masking.sessions import SessionCounts, SessionRequest
from callcontrol.masking.store import calls as masked_calls
from callcontrol.models import Account, CallRecord, Position
from tests.support.customers import add_platform_carrier
from tests.support.examples import examples
from tests.support.masked_records import masked_record, move, some_records, store
from tests.support.query_plans import plans

START = datetime(2026, 8, 1, tzinfo=UTC)
PARTIES = ("+919800000001", "+919800000002", "+919800000003")
STATUSES: tuple[MaskedStatus, ...] = (
    "initiated",
    "b_ringing",
    "in-progress",
    "completed",
    "failed",
    "no-answer",
)


async def rows(storage: Storage) -> dict[str, dict[str, Any]]:
    """Return the rows of lists, by call."""

    def read(connection: Connection) -> dict[str, dict[str, Any]]:
        return {row["call_sid"]: dict(row) for row in connection.execute(sa.select(table)).mappings()}

    await storage.calls.flush()
    return await storage.database.read(read)


async def test_the_row_follows_the_record_through_the_call(storage: Storage, account: Account) -> None:
    record = masked_record(account.account_sid, START)
    await storage.calls.insert(record, reserve_paise=500)
    seen = []
    for status in ("a_ringing", "b_ringing", "in-progress"):
        move(record, status)
        storage.calls.update(record)
        row = (await rows(storage))[record.call_sid]
        seen.append((row["status"], row["outcome"], row["connected"], row["bill_duration_sec"]))
    assert seen == [(s, None, False, None) for s in ("a_ringing", "b_ringing", "in-progress")]
    move(record, "completed", billed_s=120)
    storage.calls.finish(record, charge_paise=240)
    row = (await rows(storage))[record.call_sid]
    assert (row["status"], row["outcome"], row["connected"]) == ("completed", "completed", True)
    assert (row["bill_duration_sec"], row["price_paise"]) == (120, 240)


async def test_the_other_party_and_the_session_may_become_known_later(
    storage: Storage, account: Account
) -> None:
    record = masked_record(account.account_sid, START, direction="inbound", target=None)
    await storage.calls.insert(record)
    assert record.details is not None
    record.details = {
        **record.details,
        "target_number": PARTIES[2],
        "session_id": "s1",
        "status": "b_ringing",
    }
    storage.calls.update(record)
    row = (await rows(storage))[record.call_sid]
    assert (row["target_number"], row["session_id"], row["status"]) == (PARTIES[2], "s1", "b_ringing")
    found = await storage.masking_logs.list(account.account_sid, MaskedCallFilter(party=PARTIES[2]))
    assert [call.call_sid for call in found.items] == [record.call_sid]


async def test_calls_of_other_products_and_of_nobody_leave_no_row(storage: Storage, account: Account) -> None:
    plain = masked_record(account.account_sid, START)
    plain.product = plain.details = None
    await storage.calls.insert(plain)
    storage.calls.update(plain)
    refused = masked_record(account.account_sid, START)
    with pytest.raises(InsufficientBalance):
        await storage.calls.insert(refused, reserve_paise=100_001)
    assert await rows(storage) == {}


@pytest.mark.parametrize("connected", [False, True])
async def test_a_call_that_a_killed_process_left_has_an_end(
    storage: Storage, account: Account, connected: bool
) -> None:
    """Even if nobody had said so in what is kept of masking."""
    record = masked_record(account.account_sid, START)
    move(record, "in-progress" if connected else "b_ringing")
    await storage.calls.insert(record)
    record.answered_at = START
    storage.calls.finish(record, charge_paise=close_record(record, CRASH, Rates(), PRODUCTS.of(record)))
    row = (await rows(storage))[record.call_sid]
    assert row["outcome"] == ("completed" if connected else "failed")
    assert (row["status"], row["connected"]) == (row["outcome"], connected)


async def test_a_defect_of_what_is_kept_costs_no_other_call_its_row(
    storage: Storage, account: Account
) -> None:
    bare, whole = (masked_record(account.account_sid, START) for _ in range(2))
    bare.details = None
    for record in (bare, whole):
        await storage.calls.insert(record)
        storage.calls.update(record)
    found = await rows(storage)
    assert (found[bare.call_sid]["status"], found[whole.call_sid]["caller_number"]) == (
        "initiated",
        PARTIES[0],
    )


def matches(call: CallRecord, query: MaskedCallFilter) -> bool:
    """Return True if a call matches a filter, in plain Python."""
    details = call.details or {}
    return (
        query.status in (None, details["status"])
        and query.direction in (None, details["direction"])
        and query.session_id in (None, details["session_id"])
        and (query.party is None or query.party in (details["caller_number"], details["target_number"]))
        and (query.start is None or call.created_at >= query.start)
        and (query.end is None or call.created_at < query.end)
    )


def filters(seed: int) -> list[MaskedCallFilter]:
    """Each filter alone, and many together."""
    chance = random.Random(seed)
    some = [MaskedCallFilter(), *(MaskedCallFilter(status=status) for status in STATUSES)]
    some += [MaskedCallFilter(direction="inbound"), MaskedCallFilter(session_id="s1")]
    some += [MaskedCallFilter(party=party) for party in (*PARTIES, "+919800000009")]
    for _ in range(30):
        start = START + timedelta(seconds=chance.randrange(20))
        some.append(
            MaskedCallFilter(
                status=chance.choice((None, None, *STATUSES)),
                direction=chance.choice((None, "inbound", "click_to_call")),
                party=chance.choice((None, *PARTIES)),
                session_id=chance.choice((None, None, None, "s1")),
                start=chance.choice((None, start)),
                end=chance.choice((None, start + timedelta(seconds=chance.randrange(10)))),
            )
        )
    return some


async def test_every_filter_gives_what_it_means_on_every_page(
    storage: Storage, account: Account, stranger: Account
) -> None:
    chance = random.Random(3)
    made = some_records(account.account_sid, 120, chance, START, 20, PARTIES)
    await store(storage, [*made, *some_records(stranger.account_sid, 20, chance, START, 20, PARTIES)])
    made.sort(key=lambda call: (call.created_at, call.call_sid), reverse=True)
    for query in filters(seed=4):
        expected = [call.call_sid for call in made if matches(call, query)]
        paged: list[str] = []
        for number in range(1, 20):
            page = await storage.masking_logs.list(account.account_sid, query, number, 7)
            paged += [call.call_sid for call in page.items]
            assert page.total == len(expected), query
        assert paged == expected, query


async def test_a_total_that_was_counted_before_is_exact_still(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    old = some_records(sid, 40, random.Random(5), START, 20, PARTIES)
    await store(storage, old)
    asked = [MaskedCallFilter(party=PARTIES[0]), MaskedCallFilter(status="completed")]
    before = [sum(matches(call, query) for call in old) for query in asked]
    for more in range(3):
        found = [(await storage.masking_logs.list(sid, query)).total for query in asked]
        assert found == [number + more for number in before]
        record = masked_record(sid, utc_now(), caller=PARTIES[1], target=PARTIES[0])
        await storage.calls.insert(record)
        move(record, "completed", billed_s=60)
        storage.calls.finish(record)


def naive(calls: list[CallRecord], start: datetime, end: datetime) -> MaskedCallCounts:
    """The statistics, counted the plain way."""
    inside = [call for call in calls if start <= call.created_at < end]
    details = [call.details or {} for call in inside]
    statuses = [one["status"] for one in details]
    return MaskedCallCounts(
        total=len(inside),
        answered=sum(one["bridged_at"] is not None for one in details),
        failed=statuses.count("failed"),
        no_answer=statuses.count("no-answer"),
        in_progress=sum(status not in ENDED for status in statuses),
        bill_duration_sec=sum(one["bill_duration_sec"] or 0 for one in details),
        cost_paise=sum(call.price_paise or 0 for call in inside),
    )


SECONDS = st.integers(min_value=0, max_value=4)
MOMENTS = st.tuples(SECONDS, st.sampled_from((0, 1, 999_999))).map(
    lambda at: START + timedelta(seconds=at[0], microseconds=at[1])
)
CALLS = st.lists(
    st.tuples(
        MOMENTS,
        st.sampled_from(STATUSES),
        st.booleans(),
        st.integers(min_value=0, max_value=5),
        st.integers(min_value=0, max_value=300),
    ),
    max_size=8,
)


@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(calls=CALLS, ends=st.lists(MOMENTS, min_size=2, max_size=2, unique=True).map(sorted))
async def test_statistics_are_what_a_naive_count_says(
    storage: Storage, calls: list[tuple[datetime, str, bool, int, int]], ends: list[datetime]
) -> None:
    account, _ = await storage.accounts.create("Acme", balance_paise=100_000)
    made = []
    for at, status, connected, pulses, charge_paise in calls:
        record = masked_record(account.account_sid, at)
        made.append(record)
        await storage.calls.insert(record, reserve_paise=charge_paise)
        if connected and status not in ("initiated", "b_ringing"):
            move(record, "in-progress")
            storage.calls.update(record)
        move(record, status, billed_s=60 * pulses)
        if status in ENDED:
            storage.calls.finish(record, charge_paise=charge_paise)
        else:
            storage.calls.update(record)
    found = await storage.masking_logs.stats(account.account_sid, *ends)
    assert found.calls == naive(made, *ends)
    balance = await storage.wallet.balance(account.account_sid)
    everything = await storage.masking_logs.stats(account.account_sid, START, START + timedelta(days=1))
    assert balance == 100_000 - everything.calls.cost_paise


async def test_statistics_are_of_the_last_thirty_days(storage: Storage, account: Account) -> None:
    now = utc_now()
    ages = (timedelta(), timedelta(days=29, hours=23), timedelta(days=30, minutes=1))
    await store(storage, [masked_record(account.account_sid, now - age) for age in ages])
    found = await storage.masking_logs.stats(account.account_sid, None, None)
    assert found.calls.total == 2
    assert found.end - found.start == timedelta(days=30) + MILLISECOND
    until = await storage.masking_logs.stats(account.account_sid, None, now - timedelta(days=1))
    assert until.calls.total == 2  # with the oldest, without the newest
    with pytest.raises(ValidationFailed):
        await storage.masking_logs.stats(account.account_sid, now, now - timedelta(microseconds=1))


async def test_calls_written_together_are_listed_together(storage: Storage, account: Account) -> None:
    """Many calls at once, as they are written: each is in the list as soon as it has been taken."""
    records = [masked_record(account.account_sid, utc_now()) for _ in range(30)]

    async def place(record: CallRecord) -> None:
        await storage.calls.insert(record)
        for status in ("a_ringing", "in-progress", "completed"):
            move(record, status, billed_s=60)
            storage.calls.update(record)
            await asyncio.sleep(0)

    await asyncio.gather(*(place(record) for record in records))
    page = await storage.masking_logs.list(account.account_sid, MaskedCallFilter(status="completed"), 1, 100)
    assert page.total == len(page.items) == 30


@pytest.mark.parametrize(
    ("query", "indexes"),
    [
        (MaskedCallFilter(), {"list"}),
        (MaskedCallFilter(start=START, end=START + timedelta(days=1)), {"list"}),
        (MaskedCallFilter(direction="inbound"), {"direction"}),
        (MaskedCallFilter(party=PARTIES[0]), {"caller", "target"}),
        (MaskedCallFilter(party=PARTIES[0], start=START), {"caller", "target"}),
        (MaskedCallFilter(session_id="s1"), {"session"}),
        (MaskedCallFilter(status="no-answer"), {"outcome"}),
        (MaskedCallFilter(status="in-progress"), {"live"}),
        (MaskedCallFilter(status="in-progress", party=PARTIES[0], direction="inbound"), {"live"}),
        (MaskedCallFilter(status="completed", party=PARTIES[0]), {"caller", "target"}),
        (MaskedCallFilter(status="completed", party=PARTIES[0], direction="inbound"), {"caller", "target"}),
        (MaskedCallFilter(status="completed", party=PARTIES[0], session_id="s1"), {"session"}),
    ],
)
async def test_each_filter_is_answered_from_its_index(
    tmp_path: Path, query: MaskedCallFilter, indexes: set[str]
) -> None:
    """The plans of SQLite, which do not depend on how much is in the table."""
    storage = await Storage.open(f"sqlite:///{tmp_path / 'plans.db'}", deliver=False)
    listing = masked_calls.LISTING
    span = listing.between(
        *(None if moment is None else int(moment.timestamp() * 1e6) for moment in (query.start, query.end))
    )
    conditions = [*masked_calls.conditions("a", query), *span]
    place = Position(int(START.timestamp() * 1e6), "x")
    alone = (
        sum(getattr(query, name) is not None for name in ("status", "party", "session_id", "direction")) < 2
    )
    runs: tuple[Callable[[Connection], object], ...] = (
        lambda connection: listing.count(connection, conditions),
        lambda connection: listing.page(connection, conditions, offset=0, limit=20, total=100),
        lambda connection: listing.page(connection, conditions, offset=70, limit=20, total=100),
        lambda connection: listing.after(connection, conditions, place, limit=20),
    )
    for number, run in enumerate(runs):
        said = await storage.database.read(plans(run))
        searches = [step for step in said if "USING" in step]
        used = {step.split(" INDEX ix_masked_calls_")[1].split(" ")[0] for step in searches}
        # What is not narrowed can be counted by any index.
        assert used == indexes or (number == 0 and query == MaskedCallFilter()), said
        assert not any("TEMP B-TREE" in step or "SCAN" in step for step in said), said
        if alone and indexes != {"live"}:
            assert all("USING COVERING INDEX" in step for step in searches), said
    await storage.close()


async def test_statistics_are_answered_from_an_index(tmp_path: Path) -> None:
    storage = await Storage.open(f"sqlite:///{tmp_path / 'plans.db'}", deliver=False)
    said = await storage.database.read(
        plans(lambda connection: masked_calls.counts(connection, "a", START, START + timedelta(days=30)))
    )
    assert "USING COVERING INDEX ix_masked_calls_list" in said[0], said
    assert "ix_masked_calls_live" in said[1], said
    await storage.close()


async def test_a_row_is_taken_back_with_its_call(storage: Storage, account: Account) -> None:
    record = masked_record(account.account_sid, START)
    record.call_sid = new_id()
    await store(storage, [record])
    await storage.database.write(lambda connection: masked_calls.ROWS.delete(connection, record.call_sid))
    assert await rows(storage) == {}


async def test_sessions_are_counted_by_when_they_were_created(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    await add_platform_carrier(storage)
    await storage.numbers.add(sid, "+918047550001")
    await storage.masking_numbers.enrol(sid, "+918047550001")
    before = utc_now()
    first = await storage.masking_sessions.create(sid, SessionRequest(party_a=PARTIES[0], party_b=PARTIES[1]))
    await storage.masking_sessions.close(sid, first.session_id)
    again = await storage.masking_sessions.create(sid, SessionRequest(party_a=PARTIES[0], party_b=PARTIES[1]))
    found = await storage.masking_logs.stats(sid, None, None)
    assert found.sessions == SessionCounts(total=2, active=1, mappings=4)
    exactly = await storage.masking_logs.stats(sid, again.created_at, again.created_at + MILLISECOND)
    assert exactly.sessions == SessionCounts(total=1, active=1, mappings=2)
    earlier = await storage.masking_logs.stats(sid, None, before - timedelta(seconds=1))
    assert earlier.sessions == SessionCounts(total=0, active=0, mappings=0)
