"""Lists of calls and of the ledger: every filter, any depth, exact totals, whatever the way to page."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.records.store import calls
from callcontrol.calls.records.store import lists as call_lists
from callcontrol.database.listing import Listing
from callcontrol.models import (
    Account,
    CallFilter,
    CallRecord,
    CallStatus,
    LedgerFilter,
    Page,
    Position,
    Quality,
)
from callcontrol.wallet.store import ledger, reserves
from tests.support.query_plans import plans

START = datetime(2026, 8, 1, tzinfo=UTC)
NUMBERS = ("+918047491801", "+918047491802", "+919800000001")
STATUSES = (CallStatus.COMPLETED, CallStatus.BUSY, CallStatus.RINGING, CallStatus.IN_PROGRESS)


def make_calls(account_sid: str, count: int, seed: int) -> list[CallRecord]:
    """Calls in few moments, numbers and statuses, so that every filter and every tie occurs."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        at = START + timedelta(seconds=chance.randrange(40))
        call = CallRecord(
            call_sid=new_id(),
            account_sid=account_sid,
            direction=chance.choice(("inbound", "outbound")),
            from_=chance.choice(NUMBERS),
            to=chance.choice(NUMBERS),
            created_at=at,
            status=chance.choice(STATUSES),
        )
        call.ended_at = at if call.status.ended else None
        made.append(call)
    return made


async def store(storage: Storage, made: list[CallRecord]) -> None:
    def insert(connection: Connection) -> None:
        for call in made:
            calls.insert(connection, [calls.row_of(call)])

    await storage.database.write(insert)


def matches(call: CallRecord, query: CallFilter) -> bool:
    """Return True if a call matches a filter, in plain Python."""
    return (
        query.status in (None, call.status)
        and query.direction in (None, call.direction)
        and query.from_ in (None, call.from_)
        and query.to in (None, call.to)
        and (query.start is None or call.created_at >= query.start)
        and (query.end is None or call.created_at < query.end)
    )


def filters(seed: int) -> list[CallFilter]:
    """Each filter alone, and many together."""
    chance = random.Random(seed)
    some: list[CallFilter] = [CallFilter(), *(CallFilter(status=status) for status in STATUSES)]
    some += [CallFilter(direction="inbound"), CallFilter(from_=NUMBERS[0]), CallFilter(to=NUMBERS[1])]
    some += [CallFilter(start=START + timedelta(seconds=10), end=START + timedelta(seconds=20))]
    for _ in range(25):
        start = START + timedelta(seconds=chance.randrange(30))
        some.append(
            CallFilter(
                status=chance.choice((None, *STATUSES)),
                direction=chance.choice((None, None, "inbound", "outbound")),
                from_=chance.choice((None, None, *NUMBERS)),
                to=chance.choice((None, None, *NUMBERS)),
                start=chance.choice((None, start)),
                end=chance.choice((None, start + timedelta(seconds=chance.randrange(1, 20)))),
            )
        )
    return some


async def by_cursor(storage: Storage, account_sid: str, query: CallFilter, per_page: int) -> list[str]:
    """The whole list, by cursor."""
    found: list[str] = []
    after: Position | None = None
    while True:
        page: Page[CallRecord] = await storage.calls.list(account_sid, query, 1, per_page, after=after)
        found += [call.call_sid for call in page.items]
        after = page.after
        if after is None:
            return found


async def test_every_way_to_page_gives_what_the_filter_means(
    storage: Storage, account: Account, stranger: Account
) -> None:
    made = make_calls(account.account_sid, 120, seed=5)
    await store(storage, made)
    await store(storage, make_calls(stranger.account_sid, 20, seed=6))
    made.sort(key=lambda call: (call.created_at, call.call_sid), reverse=True)
    for query in filters(seed=7):
        expected = [call.call_sid for call in made if matches(call, query)]
        paged: list[str] = []
        for number in range(1, 20):
            page = await storage.calls.list(account.account_sid, query, number, 7)
            paged += [call.call_sid for call in page.items]
            assert page.total == len(expected), query
            assert (page.after is None) == (len(paged) >= len(expected)), query
        assert paged == expected, query
        assert await by_cursor(storage, account.account_sid, query, 7) == expected, query


async def test_calls_are_found_by_length_quality_and_price(storage: Storage, account: Account) -> None:
    made = make_calls(account.account_sid, 4, seed=9)
    for call, (seconds, mos, paise) in zip(
        made, ((5, 4.4, 60), (60, 3.1, 60), (300, None, 300)), strict=False
    ):
        call.duration_sec, call.quality, call.price_paise = seconds, Quality(mos=mos), paise
    await store(storage, made)
    short, poor, dear, _ = (call.call_sid for call in made)
    for query, expected in (
        (CallFilter(min_duration_s=60), {poor, dear}),
        (CallFilter(max_mos=4.4), {short, poor}),
        (CallFilter(max_mos=3.1), {poor}),
        (CallFilter(min_price_paise=61), {dear}),
        (CallFilter(min_duration_s=6, max_mos=5), {poor}),
    ):
        page = await storage.calls.list(account.account_sid, query, 1, 10)
        assert {call.call_sid for call in page.items} == expected, query


async def test_a_total_of_an_outcome_grows_with_the_ends_of_calls(storage: Storage, account: Account) -> None:
    before = utc_now() - timedelta(minutes=30)
    call = CallRecord(new_id(), account.account_sid, "outbound", *NUMBERS[:2], before)
    await store(storage, [call])
    queries = CallFilter(cause="USER_BUSY"), CallFilter(min_duration_s=1)
    for query in queries:
        assert (await storage.calls.list(account.account_sid, query, 1, 5)).total == 0
    call.status, call.ended_at, call.hangup_cause, call.duration_sec = (
        CallStatus.BUSY,
        utc_now(),
        "USER_BUSY",
        2,
    )
    storage.calls.finish(call)
    for query in queries:
        assert (await storage.calls.list(account.account_sid, query, 1, 5)).total == 1


async def test_a_total_that_was_counted_before_is_exact_still(storage: Storage, account: Account) -> None:
    """A count stays exact: later rows are added to it."""
    sid, busy = account.account_sid, CallFilter(status=CallStatus.BUSY)
    old = make_calls(sid, 30, seed=8)
    await store(storage, old)
    before = sum(call.status is CallStatus.BUSY for call in old)
    for more in range(3):
        assert (await storage.calls.list(sid, CallFilter(), 1, 5)).total == 30 + 2 * more
        assert (await storage.calls.list(sid, busy, 1, 5)).total == before + more
        today = [CallRecord(new_id(), sid, "outbound", *NUMBERS[:2], utc_now()) for _ in range(2)]
        await store(storage, today)
        today[0].status, today[0].ended_at = CallStatus.BUSY, utc_now()
        storage.calls.finish(today[0])
    closed = CallFilter(end=START + timedelta(seconds=20))
    totals = {(await storage.calls.list(sid, closed, 1, 5)).total for _ in range(2)}
    assert totals == {sum(call.created_at < closed.end for call in old if closed.end)}


async def test_a_total_is_exact_after_the_clock_was_set_back(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    sid, told = account.account_sid, utc_now()
    await store(storage, [CallRecord(new_id(), sid, "outbound", *NUMBERS[:2], told)])
    with monkeypatch.context() as an_hour_ahead:
        an_hour_ahead.setattr("callcontrol.database.aio.pages.utc_now", lambda: told + timedelta(hours=1))
        assert (await storage.calls.list(sid, CallFilter(), 1, 5)).total == 1
    await store(storage, [CallRecord(new_id(), sid, "outbound", *NUMBERS[:2], utc_now())])
    page = await storage.calls.list(sid, CallFilter(), 1, 5)
    assert (page.total, len(page.items)) == (2, 2)


async def test_no_call_is_left_out_that_was_stamped_while_the_clock_was_behind(
    storage: Storage, account: Account
) -> None:
    """A stale total may be told for a while; the calls themselves are all there, by page and by cursor."""
    sid, told = account.account_sid, utc_now()
    recent = [CallRecord(new_id(), sid, "outbound", *NUMBERS[:2], told) for _ in range(2)]
    await store(storage, [*make_calls(sid, 10, seed=9), *recent])
    assert (await storage.calls.list(sid, CallFilter(), 1, 20)).total == 12
    behind = CallRecord(new_id(), sid, "outbound", *NUMBERS[:2], told - timedelta(hours=1))
    await store(storage, [behind])
    page = await storage.calls.list(sid, CallFilter(), 1, 20)
    assert behind.call_sid in {call.call_sid for call in page.items} and len(page.items) == 13
    assert len(await by_cursor(storage, sid, CallFilter(), 5)) == 13


async def test_a_list_by_cursor_neither_skips_nor_repeats_while_calls_come_in(
    storage: Storage, account: Account
) -> None:
    old = make_calls(account.account_sid, 20, seed=9)
    await store(storage, old)
    first = await storage.calls.list(account.account_sid, CallFilter(), 1, 8)
    await store(storage, [CallRecord(new_id(), account.account_sid, "outbound", *NUMBERS[:2], utc_now())])
    seen, after = [call.call_sid for call in first.items], first.after
    while after is not None:
        page = await storage.calls.list(account.account_sid, CallFilter(), 1, 8, after=after)
        seen += [call.call_sid for call in page.items]
        after = page.after
    assert sorted(seen) == sorted(call.call_sid for call in old)


async def test_the_ledger_is_listed_by_kind_and_time(storage: Storage, account: Account) -> None:
    sid = account.account_sid

    def write(connection: Connection) -> None:
        for number in range(30):
            at = START + timedelta(hours=number // 3)
            if number % 2:
                ledger.top_up(connection, sid, 100 + number, at)
            else:
                reserves.reserve(connection, sid, f"call-{number}", 10, at)
                reserves.settle(connection, f"call-{number}", 1 + number % 10, at)

    await storage.database.write(write)
    charges = await storage.wallet.ledger(sid, 1, 100, LedgerFilter(kind="charge"))
    assert charges.total == len(charges.items) == 15
    assert [item.call_sid for item in charges.items] == [f"call-{n}" for n in range(28, -1, -2)]
    hour = LedgerFilter(start=START + timedelta(hours=2), end=START + timedelta(hours=3))
    assert [item.amount_paise for item in (await storage.wallet.ledger(sid, 1, 20, hour)).items] == [
        -9,
        107,
        -7,
    ]
    seen: list[int] = []
    page = await storage.wallet.ledger(sid, 1, 4)
    while True:
        seen += [item.entry_id for item in page.items]
        if page.after is None:
            break
        page = await storage.wallet.ledger(sid, 1, 4, after=page.after)
    assert len(seen) == len(set(seen)) == page.total == 31


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (CallFilter(), "ix_calls_list"),
        (CallFilter(start=START, end=START + timedelta(days=1)), "ix_calls_list"),
        (CallFilter(direction="inbound"), "ix_calls_list_direction"),
        (CallFilter(from_=NUMBERS[0]), "ix_calls_list_from"),
        (CallFilter(to=NUMBERS[0], start=START), "ix_calls_list_to"),
        (CallFilter(status=CallStatus.BUSY), "ix_calls_list_outcome"),
        (CallFilter(status=CallStatus.BUSY, start=START), "ix_calls_list_outcome"),
        (CallFilter(status=CallStatus.RINGING), "ix_calls_unfinished"),
        (CallFilter(status=CallStatus.RINGING, direction="inbound", to="x"), "ix_calls_unfinished"),
    ],
)
async def test_each_filter_is_answered_from_its_index_alone(
    tmp_path: Path, query: CallFilter, index: str
) -> None:
    """The plans of SQLite, which do not depend on how much is in the table."""
    storage = await Storage.open(f"sqlite:///{tmp_path / 'plans.db'}", deliver=False)
    listing: Listing = call_lists.LISTING
    span = listing.between(
        *(None if moment is None else int(moment.timestamp() * 1e6) for moment in (query.start, query.end))
    )
    conditions = [*call_lists.conditions("a", query), *span]

    place = Position(int(START.timestamp() * 1e6), "x")
    for run in (
        lambda connection: listing.count(connection, conditions),
        lambda connection: listing.page(connection, conditions, offset=0, limit=20, total=100),
        lambda connection: listing.page(connection, conditions, offset=70, limit=20, total=100),
        lambda connection: listing.after(connection, conditions, place, limit=20),
    ):
        said = await storage.database.read(plans(run))
        assert said and all(f" {index}" in step for step in said), said
        # The status of a call that is up is looked at in its row; there are few of them.
        if index != "ix_calls_unfinished":
            assert all("USING COVERING INDEX" in step for step in said), said
    await storage.close()


def at_its_time(call: CallRecord) -> CallRecord:
    """The call with an identifier of its time, as calls have."""
    digits = f"{int(call.created_at.timestamp() * 1000):012x}"
    call.call_sid = f"{digits[:8]}-{digits[8:]}{call.call_sid[13:]}"
    return call


@pytest.mark.parametrize(
    "query",
    [
        CallFilter(),
        CallFilter(active=True),
        CallFilter(status=CallStatus.BUSY),
        CallFilter(direction="inbound", from_=NUMBERS[0]),
        CallFilter(start=START + timedelta(seconds=10), end=START + timedelta(seconds=20)),
        CallFilter(text="9800000001", start=START),
    ],
)
async def test_calls_of_all_accounts_are_listed_newest_first(storage: Storage, query: CallFilter) -> None:
    made: list[CallRecord] = []
    for seed in range(3):
        account, _ = await storage.accounts.create(f"Account {seed}")
        made += map(at_its_time, make_calls(account.account_sid, 40, seed))
    await store(storage, made)
    expected = [
        call
        for call in made
        if matches(call, query)
        and (not query.active or call.ended_at is None)
        and (query.text is None or any(query.text in number for number in (call.from_, call.to)))
        and (query.start is None or call.created_at >= query.start)
        and (query.end is None or call.created_at < query.end)
    ]
    found: list[CallRecord] = []
    place: Position | None = None
    while True:
        page = await storage.calls.list_of_all_accounts(query, 7, after=place)
        found += page.items
        place = page.after
        if place is None:
            break
    assert [call.call_sid for call in found] == sorted((call.call_sid for call in expected), reverse=True)
    assert len({call.account_sid for call in found}) == 3
    assert not query.active or page.total == len(expected)
