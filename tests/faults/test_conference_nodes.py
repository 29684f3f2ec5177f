"""Conferences of callers on two servers with one PostgreSQL, and the death of the one that has them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from media.aio import MediaEngine
from sip import Confirmed, Ended, SessionEvent
from tests.faults import reports
from tests.faults.lengths import count, progress
from tests.faults.oracle.evidence import Leg
from tests.faults.oracle.nodes_stage import NodesStage
from tests.support.fork_server import fork_server
from tests.support.phone import Phone, PhoneCall, engine_settings, eventually
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import ServerProcess
from tests.support.waiting import PATIENCE_S

pytestmark = [
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="two servers in processes of their own, whose leases one waits out"),
]

_PAIRS = count("CONFERENCE_PAIRS", short=2, long=5)
_MEMBERS = count("CONFERENCE_MEMBERS", short=2, long=6)
_DEATHS = count("CONFERENCE_KILLS", short=1, long=3)
# After a kill: the silence is noticed, the dead node is adopted, and the conference is made again.
_AGAIN_S = 90.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class Meeting:
    """
    The stage of two nodes, with telephones behind a carrier of their own, which the oracle is told of.

    Its far ends see no audio; the telephones hear.
    """

    def __init__(self, folder: Path, database_url: str) -> None:
        self.stage = NodesStage(folder, database_url)
        self.engine = MediaEngine(engine_settings(continuous=True))
        self.phone = Phone(self.engine)
        self.phone.on_call = self._on_call
        self._carrier_sid = ""
        self._nodes: dict[str, ServerProcess] = {}

    async def start(self) -> None:
        await self.engine.start()
        await self.phone.start()
        await asyncio.to_thread(self.stage.__enter__)
        await asyncio.to_thread(self._set_up)

    def _set_up(self) -> None:
        gateway = f"udp:127.0.0.1:{self.phone.port}"
        self._carrier_sid = self.stage.a.add_carrier("phones", gateway, outbound=True)

    async def stop(self, error: BaseException | None) -> None:
        try:
            if error is None:
                await asyncio.to_thread(self.stage.judge)
        except BaseException as found:
            error = found
            raise
        finally:
            kind = None if error is None else type(error)
            await asyncio.to_thread(self.stage.__exit__, kind, error, None)
            await self.phone.close()
            await self.engine.close()

    def _on_call(self, call: PhoneCall) -> None:
        """Answer at once, and write down what the oracle has to know."""
        headers, now = call.request.headers, time.monotonic()
        session_id = (headers.first("session-id") or "").partition(";")[0]
        leg = Leg(call.request.call_id, "callee", "", call.request.uri.user or "", session_id, began_at=now)
        leg.rang_at, leg.invites = now, 1
        self.stage.legs.append(leg)

        def note(event: SessionEvent) -> None:
            if isinstance(event, Confirmed):
                leg.confirmed_at = time.monotonic()
            elif isinstance(event, Ended):
                leg.ended_at = time.monotonic()
                leg.ended_by = "peer" if event.by == "remote" else "us"
            call.on_event(event)

        call.session.on_event = note
        call.answer()
        leg.status, leg.answered_at = 200, time.monotonic()

    async def join(self, node: ServerProcess, *names: str) -> PhoneCall:
        """Add a telephone to conferences, one after the other, by a call of a node; wait until it is in."""
        number, joined = len(self.phone.calls) + 1, self.times("conference.joined", node)
        placed = await asyncio.to_thread(
            self.stage.place,
            node,
            f"+9198765432{number:02}",
            verbs=[{"verb": "conference", "name": name, "beep": False} for name in names],
            carrier_sid=self._carrier_sid,
        )
        assert placed.status == 201, placed
        self._nodes[placed.body["data"]["call_sid"]] = node
        call = await self.phone.next_call(number)
        await self.comes("conference.joined", node, joined + 1)
        return call

    def times(self, event: str, node: ServerProcess) -> int:
        """Count an event of the calls of a node."""
        hooks = self.stage.far.seen()["hooks"]
        return sum(hook["event"] == event and self._nodes.get(hook["call_sid"]) is node for hook in hooks)

    async def comes(
        self, event: str, node: ServerProcess, times: int, patience_s: float = PATIENCE_S
    ) -> None:
        """Wait until an event of the calls of a node has come so often."""
        came = await eventually(lambda: self.times(event, node) == times, patience_s)
        assert came, (self.times(event, node), node.log()[-6000:])


@pytest.fixture
async def meeting(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[Meeting]:
    fork_server()  # It ends with the thread that starts it.
    made = Meeting(tmp_path, await postgres.url())
    error: BaseException | None = None
    try:
        await made.start()
        yield made
    except BaseException as found:
        error = found
        raise
    finally:
        await made.stop(error)


async def hear_each_other(*calls: PhoneCall) -> None:
    """Each speaks in turn, and all others hear it."""
    for speaker in calls:
        speaker.speak(1000.0)
        for other in calls:
            if other is not speaker:
                await other.hears(1000.0)
        speaker.speak(0.0)


async def test_callers_of_two_nodes_meet(meeting: Meeting) -> None:
    """Callers of one conference on two nodes all hear all; it goes on when those of one node leave."""
    a, b = meeting.stage.nodes
    calls = [await meeting.join(node, "all") for node in (a, b) * _PAIRS]
    await hear_each_other(*calls)
    records = await asyncio.to_thread(meeting.stage.pages, "/v1/calls")
    assert len(records) == len(calls), "the legs between the nodes are no calls"
    for call in calls[1::2]:
        call.hang_up()
    await meeting.comes("call.completed", b, _PAIRS)
    await hear_each_other(*calls[::2])
    assert not meeting.times("conference.left", a)
    for call in calls[::2]:
        call.hang_up()
    await meeting.comes("call.completed", a, _PAIRS)


async def test_the_members_elsewhere_of_a_killed_node_meet_again(meeting: Meeting) -> None:
    """
    The node of a conference is killed: its members on another node leave it and go on with their next verb,
    here the same conference, which that node then has; its own are hung up on.
    """
    stage = meeting.stage
    a, b = stage.nodes
    for number in range(1, _DEATHS + 1):
        name = f"all{number}"
        joined, left = meeting.times("conference.joined", a), meeting.times("conference.left", a)
        first = await meeting.join(b, name)
        calls = [await meeting.join(a, name, name) for _ in range(_MEMBERS)]
        await hear_each_other(first, *calls)
        killed_at = await asyncio.to_thread(stage.kill_b)
        await meeting.comes("conference.joined", a, joined + 2 * _MEMBERS, _AGAIN_S)
        reports.sample("conference made again after, s", time.monotonic() - killed_at)
        assert meeting.times("conference.left", a) == left + _MEMBERS
        await hear_each_other(*calls)
        await first.wait(Ended)
        completed = meeting.times("call.completed", a)
        for call in calls:
            call.hang_up()
        await meeting.comes("call.completed", a, completed + _MEMBERS)
        await asyncio.to_thread(stage.revive_b)
        progress(f"kill {number} of {_DEATHS}")
