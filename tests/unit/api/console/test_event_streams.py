"""The stream that the open pages of a session share: of several calls, of none, and its end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from api.console.feed import Feed, Subscription
from api.console.pages.events import MOST_CALLS
from api.http.session import COOKIE
from callcontrol.aio.tokens import new_id
from callcontrol.models import CallStatus
from tests.support.api_facts import ACCOUNT, CALL_SID, ENDED_SID, OTHER_CALL_SID, call, insert_key
from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, console_client, sign_in
from tests.support.memory_http import MemoryConnector
from tests.support.waiting import PATIENCE_S
from tests.unit.api.console.test_feed import events


@pytest.fixture
async def feed(stage: ApiStage) -> AsyncIterator[Feed]:
    made = Feed(stage.services)
    yield made
    await made.close()


def names(message: bytes | None) -> list[str]:
    return [name for name, *_ in events(message)]


async def test_a_page_without_calls_is_told_of_none_and_nothing_is_heard_for_it(
    stage: ApiStage, feed: Feed
) -> None:
    async with feed.subscribe(ACCOUNT, Subscription(every=False)) as page:
        message = await page.next(5)
        ((_, place, _),) = events(message)
        assert names(message) == ["hello"] and feed.pages == 1
        assert stage.storage.calls.watcher is None
    assert feed.pages == 0
    for last_id, told in ((place, ["hello"]), ("other.3", ["hello", "refresh"])):
        async with feed.subscribe(ACCOUNT, Subscription(every=False), last_id) as page:
            assert names(await page.next(5)) == told
    async with feed.subscribe(ACCOUNT, Subscription(every=False)) as page:
        await feed.close()
        assert await page.next(5) is None


async def test_several_calls_are_followed_and_no_others(stage: ApiStage, feed: Feed) -> None:
    async with feed.subscribe(ACCOUNT, Subscription(every=False, calls=[CALL_SID, ENDED_SID])) as page:
        await page.next(5)
        for call_sid in (CALL_SID, ENDED_SID, OTHER_CALL_SID):
            stage.storage.calls.update(call(call_sid, status=CallStatus.RINGING))
        ((_, _, told),) = events(await page.next(5))
        assert sorted(told) == sorted([CALL_SID, ENDED_SID])


async def test_who_comes_back_after_a_time_without_any_page_loads_anew(stage: ApiStage, feed: Feed) -> None:
    async with feed.subscribe(ACCOUNT, Subscription()) as page:
        ((_, place, _),) = events(await page.next(5))
    # Nobody hears of this.
    stage.storage.calls.update(call())
    async with feed.subscribe(ACCOUNT, Subscription(), place) as page:
        assert names(await page.next(5)) == ["hello", "refresh"]


async def test_pages_that_follow_no_call_load_anew_only_for_another_process(
    stage: ApiStage, feed: Feed
) -> None:
    async with feed.subscribe(ACCOUNT, Subscription()) as page:
        ((_, place, _),) = events(await page.next(5))
        wanted = Subscription(every=False, calls=[CALL_SID])
        for last_id, told in ((place, b'{"only":"calls"}'), ("other.3", b"{}")):
            async with feed.subscribe(ACCOUNT, wanted, last_id) as back:
                message = await back.next(5)
                assert message is not None and message.endswith(b"event: refresh\ndata: " + told + b"\n\n")
        for _ in range(100):
            page.put(b"event: levels\ndata: {}\n\n")
        message = await page.next(5)
        assert message is not None and message.startswith(b'event: refresh\ndata: {"only":"calls"}\n\n')


async def test_the_pages_of_a_session_are_asked_at_once_and_others_are_not(feed: Feed) -> None:
    async with (
        feed.subscribe(ACCOUNT, Subscription(holder="mine")) as mine,
        feed.subscribe(ACCOUNT, Subscription(every=False, holder="mine")) as quiet,
        feed.subscribe(ACCOUNT, Subscription(holder="another")) as another,
    ):
        for page in (mine, quiet, another):
            await page.next(5)
        waiting = [asyncio.create_task(page.next(600)) for page in (mine, quiet)]
        feed.judge("mine")
        assert await asyncio.gather(*waiting) == [b"", b""]
        assert mine.doubted and quiet.doubted and not another.doubted


async def streamed(stage: ApiStage, person: Person, query: str, *, watches: bool) -> str:
    """Return what a page got until its person signed out; the server never asks by itself."""
    connector = MemoryConnector({"localhost": person.client.server})
    headers = {"Cookie": f"{COOKIE}={person.cookie}"}
    async with (
        asyncio.timeout(PATIENCE_S),
        aiohttp.ClientSession(connector=connector, headers=headers) as http,
        http.get(f"http://localhost/console/events{query}") as response,
    ):
        assert response.status == 200
        assert (stage.storage.calls.watcher is not None) is watches
        assert (await person.post("/console/sign-out")).status == 303
        return await response.text()


@pytest.mark.parametrize(
    ("query", "watches"),
    [
        ("?calls=all&levels=1", True),
        (f"?call={CALL_SID}&call={ENDED_SID}", True),
        # Those that are not the account's are left out, so that they do not end the streams of others.
        (f"?call={OTHER_CALL_SID}&call=nonsense", False),
        ("", False),
    ],
)
async def test_signing_out_ends_the_stream_at_once(
    stage: ApiStage, monkeypatch: pytest.MonkeyPatch, query: str, watches: bool
) -> None:
    monkeypatch.setattr("api.http.event_stream.HEARTBEAT_S", 3600.0)
    async with console_client(stage) as client:
        person = await sign_in(client)
        got = await streamed(stage, person, query, watches=watches)
        assert names(got.encode()) == ["hello", "end"]
        refused = await person.get("/console/events", Accept="text/event-stream")
        assert refused.status == 401


async def test_a_key_that_may_see_no_calls_is_told_of_none(
    stage: ApiStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.http.event_stream.HEARTBEAT_S", 3600.0)
    key = "vk_" + "n" * 43
    await stage.write(lambda connection: insert_key(connection, key, "platform", ["numbers.read"]))
    async with console_client(stage) as client:
        person = await sign_in(client, key)
        got = await streamed(stage, person, f"?calls=all&call={CALL_SID}", watches=False)
        assert names(got.encode()) == ["hello", "end"]


async def test_pages_of_another_session_than_the_cookies_are_told_that_theirs_is_over(
    stage: ApiStage,
) -> None:
    async with console_client(stage) as client:
        person, other = await sign_in(client), await sign_in(client)
        names_of = [
            re.findall(r'data-session="(\w+)"', (await one.get("/console/live")).body.decode())
            for one in (person, other)
        ]
        (mine,), (another,) = names_of
        path, accept = "/console/events?calls=all&session=", "text/event-stream"
        assert (await person.get(path + another, Accept=accept)).status == 401
        assert (await other.get(path + another + "0", Accept=accept)).status == 401
        # It goes on to what else is wrong.
        calls = "".join(f"&call={new_id()}" for _ in range(MOST_CALLS + 1))
        assert (await person.get(path + mine + calls, Accept=accept)).status == 400


async def test_too_many_calls_are_refused(stage: ApiStage) -> None:
    async with console_client(stage) as client:
        person = await sign_in(client)
        query = "&".join(f"call={new_id()}" for _ in range(MOST_CALLS + 1))
        assert (await person.get(f"/console/events?{query}")).status == 400
