"""
Agents that mean harm, on whole calls: the call ends as specified or survives, memory stays bounded, and a
call of somebody else in the same process goes on as if nothing were the matter.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from callcontrol.models import Binding, CallRecord
from media.aio.agent_dial import DialSettings
from media.aio.agent_settings import AgentStreamSettings
from sip import Answered, Ended, Failed
from tests.support import agent_paths
from tests.support.agent_bot import Bot
from tests.support.agent_paths import Carrier
from tests.support.domain import OWN_NUMBER, make_number
from tests.support.phone import PATIENCE_S, PhoneCall, eventually
from tests.support.world import World, running

ROOT = Path(__file__).resolve().parents[2]
NEIGHBOUR = "+918047491888"
MIB = 1 << 20

# What takes half a minute otherwise is over soon. The queue outlasts a machine that stands still for a while:
# a frame that the neighbour misses was lost to the harmful agent, not to other tests.
STREAMS = AgentStreamSettings(
    dial=DialSettings(budget_s=1.5, offsets_s=(0.0, 0.25, 1.0)),
    ping_interval_s=0.5,
    pong_timeout_s=1.0,
    queue_ms=5_000,
)

# The settings of the product but for that queue, for agents that are to be borne.
PATIENT = AgentStreamSettings(queue_ms=STREAMS.queue_ms)


class Neighbour:
    """A call beside the harmed one, with an agent that repeats what it hears."""

    def __init__(self, bot: Bot, call: PhoneCall) -> None:
        self.bot = bot
        self.call = call

    def frames(self) -> list[int]:
        """The time of each frame that its agent got, in milliseconds from the start."""
        return [int(frame["media"]["timestamp"]) for frame in self.bot.received if frame["event"] == "media"]

    async def unharmed(self, before: int) -> None:
        """It goes on after ``before`` frames, and no frame was dropped on the way."""
        assert await eventually(lambda: len(self.frames()) > before + 25)
        times = self.frames()
        assert times == list(range(20, 20 * len(times) + 20, 20))
        await self.call.hears(440.0)


class Stage:
    """A world with a neighbour in it."""

    def __init__(self, world: World, neighbour: Neighbour) -> None:
        self.world = world
        self.neighbour = neighbour

    @property
    def record(self) -> CallRecord:
        """The harmed call."""
        (record,) = [record for record in self.world.records.records.values() if record.to == OWN_NUMBER]
        return record

    async def ended(self) -> CallRecord:
        assert await eventually(lambda: self.record.ended_at is not None)
        return self.record


async def _echo(bot: Bot) -> None:
    while frame := await bot.next():
        if frame["event"] == "media":
            await bot.send(event="media", media={"payload": frame["media"]["payload"]})


@asynccontextmanager
async def beside_a_neighbour(directory: Path, streams: AgentStreamSettings = STREAMS) -> AsyncIterator[Stage]:
    async with running(directory, streams=streams) as world, Bot(_echo).running() as bot:
        binding = Binding(target="media_stream", stream_url=bot.url)
        world.directory.put(numbers=[make_number(NEIGHBOUR, binding)])
        call = world.phone.call(NEIGHBOUR, world.port)
        await call.wait(Answered)
        call.speak(440.0)
        await call.hears(440.0)
        yield Stage(world, Neighbour(bot, call))
        call.hang_up()
        await call.wait(Ended)


@asynccontextmanager
async def hostile(
    kind: str, *vendor: str, scheme: str | None = None, module: str = "tests.support.hostile_agent"
) -> AsyncIterator[tuple[str, asyncio.StreamReader]]:
    """A hostile agent, or vendor of a speech model: its URL, and what it writes."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        kind,
        *vendor,
        cwd=ROOT,
        env=os.environ | ({} if Carrier.tls is None else {"HOSTILE_TLS": "1"}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield f"{scheme or agent_paths.scheme()}://127.0.0.1:{port}/", process.stdout
    finally:
        process.stdin.close()
        await process.wait()


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


_AGAIN = pytest.mark.long("the same harm by another protocol or path")
CODES = [
    ("garbage", 1008),
    ("commands", 1008),
    ("huge_frame", 1009),
    ("huge_message", 1009),
    ("half_frame", 4408),
    ("no_pong", 4408),
    ("never_reads", 4408),
    ("tiny_frames", 1008),
]
EVERY_PATH = pytest.mark.parametrize("call_path", ["tls", pytest.param("plain", marks=_AGAIN)], indirect=True)
SOME = ("garbage", "half_frame", "reset")


def by_another_way(codes: list[tuple[str, int]]) -> list[ParameterSet]:
    """Mark all kinds of harm as long but for some."""
    return [pytest.param(kind, code, marks=() if kind in SOME else _AGAIN) for kind, code in codes]


AUDIOSOCKET_CODES = [
    ("garbage", 1008),
    ("commands", 1008),
    ("half_frame", 4408),
    ("never_reads", 4408),
    ("tiny_frames", 1008),
    ("reset", 1006),
    ("half_end", 1006),
]


@EVERY_PATH
@pytest.mark.parametrize(("kind", "code"), CODES)
async def test_an_agent_that_cannot_be_borne_ends_its_own_call_alone(
    tmp_path: Path, call_path: str, kind: str, code: int
) -> None:
    async with hostile(kind) as (url, _):
        await _ends_its_own_call_alone(tmp_path, url, "exotel", code)


@pytest.mark.parametrize(("kind", "code"), by_another_way(CODES))
async def test_a_bot_of_chan_websocket_that_cannot_be_borne_ends_its_own_call_alone(
    tmp_path: Path, kind: str, code: int
) -> None:
    async with hostile(kind) as (url, _):
        await _ends_its_own_call_alone(tmp_path, url, "asterisk", code)


@pytest.mark.parametrize(("kind", "code"), by_another_way(AUDIOSOCKET_CODES))
async def test_an_audiosocket_bot_that_cannot_be_borne_ends_its_own_call_alone(
    tmp_path: Path, kind: str, code: int
) -> None:
    async with hostile(kind, scheme="audiosocket", module="tests.support.hostile_audiosocket") as (url, _):
        await _ends_its_own_call_alone(tmp_path, url, "audiosocket", code)


async def _ends_its_own_call_alone(directory: Path, url: str, protocol: str, code: int) -> None:
    async with beside_a_neighbour(directory) as stage:
        stage.world.stream(url, stream_protocol=protocol)
        before, memory = len(stage.neighbour.frames()), resident_bytes()
        a = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await a.wait(Ended)
        record = await stage.ended()
        assert (record.hangup_cause, record.hangup_source) == ("STREAM_DISCONNECTED", "stream")
        assert stage.world.published("stream.failed")["data"]["close_code"] == code
        await stage.neighbour.unharmed(before)
        assert resident_bytes() - memory < 64 * MIB


@EVERY_PATH
@pytest.mark.parametrize("kind", ["some_garbage", "pings"])
async def test_an_agent_that_can_be_borne_is_borne(tmp_path: Path, call_path: str, kind: str) -> None:
    await _is_borne(tmp_path, "exotel", kind)


@_AGAIN
async def test_garbage_that_can_be_borne_is_borne_from_a_bot_of_chan_websocket(tmp_path: Path) -> None:
    await _is_borne(tmp_path, "asterisk", "some_garbage")


async def _is_borne(tmp_path: Path, protocol: str, kind: str) -> None:
    async with beside_a_neighbour(tmp_path, PATIENT) as stage, hostile(kind) as (url, said):
        stage.world.stream(url, stream_protocol=protocol)
        before = len(stage.neighbour.frames())
        a = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        async with asyncio.timeout(30):
            assert await said.readline() == b"borne\n"
        a.hang_up()
        record = await stage.ended()
        assert record.hangup_source == "caller"
        await stage.neighbour.unharmed(before)


@EVERY_PATH
async def test_audio_far_faster_than_it_can_be_heard(tmp_path: Path, call_path: str) -> None:
    async with hostile("flood") as (url, _):
        await _is_heard_and_ended(tmp_path, url, "exotel")


@_AGAIN
async def test_binary_audio_far_faster_than_it_can_be_heard(tmp_path: Path) -> None:
    async with hostile("binary_flood") as (url, _):
        await _is_heard_and_ended(tmp_path, url, "asterisk")


@_AGAIN
async def test_audio_far_faster_than_it_can_be_heard_over_audiosocket(tmp_path: Path) -> None:
    async with hostile("flood", scheme="audiosocket", module="tests.support.hostile_audiosocket") as (url, _):
        await _is_heard_and_ended(tmp_path, url, "audiosocket")


async def _is_heard_and_ended(directory: Path, url: str, protocol: str) -> None:
    async with beside_a_neighbour(directory, PATIENT) as stage:
        stage.world.stream(url, stream_protocol=protocol)
        before, memory = len(stage.neighbour.frames()), resident_bytes()
        a = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await a.wait(Ended)
        record = await stage.ended()
        assert (record.hangup_cause, record.hangup_source) == ("NORMAL_CLEARING", "stream")
        await stage.neighbour.unharmed(before)
        assert resident_bytes() - memory < 64 * MIB


@EVERY_PATH
@pytest.mark.parametrize(
    "kind", ["mute_server", "half_handshake", "wrong_handshake", "endless_handshake", "slow_handshake"]
)
async def test_a_handshake_that_comes_to_nothing_leaves_the_caller_unanswered(
    tmp_path: Path, call_path: str, kind: str
) -> None:
    async with beside_a_neighbour(tmp_path) as stage, hostile(kind) as (url, _):
        stage.world.stream(url)
        before, memory = len(stage.neighbour.frames()), resident_bytes()
        a = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        failed = await a.wait(Failed)
        assert isinstance(failed, Failed) and failed.status == 480
        assert (await stage.ended()).hangup_cause == "STREAM_DISCONNECTED"
        await stage.neighbour.unharmed(before)
        assert resident_bytes() - memory < 64 * MIB


async def test_an_agent_that_has_to_say_something_and_is_silent(tmp_path: Path, call_path: str) -> None:
    async def listen(bot: Bot) -> None:
        await bot.until_closed()

    demanding = AgentStreamSettings(start_timeout_s=0.5)
    async with running(tmp_path, streams=demanding) as world, Bot(listen).running() as bot:
        world.stream(bot.url)
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Ended)
        assert (await world.ended()).hangup_cause == "STREAM_DISCONNECTED"
        await asyncio.wait_for(bot.closed.wait(), PATIENCE_S)
        assert bot.close_code == 4408
        assert bot.received[-1]["event"] == "stop"
