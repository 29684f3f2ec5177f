"""Browsers that listen in on calls of others: what they hear, who may, and what is kept of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy.engine import Connection

from api.console.visit import form_token
from api.http.session import COOKIE
from api.process.server import Server
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.webrtc import listeners as rows
from callcontrol.webrtc.aio import listeners as listeners_aio
from callcontrol.webrtc.listeners import MAX_KEPT, MAX_OF_CALL, CallListener
from fixtures.agent import DemoAgent
from media.audio import tone
from media.webrtc.aio import LegEnd
from tests.integration.test_browser_calls import NUMBER, TONE, Desk, replacing
from tests.support.browser_peer import BrowserPeer
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.media_bench import amplitude_at
from tests.support.waiting import PATIENCE_S, until
from tests.support.webhook_stage import Receiver

ECHO = "+919800000001"
CALLER_HZ, AGENT_HZ, TONE_HZ, LISTENER_HZ = 440.0, 900.0, 1000.0, 1800.0
_LOUD = 1000.0
_ONLY_HEARS = replacing("sendrecv", "recvonly")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(tmp_path_factory.mktemp("listened"), TRUSTED_SOURCES="127.0.0.0/8"))
    agent, receiver = DemoAgent(tone(AGENT_HZ, 20_000)), Receiver()
    await server.start()
    await agent.start()
    customer = await add_customer(server.storage, NUMBER)
    async with aiohttp.ClientSession() as http:
        yield Desk(
            server, agent, receiver, http, customer.account_sid, customer.key, customer.phone_number_id
        )
        await until(lambda: server.control.engine.stats().ports_in_use == 0)
        assert server.services.listeners.active == 0
        assert server.services.browser_calls.socket.legs == 0
    await agent.stop()
    await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def peer() -> BrowserPeer:
    return BrowserPeer(tone(CALLER_HZ, 2000))


def amplitude(pcm: bytes, frequency_hz: float) -> float:
    """Amplitude of a frequency in the last half second."""
    return amplitude_at(pcm[-8000:], frequency_hz)


async def hears(listener: BrowserPeer, *frequencies_hz: float) -> None:
    """Wait until the last half second that came has these tones."""
    seen = 0

    def heard() -> bool:
        nonlocal seen
        if len(listener.heard) < max(8000, seen + 1600):
            return False
        seen = len(listener.heard)
        return all(amplitude(bytes(listener.heard), hz) > _LOUD for hz in frequencies_hz)

    await until(heard)


async def begin(desk: Desk, call_sid: str, listener: BrowserPeer, *, key: str | None = None) -> Any:
    """Listen in with a browser; returns the listener."""
    path, body = f"/v1/calls/{call_sid}/listeners", {"sdp": listener.offer(_ONLY_HEARS)}
    status, made, headers = await desk.ask("POST", path, body, key=key)
    assert status == 201, made
    assert headers["Location"] == f"{path}/{made['listener_sid']}"
    assert "a=sendonly" in made["sdp"].splitlines()
    await listener.connect(made["sdp"])
    await asyncio.wait_for(listener.connected.wait(), PATIENCE_S)
    return made


async def listed(desk: Desk, call_sid: str) -> list[dict[str, Any]]:
    status, found, _ = await desk.ask("GET", f"/v1/calls/{call_sid}/listeners")
    assert status == 200 and found["call_sid"] == call_sid
    return list(found["listeners"])


@asynccontextmanager
async def active_call(desk: Desk, peer: BrowserPeer) -> AsyncIterator[str]:
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        yield str(call["call_sid"])


def bystander() -> BrowserPeer:
    """A browser that sends, though its offer says that it does not."""
    return BrowserPeer(tone(LISTENER_HZ, 2000))


async def test_a_listener_hears_both_parties_and_neither_hears_the_listener(
    desk: Desk, peer: BrowserPeer
) -> None:
    await desk.bind(target="forward", forward_to=TONE)
    listener = bystander()
    async with active_call(desk, peer) as call_sid:
        made = await begin(desk, call_sid, listener)
        assert (made["listened_by"], made["ended_at"], made["reason"]) == (
            (await desk.server.storage.keys.authenticate(desk.key)).key_id,
            None,
            None,
        )
        assert [one["listener_sid"] for one in await listed(desk, call_sid)] == [made["listener_sid"]]
        await hears(listener, CALLER_HZ, TONE_HZ)
        assert amplitude(bytes(listener.heard), LISTENER_HZ) < _LOUD / 4
        assert amplitude(bytes(peer.heard), TONE_HZ) > _LOUD
        assert amplitude(bytes(peer.heard), LISTENER_HZ) < _LOUD / 10
        path = f"/v1/calls/{call_sid}/listeners/{made['listener_sid']}"
        assert (await desk.ask("DELETE", path))[0] == 204
        await asyncio.wait_for(listener.closed.wait(), PATIENCE_S)
        assert (await desk.ask("DELETE", path))[0] == 204
        assert (await desk.reaches(call_sid, "active"))["reason"] is None
    await listener.leave()
    (kept,) = await listed(desk, call_sid)
    assert kept["reason"] == "the listener has left" and kept["created_at"] < kept["ended_at"]
    journal = desk.server.storage.calls.journal.of(call_sid)
    noted = [entry for entry in journal if entry.name.startswith("listener.")]
    assert [entry.name for entry in noted] == ["listener.joined", "listener.left"]
    assert noted[0].details["listened_by"] == made["listened_by"]


async def test_a_listener_hears_an_agent_and_ends_with_the_call(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    listener = bystander()
    async with active_call(desk, peer) as call_sid:
        await begin(desk, call_sid, listener)
        await hears(listener, CALLER_HZ, AGENT_HZ)
    await asyncio.wait_for(listener.closed.wait(), PATIENCE_S)
    await listener.leave()
    (kept,) = await listed(desk, call_sid)
    assert kept["reason"] == "the call ended" and kept["ended_at"]
    # One whose process was killed has no end of its own.
    cut = CallListener(new_id(), desk.account_sid, call_sid, "nobody", utc_now())
    await desk.server.storage.writer.commit(partial(rows.insert, listener=cut))
    ended = (await desk.record(call_sid))["ended_at"]
    shown = {one["listener_sid"]: one["ended_at"] for one in await listed(desk, call_sid)}
    assert shown[cut.listener_sid] == ended


async def test_a_listener_stays_with_the_call_when_its_first_party_leaves(
    desk: Desk, peer: BrowserPeer
) -> None:
    await desk.bind(target="forward", forward_to=TONE)
    listener = bystander()
    async with active_call(desk, peer) as call_sid:
        await begin(desk, call_sid, listener)
        await hears(listener, CALLER_HZ, TONE_HZ)
        path = f"/v1/Accounts/{desk.account_sid}/Calls/{call_sid}"
        status, error, _ = await desk.ask("POST", path, {"transfer": {"to": ECHO, "party": "b"}})
        assert status == 202, error
        await asyncio.wait_for(peer.closed.wait(), PATIENCE_S)
        await hears(listener, TONE_HZ)
        await until(lambda: amplitude(bytes(listener.heard), CALLER_HZ) < _LOUD / 4)
        assert not listener.closed.is_set()
        assert (await desk.ask("DELETE", path))[0] == 200
        await asyncio.wait_for(listener.closed.wait(), PATIENCE_S)
    await listener.leave()


async def test_nobody_begins_to_listen_while_the_server_stops(
    desk: Desk, peer: BrowserPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with active_call(desk, peer) as call_sid:
        monkeypatch.setattr(desk.server.control.user_agent, "draining", True)
        body = {"sdp": bystander().offer(_ONLY_HEARS)}
        status, error, _ = await desk.ask("POST", f"/v1/calls/{call_sid}/listeners", body)
        assert (status, error["code"]) == (503, "SERVICE_UNAVAILABLE")
        monkeypatch.undo()


async def test_the_console_listens_with_its_session(
    desk: Desk, peer: BrowserPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners_aio, "_ADMIT_S", 0.05)
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    storage = desk.server.storage
    of_key = await storage.console_sessions.open(desk.key)
    of_operator = await storage.operators.redeem(await storage.operators.make_link("asha"))
    await storage.operators.choose(of_operator, desk.account_sid)
    async with active_call(desk, peer) as call_sid:
        page = f"/console/calls/{call_sid}"
        for token, account_sid, ending in (
            (of_key, "", storage.console_sessions.close),
            (of_operator, desk.account_sid, storage.operators.close),
        ):
            listener, csrf = bystander(), form_token(token, account_sid)
            headers = {"Cookie": f"{COOKIE}={token}", "Sec-Fetch-Site": "same-origin"}
            form = {"csrf": csrf, "sdp": listener.offer(_ONLY_HEARS)}
            async with desk.http.post(
                f"{desk.server.url}{page}/listen", data=form, headers=headers
            ) as response:
                assert response.status == 200, await response.text()
                await listener.connect((await response.json())["sdp"])
            await hears(listener, CALLER_HZ)
            async with desk.http.get(desk.server.url + page, headers=headers) as response:
                assert "Listened in" in await response.text()
            await ending(token)
            await asyncio.wait_for(listener.closed.wait(), PATIENCE_S)
            await listener.leave()
        first, second = await listed(desk, call_sid)
    assert second["listened_by"] == "operator:asha" != first["listened_by"]
    assert {first["reason"], second["reason"]} == {"the right to listen has ended"}
    (action,) = await storage.operators.actions(5)
    assert (action.operator, action.path) == ("asha", f"{page}/listen")


async def test_an_offer_may_be_the_body_itself(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    listener = bystander()
    async with active_call(desk, peer) as call_sid:
        headers = {"Authorization": f"Bearer {desk.key}", "Content-Type": "application/sdp"}
        url = f"{desk.server.url}/v1/calls/{call_sid}/listeners"
        async with desk.http.post(url, data=listener.offer(_ONLY_HEARS), headers=headers) as response:
            assert (response.status, response.content_type) == (201, "application/sdp")
            await listener.connect(await response.text())
            location = response.headers["Location"]
        await hears(listener, CALLER_HZ)
        assert (await desk.ask("DELETE", location))[0] == 204
    await listener.leave()


async def test_a_browser_that_closes_its_connection_listens_no_more(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    listener = bystander()
    async with active_call(desk, peer) as call_sid:
        await begin(desk, call_sid, listener)
        listener.hang_up()
        await until(lambda: desk.server.services.listeners.active == 0)
        (kept,) = await listed(desk, call_sid)
        assert kept["reason"] == LegEnd.CLOSED.value
        assert (await desk.reaches(call_sid, "active"))["reason"] is None
    await listener.leave()


async def test_it_ends_with_the_key(desk: Desk, peer: BrowserPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners_aio, "_ADMIT_S", 0.05)
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    keys = desk.server.storage.keys
    key = await keys.create(desk.account_sid, "platform", ["calls.listen"])
    listener = bystander()
    async with active_call(desk, peer) as call_sid:
        made = await begin(desk, call_sid, listener, key=key)
        await keys.revoke(desk.account_sid, made["listened_by"])
        await asyncio.wait_for(listener.closed.wait(), PATIENCE_S)
        (kept,) = await listed(desk, call_sid)
        assert kept["reason"] == "the right to listen has ended"
    await listener.leave()


async def test_only_a_key_that_names_the_scope_listens(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    keys = desk.server.storage.keys
    usual = await keys.create(desk.account_sid, "platform")
    stranger = await add_customer(desk.server.storage, "+918047664009")
    offer = {"sdp": bystander().offer(_ONLY_HEARS)}
    async with active_call(desk, peer) as call_sid:
        path = f"/v1/calls/{call_sid}/listeners"
        status, error, _ = await desk.ask("POST", path, offer, key=usual)
        assert (status, error["code"]) == (403, "FORBIDDEN") and "calls.listen" in error["message"]
        status, error, _ = await desk.ask("POST", path, offer, key=stranger.key)
        assert (status, error["code"]) == (403, "FORBIDDEN")
        assert (await desk.ask("GET", path, key=stranger.key))[0] == 403
        token = await desk.token()
        assert (await desk.ask("POST", path, offer, key=token))[0] == 401
    assert await listed(desk, call_sid) == []


@pytest.mark.parametrize("direction", ["sendrecv", "sendonly", "inactive"])
async def test_an_offer_that_does_not_only_receive_is_refused(
    desk: Desk, peer: BrowserPeer, direction: str
) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with active_call(desk, peer) as call_sid:
        body = {"sdp": bystander().offer(replacing("sendrecv", direction))}
        status, error, _ = await desk.ask("POST", f"/v1/calls/{call_sid}/listeners", body)
        assert (status, error["details"]["errors"][0]["field"]) == (400, "sdp"), error
    assert desk.server.services.listeners.active == 0


async def test_no_more_than_three_listen_to_a_call(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with active_call(desk, peer) as call_sid:
        path, body = f"/v1/calls/{call_sid}/listeners", {"sdp": bystander().offer(_ONLY_HEARS)}
        for _ in range(MAX_OF_CALL):
            assert (await desk.ask("POST", path, body))[0] == 201
        status, error, _ = await desk.ask("POST", path, body)
        assert (status, error["code"]) == (409, "CONFLICT") and "3 listen" in error["message"]
    status, error, _ = await desk.ask("POST", path, body)
    assert (status, error["code"]) == (409, "CALL_ENDED")
    await until(lambda: desk.server.services.listeners.active == 0)
    assert {one["reason"] for one in await listed(desk, call_sid)} == {"the call ended"}


async def test_nobody_listens_behind_those_that_are_shown(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)

    def fill(connection: Connection, *, call_sid: str) -> None:
        for _ in range(MAX_KEPT):
            listener = CallListener(new_id(), desk.account_sid, call_sid, "nobody", utc_now())
            rows.insert(connection, listener)

    async with active_call(desk, peer) as call_sid:
        await desk.server.storage.writer.commit(partial(fill, call_sid=call_sid))
        body = {"sdp": bystander().offer(_ONLY_HEARS)}
        status, error, _ = await desk.ask("POST", f"/v1/calls/{call_sid}/listeners", body)
        assert (status, error["code"]) == (409, "CONFLICT") and f"{MAX_KEPT} have" in error["message"]
        assert {one["listened_by"] for one in await listed(desk, call_sid)} == {"nobody"}
        assert desk.server.services.listeners.active == 0


async def test_nobody_begins_to_listen_to_a_call_that_ends_meanwhile(
    desk: Desk, peer: BrowserPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    writer = desk.server.storage.writer
    commit = writer.commit
    async with active_call(desk, peer) as call_sid:
        call = f"/v1/Accounts/{desk.account_sid}/Calls/{call_sid}"

        async def late(work: Any, *given: Any, **named: Any) -> Any:
            if getattr(work, "func", None) is rows.insert:
                _, runner = await desk.server.control.up(desk.account_sid, call_sid)
                assert (await desk.ask("DELETE", call))[0] == 200
                await until(lambda: runner.over)
            return await commit(work, *given, **named)

        monkeypatch.setattr(writer, "commit", late)
        body = {"sdp": bystander().offer(_ONLY_HEARS)}
        status, error, _ = await desk.ask("POST", f"/v1/calls/{call_sid}/listeners", body)
        assert (status, error["code"]) == (409, "CALL_ENDED"), error
    (kept,) = await listed(desk, call_sid)
    assert kept["reason"] == "the call ended" and kept["ended_at"]


async def test_listeners_of_an_account_are_bounded(
    desk: Desk, peer: BrowserPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners_aio, "MAX_OF_ACCOUNT", 1)
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with active_call(desk, peer) as call_sid:
        path, body = f"/v1/calls/{call_sid}/listeners", {"sdp": bystander().offer(_ONLY_HEARS)}
        assert (await desk.ask("POST", path, body))[0] == 201
        status, error, _ = await desk.ask("POST", path, body)
        assert (status, error["code"]) == (409, "CONFLICT") and "of the account" in error["message"]
    await until(lambda: desk.server.services.listeners.active == 0)


async def test_a_call_or_a_listener_that_is_none_is_said_to_be_none(desk: Desk) -> None:
    body = {"sdp": bystander().offer(_ONLY_HEARS)}
    assert (await desk.ask("POST", f"/v1/calls/{new_id()}/listeners", body))[0] == 404
    assert (await desk.ask("GET", f"/v1/calls/{new_id()}/listeners"))[0] == 404
    assert (await desk.ask("DELETE", f"/v1/calls/{new_id()}/listeners/{new_id()}"))[0] == 404
