"""Messages of agents that take long to read: beside the loop, and in their order."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from media.aio.agent_backpressure import OrderedDecoder, ReadBackpressure
from media.streams import CommandError
from sip import Answered
from tests.support.dialect_agent import DialectAgent
from tests.support.domain import OWN_NUMBER
from tests.support.phone import PATIENCE_S
from tests.support.waiting import until
from tests.support.world import running

LONG = bytes(64 * 1024)


class Read:
    """Decoded messages, in order."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.taken: list[str] = []
        self.failed = False
        self.reading = OrderedDecoder[str](loop, ReadBackpressure(loop), self._take, self._fail)

    def _take(self, read: Callable[[], str]) -> None:
        try:
            self.taken.append(read())
        except CommandError as error:
            self.taken.append(error.message)

    def _fail(self) -> None:
        self.failed = True


async def test_the_loop_goes_on_while_a_long_message_is_read() -> None:
    read, may_end = Read(), threading.Event()

    def decode(_: bytes) -> str:
        assert may_end.wait(PATIENCE_S), "the loop, which is to say so, waits for this"
        return "long"

    read.reading.read(decode, LONG)
    read.reading.read(lambda data: data.decode(), b"short")
    read.reading.then(lambda: read.taken.append("end"))
    assert read.taken == []
    may_end.set()
    await until(lambda: len(read.taken) == 3)
    assert read.taken == ["long", "short", "end"]


def _named(name: str, _: bytes) -> str:
    return name


async def test_long_and_short_messages_are_taken_as_they_came() -> None:
    read = Read()
    for number in range(40):
        read.reading.read(partial(_named, str(number)), LONG if number % 3 else b"x")
    await until(lambda: len(read.taken) == 40)
    assert read.taken == [str(number) for number in range(40)]


async def test_what_is_wrong_with_a_long_message_is_told_like_any_other() -> None:
    def refuse(_: bytes) -> str:
        raise CommandError("no")

    def break_down(_: bytes) -> str:
        raise RuntimeError("a defect")

    read = Read()
    read.reading.read(refuse, LONG)
    await until(lambda: read.taken == ["no"])
    read.reading.read(break_down, LONG)
    await until(lambda: read.failed)


async def test_nothing_is_taken_after_the_end() -> None:
    read, other, may_end = Read(), Read(), threading.Event()

    def decode(_: bytes) -> str:
        may_end.wait(PATIENCE_S)
        return "late"

    read.reading.read(decode, LONG)
    read.reading.read(lambda _: "later", b"")
    read.reading.forget()
    # One thread reads for all: what it reads for another stream it reads after this.
    other.reading.read(lambda _: "after", LONG)
    may_end.set()
    await until(lambda: other.taken == ["after"])
    assert read.taken == [] and not read.failed


async def test_a_large_piece_of_audio_is_heard_and_what_follows_comes_after_it(tmp_path: Path) -> None:
    seconds, rate = 8, 44_100
    wave = 12_000 * np.sin(2 * np.pi * 440.0 * np.arange(seconds * rate) / rate)
    content = base64.b64encode(wave.astype("<i2").tobytes()).decode()
    piece = {"audioContentType": "raw", "sampleRate": rate, "audioContent": content, "id": "p1"}
    async with running(tmp_path) as world, DialectAgent("jambonz").running() as agent:
        world.stream(agent.url)
        call = world.phone.call(OWN_NUMBER, world.port)
        await call.wait(Answered)
        await agent.send(json.dumps({"type": "playAudio", "data": piece}))
        await agent.send(json.dumps({"type": "mark", "data": {"name": "after"}}))
        await call.hears(440.0)
        await agent.send(json.dumps({"type": "killAudio"}))
        await until(lambda: len([frame for frame in agent.frames if frame.get("type")]) >= 2)
        done, mark = [frame for frame in agent.frames if frame.get("type") in ("playDone", "mark")]
        assert (done["data"]["id"], mark["data"]["name"]) == ("p1", "after")
        call.hang_up()
        await world.ended()
