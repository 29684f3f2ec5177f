"""The telephone module in a real browser: audio both ways, keys, mute, and the end of either side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio

from api.process.server import Server
from callcontrol.models import CallFilter
from fixtures.agent import AgentSession, DemoAgent
from fixtures.audio_check import find_tone, samples_of
from media.audio import tone
from tests.support.customers import add_customer
from tests.support.levels import level_dbfs
from tests.support.loopback_server import loopback_settings
from tests.support.phone_page import PhonePage, open_page, page_server
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, until

NUMBER = "+918047665001"
HERE_HZ, THERE_HZ = 440.0, 900.0

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.long("a real browser, and real time")]


@dataclass
class Desk:
    """A customer with a number at an echo agent, and a page with a telephone."""

    server: Server
    agent: DemoAgent
    page: PhonePage

    async def begin(self) -> AgentSession:
        """Call from the page; returns the agent's side, once it is heard."""
        before = len(self.agent.sessions)
        await self.page.call(NUMBER)
        await self.page.reaches("active")
        await until(lambda: len(self.agent.sessions) > before)
        return self.agent.sessions[-1]

    async def over(self) -> None:
        await until(lambda: self.server.control.active_calls == 0)
        await self.page.reaches("ended")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    port, folder = free_port(), tmp_path_factory.mktemp("page")
    settings = loopback_settings(
        folder / "server", TRUSTED_SOURCES="127.0.0.0/8", CORS_ORIGINS=f"http://localhost:{port}"
    )
    server, agent = Server(settings), DemoAgent(tone(THERE_HZ, 500), echo=True)
    await server.start()
    await agent.start()
    customer = await add_customer(server.storage, NUMBER)
    async with aiohttp.ClientSession() as http:
        path = f"{server.url}/v1/phone-numbers/{customer.phone_number_id}/inbound"
        body = {"target": "media_stream", "stream_url": agent.url, "sample_rate": 16000, "force": True}
        headers = {"Authorization": f"Bearer {customer.key}"}
        async with http.put(path, json=body, headers=headers) as response:
            assert response.status == 200, await response.text()
    async with page_server(server.url, customer.key, port) as url, open_page(url, folder, HERE_HZ) as page:
        yield Desk(server, agent, page)
    await agent.stop()
    await server.stop()


async def test_the_page_hears_its_own_tone_from_the_agent(desk: Desk) -> None:
    session = await desk.begin()
    await until(lambda: len(session.heard) > 3 * 32_000)
    here = find_tone(samples_of(bytes(session.heard))[-16_000:], session.sample_rate_hz)
    assert here.frequency_hz == pytest.approx(HERE_HZ, abs=3) and here.share > 0.8

    async def echoes() -> bool:
        frequency_hz, level_db = await desk.page.loudest()
        return abs(frequency_hz - HERE_HZ) < 10.0 and level_db > -60.0

    await until(echoes)
    record = await desk.server.control.list_calls(session.start["account_sid"], CallFilter(), 1, 1)
    (call,) = record.items
    assert (call.direction, call.from_, call.to) == ("inbound", "visitor", NUMBER)
    await desk.page.run("call.hangup()")
    await desk.over()
    assert "the browser hung up" in await desk.page.reaches("ended")


async def test_keys_and_silence_reach_the_agent(desk: Desk) -> None:
    session = await desk.begin()
    await desk.page.run("call.digit('4#')")
    await asyncio.wait_for(session.sees("4#"), PATIENCE_S)
    assert session.digits == "4#"
    await desk.page.run("call.mute()")
    await until(lambda: level_dbfs(bytes(session.heard[-16_000:])) < -60.0)
    await desk.page.run("call.mute(false)")
    await until(lambda: level_dbfs(bytes(session.heard[-16_000:])) > -40.0)
    await desk.page.run("call.hangup()")
    await desk.over()


async def test_another_path_is_found_during_the_call(desk: Desk) -> None:
    session = await desk.begin()
    await desk.page.run("call._restart()")
    assert await desk.page.run("call.connection.signalingState") == "stable"
    checks = "[...(await call.connection.getStats()).values()].filter((one) => one.nominated).length"
    await until(lambda: desk.page.run(f"(async () => {checks})()"))
    heard = len(session.heard)
    await until(lambda: len(session.heard) > heard + 3 * 32_000)
    tail = find_tone(samples_of(bytes(session.heard))[-16_000:], session.sample_rate_hz)
    assert tail.frequency_hz == pytest.approx(HERE_HZ, abs=3)
    await desk.page.run("call.hangup()")
    await desk.over()


async def test_the_page_is_told_that_the_agent_has_hung_up(desk: Desk) -> None:
    session = await desk.begin()
    await session.hang_up()
    await desk.over()
    assert "hung up" in await desk.page.reaches("ended")


async def test_a_refused_number_is_told_to_the_page(desk: Desk) -> None:
    await desk.page.call("+918047665009")
    assert "is not a number of the account" in await desk.page.reaches("refused")


async def test_a_page_that_is_left_ends_the_call(desk: Desk) -> None:
    await desk.begin()
    began_s = asyncio.get_running_loop().time()
    await desk.page.page.goto("about:blank")
    await until(lambda: desk.server.control.active_calls == 0)
    assert asyncio.get_running_loop().time() - began_s < 10.0
