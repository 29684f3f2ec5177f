"""Bring your own carrier, over real SIP: numbers, applications and call logs of an account's own trunk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.process.server import Server
from fixtures.agent import DemoAgent
from fixtures.audio_check import find_tone, samples_of
from fixtures.carrier import SandboxCarrier
from fixtures.scripts import Hangup, Pause, PlayTone
from media.audio import tone
from sip import Destination
from sip.aio import Listen
from tests.support.loopback_server import loopback_settings
from tests.support.ports import port_range
from tests.support.waiting import look_again

PATIENCE_S = 40.0
ECHO, TONE = "+919800000001", "+919800000007"
NUMBER, SECOND = "+918047491899", "+918047491800"
ENDED = {"completed", "busy", "no-answer", "failed", "canceled"}
PORTAL = "/v1/trunk-portal"


@dataclass
class Town:
    """A server, the carrier that the account brings along, an agent, and a client of the API."""

    server: Server
    carrier: SandboxCarrier
    agent: DemoAgent
    http: aiohttp.ClientSession
    carrier_sid: str = ""
    gateway_sid: str = ""

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        account = self.server.demo
        assert account is not None
        headers = {"Authorization": f"Bearer {account.api_key}"}
        async with self.http.request(method, self.server.url + path, json=body, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def api(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self.ask(method, path, body)
        assert status < 300, answer
        return answer and answer["data"]

    async def application(self, **values: Any) -> str:
        return str((await self.api("POST", f"{PORTAL}/applications", {"name": "App", **values}))["app_sid"])

    async def number(self, number: str = NUMBER, **values: Any) -> str:
        body = {"number": number, "carrier_sid": self.carrier_sid, **values}
        return str((await self.api("POST", f"{PORTAL}/numbers", body))["number_sid"])

    async def up(self, gateway: str) -> dict[str, Any]:
        """The health of a gateway once it answered a probe."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                health: dict[str, Any] = (await self.api("GET", gateway))["health"]
                if health["state"] == "up":
                    return health
                await look_again()

    async def until(self, status: set[str], call_sid: str | None = None) -> dict[str, Any]:
        """The call, or the latest one, once it has one of the statuses."""
        return await self.once(lambda call: call["status"] in status, call_sid)

    async def recorded(self, call_sid: str) -> None:
        """Wait until the call's recording can be had, which is after the call's end."""
        await self.once(lambda call: call["recording_url"] is not None, call_sid)

    async def once(
        self, condition: Callable[[dict[str, Any]], bool], call_sid: str | None = None
    ) -> dict[str, Any]:
        """The call, or the latest one for which the condition holds, once there is one."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                calls = await self.api("GET", "/v1/calls")
                for call in calls:
                    if call_sid in (None, call["call_sid"]) and condition(call):
                        return dict(call)
                await look_again()


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    settings = loopback_settings(tmp_path)
    server, agent = Server(settings), DemoAgent(tone(700.0, 500))
    await server.start()
    await agent.start()
    carrier = SandboxCarrier(Listen("udp", "127.0.0.1", 0, None), rtp_ports=port_range(200))
    await carrier.start()
    sip = server.control.user_agent.addresses[0]
    carrier.target = Destination("udp", sip.host, sip.port)
    async with aiohttp.ClientSession() as http:
        made = Town(server, carrier, agent, http)
        made.carrier_sid = (await made.api("POST", f"{PORTAL}/carriers", {"name": "Own"}))["carrier_sid"]
        host, port = carrier.address
        gateway = {"host": host, "port": port, "send_options_ping": True}
        path = f"{PORTAL}/carriers/{made.carrier_sid}/gateways"
        made.gateway_sid = (await made.api("POST", path, gateway))["gateway_sid"]
        yield made
        await server.control.drain(PATIENCE_S)
        assert server.control.engine.stats().ports_in_use == 0
    await agent.stop()
    await carrier.stop()
    await server.stop()


async def test_calls_leave_and_come_in_by_the_own_carrier(town: Town) -> None:
    app_sid = await town.application(
        target="media_stream", stream_url=town.agent.url, sample_rate=16000, record_all_calls=True
    )
    number_sid = await town.number(app_sid=app_sid)
    placed = await town.api("POST", "/v1/calls", {"from": NUMBER, "to": TONE, "app_sid": app_sid})
    session = await asyncio.wait_for(town.agent.session(), PATIENCE_S)
    await asyncio.wait_for(session.hears(32_000), PATIENCE_S)
    await session.hang_up()
    call = await town.until(ENDED, placed["call_sid"])
    assert (call["status"], call["app_sid"]) == ("completed", app_sid)
    assert (call["carrier_sid"], call["phone_number_id"]) == (town.carrier_sid, number_sid)
    await town.recorded(placed["call_sid"])
    assert find_tone(samples_of(bytes(session.heard)), 16000).frequency_hz == pytest.approx(1000, abs=3)
    assert town.server.sandbox is not None and not town.server.sandbox.calls
    assert [far.number for far in town.carrier.calls] == [TONE]

    far = await asyncio.wait_for(town.carrier.place_call(NUMBER, (PlayTone(440, 1.0), Hangup())), PATIENCE_S)
    assert 200 in far.heard.statuses and far.heard.packets > 0
    call = await town.once(lambda call: (call["direction"], call["status"]) == ("inbound", "completed"))
    assert (call["direction"], call["app_sid"], call["carrier_sid"]) == ("inbound", app_sid, town.carrier_sid)

    inbound, outbound = await town.api("GET", f"{PORTAL}/call-logs?days=1")
    assert (inbound["direction"], outbound["direction"]) == ("inbound", "outbound")
    for entry in (inbound, outbound):
        assert (entry["trunk"], entry["remote_host"], entry["answered"]) == ("Own", "127.0.0.1", True)
        assert (entry["codec"], entry["termination_reason"]) == ("PCMU", "NORMAL_CLEARING")
        # How good it is depends on the machine's other work.
        assert 1.0 <= entry["mos"] <= 4.5
    by_call_id = await town.api("GET", f"{PORTAL}/call-logs?filter={outbound['sip_call_id']}")
    assert by_call_id == [outbound]


async def test_the_next_call_goes_where_number_and_carrier_say_now(town: Town) -> None:
    talks = await town.application(target="media_stream", stream_url=town.agent.url)
    forwards = await town.application(target="forward", forward_to=ECHO)
    number_sid = await town.number(app_sid=talks)
    carrier, number = f"{PORTAL}/carriers/{town.carrier_sid}", f"{PORTAL}/numbers/{number_sid}"
    await town.api("PATCH", carrier, {"app_sid": forwards})

    async def reached() -> tuple[str | None, int]:
        before = {call["call_sid"] for call in await town.api("GET", "/v1/calls")}
        await asyncio.wait_for(town.carrier.place_call(NUMBER, (Pause(0.2), Hangup())), PATIENCE_S)
        call = await town.once(lambda call: call["call_sid"] not in before and call["status"] in ENDED)
        return call["app_sid"], call["sip_status"]

    assert await reached() == (talks, 200)
    await town.api("PATCH", number, {"app_sid": None})
    assert await reached() == (forwards, 200)
    # The forwarded call went out by the same carrier, which is the number's own.
    assert [far.number for far in town.carrier.calls][-1] == ECHO
    bound = {"target": "media_stream", "stream_url": town.agent.url}
    await town.api("PUT", f"/v1/phone-numbers/{number_sid}/inbound", bound)
    assert await reached() == (None, 200)
    await town.api("DELETE", f"/v1/phone-numbers/{number_sid}/inbound")
    await town.api("PATCH", carrier, {"app_sid": None})
    app_sid, status = await reached()
    assert (app_sid, status) == (None, 480)
    await town.api("PATCH", f"{PORTAL}/applications/{talks}", {"target": "forward", "forward_to": TONE})
    await town.api("PATCH", number, {"app_sid": talks})
    assert await reached() == (talks, 200)
    assert town.carrier.calls[-1].number == TONE


async def test_what_carries_a_call_cannot_be_deleted(town: Town) -> None:
    app_sid = await town.application(target="forward", forward_to=ECHO)
    number_sid = await town.number(app_sid=app_sid)
    far = town.carrier.call(NUMBER, "listen")
    call = await town.until({"in-progress"})
    carrier = f"{PORTAL}/carriers/{town.carrier_sid}"
    gateway = f"{carrier}/gateways/{town.gateway_sid}"
    number, application = f"{PORTAL}/numbers/{number_sid}", f"{PORTAL}/applications/{app_sid}"
    for path, calls in ((carrier, 2), (gateway, 2), (number, 1), (application, 1)):
        status, answer = await town.ask("DELETE", path)
        assert (status, answer["error"]["code"]) == (409, "CONFLICT"), path
        # Both legs of the call are on the carrier.
        assert answer["error"]["details"] == {"calls": calls}
    await town.api("DELETE", f"/v1/Accounts/{call['account_sid']}/Calls/{call['call_sid']}")
    await asyncio.wait_for(far.finished(), PATIENCE_S)
    await town.until(ENDED)
    for path, details in ((carrier, {"numbers": 1}), (application, {"numbers": 1})):
        status, answer = await town.ask("DELETE", path)
        assert (status, answer["error"]["details"]) == (409, details)
    for path in (number, application, gateway, carrier):
        assert (await town.ask("DELETE", path))[0] == 204
    refused = await asyncio.wait_for(town.carrier.place_call(NUMBER, "listen"), PATIENCE_S)
    assert refused.heard.statuses[-1] in (403, 404)


async def test_a_gateway_that_moves_is_judged_anew(town: Town) -> None:
    path = f"{PORTAL}/carriers/{town.carrier_sid}/gateways/{town.gateway_sid}"
    health = await town.up(path)
    assert health["last_ok_at"] is not None and health["rtt_ms"] is not None
    assert (await town.api("PATCH", path, {"weight": 7}))["health"] == health
    moved = await town.api("PATCH", path, {"host": "127.0.0.2", "send_options_ping": False})
    assert moved["health"] == {"state": "unknown", "last_ok_at": None, "rtt_ms": None}


async def test_calls_of_an_application_are_refused_in_words(town: Town) -> None:
    number = await town.number()
    app_sid = await town.application(target="forward", forward_to=ECHO)
    account_sid = town.server.demo.account_sid if town.server.demo is not None else ""
    call = {"from": NUMBER, "to": ECHO}
    status, answer = await town.ask("POST", "/v1/calls", {**call, "app_sid": number})
    assert (status, answer["error"]["details"]["errors"][0]["field"]) == (400, "app_sid")
    status, answer = await town.ask("POST", f"/v1/Accounts/{account_sid}/Calls", {**call, "app_sid": app_sid})
    assert (status, answer["error"]["details"]["errors"][0]["field"]) == (400, "stream_url")
    other, _ = await town.server.storage.accounts.create("Other")
    theirs = await town.server.storage.applications.create(
        other.account_sid, {"name": "T", "target": "media_stream", "stream_url": town.agent.url}
    )
    status, answer = await town.ask("POST", "/v1/calls", {**call, "app_sid": theirs.app_sid})
    assert (status, answer["error"]["code"]) == (403, "FORBIDDEN")


async def test_calls_to_a_number_on_a_carrier_with_a_password_need_it_from_everybody(town: Town) -> None:
    """Also from the platform's carrier at the same address, which is known by that address."""
    sandbox = town.server.sandbox
    assert sandbox is not None
    await town.number(app_sid=await town.application(target="forward", forward_to=ECHO))
    password = {"trunk_type": "auth", "inbound_auth_username": "them", "inbound_auth_password": "s3cret"}
    await town.api("PATCH", f"{PORTAL}/carriers/{town.carrier_sid}", password)
    for carrier in (town.carrier, sandbox):
        far = await asyncio.wait_for(carrier.place_call(NUMBER, "listen"), PATIENCE_S)
        assert far.heard.statuses[-1] == 401
    assert await town.api("GET", "/v1/calls") == []
