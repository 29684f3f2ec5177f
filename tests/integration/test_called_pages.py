"""The telephone module in real browsers that are called: by a party, and by one another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio

from api.process.server import Server
from tests.integration.test_browser_calls import TONE
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.network_cut import nothing_arrives
from tests.support.phone_page import PhonePage, open_page, page_server
from tests.support.ports import free_port
from tests.support.waiting import holds_for, until

NUMBER = "+918047665002"
ECHO = "+919800000001"
ASHA_HZ, RAVI_HZ, TONE_HZ = 440.0, 700.0, 1000.0

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.long("real browsers, and real time")]


@dataclass
class Pages:
    """A number that two pages of asha are called at, and a page of ravi that may call asha."""

    server: Server
    http: aiohttp.ClientSession
    key: str
    asha: PhonePage
    other: PhonePage
    ravi: PhonePage

    async def call_in(self, from_: str) -> None:
        body, headers = {"from": from_, "to": NUMBER}, {"Authorization": f"Bearer {self.key}"}
        path = f"{self.server.url}/v1/sandbox/inbound"
        async with self.http.post(path, json=body, headers=headers) as response:
            assert response.status == 201, await response.text()

    async def over(self) -> None:
        await until(lambda: self.server.control.active_calls == 0)


async def hears(page: PhonePage, hz: float) -> None:
    async def heard() -> bool:
        frequency_hz, level_db = await page.loudest()
        return abs(frequency_hz - hz) < 10.0 and level_db > -60.0

    await until(heard)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pages(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pages]:
    ports, folder = [free_port(), free_port()], tmp_path_factory.mktemp("pages")
    origins = ",".join(f"http://localhost:{port}" for port in ports)
    server = Server(loopback_settings(folder / "server", TRUSTED_SOURCES="127.0.0.0/8", CORS_ORIGINS=origins))
    await server.start()
    customer = await add_customer(server.storage, NUMBER)
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession())
        path = f"{server.url}/v1/phone-numbers/{customer.phone_number_id}/inbound"
        body = {"target": "browser", "identity": "asha", "force": True}
        headers = {"Authorization": f"Bearer {customer.key}"}
        async with http.put(path, json=body, headers=headers) as response:
            assert response.status == 200, await response.text()
        asha = await stack.enter_async_context(page_server(server.url, customer.key, ports[0], "asha"))
        ravi = await stack.enter_async_context(
            page_server(server.url, customer.key, ports[1], "ravi", ["browser:*"])
        )
        opened = [
            await stack.enter_async_context(open_page(url, folder, hz))
            for url, hz in ((asha, ASHA_HZ), (asha, ASHA_HZ), (ravi, RAVI_HZ))
        ]
        for page in opened[:2]:
            await page.listen()
        yield Pages(server, http, customer.key, *opened)
    await server.stop()


async def test_the_first_page_that_answers_has_the_call(pages: Pages) -> None:
    await pages.call_in(TONE)
    for page in (pages.asha, pages.other):
        await page.reaches(f"{TONE} calls")
    await pages.asha.page.click("#answer")
    await pages.asha.reaches("active")
    assert "answered on another page" in await pages.other.reaches("ended")
    await hears(pages.asha, TONE_HZ)
    await pages.asha.page.click("#hangup")
    await pages.over()


async def test_a_page_that_is_called_is_heard(pages: Pages) -> None:
    await pages.call_in(ECHO)
    await pages.other.reaches(f"{ECHO} calls")
    await pages.other.page.click("#answer")
    await pages.other.reaches("active")
    await hears(pages.other, ASHA_HZ)
    await pages.other.page.click("#hangup")
    await pages.over()


async def test_a_page_refuses_for_all(pages: Pages) -> None:
    await pages.call_in(TONE)
    await pages.other.reaches(f"{TONE} calls")
    await pages.asha.reaches(f"{TONE} calls")
    await pages.other.page.click("#refuse")
    assert "refused" in await pages.asha.reaches("ended")
    await pages.over()


async def test_a_page_calls_a_page_and_holds(pages: Pages) -> None:
    await pages.ravi.call("browser:asha")
    await pages.asha.reaches("ravi calls")
    await pages.asha.page.click("#answer")
    await pages.ravi.reaches("active")
    await pages.asha.reaches("active")
    await hears(pages.ravi, ASHA_HZ)
    await hears(pages.asha, RAVI_HZ)
    await pages.ravi.run("call.hold()")
    assert await pages.ravi.run("call.connection.getTransceivers()[0].currentDirection") == "inactive"

    async def is_silent() -> bool:
        return (await pages.asha.loudest())[1] < -70.0

    await until(is_silent)
    await pages.ravi.run("call.hold(false)")
    await hears(pages.asha, RAVI_HZ)
    await hears(pages.ravi, ASHA_HZ)
    await pages.ravi.page.click("#hangup")
    await pages.asha.reaches("ended")
    await pages.over()


async def test_a_call_of_pages_survives_a_cut_of_5_s_and_finds_its_path_again(pages: Pages) -> None:
    await pages.ravi.call("browser:asha")
    await pages.asha.reaches("ravi calls")
    await pages.asha.page.click("#answer")
    for page in (pages.ravi, pages.asha):
        await page.reaches("active")
    await hears(pages.ravi, ASHA_HZ)
    await hears(pages.asha, RAVI_HZ)
    remote = "call.connection.remoteDescription.sdp.match(/ice-ufrag:(.*)/)[1]"
    path = await pages.ravi.run(remote)
    browsers, packets = pages.server.services.browser_calls.socket, pages.server.control.engine.stats
    with nothing_arrives(browsers.address[1]):
        before = packets().packets_in
        # As the page does when it notices; nothing answers the checks of that path either.
        await pages.ravi.run("void call._restart()")
        await holds_for(5.0, lambda: pages.server.control.active_calls == 1)
        # Of some 500, those that had come before the cut and were not read yet.
        assert packets().packets_in - before < 150

    async def has_another_path() -> bool:
        return bool(await pages.ravi.run(remote) != path)

    await until(has_another_path)
    await hears(pages.asha, RAVI_HZ)
    await hears(pages.ravi, ASHA_HZ)
    await pages.ravi.page.click("#hangup")
    await pages.asha.reaches("ended")
    await pages.over()


async def test_the_last_page_that_is_closed_ends_the_ringing(pages: Pages) -> None:
    await pages.ravi.call("browser:asha")
    await pages.asha.reaches("ravi calls")
    for page in (pages.asha, pages.other):
        await page.page.goto("about:blank")
    assert "ended" in await pages.ravi.reaches("ended")
    await pages.over()
