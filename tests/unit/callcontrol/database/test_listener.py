"""The listener on a connection that breaks, which a stand-in for PostgreSQL makes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from callcontrol.database.aio.listener import Listener, ListenerSettings
from callcontrol.database.aio.postgres import Listening, Postgres
from callcontrol.database.notifications import CHANNEL
from tests.support.waiting import until

SETTINGS = ListenerSettings(first_retry_s=0.001, last_retry_s=0.002, probe_every_s=0.001)


class Line:
    """Stand-in for a database that notifies, and loses connections."""

    def __init__(self) -> None:
        self.refuses = False
        self.dead = False
        self.connections = 0
        self.probes = 0
        self.tell: Callable[[str], None]
        self.lost: asyncio.Event

    @asynccontextmanager
    async def listening(self, channel: str, heard: Callable[[str], None]) -> AsyncIterator[Listening]:
        assert channel == CHANNEL
        if self.refuses:
            raise OSError("refused")
        self.connections += 1
        self.tell, self.lost = heard, asyncio.Event()
        yield Listening(self.lost, self._probe)

    async def _probe(self) -> None:
        self.probes += 1
        if self.dead:
            raise TimeoutError


class Ear:
    """A listener, and what it has said."""

    def __init__(self, line: Line) -> None:
        self.heard: list[str] = []
        self.missed = 0
        database = cast(Postgres, line)
        self.listener = Listener(database, {"directory": self.heard.append}, self._miss, SETTINGS)

    def _miss(self) -> None:
        self.missed += 1


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
async def ear(line: Line) -> AsyncIterator[Ear]:
    made = Ear(line)
    made.listener.start()
    yield made
    await made.listener.close()
    assert not made.listener.connected


async def test_notifications_of_known_topics_are_heard(line: Line, ear: Ear) -> None:
    await until(lambda: ear.listener.connected)
    for payload in ("directory 7", "of a later version", "directory 8"):
        line.tell(payload)
    assert ear.heard == ["7", "8"]
    assert ear.listener.notifications == {"directory": 2}


async def test_what_was_missed_is_looked_up_at_the_loss_and_at_the_return(line: Line, ear: Ear) -> None:
    await until(lambda: ear.listener.connected)
    assert ear.missed == 1
    line.refuses = True
    line.lost.set()
    await until(lambda: not ear.listener.connected)
    missed = ear.missed
    assert missed > 1
    line.refuses = False
    await until(lambda: line.connections == 2)
    await until(lambda: ear.missed > missed)
    assert ear.listener.connected


async def test_a_connection_that_answers_no_more_is_replaced(line: Line, ear: Ear) -> None:
    await until(lambda: line.probes > 0)
    assert line.connections == 1
    line.dead = True
    await until(lambda: line.connections > 1)


async def test_without_postgresql_nobody_listens() -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("nothing is heard")

    listener = Listener(None, {}, fail)
    listener.start()
    await listener.close()
    assert not listener.connected
