"""Events for open pages: gathered, bounded, and none while no page is open."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import pytest

from api.console.elsewhere import Elsewhere
from api.console.feed import Feed, Subscription
from callcontrol.aio.tokens import new_id
from callcontrol.calls.records.store import calls
from callcontrol.errors import ServiceUnavailable
from callcontrol.models import CallStatus
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    ENDED_SID,
    MOMENT,
    OTHER_ACCOUNT,
    OTHER_CALL_SID,
    call,
)
from tests.support.api_stage import ApiStage


@pytest.fixture
async def feed(stage: ApiStage) -> AsyncIterator[Feed]:
    made = Feed(stage.services)
    yield made
    await made.close()


def events(message: bytes | None) -> list[tuple[str, str, list[str]]]:
    """Name, id and calls of each event of a message."""
    assert message is not None
    found = []
    for event in message.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in event.splitlines())
        if "event" in fields:
            calls = [item["call_sid"] for item in json.loads(fields["data"]).get("calls", [])]
            found.append((fields["event"], fields.get("id", ""), calls))
    return found


async def test_without_a_page_nothing_is_heard(stage: ApiStage, feed: Feed) -> None:
    calls = stage.storage.calls
    assert calls.watcher is None and calls.journal.watcher is None
    async with feed.subscribe(ACCOUNT, Subscription()):
        async with feed.subscribe(OTHER_ACCOUNT, Subscription()):
            assert calls.watcher is not None and feed.pages == 2
        assert calls.watcher is not None and calls.journal.watcher is not None
    assert calls.watcher is None and calls.journal.watcher is None and feed.pages == 0


async def test_a_page_gets_the_changes_of_its_account_gathered(stage: ApiStage, feed: Feed) -> None:
    async with (
        feed.subscribe(ACCOUNT, Subscription()) as mine,
        feed.subscribe(ACCOUNT, Subscription(every=False, calls=[ENDED_SID])) as one,
        feed.subscribe(OTHER_ACCOUNT, Subscription()) as other,
    ):
        for page in (mine, one, other):
            assert [name for name, *_ in events(await page.next(5))] == ["hello"]
        record = call()
        for status in (CallStatus.RINGING, CallStatus.IN_PROGRESS):
            record.status = status
            stage.storage.calls.update(record)
        message = await mine.next(5)
        assert [(name, calls) for name, _, calls in events(message)] == [("calls", [CALL_SID])]
        assert b'"status":"in-progress"' in (message or b"")
        assert await one.next(0.01) == b"" and await other.next(0.01) == b""
        stage.storage.calls.update(call(ENDED_SID, status=CallStatus.COMPLETED, ended_at=MOMENT))
        assert events(await one.next(5))[0][2] == [ENDED_SID]


async def test_a_page_of_an_operator_gets_the_changes_of_all_accounts_with_their_names(
    stage: ApiStage, feed: Feed
) -> None:
    async with feed.subscribe(None, Subscription()) as every, feed.subscribe(ACCOUNT, Subscription()) as mine:
        await every.next(5), await mine.next(5)
        stage.storage.calls.update(call())
        stage.storage.calls.update(call(OTHER_CALL_SID, OTHER_ACCOUNT))
        message, own = await every.next(5), await mine.next(5)
        assert sorted(events(message)[0][2]) == sorted([CALL_SID, OTHER_CALL_SID])
        assert (message or b"").count(b'"account":') == 2
        assert events(own)[0][2] == [CALL_SID] and b'"account":' not in (own or b"")


async def test_an_entry_of_the_journal_changes_its_call(stage: ApiStage, feed: Feed) -> None:
    stage.park(record=call())
    async with feed.subscribe(ACCOUNT, Subscription(every=False, calls=[CALL_SID])) as page:
        await page.next(5)
        stage.storage.calls.journal.note(CALL_SID, MOMENT.timestamp(), "step", "play", {})
        assert events(await page.next(5))[0][2] == [CALL_SID]


async def test_many_changes_are_told_in_several_messages(stage: ApiStage, feed: Feed) -> None:
    records = [call(new_id()) for _ in range(120)]
    async with feed.subscribe(ACCOUNT, Subscription()) as page:
        await page.next(5)
        for record in records:
            stage.storage.calls.update(record)
        told: list[list[str]] = []
        while sum(map(len, told)) < len(records):
            told += [calls for _, _, calls in events(await page.next(5))]
    assert [len(calls) for calls in told] == [50, 50, 20]
    assert {sid for calls in told for sid in calls} == {record.call_sid for record in records}


@pytest.mark.parametrize("account_sid", [ACCOUNT, None])
async def test_calls_of_other_servers_are_told_when_they_change(
    stage: ApiStage, feed: Feed, monkeypatch: pytest.MonkeyPatch, account_sid: str | None
) -> None:
    monkeypatch.setattr("api.console.feed._LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(type(stage.storage.database), "shared", object())
    monkeypatch.setattr(type(stage.storage.membership), "name", "here")
    elsewhere = call(new_id(), node="there", status=CallStatus.RINGING)
    await stage.write(
        partial(calls.insert, rows=[calls.row_of(it) for it in (elsewhere, call(new_id(), node="here"))])
    )
    async with (
        feed.subscribe(account_sid, Subscription()) as page,
        feed.subscribe(account_sid, Subscription(every=False, calls=[elsewhere.call_sid])) as one,
    ):
        await page.next(5), await one.next(5)
        ((_, _, told),) = events(await page.next(5))
        # Those that were up before are of no node.
        assert elsewhere.call_sid in told and len(set(told)) == len(told)
        # Its page reads its signalling anew.
        while "refresh" not in [name for name, *_ in events(await one.next(5))]:
            pass
        assert await page.next(0.9) == b"", "nothing has changed"
        elsewhere.status, elsewhere.ended_at = CallStatus.COMPLETED, MOMENT
        await stage.write(partial(calls.update, rows=[calls.changes_of(elsewhere)]))
        ((_, _, told),) = events(await page.next(5))
        assert told == [elsewhere.call_sid]


async def test_the_end_of_a_call_behind_the_newest_is_told(
    stage: ApiStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.console.elsewhere._MOST", 1)
    monkeypatch.setattr(type(stage.storage.membership), "name", "here")
    older, newer = (call(new_id(), node="there", created_at=MOMENT + timedelta(days=day)) for day in (1, 2))
    elsewhere = Elsewhere(stage.services, ACCOUNT)

    async def told() -> list[str]:
        return [record.call_sid for record in await elsewhere.look()]

    for record in (older, newer):
        await stage.write(partial(calls.insert, rows=[calls.row_of(record)]))
        assert await told() == [record.call_sid]
    assert await told() == [], "it has not changed"
    older.status, older.ended_at = CallStatus.COMPLETED, MOMENT
    await stage.write(partial(calls.update, rows=[calls.changes_of(older)]))
    assert await told() == [older.call_sid]
    assert older.call_sid not in elsewhere and await told() == []


async def test_a_page_that_comes_back_gets_what_it_missed(stage: ApiStage, feed: Feed) -> None:
    async with feed.subscribe(ACCOUNT, Subscription()) as stays:
        ((_, place, _),) = events(await stays.next(5))
        stage.storage.calls.update(call())
        await stays.next(5)
        stage.storage.calls.update(call(ENDED_SID))
        await stays.next(5)
        async with feed.subscribe(ACCOUNT, Subscription(), place) as back:
            found = events(await back.next(5))
        assert [(name, calls) for name, _, calls in found] == [
            ("calls", [CALL_SID]),
            ("calls", [ENDED_SID]),
            ("hello", []),
        ]
        async with feed.subscribe(ACCOUNT, Subscription(), found[-1][1]) as again:
            assert [name for name, *_ in events(await again.next(5))] == ["hello"]


@pytest.mark.parametrize("last_id", ["other-process.3", "", ".", "nonsense", "x." + "9" * 40])
async def test_after_a_restart_a_page_loads_anew(feed: Feed, last_id: str) -> None:
    async with feed.subscribe(ACCOUNT, Subscription(), last_id) as page:
        assert [name for name, *_ in events(await page.next(5))] == ["hello", "refresh"]


async def test_a_page_that_was_away_for_too_long_loads_anew(stage: ApiStage, feed: Feed) -> None:
    async with feed.subscribe(ACCOUNT, Subscription()) as page:
        ((_, place, _),) = events(await page.next(5))
        stage.storage.calls.update(call())
        await page.next(5)
    # Nobody was there, so nothing was kept.
    async with feed.subscribe(ACCOUNT, Subscription(), place) as page:
        assert [name for name, *_ in events(await page.next(5))] == ["hello", "refresh"]


async def test_what_waits_for_a_slow_page_is_bounded() -> None:
    page = Subscription()
    for _ in range(1000):
        page.put(b"event: calls\ndata: {}\n\n")
    found = events(await page.next(5))
    assert len(found) <= 64 and found[0][0] == "refresh"


async def test_a_server_that_stops_ends_the_pages(stage: ApiStage, feed: Feed) -> None:
    async with feed.subscribe(ACCOUNT, Subscription()) as page:
        await feed.close()
        assert await page.next(5) is None
    with pytest.raises(ServiceUnavailable):
        async with feed.subscribe(ACCOUNT, Subscription()):
            pass
