"""Packets of browsers' legs: the engine has them alone, on any of its threads, and takes no others."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.audio_check import find_tone, samples_of
from media.audio import tone
from tests.integration.test_browser_calls import NUMBER, Desk
from tests.integration.test_called_browsers import answer, page
from tests.support.browser_peer import BrowserPeer, binding_request
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, look_again, until
from tests.support.webhook_stage import Receiver

ECHO = "+919800000001"
HERE_HZ, THERE_HZ, AGENT_HZ = 440.0, 700.0, 1300.0

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["1", "2"], ids="threads={}".format)
async def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Desk]:
    folder = tmp_path_factory.mktemp("packets")
    changes = {"TRUSTED_SOURCES": "127.0.0.0/8", "RTP_THREADS": request.param}
    server = Server(loopback_settings(folder, **changes))
    agent, receiver = DemoAgent(tone(AGENT_HZ, 1000)), Receiver()
    await server.start()
    await agent.start()
    await receiver.start()
    customer = await add_customer(server.storage, NUMBER)
    # With two threads, calls have the one that browsers' packets do not come to: it has fewer streams.
    other = server.control.engine.open_stream(lambda event: None)
    async with aiohttp.ClientSession() as http:
        yield Desk(
            server, agent, receiver, http, customer.account_sid, customer.key, customer.phone_number_id
        )
        other.close()
        assert server.control.engine.stats().ports_in_use == 0
        assert server.services.browser_calls.socket.legs == 0
    await receiver.close()
    await agent.stop()
    await server.stop()


async def hears(peer: BrowserPeer, hz: float) -> None:
    """Wait until a second of nothing but this tone has come."""

    def heard() -> bool:
        found = find_tone(samples_of(bytes(peer.heard))[-8000:], 8000)
        return abs(found.frequency_hz - hz) < 3 and found.share > 0.9

    await until(lambda: len(peer.heard) > 16000 and heard())


@asynccontextmanager
async def pair(desk: Desk) -> AsyncIterator[tuple[BrowserPeer, BrowserPeer]]:
    """Two browsers in a call."""
    calling, called = BrowserPeer(tone(HERE_HZ, 2000)), BrowserPeer(tone(THERE_HZ, 2000))
    token = await desk.token(identity="ravi", may_call=["browser:asha"])
    async with page(desk) as opened, desk.calling(calling, key=token, to="browser:asha") as call:
        ring = await opened.sees("ringing")
        _, made, _ = await answer(desk, called, ring["call_sid"])
        await called.connect(made["sdp"])
        await desk.reaches(call["call_sid"], "active")
        try:
            yield calling, called
        finally:
            await called.leave()


async def test_two_browsers_hear_each_other(desk: Desk) -> None:
    async with pair(desk) as (calling, called):
        await hears(calling, THERE_HZ)
        await hears(called, HERE_HZ)
        assert calling.unreadable == called.unreadable == 0


async def test_forged_replayed_and_cut_packets_are_heard_by_nobody(desk: Desk) -> None:
    await desk.bind(target="forward", forward_to=ECHO)
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    engine = desk.server.control.engine
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        await hears(peer, HERE_HZ)
        before = engine.dropped()
        for _ in range(20):
            packet = peer.seal()
            forged = packet[:-1] + bytes([packet[-1] ^ 1])
            for sent in (forged, packet[:-5], packet[:12], packet[:12] + os.urandom(160), packet, packet):
                peer.send(sent)
        await until(
            lambda: (
                engine.dropped()["unauthentic"] - before["unauthentic"] == 80
                and engine.dropped()["duplicate"] - before["duplicate"] == 20
            )
        )
        peer.heard.clear()
        await hears(peer, HERE_HZ)
        assert (await desk.reaches(call["call_sid"], "active"))["reason"] is None


async def test_strangers_neither_speak_nor_end_a_call(desk: Desk) -> None:
    await desk.bind(target="forward", forward_to=ECHO)
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    engine = desk.server.control.engine
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        await hears(peer, HERE_HZ)
        lines = call["sdp"].splitlines()
        ufrag = next(line[12:] for line in lines if line.startswith("a=ice-ufrag:"))
        port = desk.server.services.browser_calls.socket.address[1]
        before = engine.dropped()["foreign"]
        close_notify = bytes.fromhex("15fefd0000000000000001000201") + b"\x00"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.setblocking(False)
            for _ in range(20):
                stranger.sendto(binding_request(f"{ufrag}:peer", "guessed" * 4), ("127.0.0.1", port))
                stranger.sendto(binding_request(f"{ufrag}:peer", "x" * 22)[:-3], ("127.0.0.1", port))
                stranger.sendto(peer.seal(), ("127.0.0.1", port))
                stranger.sendto(close_notify, ("127.0.0.1", port))
                stranger.sendto(os.urandom(64), ("127.0.0.1", port))
            await until(lambda: engine.dropped()["foreign"] - before >= 40)
            # Nothing of the browser's own connection either, without its key.
            peer.send(close_notify)
            peer.heard.clear()
            await hears(peer, HERE_HZ)
            assert (await desk.reaches(call["call_sid"], "active"))["reason"] is None
            with pytest.raises(BlockingIOError):
                stranger.recv(2048)


async def test_the_path_of_a_call_is_not_taken_by_another_call(desk: Desk) -> None:
    await desk.bind(target="forward", forward_to=ECHO)
    made, checks = [], []
    for _ in range(2):
        body = {"sdp": BrowserPeer(b"").offer(), "to": NUMBER}
        status, call, headers = await desk.ask("POST", "/v1/webrtc/calls", body)
        assert status == 201, call
        lines = dict(line.split(":", 1) for line in call["sdp"].splitlines() if ":" in line)
        made.append(headers["Location"])
        checks.append((f"{lines['a=ice-ufrag']}:peer", lines["a=ice-pwd"]))
    server = ("127.0.0.1", desk.server.services.browser_calls.socket.address[1])
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        source.bind(("127.0.0.1", 0))
        source.setblocking(False)
        # As if the page of the second call had forged the source: signed with its own password.
        for check in (checks[0], checks[1], checks[0]):
            source.sendto(binding_request(*check), server)
        passwords = []
        for _ in range(2):
            answer_ = await asyncio.wait_for(loop.sock_recv(source, 2048), PATIENCE_S)
            passwords.append(
                next(
                    pwd for _, pwd in checks if hmac.digest(pwd.encode(), _signed(answer_), "sha1") in answer_
                )
            )
        assert passwords == [checks[0][1]] * 2
        await desk.ask("DELETE", made[0])
        # Free again.
        source.sendto(binding_request(*checks[1]), server)
        assert await asyncio.wait_for(loop.sock_recv(source, 2048), PATIENCE_S)
    await desk.ask("DELETE", made[1])


def _signed(response: bytes) -> bytes:
    """Part of a response that is signed: all before the signature, with a length that ends with it."""
    return response[:2] + struct.pack("!H", 36) + response[4:32]


async def test_a_flood_of_checks_stops_nobody_s_audio(desk: Desk) -> None:
    await desk.bind(target="forward", forward_to=ECHO)
    peer = BrowserPeer(tone(HERE_HZ, 2000))
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        await hears(peer, HERE_HZ)
        port = desk.server.services.browser_calls.socket.address[1]
        check = binding_request("nobody:peer", "x" * 22)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(40):
                for _ in range(100):
                    stranger.sendto(check, ("127.0.0.1", port))
                await look_again()
        peer.heard.clear()
        await hears(peer, HERE_HZ)
        assert (await desk.reaches(call["call_sid"], "active"))["reason"] is None
