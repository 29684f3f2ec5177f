"""Levels and loss of legs: told when they change, and measured while a page shows them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.console import levels as levels_module
from api.console.feed import Feed, Subscription
from api.console.levels import Levels
from callcontrol.aio.tokens import new_id
from callcontrol.calls.records.journal import MAX_LEVELS
from media.types import StreamMeter
from tests.support.api_facts import ACCOUNT, CALL_SID, ENDED_SID, MOMENT, OTHER_ACCOUNT, call
from tests.support.api_stage import ApiStage, ParkedCall
from tests.support.waiting import until


def meter(level_db: int | None, came: int = 0, lost: int = 0, sent_lost: int | None = None) -> StreamMeter:
    sent_level_db = None if level_db is None else level_db + 5
    return StreamMeter(level_db, sent_level_db, came, lost, 1000 + came, sent_lost)


@pytest.fixture
async def feed(stage: ApiStage) -> AsyncIterator[Feed]:
    made = Feed(stage.services)
    yield made
    await made.close()


@pytest.fixture
def parked(stage: ApiStage) -> ParkedCall:
    return stage.park(record=call())


def look(levels: Levels, *accounts: str) -> Any:
    return levels.look(accounts or (ACCOUNT,))


async def told(page: Subscription) -> dict[str, Any]:
    """The next levels that a page is told."""
    while True:
        message = await page.next(5)
        assert message, "nothing was told"
        for event in message.decode().split("\n\n"):
            if event.startswith("event: levels\n"):
                assert "id: " not in event, "a page that comes back begins with calls"
                found: dict[str, Any] = json.loads(event.partition("data: ")[2])["levels"]
                return found


async def test_levels_are_told_when_they_change(stage: ApiStage, parked: ParkedCall) -> None:
    levels = Levels(stage.services.calls, stage.storage.calls.journal)
    parked.media.of = {0: meter(None), 1: meter(127)}
    assert look(levels) == {ACCOUNT: {CALL_SID: [(0, 0, None, None), (1, 0, None, None)]}}
    assert look(levels) == {}
    parked.media.of = {0: meter(23), 1: meter(127)}
    assert look(levels)[ACCOUNT][CALL_SID][0] == (0, 36, None, None)
    parked.media.of = {0: meter(24), 1: meter(126)}
    assert look(levels) == {}, "less than a step"
    levels.tell_again(OTHER_ACCOUNT)
    assert look(levels) == {}
    levels.tell_again(ACCOUNT)
    assert look(levels)[ACCOUNT][CALL_SID][0][1] == 36
    parked.media.of = {1: meter(127)}
    assert look(levels)[ACCOUNT][CALL_SID] == [(1, 0, None, None)], "a leg has left"


async def test_the_page_of_a_call_is_told_its_levels_and_they_are_kept(
    stage: ApiStage, feed: Feed, parked: ParkedCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.console.feed._TELL_CALLS_AGAIN", 2)
    other = stage.park(record=call(new_id()))
    other.media.of = {0: meter(30)}
    parked.media.of = {0: meter(20), 1: meter(127), 2: meter(None)}
    journal = stage.storage.calls.journal
    for record in (parked.record, other.record):
        journal.note(record.call_sid, MOMENT.timestamp(), "event", "call.answered", {})
    async with feed.subscribe(ACCOUNT, Subscription(every=False, calls=[CALL_SID], levels=True)) as page:
        assert await told(page) == {CALL_SID: [[0, 40, None, None], [1, 0, None, None], [2, 0, None, None]]}
        assert feed.levels.measured == 1
        # And again after some looks, although nothing has changed.
        assert CALL_SID in await told(page)
    kept = journal.levels_of(CALL_SID)
    assert {leg: {tuple(levels) for _, *levels in line} for leg, line in kept.items()} == {
        "a": {(-20.0, -25.0)},
        "b": {(-60.0, -60.0)},
    }
    assert journal.levels_of(other.record.call_sid) == {}
    for number in range(MAX_LEVELS + 5):
        journal.note_level(CALL_SID, "a", float(number), -1.0, -2.0)
    assert len(journal.levels_of(CALL_SID)["a"]) == MAX_LEVELS
    journal.note_level("nobody's", "a", 1.0, -1.0, -2.0)
    assert journal.levels_of("nobody's") == {}


async def test_pages_of_all_accounts_are_told_the_levels_of_each(stage: ApiStage, parked: ParkedCall) -> None:
    levels = Levels(stage.services.calls, stage.storage.calls.journal)
    parked.media.of = {0: meter(23)}
    told_of = {CALL_SID: [(0, 36, None, None)]}
    assert levels.look((None,)) == {None: told_of}
    assert levels.look((None, ACCOUNT)) == {}
    levels.tell_again(None)
    assert levels.look((None, ACCOUNT)) == {None: told_of, ACCOUNT: told_of}


async def test_loss_is_that_of_the_last_seconds(stage: ApiStage, parked: ParkedCall) -> None:
    levels = Levels(stage.services.calls, stage.storage.calls.journal)

    def after(came: int, lost: int, sent_lost: int | None = None) -> Any:
        parked.media.of = {0: meter(127, came, lost, sent_lost)}
        levels.tell_again(ACCOUNT)
        return levels.look((ACCOUNT,))[ACCOUNT][CALL_SID][0]

    assert after(1000, 500) == (0, 0, None, None), "of the time before nothing is said"
    assert after(1060, 500) == (0, 0, 0.0, None)
    assert after(1105, 515) == (0, 0, 12.5, None)
    assert after(1165, 515, 3) == (0, 0, 8.3, 1.8)
    for number in range(9):
        found = after(1225 + 60 * number, 515, 3)
    assert found == (0, 0, 0.0, 0.0)


async def test_only_calls_that_somebody_sees_are_measured(stage: ApiStage, parked: ParkedCall) -> None:
    levels = Levels(stage.services.calls, stage.storage.calls.journal)
    assert look(levels, OTHER_ACCOUNT) == {} and levels.measured == 0
    look(levels)
    assert levels.measured == 1 and parked.media.stopped == 0
    look(levels, OTHER_ACCOUNT)
    assert levels.measured == 0 and parked.media.stopped == 1


async def test_the_newest_calls_are_measured(
    stage: ApiStage, parked: ParkedCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels_module, "MOST_MEASURED", 1)
    levels = Levels(stage.services.calls, stage.storage.calls.journal)
    parked.media.of = {0: meter(20)}
    look(levels)
    newer = stage.park(record=call(ENDED_SID))
    newer.media.of = {0: meter(20)}
    assert list(look(levels)[ACCOUNT]) == [ENDED_SID]
    assert parked.media.stopped == 1


async def test_pages_that_ask_are_told_and_others_are_not(feed: Feed, parked: ParkedCall) -> None:
    parked.media.of = {0: meter(20)}
    async with (
        feed.subscribe(ACCOUNT, Subscription()) as calls_only,
        feed.subscribe(OTHER_ACCOUNT, Subscription(levels=True)) as other,
        feed.subscribe(ACCOUNT, Subscription(levels=True)) as page,
    ):
        for each in (calls_only, other):
            await each.next(5)
        assert await told(page) == {CALL_SID: [[0, 40, None, None]]}
        async with feed.subscribe(ACCOUNT, Subscription(levels=True)) as later:
            assert await told(later) == {CALL_SID: [[0, 40, None, None]]}, "what has not changed as well"
        assert not calls_only.waiting and not other.waiting
        assert parked.media.stopped == 0
    assert parked.media.stopped == 1 and feed.levels.measured == 0


async def test_a_page_that_reads_slowly_is_not_filled_with_levels(feed: Feed, parked: ParkedCall) -> None:
    async with (
        feed.subscribe(ACCOUNT, Subscription(levels=True)) as slow,
        feed.subscribe(ACCOUNT, Subscription(levels=True)) as page,
    ):
        for level_db in (20, 30, 40):
            parked.media.of = {0: meter(level_db)}
            while (await told(page))[CALL_SID][0][1] != 60 - level_db:
                pass
        waited = await slow.next(5)
        assert waited is not None and b"levels" not in waited
        assert (await told(slow))[CALL_SID][0][1] == 20


async def test_a_defect_of_a_call_stops_no_page(
    feed: Feed, parked: ParkedCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> dict[int, StreamMeter]:
        failed.append(1)
        raise RuntimeError("as if")

    failed: list[int] = []
    monkeypatch.setattr(parked.media, "meters", fails)
    async with feed.subscribe(ACCOUNT, Subscription(levels=True)) as page:
        await until(lambda: len(failed) > 1)
        monkeypatch.undo()
        parked.media.of = {0: meter(20)}
        assert await told(page) == {CALL_SID: [[0, 40, None, None]]}
