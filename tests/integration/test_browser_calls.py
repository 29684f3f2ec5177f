"""Calls of browsers: a peer with ICE, DTLS and SRTP of its own calls numbers of a whole server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from api.process.server import Server
from callcontrol.aio.tokens import utc_now
from callcontrol.webrtc.aio import service as webrtc_aio
from fixtures.agent import AgentSession, DemoAgent
from fixtures.audio_check import find_tone, samples_of
from media.audio import tone
from media.webrtc.aio import LegEnd, make_identity
from tests.support.browser_peer import BrowserPeer
from tests.support.customers import add_customer
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import PATIENCE_S, holds_for, until
from tests.support.webhook_stage import Receiver

NUMBER = "+918047664001"
FOREIGN = "+918047664002"
TONE = "+919800000007"
HERE_HZ, THERE_HZ = 440.0, 900.0

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Desk:
    """A customer with one number, and its voice agent."""

    server: Server
    agent: DemoAgent
    receiver: Receiver
    http: aiohttp.ClientSession
    account_sid: str
    key: str
    phone_number_id: str

    async def ask(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """Status, headers, and data or error of an answer."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            answer = await response.json(content_type=None) if response.status != 204 else {}
            return response.status, answer.get("data", answer.get("error")), response.headers

    async def bind(self, **binding: Any) -> None:
        path = f"/v1/phone-numbers/{self.phone_number_id}/inbound"
        status, answer, _ = await self.ask("PUT", path, {"force": True, **binding})
        assert status == 200, answer

    async def unbind(self) -> None:
        path = f"/v1/phone-numbers/{self.phone_number_id}/inbound"
        assert (await self.ask("DELETE", path))[0] == 200

    async def token(self, **wanted: Any) -> str:
        status, made, _ = await self.ask("POST", "/v1/webrtc/tokens", {"identity": "asha", **wanted})
        assert status == 201, made
        return str(made["token"])

    async def record(self, call_sid: str) -> dict[str, Any]:
        """The call's record, once nothing of any call is left."""
        await until(lambda: self.server.control.active_calls == 0)
        _, call, _ = await self.ask("GET", f"/v1/Accounts/{self.account_sid}/Calls/{call_sid}")
        return dict(call)

    @asynccontextmanager
    async def calling(
        self, peer: BrowserPeer, *, key: str | None = None, **body: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Call the number from a browser, until the block ends; it leaves no call."""
        status, call, headers = await self.ask(
            "POST", "/v1/webrtc/calls", {"sdp": peer.offer(), "to": NUMBER, **body}, key=key
        )
        assert status == 201, call
        assert headers["Location"] == f"/v1/webrtc/calls/{call['call_sid']}"
        try:
            await peer.connect(call["sdp"])
            yield call
        finally:
            await self.ask("DELETE", headers["Location"])
            await peer.leave()
            await until(lambda: self.server.control.active_calls == 0)

    async def stream(self, call_sid: str) -> AgentSession:
        """The agent's side of a call."""

        def found() -> list[AgentSession]:
            return [session for session in self.agent.sessions if session.start.get("call_sid") == call_sid]

        await until(lambda: bool(found()))
        return found()[0]

    async def reaches(self, call_sid: str, state: str) -> dict[str, Any]:
        """The browser's call, once it is in a state."""
        seen: dict[str, Any] = {}

        async def there() -> bool:
            status, call, _ = await self.ask("GET", f"/v1/webrtc/calls/{call_sid}")
            assert status == 200, call
            seen.update(call)
            return bool(call["state"] == state)

        await until(there)
        return seen


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    server = Server(loopback_settings(tmp_path_factory.mktemp("browsers"), TRUSTED_SOURCES="127.0.0.0/8"))
    agent, receiver = DemoAgent(tone(THERE_HZ, 1000)), Receiver()
    await server.start()
    await agent.start()
    await receiver.start()
    customer = await add_customer(server.storage, NUMBER)
    async with aiohttp.ClientSession() as http:
        yield Desk(
            server, agent, receiver, http, customer.account_sid, customer.key, customer.phone_number_id
        )
        assert server.control.engine.stats().ports_in_use == 0
        assert server.services.browser_calls.socket.legs == 0
    await receiver.close()
    await agent.stop()
    await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def peer() -> BrowserPeer:
    return BrowserPeer(tone(HERE_HZ, 2000))


async def test_a_browser_and_an_agent_hear_each_other(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer, **{"from": "asha.rao"}, parameters={"Order": "17"}) as call:
        assert (call["state"], call["from"], call["to"]) == ("connecting", "asha.rao", NUMBER)
        session = await desk.stream(call["call_sid"])
        await until(lambda: len(session.heard) > 32000 and len(peer.heard) > 16000)
        here = find_tone(samples_of(bytes(session.heard))[-8000:], session.sample_rate_hz)
        assert here.frequency_hz == pytest.approx(HERE_HZ, abs=3) and here.share > 0.8
        assert find_tone(samples_of(bytes(peer.heard)), 8000).frequency_hz == pytest.approx(THERE_HZ, abs=3)
        assert (await desk.reaches(call["call_sid"], "active"))["reason"] is None
        peer.press(5)
        await asyncio.wait_for(session.sees("5"), PATIENCE_S)
        assert session.digits == "5"
    record = await desk.record(call["call_sid"])
    assert (record["direction"], record["from"], record["to"]) == ("inbound", "asha.rao", NUMBER)
    assert (record["status"], record["hangup_source"]) == ("completed", "caller")
    assert record["sip"]["headers"]["X-Order"] == "17"
    assert peer.closed.is_set() and peer.unreadable == 0


async def test_a_browser_that_sends_its_offer_as_sdp_is_connected(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    query = {"to": NUMBER, "from": "asha", "X-Order": "17"}
    headers = {"Authorization": f"Bearer {await desk.token()}", "Content-Type": "application/sdp"}
    async with desk.http.post(
        f"{desk.server.url}/v1/webrtc/calls", data=peer.offer(), params=query, headers=headers
    ) as response:
        assert (response.status, response.content_type) == (201, "application/sdp")
        answer, location = await response.text(), response.headers["Location"]
    await peer.connect(answer)
    call_sid = location.rpartition("/")[2]
    session = await desk.stream(call_sid)
    await until(lambda: len(session.heard) > 32000)
    heard = find_tone(samples_of(bytes(session.heard))[-8000:], session.sample_rate_hz)
    assert heard.frequency_hz == pytest.approx(HERE_HZ, abs=3)
    assert (await desk.ask("DELETE", location))[0] == 204
    await peer.leave()
    record = await desk.record(call_sid)
    assert (record["from"], record["sip"]["headers"]["X-Order"]) == ("asha", "17")


async def test_an_agent_that_hangs_up_ends_the_browser_s_call(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer) as call:
        session = await desk.stream(call["call_sid"])
        await asyncio.wait_for(session.greeted.wait(), PATIENCE_S)
        await session.hang_up()
        ended = await desk.reaches(call["call_sid"], "ended")
        assert (ended["reason"], ended["sip_status"]) == ("hung up", None)
        await asyncio.wait_for(peer.closed.wait(), PATIENCE_S)


async def test_a_change_of_state_is_told_to_who_waits_for_it(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer) as call:
        path = f"/v1/webrtc/calls/{call['call_sid']}"
        _, seen, _ = await desk.ask("GET", f"{path}?after=connecting")
        assert seen["state"] in ("ringing", "active")
        _, seen, _ = await desk.ask("GET", f"{path}?after=ringing")
        assert seen["state"] == "active"
        waiting = asyncio.create_task(desk.ask("GET", f"{path}?after=active"))
        assert (await desk.ask("DELETE", path))[0] == 204
        _, seen, _ = await waiting
        assert (seen["state"], seen["reason"]) == ("ended", "the browser hung up")
        assert (await desk.ask("DELETE", path))[0] == 204


async def test_a_number_without_a_target_refuses_a_browser(desk: Desk, peer: BrowserPeer) -> None:
    await desk.unbind()
    async with desk.calling(peer) as call:
        ended = await desk.reaches(call["call_sid"], "ended")
        assert ended["sip_status"] == 480
    assert (await desk.record(call["call_sid"]))["status"] == "no-answer"


async def test_keys_reach_a_gather(desk: Desk, peer: BrowserPeer) -> None:
    receiver = desk.receiver
    gather = {"verb": "gather", "num_digits": 3, "timeout": 20, "action_url": receiver.url("/keys")}
    receiver.answers["/menu"] = lambda _: web.json_response([gather])
    receiver.answers["/keys"] = lambda _: web.json_response([{"verb": "hangup"}])
    await desk.bind(target="webhook", webhook_url=receiver.url("/menu"))
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        for digit in (4, 7, 1):
            peer.press(digit)
        await desk.reaches(call["call_sid"], "ended")
    asked = {got.path: json.loads(got.body)["data"] for got in receiver.requests}
    assert asked["/keys"]["digits"] == "471"


async def test_a_browser_is_forwarded_to_a_telephone(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="forward", forward_to=TONE)
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        await until(lambda: len(peer.heard) > 32000)
        assert find_tone(samples_of(bytes(peer.heard))[-8000:], 8000).frequency_hz == pytest.approx(
            1000.0, abs=3
        )
    assert desk.server.sandbox is not None and desk.server.sandbox.calls[-1].number == TONE


async def test_a_browser_that_goes_silent_is_hung_up(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        began_s = asyncio.get_running_loop().time()
        peer.cut = True
        ended = await desk.reaches(call["call_sid"], "ended")
        assert asyncio.get_running_loop().time() - began_s < 10.0
        assert ended["reason"] == LegEnd.SILENT.value
    assert (await desk.record(call["call_sid"]))["status"] == "completed"


@asynccontextmanager
async def cut_for_five_seconds(desk: Desk, peer: BrowserPeer) -> AsyncIterator[tuple[str, AgentSession]]:
    """A call with the agent, of which five seconds are lost; its identifier and its stream."""
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer) as call:
        session = await desk.stream(call["call_sid"])
        await desk.reaches(call["call_sid"], "active")
        peer.cut = True
        await holds_for(5.0, lambda: not session.closed.is_set())
        yield call["call_sid"], session


async def test_a_gap_of_five_seconds_is_bridged(desk: Desk, peer: BrowserPeer) -> None:
    async with cut_for_five_seconds(desk, peer) as (_, session):
        peer.cut = False
        heard = len(session.heard)
        await until(lambda: len(session.heard) > heard + 32000)
        tail = find_tone(samples_of(bytes(session.heard))[-8000:], session.sample_rate_hz)
        assert tail.frequency_hz == pytest.approx(HERE_HZ, abs=3)


async def test_a_browser_that_asks_for_another_path_has_time_to_find_it(
    desk: Desk, peer: BrowserPeer
) -> None:
    async with cut_for_five_seconds(desk, peer) as (call_sid, session):
        body = {"sdp": peer.offer(replacing("ufrag:peer", "ufrag:other"))}
        _, changed, _ = await desk.ask("PATCH", f"/v1/webrtc/calls/{call_sid}", body)
        await holds_for(5.0, lambda: not session.closed.is_set())
        peer.cut = False
        await peer.move(changed["sdp"], "other")
        heard = len(session.heard)
        await until(lambda: len(session.heard) > heard + 32_000)


async def test_a_page_that_is_left_ends_the_call(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer) as call:
        await desk.reaches(call["call_sid"], "active")
        peer.hang_up()
        ended = await desk.reaches(call["call_sid"], "ended")
        assert ended["reason"] == LegEnd.CLOSED.value


async def test_another_certificate_than_that_of_the_offer_gets_no_keys(desk: Desk) -> None:
    peer = BrowserPeer(tone(HERE_HZ, 100), shown=make_identity())
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    calls = len(desk.agent.sessions)
    async with desk.calling(peer) as call:
        ended = await desk.reaches(call["call_sid"], "ended")
        assert ended["reason"] == LegEnd.NO_KEYS.value
    assert len(desk.agent.sessions) == calls
    assert (await desk.ask("GET", f"/v1/calls/{call['call_sid']}"))[0] == 404


async def test_a_browser_that_never_connects_leaves_no_call(desk: Desk, peer: BrowserPeer) -> None:
    status, call, _ = await desk.ask("POST", "/v1/webrtc/calls", {"sdp": peer.offer(), "to": NUMBER})
    assert status == 201
    ended = await desk.reaches(call["call_sid"], "ended")
    assert ended["reason"] == LegEnd.NEVER_CONNECTED.value


async def test_no_call_is_made_for_a_browser_that_may_not_call_the_number(
    desk: Desk, peer: BrowserPeer
) -> None:
    body = {"sdp": peer.offer(), "to": FOREIGN}
    assert (await desk.ask("POST", "/v1/webrtc/calls", body))[0] == 403
    token = await desk.token(may_call=[FOREIGN])
    status, error, _ = await desk.ask("POST", "/v1/webrtc/calls", {**body, "to": NUMBER}, key=token)
    assert (status, error["code"]) == (403, "FORBIDDEN")
    status, error, _ = await desk.ask("POST", "/v1/webrtc/calls", body, key=token)
    assert (status, error["code"]) == (403, "NUMBER_NOT_OWNED")


async def test_a_token_calls_as_its_identity_and_sees_its_own_calls(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    token, other = await desk.token(), await desk.token(identity="ravi")
    body = {"sdp": peer.offer(), "to": NUMBER, "from": "ravi"}
    assert (await desk.ask("POST", "/v1/webrtc/calls", body, key=token))[0] == 403
    async with desk.calling(peer, key=token) as call:
        assert call["from"] == "asha"
        path = f"/v1/webrtc/calls/{call['call_sid']}"
        assert (await desk.ask("GET", path, key=token))[0] == 200
        for method in ("GET", "DELETE"):
            assert (await desk.ask(method, path, key=other))[0] == 404
        await desk.reaches(call["call_sid"], "active")
        assert (await desk.ask("DELETE", path, key=token))[0] == 204
    # It is no key of the other endpoints.
    assert (await desk.ask("GET", "/v1/calls", key=token))[0] == 401
    assert (await desk.ask("POST", "/v1/webrtc/tokens", {"identity": "x"}, key=token))[0] == 401


async def test_a_token_ends_with_its_time_and_with_its_key(
    desk: Desk, peer: BrowserPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"sdp": peer.offer(), "to": NUMBER}
    token = await desk.token(ttl_seconds=60)
    with monkeypatch.context() as later:
        later.setattr(webrtc_aio, "utc_now", lambda: utc_now() + timedelta(seconds=61))
        status, error, _ = await desk.ask("POST", "/v1/webrtc/calls", body, key=token)
        assert (status, error["code"]) == (401, "UNAUTHORIZED") and "expired" in error["message"]
    for forged in (token[:-4] + "AAAA", "wt_", "wt_%%%", "wt_" + "A" * 5000):
        assert (await desk.ask("POST", "/v1/webrtc/calls", body, key=forged))[0] == 401
    keys = desk.server.storage.keys
    record, key = await keys.issue(desk.account_sid, "platform")
    status, made, _ = await desk.ask("POST", "/v1/webrtc/tokens", {"identity": "asha"}, key=key)
    await keys.revoke(desk.account_sid, record.key_id)
    status, error, _ = await desk.ask("POST", "/v1/webrtc/calls", body, key=made["token"])
    assert (status, error["code"]) == (401, "UNAUTHORIZED") and "revoked" in error["message"]


_WITHOUT = ("m=audio", "a=fingerprint", "a=ice-ufrag", "a=ice-pwd", "a=rtcp-mux", "a=setup", "o=")


@pytest.mark.parametrize("line", _WITHOUT)
async def test_an_offer_that_lacks_something_is_refused(desk: Desk, peer: BrowserPeer, line: str) -> None:
    def without(lines: list[str]) -> list[str]:
        kept = [item for item in lines if not item.startswith(line)]
        return kept[:4] if line == "m=audio" else kept

    await refused(desk, peer.offer(without))


@pytest.mark.parametrize(
    "change",
    [
        ("a=setup:actpass", "a=setup:passive"),
        ("UDP/TLS/RTP/SAVPF", "RTP/AVP"),
        ("m=audio", "m=video"),
        ("0 PCMU/8000", "0 GSM/8000"),
        ("a=fingerprint:sha-256", "a=fingerprint:sha-1"),
        ("a=ice-ufrag:peer", "a=ice-ufrag:p"),
        ("a=mid:0", "a=mid:0 0"),
        ("v=0", "v=1"),
    ],
)
async def test_an_offer_that_is_wrong_is_refused(
    desk: Desk, peer: BrowserPeer, change: tuple[str, str]
) -> None:
    await refused(desk, peer.offer(replacing(*change)))


async def test_an_offer_that_is_too_large_is_refused(desk: Desk, peer: BrowserPeer) -> None:
    await refused(desk, peer.offer(lambda lines: [*lines, *(["a=x:" + "y" * 900] * 110)]))


async def refused(desk: Desk, sdp: str) -> None:
    legs = desk.server.services.browser_calls.socket.legs
    status, error, _ = await desk.ask("POST", "/v1/webrtc/calls", {"sdp": sdp, "to": NUMBER})
    assert (status, error["code"]) == (400, "VALIDATION_ERROR")
    assert [item["field"] for item in error["details"]["errors"]] == ["sdp"]
    assert desk.server.services.browser_calls.socket.legs == legs


async def test_a_number_of_the_account_may_be_shown_as_the_caller(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="forward", forward_to=TONE)
    assert desk.server.sandbox is not None
    for shown in ({"from": NUMBER}, {"key": await desk.token(**{"from": NUMBER})}):
        async with desk.calling(BrowserPeer(tone(HERE_HZ, 100)), **shown) as call:
            await desk.reaches(call["call_sid"], "active")
            assert call["from"] == NUMBER
    body = {"sdp": peer.offer(), "to": NUMBER, "from": FOREIGN}
    assert (await desk.ask("POST", "/v1/webrtc/calls", body))[0] == 403


async def test_a_browser_on_another_network_goes_on_with_the_call(desk: Desk, peer: BrowserPeer) -> None:
    await desk.bind(target="media_stream", stream_url=desk.agent.url)
    async with desk.calling(peer) as call:
        session = await desk.stream(call["call_sid"])
        await desk.reaches(call["call_sid"], "active")
        path = f"/v1/webrtc/calls/{call['call_sid']}"
        body = {"sdp": peer.offer(replacing("ufrag:peer", "ufrag:other"))}
        status, changed, _ = await desk.ask("PATCH", path, body)
        assert status == 200 and changed["sdp"] != call["sdp"]
        await peer.move(changed["sdp"], "other")
        heard, came = len(session.heard), len(peer.heard)
        await until(lambda: len(session.heard) > heard + 32_000 and len(peer.heard) > came + 16_000)
        tail = find_tone(samples_of(bytes(session.heard))[-8000:], session.sample_rate_hz)
        assert tail.frequency_hz == pytest.approx(HERE_HZ, abs=3)
        # Another path is all that may change.
        for change in (("ufrag:peer", "ufrag:other"), ("a=mid:0", "a=mid:1")):
            status, error, _ = await desk.ask("PATCH", path, {"sdp": peer.offer(replacing(*change))})
            assert (status, error["code"]) == (400, "VALIDATION_ERROR")


def replacing(was: str, becomes: str) -> Callable[[list[str]], list[str]]:
    """A change of an offer's lines."""
    return lambda lines: [line.replace(was, becomes) for line in lines]
