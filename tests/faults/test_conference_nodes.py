"""One conference of callers on two servers with one PostgreSQL, and the death of the one that has it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from media.aio import MediaEngine
from tests.faults.lengths import count
from tests.support.fork_server import fork_server
from tests.support.phone import Phone, PhoneCall, engine_settings, eventually
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import Account, ServerProcess
from tests.support.webhook_stage import Receiver

pytestmark = [
    pytest.mark.durable,
    pytest.mark.long(reason="two servers in processes of their own, whose leases one waits out"),
]

NUMBER = "+918047000001"
_PAIRS = count("CONFERENCE_PAIRS", short=2, long=5)
_MEMBERS = count("CONFERENCE_MEMBERS", short=2, long=6)
CONFERENCE = {"verb": "conference", "name": "all", "beep": False}
_SECRET_KEY = base64.b64encode(bytes(range(32))).decode()
# A node adopts others once it has renewed its lease for so long.
_TWO_LEASES_S = 16.0
# After a kill: the silence is noticed, the dead node is adopted, and the conference is made again.
_AGAIN_S = 90.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class Meeting:
    """Two servers, telephones behind their only carrier, and a receiver of the events of calls."""

    def __init__(self, folder: Path, database_url: str) -> None:
        shared = {"TRUNKLINE_DATABASE_URL": database_url, "TRUNKLINE_SECRET_KEY": _SECRET_KEY}
        self.nodes = {
            name: ServerProcess(folder / name, environment={**shared, "TRUNKLINE_NODE": name})
            for name in ("a", "b")
        }
        self.engine = MediaEngine(engine_settings(continuous=True))
        self.phone = Phone(self.engine)
        self.receiver = Receiver()
        self.account = Account("", "")

    async def start(self) -> None:
        await self.engine.start()
        await self.phone.start()
        await self.receiver.start()
        for node in self.nodes.values():
            await asyncio.to_thread(node.start)
        await asyncio.to_thread(self._set_up)

    def _set_up(self) -> None:
        a = self.nodes["a"]
        a.add_carrier("phones", f"udp:127.0.0.1:{self.phone.port}", outbound=True)
        self.account = a.add_account()
        a.add_number(self.account, NUMBER)

    async def stop(self) -> None:
        for node in self.nodes.values():
            if node.process is not None and node.process.poll() is None:
                assert await asyncio.to_thread(node.stop) == 0, node.log()
            assert "Traceback" not in node.log(), node.log()
        await self.receiver.close()
        await self.phone.close()
        await self.engine.close()

    def kill(self) -> None:
        """End whatever runs: the test has failed."""
        for node in self.nodes.values():
            if node.process is not None:
                node.kill()

    async def join(self, name: str, *verbs: dict[str, Any]) -> PhoneCall:
        """Add a telephone to the conference by a call of a node, and wait until it is in."""
        number = len(self.phone.calls) + 1
        body = {
            "from": NUMBER,
            "to": f"+9198765432{number:02}",
            "verbs": list(verbs) or [CONFERENCE],
            "status_webhook_url": self.receiver.url(f"/{name}"),
        }
        joined = self.events(name).count("conference.joined")
        node, key = self.nodes[name], self.account.api_key
        reply = await asyncio.to_thread(node.request, "POST", "/v1/calls", key, body)
        assert reply.status == 201, reply
        call = await self.phone.next_call(number)
        assert await eventually(lambda: self.events(name).count("conference.joined") > joined), node.log()
        return call

    def events(self, name: str) -> list[str]:
        """Names of the events of the calls of a node."""
        return [json.loads(got.body)["event"] for got in self.receiver.requests if got.path == f"/{name}"]


@pytest.fixture
async def meeting(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[Meeting]:
    fork_server()  # It ends with the thread that starts it.
    made = Meeting(tmp_path, await postgres.url())
    try:
        await made.start()
        yield made
    except BaseException:
        made.kill()
        raise
    await made.stop()


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
    calls = [await meeting.join(name) for name in ("a", "b") * _PAIRS]
    await hear_each_other(*calls)
    listed = await asyncio.to_thread(meeting.nodes["b"].request, "GET", "/v1/calls", meeting.account.api_key)
    assert len(listed.data) == len(calls), "the legs between the nodes are no calls"
    for call in calls[1::2]:
        call.hang_up()
    assert await eventually(lambda: meeting.events("b").count("call.completed") == _PAIRS)
    await hear_each_other(*calls[::2])
    assert "conference.left" not in meeting.events("a")
    for call in calls[::2]:
        call.hang_up()
    assert await eventually(lambda: meeting.events("a").count("call.completed") == _PAIRS)


async def test_the_members_elsewhere_of_a_killed_node_meet_again(meeting: Meeting) -> None:
    """
    The node of a conference is killed: its members on another node leave it and go on with their next verb,
    here the same conference, which that node then has.
    """
    first = await meeting.join("a")
    calls = [await meeting.join("b", CONFERENCE, CONFERENCE) for _ in range(_MEMBERS)]
    await hear_each_other(first, *calls)
    assert not await eventually(lambda: False, _TWO_LEASES_S)
    await asyncio.to_thread(meeting.nodes["a"].kill)
    assert await eventually(
        lambda: meeting.events("b").count("conference.joined") == 2 * _MEMBERS, _AGAIN_S
    ), (
        meeting.events("b"),
        meeting.nodes["b"].log(),
    )
    assert meeting.events("b").count("conference.left") == _MEMBERS
    await hear_each_other(*calls)
    first.close()
    for call in calls:
        call.hang_up()
    assert await eventually(lambda: meeting.events("b").count("call.completed") == _MEMBERS)
