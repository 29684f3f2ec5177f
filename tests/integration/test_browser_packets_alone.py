"""Audio of browsers passes without the event loop: in real time, by the engine's threads."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from api.process.server import Server
from fixtures.agent import DemoAgent
from media.audio import tone
from tests.integration.test_browser_calls import NUMBER, TONE, Desk
from tests.support.browser_peer import BrowserPeer
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, until
from tests.support.webhook_stage import Receiver

pytestmark = pytest.mark.real_time(reason="an engine that has its own threads is what is tested")


@pytest.mark.parametrize("threads", ["1", "2"])
async def test_a_browser_hears_and_is_heard_while_the_event_loop_stands_still(
    tmp_path: Path, threads: str
) -> None:
    server = Server(loopback_settings(tmp_path, TRUSTED_SOURCES="127.0.0.0/8", RTP_THREADS=threads))
    await server.start()
    engine = server.control.engine
    # With two threads the call has the one that browsers' packets do not come to: it has fewer streams.
    other = engine.open_stream(lambda event: None)
    customer = await add_customer(server.storage, NUMBER)
    peer = BrowserPeer(tone(440.0, 2000))
    async with aiohttp.ClientSession() as http:
        desk = Desk(
            *(server, DemoAgent(b""), Receiver(), http),
            *(customer.account_sid, customer.key, customer.phone_number_id),
        )
        await desk.bind(target="forward", forward_to=TONE)
        async with desk.calling(peer) as call:
            await desk.reaches(call["call_sid"], "active")
            await until(lambda: peer.packets > 0)
            before = engine.stats().packets_in
            # From here on nothing awaits: the loop, which is the server's too, stands still.
            came = peer.talk_alone(50, PATIENCE_S)
            heard = engine.stats().packets_in - before
            assert (came, heard) >= (50, 40)
    other.close()
    await server.stop()
