"""
Events for the pages of the console that are open.

Nothing is done while no page is open: the feed then hears of no call. Changes of calls are gathered for a
moment, so that many of them cost one message for each page, and are encoded once for all pages of an account.
A page that reads too slowly, or that has missed events, is told to load its contents anew.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from api.console.elsewhere import Elsewhere
from api.console.levels import CallLevels, Levels
from api.console.rendering import refusal_text
from callcontrol.aio.page_events import PageEvents
from callcontrol.aio.tasks import ended
from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Services
from callcontrol.calls.leg import LegView
from callcontrol.clock import timestamp
from callcontrol.errors import DomainError, ServiceUnavailable
from callcontrol.models import CallRecord

__all__ = ["MAX_PAGES", "Feed", "Subscription", "call_summary", "legs_of"]

_log = logging.getLogger("api.console.feed")

MAX_PAGES: Final = 1000
"""Pages that may be open at the same time, over all accounts."""

_GATHER_S: Final = 0.4
_LOOK_AGAIN_S: Final = 5.0
_LEVELS_EVERY: Final = 3
_TELL_CALLS_AGAIN: Final = 5
"""Looks after which the page of a call is told its levels although they have not changed."""
_AT_ONCE: Final = 20
_IN_A_MESSAGE: Final = 50
"""Calls of one message: what is encoded in one step of the loop."""
_KEPT: Final = 64
"""Messages that are kept for pages that have lost their connection, and that wait for a slow one."""

_REFRESH: Final = b"event: refresh\ndata: {}\n\n"
_REFRESH_CALLS: Final = b'event: refresh\ndata: {"only":"calls"}\n\n'
"""For pages that follow calls; others, on which somebody may be reading or typing, have missed nothing."""


def call_summary(
    record: CallRecord, legs: Sequence[LegView] = (), account: str | None = None
) -> dict[str, Any]:
    """Return the fields of a call that lists show, with its legs, and for operators its account's name."""
    return {
        **({} if account is None else {"account": account}),
        "call_sid": record.call_sid,
        "direction": record.direction,
        "from": record.from_,
        "to": record.to,
        "status": record.status.value,
        "active": not record.status.ended,
        "product": record.product,
        "created_at": timestamp(record.created_at),
        "answered_at": timestamp(record.answered_at),
        "ended_at": timestamp(record.ended_at),
        "hangup_cause": record.hangup_cause,
        "stream": record.stream.state if record.stream else None,
        "node": record.node,
        "legs": [leg._asdict() for leg in legs],
    }


def legs_of(services: Services, call_sid: str) -> Sequence[LegView]:
    """Return the legs of a call that is active on this node; none of any other."""
    runner = services.calls.active(call_sid)
    return () if runner is None else runner.legs


class Subscription(PageEvents):
    """
    Messages for the open pages of a browser, which share a connection.

    When too many wait, the pages load anew instead. Without `every` and `calls` they are told of no call.

    Attributes:
        every: True for all calls.
        calls: Calls whose pages are open.
        levels: True for the levels of the legs of these calls, too.
        holder: Token of the session.
    """

    def __init__(
        self, *, every: bool = True, calls: Collection[str] = (), levels: bool = False, holder: str = ""
    ) -> None:
        super().__init__(_KEPT, overflow=_REFRESH_CALLS)
        self.every = every
        self.calls = frozenset(calls)
        self.levels = levels
        self.holder = holder


class _Channel:
    """
    The open pages of one account, what has changed since the last messages, and the last messages.

    With `every` they are those of all accounts together. `began` is the number of the last message before it.
    """

    def __init__(self, elsewhere: Elsewhere, began: int, *, every: bool) -> None:
        self.elsewhere = elsewhere
        self.began = began
        self.every = every
        self.pages: set[Subscription] = set()
        self.changed: dict[str, CallRecord] = {}
        self.kept: deque[tuple[int, frozenset[str], bytes]] = deque(maxlen=_KEPT)


class Feed:
    """
    Changes of calls, for the pages that are open.

    Attributes:
        levels: Levels of the calls' legs, which are measured while a page shows them.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self.levels = Levels(services.calls, services.storage.calls.journal)
        # Numbers of messages mean nothing to another process: its pages load anew.
        self._process = new_id()
        self._number = 0
        self._looks = 0
        self._channels: dict[str | None, _Channel] = {}
        self._quiet: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pages(self) -> int:
        """Number of open pages."""
        return sum(1 for _ in self._subscribed())

    def _subscribed(self) -> Iterator[Subscription]:
        yield from self._quiet
        for channel in self._channels.values():
            yield from channel.pages

    @asynccontextmanager
    async def subscribe(
        self, account_sid: str | None, subscription: Subscription, last_id: str | None = None
    ) -> AsyncIterator[Subscription]:
        """
        Subscribe to the calls of an account, until the block ends.

        None for the account stands for all, which operators see.

        With `last_id` it gets the messages after that one, or is told to load anew.

        Raises:
            ServiceUnavailable: Too many pages are open, or the server is stopping.
        """
        if self._closed or self.pages >= MAX_PAGES:
            raise ServiceUnavailable(refusal_text("too_many_pages"), retry_after_s=5)
        if not subscription.every and not subscription.calls:
            self._quiet.add(subscription)
            subscription.put(self._place() + (b"" if self._knows(last_id) else _REFRESH))
            try:
                yield subscription
            finally:
                self._quiet.discard(subscription)
            return
        channel = self._channels.get(account_sid)
        if channel is None:
            elsewhere = Elsewhere(self._services, account_sid)
            # Whoever comes back has missed what nobody heard.
            self._number += 1
            channel = _Channel(elsewhere, self._number, every=account_sid is None)
            self._channels[account_sid] = channel
        if subscription.levels:
            self.levels.tell_again(account_sid)
        channel.pages.add(subscription)
        self._watch()
        subscription.put(self._hello(channel, subscription, last_id))
        try:
            yield subscription
        finally:
            channel.pages.discard(subscription)
            if not channel.pages:
                del self._channels[account_sid]
            if not self._channels:
                self._unwatch()

    def judge(self, holder: str) -> None:
        """Ask now if the pages of a session are still admitted."""
        for page in self._subscribed():
            if page.holder == holder:
                page.doubt()

    async def close(self) -> None:
        """End all subscriptions."""
        self._closed = True
        for page in self._subscribed():
            page.end()
        self._unwatch()
        task, self._task = self._task, None
        looking, self._looking = self._looking, None
        await ended(task)
        await ended(looking)

    # --- hearing of calls -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        calls = self._services.storage.calls
        calls.watcher, calls.journal.watcher = self._changed, self._noted
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="console-feed")

    def _unwatch(self) -> None:
        self.levels.stop()
        calls = self._services.storage.calls
        calls.watcher = calls.journal.watcher = None

    def _changed(self, record: CallRecord) -> None:
        for account_sid in (record.account_sid, None):
            channel = self._channels.get(account_sid)
            if channel is not None:
                channel.changed[record.call_sid] = record

    def _noted(self, call_sid: str) -> None:
        runner = self._services.calls.active(call_sid)
        if runner is not None:
            self._changed(runner.record)

    # --- telling pages --------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Tell the pages what has changed, until none is open."""
        looked_s, rounds = 0.0, 0
        while self._channels:
            await asyncio.sleep(_GATHER_S)
            rounds += 1
            if rounds % _LEVELS_EVERY == 0:
                try:
                    await self._tell_levels()
                except Exception:
                    # A defect in the levels of one call must not keep pages from being told of calls; they
                    # then show the levels of before.
                    _log.exception("the pages could not be told of the levels of calls")
            for channel in list(self._channels.values()):
                try:
                    await self._tell(channel)
                except Exception:
                    # A defect in what one page is told must not keep all pages from being told.
                    _log.exception("the pages of an account could not be told of its calls")
                    self._refresh(channel)
            looked_s += _GATHER_S
            # Calls of other servers are not heard here.
            if looked_s >= _LOOK_AGAIN_S and self._services.storage.database.shared is not None:
                looked_s = 0.0
                # A database that is slow keeps no page from being told of calls of this server.
                if self._looking is None or self._looking.done():
                    self._looking = asyncio.create_task(self._look_elsewhere(), name="console-elsewhere")

    async def _look_elsewhere(self) -> None:
        for channel in list(self._channels.values()):
            try:
                found = await channel.elsewhere.look()
            except DomainError as error:
                _log.warning("the calls of other servers could not be read: %s", error.message)
                continue
            except Exception:
                # A defect here must not keep the pages of other accounts from being told.
                _log.exception("the calls of other servers could not be read")
                continue
            for record in found:
                channel.changed.setdefault(record.call_sid, record)
            for page in channel.pages:
                # Their signalling and their journals are on that server.
                for call_sid in page.calls:
                    if call_sid in channel.elsewhere:
                        page.put(_refresh_of(call_sid))

    def _refresh(self, channel: _Channel) -> None:
        for page in channel.pages:
            page.put(_REFRESH_CALLS)

    async def _tell(self, channel: _Channel) -> None:
        if not channel.changed:
            return
        changed, channel.changed = channel.changed, {}
        records = list(changed.items())
        for start in range(0, len(records), _IN_A_MESSAGE):
            await self._tell_of(channel, dict(records[start : start + _IN_A_MESSAGE]))

    async def _tell_of(self, channel: _Channel, changed: Mapping[str, CallRecord]) -> None:
        summaries = {
            call_sid: call_summary(
                record,
                legs_of(self._services, call_sid),
                self._name_of(record.account_sid) if channel.every else None,
            )
            for call_sid, record in changed.items()
        }
        self._number += 1
        message = self._message({"calls": list(summaries.values())})
        channel.kept.append((self._number, frozenset(summaries), message))
        for place, page in enumerate(list(channel.pages)):
            if page.every:
                page.put(message)
            elif found := page.calls & summaries.keys():
                page.put(self._message({"calls": [summaries[call_sid] for call_sid in found]}))
            if place % _AT_ONCE == _AT_ONCE - 1:
                # Calls do not wait until all pages are written to.
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _name_of(self, account_sid: str) -> str:
        account = self._services.storage.directory.account(account_sid)
        return account_sid if account is None else account.name

    async def _tell_levels(self) -> None:
        pages = {
            account_sid: wanted
            for account_sid, channel in self._channels.items()
            if (wanted := [page for page in channel.pages if page.levels and page.every])
        }
        single = [
            (account_sid, page)
            for account_sid, channel in self._channels.items()
            for page in channel.pages
            if page.levels and page.calls
        ]
        self._looks += 1
        changed = self.levels.look(pages.keys(), {call_sid for _, page in single for call_sid in page.calls})
        for account_sid, page in single:
            told = self._levels_of(page.calls)
            if told:
                self._put_levels(account_sid, page, _levels_message(told))
        for account_sid, levels in changed.items():
            message = _levels_message(levels)
            for place, page in enumerate(pages[account_sid]):
                self._put_levels(account_sid, page, message)
                if place % _AT_ONCE == _AT_ONCE - 1:
                    await asyncio.sleep(0)

    def _levels_of(self, calls: Collection[str]) -> CallLevels:
        """Levels to tell the pages of calls: those that have changed, and now and then the others, too."""
        found = {}
        for call_sid in calls:
            told = self.levels.changed.get(call_sid)
            # By these the page also learns that there is more of its quality to read.
            if told is None and self._looks % _TELL_CALLS_AGAIN == 0:
                told = self.levels.told_of(call_sid)
            if told is not None:
                found[call_sid] = told
        return found

    def _put_levels(self, account_sid: str | None, page: Subscription, message: bytes) -> None:
        if page.waiting:
            # A page that reads slowly gets its calls, and the levels once it has read.
            self.levels.tell_again(account_sid)
        else:
            page.put(message)

    def _message(self, data: Mapping[str, Any]) -> bytes:
        text = json.dumps(data, separators=(",", ":"))
        return f"id: {self._process}.{self._number}\nevent: calls\ndata: {text}\n\n".encode()

    def _place(self) -> bytes:
        return f"retry: 1000\nid: {self._process}.{self._number}\nevent: hello\ndata: {{}}\n\n".encode()

    def _knows(self, last_id: str | None) -> bool:
        """Return True for a page that is new, or was told its place by this process."""
        if last_id is None:
            return True
        process, _, number = last_id.partition(".")
        return process == self._process and number.isdecimal() and len(number) <= 15

    def _hello(self, channel: _Channel, page: Subscription, last_id: str | None) -> bytes:
        """First message of a page: its place, and what it has missed."""
        place = self._place()
        if last_id is None:
            return place
        if not self._knows(last_id):
            return place + _REFRESH
        seen = int(last_id.partition(".")[2])
        missed = [kept for kept in channel.kept if kept[0] > seen]
        first = channel.kept[0][0] if channel.kept else None
        complete = seen == self._number or (first is not None and first <= seen + 1)
        if page.calls or not complete or seen < channel.began:
            return place + _REFRESH_CALLS
        return b"".join(message for _, _, message in missed) + place


def _levels_message(levels: CallLevels) -> bytes:
    text = json.dumps({"levels": levels}, separators=(",", ":"))
    return f"event: levels\ndata: {text}\n\n".encode()


def _refresh_of(call_sid: str) -> bytes:
    return f"event: refresh\ndata: {json.dumps({'call': call_sid})}\n\n".encode()
