"""A real browser that reaches the server through a real TURN server alone."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.audio_check import find_tone, samples_of
from media.audio import tone
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.phone_page import open_page, page_server
from tests.support.ports import free_port
from tests.support.turn_server import SECRET, turn_server
from tests.support.waiting import until

NUMBER = "+918047667001"
HERE_HZ, THERE_HZ = 440.0, 900.0
_CALL = """async (server) => {
    const { Phone } = await import(`${server}/webrtc/trunkline-phone.js`);
    const token = await (await fetch("/token", { method: "POST" })).json();
    const phone = new Phone({ token, iceTransportPolicy: "relay" });
    window.call = await phone.call("%s");
    return token.ice_servers;
}"""
_PATHS = """(async () => {
    const stats = [...(await call.connection.getStats()).values()];
    const pair = stats.find((one) => one.type === "candidate-pair" && one.nominated);
    return stats.filter((one) => pair && one.id === pair.localCandidateId).map((one) => one.candidateType);
})()"""

pytestmark = [pytest.mark.asyncio, pytest.mark.long("a real browser, and real time")]


async def test_a_browser_talks_through_the_turn_server(tmp_path: Path) -> None:
    port = free_port()
    async with turn_server(tmp_path) as turn:
        server = Server(
            loopback_settings(
                tmp_path / "server",
                TRUSTED_SOURCES="127.0.0.0/8",
                CORS_ORIGINS=f"http://localhost:{port}",
                ICE_SERVERS=turn.url,
                TURN_SECRET=SECRET,
            )
        )
        agent = DemoAgent(tone(THERE_HZ, 500), echo=True)
        await server.start()
        await agent.start()
        try:
            customer = await add_customer(server.storage, NUMBER)
            path = f"{server.url}/v1/phone-numbers/{customer.phone_number_id}/inbound"
            body = {"target": "media_stream", "stream_url": agent.url, "sample_rate": 16000, "force": True}
            headers = {"Authorization": f"Bearer {customer.key}"}
            async with (
                aiohttp.ClientSession() as http,
                http.put(path, json=body, headers=headers) as response,
            ):
                assert response.status == 200, await response.text()
            async with (
                page_server(server.url, customer.key, port) as url,
                open_page(url, tmp_path, HERE_HZ) as page,
            ):
                (offered,) = await page.page.evaluate(_CALL % NUMBER, server.url)
                assert offered["urls"] == [turn.url] and offered["username"].endswith(":visitor")
                await until(lambda: bool(agent.sessions))
                session = agent.sessions[-1]
                await until(lambda: len(session.heard) > 3 * 32_000)
                here = find_tone(samples_of(bytes(session.heard))[-16_000:], session.sample_rate_hz)
                assert here.frequency_hz == pytest.approx(HERE_HZ, abs=3)
                assert await page.run(_PATHS) == ["relay"], turn.log()
                await page.run("call.hangup()")
                await until(lambda: server.control.active_calls == 0)
        finally:
            await agent.stop()
            await server.stop()
