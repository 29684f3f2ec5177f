"""Conferences whose members have calls on two nodes, with real SIP and RTP between all of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from callcontrol.calls.aio.media.conference_links import TICKET_HEADER, now_s
from callcontrol.calls.conference_room import MemberTerms
from callcontrol.calls.conference_ticket import ConferenceTicket
from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.calls.plan import JoinConference, Plan, Step
from callcontrol.calls.requests import CallMetadata
from fixtures.audio_check import find_tone, read_stereo
from media.sdp import LocalMedia, make_offer
from sip import Answered, Ended, Failed, SessionEvent
from sip.aio import Listen
from tests.support.call_drive import make_party
from tests.support.domain import ACCOUNT_SID, make_carrier
from tests.support.phone import PhoneCall, engine_settings, eventually
from tests.support.secrets import SECRETS
from tests.support.shared_conferences import ConferenceRows, MemoryOwners
from tests.support.waiting import time_passes
from tests.support.world import WEBHOOK, World, running

ROOM = JoinConference("sales", beep=False)
HOST = JoinConference("sales", beep=False, ends=True)
GUEST = JoinConference("sales", beep=False, starts=False)
KEY = (ACCOUNT_SID, "sales")


@dataclass(slots=True)
class NodePair:
    """Two nodes, of which the first has the conference once it is joined there."""

    a: World
    b: World
    shared: ConferenceRows
    owners: tuple[MemoryOwners, MemoryOwners]


def node(directory: Path, owners: MemoryOwners) -> AbstractAsyncContextManager[World]:
    # As in a server, legs send without a gap: silence is the sign of a dead node.
    media, listen = engine_settings(continuous=True), Listen("udp", "127.0.0.1", 0)
    return running(directory, conferences=owners, media=media, node_sip=listen)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[NodePair]:
    shared = ConferenceRows()
    owners = shared.add("a"), shared.add("b")
    async with node(tmp_path / "a", owners[0]) as a, node(tmp_path / "b", owners[1]) as b:
        yield NodePair(a, b, shared, owners)
        assert await eventually(lambda: not shared.rows), "a conference is left in the database"
        assert not a.control.engine.conferences and not b.control.engine.conferences
        assert await eventually(lambda: legs(a) == legs(b) == 0)


def legs(world: World) -> int:
    shared = world.control._shared
    assert shared is not None
    return shared.legs


async def join(world: World, *steps: Step) -> PhoneCall:
    number = len(world.phone.calls) + 1
    plan = Plan(steps, dial=make_party())
    await world.control.place(ACCOUNT_SID, plan, CallMetadata(status_webhook_url=WEBHOOK))
    return await world.phone.next_call(number)


def events(world: World) -> list[str]:
    return [item.event for item in world.records.events if item.event.startswith("conference.")]


async def joined(world: World, count: int = 1) -> None:
    assert await eventually(lambda: events(world).count("conference.joined") == count), events(world)


def reason(world: World) -> str:
    (body,) = [json.loads(item.body) for item in world.records.events if item.event == "conference.refused"]
    return str(body["data"]["reason"])


async def test_all_hear_all(nodes: NodePair) -> None:
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    bob, eve = await join(nodes.b, ROOM), await join(nodes.b, ROOM)
    await joined(nodes.b, 2)
    assert nodes.shared.rows == {KEY: "a"}
    ann.speak(440.0)
    await bob.hears(440.0)
    await eve.hears(440.0)
    ann.speak(0.0)
    bob.speak(1000.0)
    await ann.hears(1000.0)
    await eve.hears(1000.0)
    assert not bob.hears_now(1000.0)
    for call in (bob, eve):
        call.hang_up()
    assert await eventually(lambda: nodes.b.control.active_calls == 0)
    # The last member of the other node has left: the conference goes on.
    assert events(nodes.a) == ["conference.joined"]
    assert nodes.shared.rows == {KEY: "a"}
    ann.hang_up()


async def test_the_legs_between_nodes_are_no_calls(nodes: NodePair) -> None:
    ann, bob = await join(nodes.a, ROOM), await join(nodes.b, ROOM)
    await joined(nodes.a)
    await joined(nodes.b)
    assert [len(node.records.records) for node in (nodes.a, nodes.b)] == [1, 1]
    assert [node.control.active_calls for node in (nodes.a, nodes.b)] == [1, 1]
    assert [node.control.legs_at("carrier-1") for node in (nodes.a, nodes.b)] == [1, 1]
    ann.hang_up()
    bob.hang_up()


async def test_who_waits_on_another_node_hears_music_until_the_host_comes(nodes: NodePair) -> None:
    first = await join(nodes.a, GUEST)
    await first.until(lambda: any(first.heard))
    guest = await join(nodes.b, GUEST)
    await guest.until(lambda: any(guest.heard))
    assert events(nodes.b) == []
    host = await join(nodes.a, HOST)
    host.speak(1000.0)
    await guest.hears(1000.0)
    await joined(nodes.b)
    host.hang_up()
    await guest.wait(Ended)
    await first.wait(Ended)
    assert events(nodes.b) == ["conference.joined", "conference.left"]


async def test_a_host_on_another_node_begins_and_ends_it(nodes: NodePair) -> None:
    guest = await join(nodes.a, GUEST)
    await guest.until(lambda: any(guest.heard))
    host = await join(nodes.b, HOST)
    host.speak(1000.0)
    await guest.hears(1000.0)
    host.hang_up()
    await guest.wait(Ended)
    assert events(nodes.a) == ["conference.joined", "conference.left"]


async def test_a_muted_member_of_another_node_is_not_heard(nodes: NodePair) -> None:
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    mute = await join(nodes.b, JoinConference("sales", muted=True, beep=False))
    mute.speak(440.0)
    ann.speak(1000.0)
    await mute.hears(1000.0)
    await ann.hears_silence()
    for call in (ann, mute):
        call.hang_up()


async def change(world: World, **update: Any) -> None:
    (call_sid,) = world.records.records
    await world.control.update_call(ACCOUNT_SID, call_sid, LiveUpdate(**update))


async def test_calls_change_as_ever_while_they_are_in_a_conference_elsewhere(nodes: NodePair) -> None:
    """A member is muted by the API, heard again, and recorded with what it hears."""
    ann, bob = await join(nodes.a, ROOM), await join(nodes.b, ROOM)
    await joined(nodes.a)
    await joined(nodes.b)
    owner, other = (nodes.a, nodes.b) if nodes.shared.rows[KEY] == "a" else (nodes.b, nodes.a)
    inside, outside = (ann, bob) if owner is nodes.a else (bob, ann)
    outside.speak(440.0)
    await inside.hears(440.0)
    await change(other, mute_status="mute")
    await inside.hears_silence()
    await change(other, mute_status="unmute", recording="start")
    await inside.hears(440.0)
    inside.speak(1000.0)
    await outside.hears(1000.0)
    await time_passes(0.6)  # Long enough to tell tones apart.
    for call in (ann, bob):
        call.hang_up()
    (record,) = other.records.records.values()
    assert await eventually(lambda: record.recording_status == "completed")
    assert record.recording_path is not None
    said, heard, rate_hz = read_stereo(Path(record.recording_path))
    for side, frequency_hz in ((said, 440.0), (heard, 1000.0)):
        assert abs(find_tone(side, rate_hz).frequency_hz - frequency_hz) < 10, frequency_hz


async def test_a_wideband_member_of_another_node_is_transcoded(nodes: NodePair) -> None:
    nodes.b.directory.put(carriers=[make_carrier(codecs=("G722",))])
    nodes.b.phone.codecs = ("G722",)
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    bob = await join(nodes.b, ROOM)
    ann.speak(440.0)
    await bob.hears(440.0)
    bob.speak(1000.0)
    await ann.hears(1000.0)
    for call in (ann, bob):
        call.hang_up()


async def test_digits_of_a_member_of_another_node_are_not_heard(nodes: NodePair) -> None:
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    bob = await join(nodes.b, ROOM)
    await joined(nodes.b)
    ann.heard.clear()
    bob.open().send_dtmf("5")
    await ann.until(lambda: len(ann.heard) >= 16_000)
    assert not ann.heard_beep(770.0) and not ann.heard_beep(1336.0)
    for call in (ann, bob):
        call.hang_up()


async def test_members_hear_one_of_another_node_come_and_go(nodes: NodePair) -> None:
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    bob = await join(nodes.b, JoinConference("sales"))
    await ann.until(lambda: ann.heard_beep(880.0))
    bob.hang_up()
    await ann.until(lambda: ann.heard_beep(440.0))
    ann.hang_up()


async def test_a_full_conference_is_full_for_other_nodes(nodes: NodePair) -> None:
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    late = await join(nodes.b, JoinConference("sales", max_members=1))
    await late.wait(Ended)
    assert (events(nodes.b), reason(nodes.b)) == (["conference.refused"], "full")
    ann.hang_up()


async def test_the_conference_stays_where_it_is_for_the_last_member(nodes: NodePair) -> None:
    """The first caller leaves; those of the other node still hear each other, and who comes joins them."""
    ann, bob = await join(nodes.a, ROOM), await join(nodes.b, ROOM)
    await joined(nodes.a)
    await joined(nodes.b)
    owner = nodes.shared.rows[KEY]
    first, stays, home = (ann, bob, nodes.a) if owner == "a" else (bob, ann, nodes.b)
    first.hang_up()
    assert await eventually(lambda: home.control.active_calls == 0)
    assert nodes.shared.rows == {KEY: owner}
    again = await join(home, ROOM)
    again.speak(1000.0)
    await stays.hears(1000.0)
    for call in (again, stays):
        call.hang_up()


async def test_a_drain_waits_for_members_of_other_nodes(nodes: NodePair) -> None:
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    bob = await join(nodes.b, ROOM)
    await joined(nodes.b)
    ann.hang_up()
    assert await eventually(lambda: nodes.a.control.active_calls == 0)
    shared = nodes.a.control._shared
    assert shared is not None and not shared._idle.is_set()
    bob.hang_up()
    await shared.drained()


async def test_members_are_out_when_the_node_of_the_conference_ends(nodes: NodePair) -> None:
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    bob = await join(nodes.b, ROOM)
    await joined(nodes.b)
    await nodes.a.control.close()
    await bob.wait(Ended)
    assert events(nodes.b) == ["conference.joined", "conference.left"]
    await ann.wait(Ended)


async def test_members_are_out_when_nothing_comes_from_the_node(nodes: NodePair) -> None:
    """Its node dies without a word: the member is told, and the next caller makes the conference again."""
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    bob = await join(nodes.b, ROOM, ROOM)
    await joined(nodes.b)
    shared = nodes.a.control._shared
    assert shared is not None
    (link,) = shared._inbound
    assert link.member is not None
    # As after a kill: neither audio nor a BYE.
    link._session.on_event = None
    link._media.close()
    await shared._endpoint.close()
    nodes.shared.adopt("a")
    await joined(nodes.b, 2)
    assert events(nodes.b) == ["conference.joined", "conference.left", "conference.joined"]
    assert nodes.shared.rows == {KEY: "b"}
    bob.hang_up()
    ann.hang_up()


async def test_a_conference_of_a_node_that_does_not_answer_is_refused(nodes: NodePair) -> None:
    nodes.shared.rows[KEY] = "a"
    assert nodes.a.control._shared is not None
    await nodes.a.control._shared._endpoint.close()
    late = await join(nodes.b, ROOM)
    await late.wait(Ended)
    assert reason(nodes.b) == "unavailable"
    del nodes.shared.rows[KEY]


async def test_an_active_conference_needs_no_database(nodes: NodePair) -> None:
    """Members join it on any node that knows where it is; its own node asks nobody."""
    ann = await join(nodes.a, ROOM)
    await joined(nodes.a)
    nodes.owners[0].failing = True
    bob = await join(nodes.a, ROOM)
    eve = await join(nodes.b, ROOM)
    await joined(nodes.a, 2)
    await joined(nodes.b)
    assert [node for node, _ in nodes.shared.claims] == ["a", "b"]
    nodes.owners[0].failing = False
    for call in (ann, bob, eve):
        call.hang_up()


class Forger:
    """Sends INVITEs for a leg into the conferences of node "a" from the socket of node "b"."""

    def __init__(self, nodes: NodePair) -> None:
        self._nodes = nodes
        self.shared = nodes.b.control._shared
        assert self.shared is not None
        target = nodes.owners[1].addresses()["a"]
        self.target = target
        self.stream = nodes.b.control.engine.open_stream(lambda _: None)
        local = LocalMedia(*self.stream.local, ("PCMU",), session_id=1)
        self._offer = make_offer(local).to_bytes()

    def ticket(self, call_id: str) -> str:
        return ConferenceTicket(
            call_id=call_id,
            node="b",
            incarnation=self._nodes.shared.nodes["a"].incarnation,
            account_sid=ACCOUNT_SID,
            conference="sales",
            call_sid="nobody",
            terms=MemberTerms(),
            max_members=40,
            made_at_s=now_s(),
        ).seal(SECRETS)

    async def outcome(self, ticket: str, call_id: str) -> type[SessionEvent]:
        """The first event of a leg, which is then hung up."""
        events: list[SessionEvent] = []
        assert self.shared is not None
        session = self.shared._endpoint.invite(self.target, ticket, call_id, self._offer, events.append)
        assert await eventually(lambda: bool(events))
        session.on_event = None
        session.hangup()
        return type(events[0])


async def test_a_leg_needs_a_ticket_that_was_not_used(nodes: NodePair) -> None:
    """From the socket of a living node, too."""
    forger = Forger(nodes)
    ticket = forger.ticket("first")
    assert await forger.outcome("", "none") is Failed
    assert await forger.outcome(ticket, "second") is Failed, "it is for another leg"
    assert await forger.outcome(ticket, "first") is Answered
    assert await eventually(lambda: legs(nodes.a) == 0)
    assert await forger.outcome(ticket, "first") is Failed
    forger.stream.close()


async def test_nobody_but_nodes_is_heard(nodes: NodePair) -> None:
    """A stranger with a good ticket gets no answer at all, and neither does a ping."""
    forger = Forger(nodes)
    header = (TICKET_HEADER, forger.ticket("unused"))
    call = nodes.b.phone.call("conference", forger.target[1], headers=[header])
    failed = await call.wait(Failed)
    assert isinstance(failed, Failed) and (failed.status, failed.cause) == (408, "timeout")
    forger.stream.close()
