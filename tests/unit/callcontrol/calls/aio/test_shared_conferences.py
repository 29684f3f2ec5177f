"""Rows of conferences that nodes share: claimed by the first member, left with the last."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from callcontrol.calls.aio.media.conferences import ConferenceMember
from callcontrol.calls.aio.media.shared_conferences import SharedConferences
from callcontrol.calls.conference_room import MemberTerms
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import ConferenceEntered
from callcontrol.errors import NodeUnreachable, NotFound
from media.aio import MediaEngine
from media.audio import Clip, tone
from sip.aio import UserAgentSettings
from tests.support.domain import ACCOUNT_SID
from tests.support.shared_conferences import ConferenceRows, MemoryOwners
from tests.support.waiting import until

KEY = (ACCOUNT_SID, "sales")


def nothing(*_: Any, **__: Any) -> None:
    """Do what a stream or a conference does, which is of no matter here."""


def silent_engine() -> MediaEngine:
    """An engine whose conferences have no audio."""
    conference = SimpleNamespace(play=nothing, add=nothing, remove=nothing, close=nothing)
    return cast(MediaEngine, SimpleNamespace(open_conference=lambda on_event: conference))


@pytest.fixture
def rows() -> ConferenceRows:
    return ConferenceRows()


@pytest.fixture
def owners(rows: ConferenceRows) -> MemoryOwners:
    return rows.add("a")


@pytest.fixture
def shared(owners: MemoryOwners) -> SharedConferences:
    return SharedConferences(owners, silent_engine(), Clip(tone(440.0, 20)), UserAgentSettings())


class Members:
    """Members that join, and their events."""

    def __init__(self, shared: SharedConferences) -> None:
        self._shared = shared
        self.events: list[Event] = []

    def make(self, name: str) -> ConferenceMember:
        stream = cast(Any, SimpleNamespace(closed=False, stop_playback=nothing))
        return ConferenceMember(name, 0, stream, self.events.append)

    async def join(self, name: str) -> str:
        member = self.make(name)
        await self._shared.join(*KEY, member, MemberTerms(), 40)
        return member.name


async def test_one_claim_serves_all_members_and_the_last_one_leaves(
    shared: SharedConferences, rows: ConferenceRows
) -> None:
    members = Members(shared)
    ann, bob = await members.join("ann"), await members.join("bob")
    assert members.events == [ConferenceEntered(0, waits=False)] * 2
    assert (rows.claims, rows.rows) == ([("a", "sales")], {KEY: "a"})
    shared.leave(ann)
    assert rows.rows == {KEY: "a"}
    shared.leave(bob)
    await until(lambda: not rows.rows)
    await members.join("eve")
    assert (len(rows.claims), rows.rows) == (2, {KEY: "a"})


async def test_who_comes_while_the_row_is_deleted_claims_it_again(
    shared: SharedConferences, rows: ConferenceRows, owners: MemoryOwners
) -> None:
    members = Members(shared)
    ann = await members.join("ann")
    owners.may_leave.clear()
    shared.leave(ann)
    await asyncio.sleep(0)
    joining = asyncio.create_task(members.join("bob"))
    await asyncio.sleep(0)
    owners.may_leave.set()
    await joining
    assert (len(rows.claims), rows.rows) == (2, {KEY: "a"})
    assert KEY in shared.local


async def test_who_comes_before_the_row_is_deleted_keeps_it(
    shared: SharedConferences, rows: ConferenceRows
) -> None:
    members = Members(shared)
    ann = await members.join("ann")
    shared.leave(ann)
    await members.join("bob")
    assert (len(rows.claims), rows.rows) == (1, {KEY: "a"})


async def test_a_row_that_cannot_be_deleted_is_deleted_later(
    shared: SharedConferences, rows: ConferenceRows, owners: MemoryOwners
) -> None:
    members = Members(shared)
    ann = await members.join("ann")
    owners.failing = True
    shared.leave(ann)
    await asyncio.sleep(0)
    # Until then it is this node's, so nobody has to be asked.
    bob = await members.join("bob")
    assert len(rows.claims) == 1
    shared.leave(bob)
    owners.failing = False
    await until(lambda: not rows.rows)


async def test_one_who_gives_up_while_joining_is_not_in(
    shared: SharedConferences, rows: ConferenceRows
) -> None:
    members = Members(shared)
    joining = asyncio.create_task(members.join("ann"))
    await asyncio.sleep(0)
    joining.cancel()
    await asyncio.wait([joining])
    assert joining.cancelled() and KEY not in shared.local and members.events == []
    ann = await members.join("ann")
    shared.leave(ann)
    await until(lambda: not rows.rows)


async def test_who_does_not_have_a_conference_names_the_node_that_has_it(
    shared: SharedConferences, rows: ConferenceRows, owners: MemoryOwners
) -> None:
    """Also when it is over; nobody is named for what no living node has made."""
    ann = await Members(shared).join("ann")
    (state,) = shared.local.of_account(KEY[0])
    other = SharedConferences(rows.add("b"), silent_engine(), Clip(tone(440.0, 20)), UserAgentSettings())
    with pytest.raises(NodeUnreachable) as elsewhere:
        other.local.find(KEY[0], state.conference_sid)
    assert elsewhere.value.node == "a"
    shared.leave(ann)
    with pytest.raises(NotFound):
        shared.local.find(KEY[0], state.conference_sid)
    rows.adopt("a")
    for sid in (state.conference_sid, owners.new_sid()[:-1], "nobody"):
        with pytest.raises(NotFound):
            other.local.find(KEY[0], sid)
