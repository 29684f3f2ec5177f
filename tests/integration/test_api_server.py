"""A whole server in this process: first run, calls to the sandbox carrier, restart, drain."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.process.failures import StartFailed
from api.process.first_run import curl, greeting
from api.process.lifecycle import Phase
from api.process.server import Server
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import look_again

ECHO, BUSY, RINGS = "+919800000001", "+919800000003", "+919800000004"
NOBODY = "00000000-0000-4000-8000-000000000000"
ENDED = {"completed", "busy", "no-answer", "failed", "canceled"}


@asynccontextmanager
async def running(data_dir: Path, **changes: str) -> AsyncIterator[Server]:
    server = Server(loopback_settings(data_dir, rtp_ports=200, **changes))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class Api:
    def __init__(self, server: Server, session: aiohttp.ClientSession, key: str) -> None:
        self.server = server
        self._session = session
        self._key = key

    async def __call__(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        lines = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        async with self._session.request(method, self.server.url + path, json=body, headers=lines) as answer:
            content = await answer.read()
            if "json" in answer.content_type:
                return answer.status, json.loads(content)
            return answer.status, content.decode() if answer.content_type == "text/plain" else content

    async def ended(self, call_sid: str) -> dict[str, Any]:
        assert self.server.demo is not None
        path = f"/v1/Accounts/{self.server.demo.account_sid}/Calls/{call_sid}"
        async with asyncio.timeout(40):
            while True:
                _, answer = await self("GET", path)
                if answer["data"]["status"] in ENDED:
                    found: dict[str, Any] = answer["data"]
                    return found
                await look_again()

    async def idle(self) -> str:
        """Wait until no call is left, and return the metrics."""
        async with asyncio.timeout(40):
            while self.server.control.active_calls:  # noqa: ASYNC110 - it is a figure, not an event
                await look_again()
        await self.server.storage.calls.flush()
        _, text = await self("GET", "/metrics")
        return str(text)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path) as server, aiohttp.ClientSession() as session:
        assert server.demo is not None and server.demo.api_key is not None
        yield Api(server, session, server.demo.api_key)


async def test_the_curl_line_of_the_first_run_places_a_call(api: Api) -> None:
    demo = api.server.demo
    assert demo is not None
    line = curl(demo, api.server.url)
    assert line in greeting(demo, api.server.url)
    words = shlex.split(line)
    assert words[words.index("-X") + 2] == api.server.url + "/v1/calls"
    body = json.loads(words[words.index("-d") + 1])
    status, answer = await api("POST", "/v1/calls", body)
    assert status == 201, answer
    call = await api.ended(answer["data"]["call_sid"])
    assert (call["status"], call["hangup_cause"]) == ("completed", "NORMAL_CLEARING")
    assert call["answered_at"] is not None
    assert call["price"] > 0
    metrics = await api.idle()
    assert "trunkline_calls_active 0.0" in metrics
    assert "trunkline_wallet_reserved_paise 0.0" in metrics
    assert "trunkline_rtp_transcoded_streams 0.0" in metrics
    assert "trunkline_recordings_open 0.0" in metrics
    assert "trunkline_conferences_open 0.0" in metrics
    assert "trunkline_rtp_mos_count" in metrics and "trunkline_rtp_loss_ratio_bucket" in metrics
    assert 'trunkline_rtp_packets_dropped_total{reason="foreign"} 0.0' in metrics
    assert 'trunkline_calls_ended_total{direction="outbound",status="completed"} 1.0' in metrics
    status, trace = await api("GET", f"/v1/calls/{call['call_sid']}/trace")
    first = [message["message"].split(" ", 1)[0] for message in trace["data"]["messages"]]
    assert first[0] == "INVITE" and "BYE" in first
    arrows = trace["data"]["ladder"].splitlines()[2:]
    assert len(arrows) == len(first) and "INVITE [SDP]" in arrows[0]
    _, listed = await api("GET", "/v1/calls?status=completed&to=" + ECHO)
    assert [item["call_sid"] for item in listed["data"]] == [call["call_sid"]]


async def test_a_recording_is_found_where_the_call_says(api: Api) -> None:
    assert api.server.demo is not None
    play = [{"verb": "play", "url": "prompt:en/goodbye"}, {"verb": "hangup"}]
    body = {"from": api.server.demo.number, "to": ECHO, "verbs": play, "record": True}
    _, answer = await api("POST", "/v1/calls", body)
    call_sid = answer["data"]["call_sid"]
    status, refused = await api("GET", f"/recordings/{call_sid}.wav")
    assert (status, refused["error"]["code"]) == (404, "NOT_FOUND")
    await api.ended(call_sid)
    await api.idle()
    call = await api.ended(call_sid)
    status, audio = await api("GET", call["recording_url"])
    assert status == 200
    assert audio[:4] == b"RIFF" and len(audio) > 10_000
    _, key = await api.server.storage.accounts.create("Other", 0, True, 10, 10)
    async with aiohttp.ClientSession() as session:
        status, _ = await Api(api.server, session, key)("GET", call["recording_url"])
        assert status == 403


async def test_a_call_comes_in_to_the_demo_number_once_it_is_bound(api: Api) -> None:
    server = api.server
    assert server.demo is not None and server.sandbox is not None
    (number,) = (await api("GET", "/v1/phone-numbers"))[1]["data"]
    assert number["inbound_target_type"] == "none"
    path, forward = f"/v1/phone-numbers/{number['id']}/inbound", {"target": "forward", "forward_to": ECHO}
    assert (await api("PUT", path, forward))[0] == 200, "no force is needed"
    incoming = server.sandbox.call(server.demo.number)
    query = "/v1/calls?direction=inbound&status=in-progress"
    async with asyncio.timeout(40):
        while not (calls := (await api("GET", query))[1]["data"]):  # noqa: ASYNC110 - asked over HTTP
            await look_again()
    assert calls[0]["to"] == server.demo.number
    incoming.hangup()
    call = await api.ended(calls[0]["call_sid"])
    assert (call["status"], call["hangup_source"]) == ("completed", "caller")
    assert "trunkline_rtp_ports_in_use 0.0" in await api.idle()


async def test_a_busy_number(api: Api) -> None:
    assert api.server.demo is not None
    body = {"from": api.server.demo.number, "to": BUSY, "verbs": [{"verb": "hangup"}]}
    _, answer = await api("POST", "/v1/calls", body)
    call = await api.ended(answer["data"]["call_sid"])
    assert (call["status"], call["hangup_cause"], call["sip_status"]) == ("busy", "USER_BUSY", 486)
    assert not call["price"]


async def test_hang_up_while_it_rings_and_again(api: Api) -> None:
    demo = api.server.demo
    assert demo is not None
    body = {"from": demo.number, "to": RINGS, "verbs": [{"verb": "hangup"}]}
    _, answer = await api("POST", "/v1/calls", body)
    path = f"/v1/Accounts/{demo.account_sid}/Calls/{answer['data']['call_sid']}"
    status, _ = await api("DELETE", path)
    assert status == 200
    call = await api.ended(answer["data"]["call_sid"])
    assert (call["status"], call["hangup_cause"], call["hangup_source"]) == (
        "canceled",
        "ORIGINATOR_CANCEL",
        "api",
    )
    await api.idle()
    status, refused = await api("DELETE", path)
    assert (status, refused["error"]["code"]) == (409, "CALL_ENDED")


async def test_an_idempotency_key_places_one_call(api: Api) -> None:
    assert api.server.demo is not None
    body = {"from": api.server.demo.number, "to": BUSY, "verbs": [{"verb": "hangup"}]}
    headers = {"Idempotency-Key": "once"}
    answers = [await api("POST", "/v1/calls", body, headers) for _ in range(2)]
    assert answers[0] == answers[1]
    status, _ = await api("POST", "/v1/calls", {**body, "tag": "x"}, headers)
    assert status == 409
    await api.idle()
    _, listed = await api("GET", "/v1/calls")
    assert listed["meta"]["total"] == 1


async def test_one_of_two_requests_with_the_same_key_at_once_places_the_call(api: Api) -> None:
    assert api.server.demo is not None
    body = {"from": api.server.demo.number, "to": BUSY, "verbs": [{"verb": "hangup"}]}
    headers = {"Idempotency-Key": "at-once"}
    answers = await asyncio.gather(*(api("POST", "/v1/calls", body, headers) for _ in range(5)))
    assert {status for status, _ in answers} <= {201, 409}
    placed = {answer["data"]["call_sid"] for status, answer in answers if status == 201}
    assert len(placed) == 1
    await api.idle()
    assert (await api("GET", "/v1/calls"))[1]["meta"]["total"] == 1


@pytest.mark.parametrize(
    ("changes", "status", "code", "field"),
    [
        ({"from": "+918047999999"}, 403, "NUMBER_NOT_OWNED", None),
        ({"from": "hello"}, 400, "VALIDATION_ERROR", "from"),
        ({"to": "+1"}, 400, "VALIDATION_ERROR", "to"),
        ({"verbs": [{"verb": "play", "url": "prompt:nonsense"}]}, 400, "VALIDATION_ERROR", "verbs[0].url"),
        ({"verbs": None, "stream_url": "http://x/ws"}, 400, "VALIDATION_ERROR", "stream_url"),
        (
            {"verbs": None, "stream_url": "wss://x/ws", "sample_rate": 44100},
            400,
            "VALIDATION_ERROR",
            "sample_rate",
        ),
        (
            {"carrier_sid": "00000000-0000-4000-8000-000000000000"},
            400,
            "VALIDATION_ERROR",
            "carrier_sid",
        ),
    ],
)
async def test_requests_that_are_refused(
    api: Api, changes: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    assert api.server.demo is not None
    body = {"from": api.server.demo.number, "to": ECHO, "verbs": [{"verb": "hangup"}], **changes}
    got, answer = await api("POST", "/v1/calls", body)
    assert (got, answer["error"]["code"]) == (status, code)
    if field is not None:
        assert [error["field"] for error in answer["error"]["details"]["errors"]] == [field]
    _, listed = await api("GET", "/v1/calls")
    assert listed["meta"]["total"] == 0


async def test_an_empty_wallet(api: Api) -> None:
    server = api.server
    account, key = await server.storage.accounts.create("Poor", 0, True, 10, 10)
    number = await server.storage.numbers.add(account.account_sid, "+918047000099")
    async with aiohttp.ClientSession() as session:
        poor = Api(server, session, key)
        status, wiring = await poor("POST", f"/v1/phone-numbers/{number.phone_number_id}/carrier")
        assert (status, wiring["data"]["outbound_capable"]) == (200, True)
        body = {"from": "+918047000099", "to": ECHO, "verbs": [{"verb": "hangup"}]}
        status, answer = await poor("POST", "/v1/calls", body)
        assert (status, answer["error"]["code"]) == (402, "INSUFFICIENT_BALANCE")
        _, listed = await poor("GET", "/v1/calls")
        assert listed["meta"]["total"] == 0


async def test_wiring_over_the_real_services(api: Api) -> None:
    server = api.server
    assert server.demo is not None
    number = await server.storage.numbers.add(server.demo.account_sid, "+918047000002")
    path = f"/v1/phone-numbers/{number.phone_number_id}"
    stream = {"target": "media_stream", "stream_url": "ws://127.0.0.1:1/ws", "sample_rate": 16000}
    status, bound = await api("PUT", f"{path}/inbound", stream)
    assert (status, bound["data"]["inbound_target"]) == (200, "media_stream")
    assert bound["data"]["carrier_registered"]
    forward = {"target": "forward", "forward_to": ECHO}
    status, refused = await api("PUT", f"{path}/inbound", forward)
    assert (status, refused["error"]["code"]) == (409, "inbound_conflict")
    status, bound = await api("PUT", f"{path}/inbound", {**forward, "force": True})
    assert (status, bound["data"]["inbound_target"]) == (200, "forward")
    status, refused = await api("DELETE", f"{path}/carrier")
    assert (status, refused["error"]["code"]) == (409, "inbound_bound")
    status, gone = await api("DELETE", f"{path}/carrier?force=true")
    assert (status, gone["data"]["status"]) == (200, "deregistered")
    for body, field in (
        ({"target": "voice_agent", "agent_id": "x", "workspace_id": "y"}, "workspace_id"),
        ({"target": "voice_agent", "agent_id": NOBODY, "workspace_id": NOBODY}, "agent_id"),
        ({"target": "webhook", "webhook_url": "ftp://example.com"}, "webhook_url"),
        ({"target": "nonsense"}, "target"),
        ({"target": "media_stream"}, "stream_url"),
        ({"target": "media_stream", "stream_url": "https://x"}, "stream_url"),
        ({**stream, "sample_rate": 44100}, "sample_rate"),
        ({**stream, "stream_protocol": "smoke"}, "stream_protocol"),
    ):
        status, refused = await api("PUT", f"{path}/inbound", body)
        assert (status, refused["error"]["code"]) == (400, "bind_failed"), body
        assert field in [error["field"] for error in refused["error"]["details"]["errors"]]


async def test_trunks_over_the_real_services(api: Api) -> None:
    status, made = await api("POST", "/v1/trunk-portal/carriers", {"name": "Own", "codecs": ["PCMA"]})
    assert (status, made["data"]["codecs"]) == (201, ["PCMA"])
    carrier = f"/v1/trunk-portal/carriers/{made['data']['carrier_sid']}"
    status, gateway = await api("POST", f"{carrier}/gateways", {"host": "192.0.2.1", "outbound": False})
    assert (status, gateway["data"]["outbound"]) == (201, False)
    assert (await api("GET", f"{carrier}/gateways"))[1]["meta"]["total"] == 1
    assert (await api("GET", carrier))[1]["data"] == made["data"]
    status, changed = await api("PATCH", carrier, {"tech_prefix": "77#", "forwarded_headers": ["X-A"]})
    assert status == 200
    assert (await api("GET", carrier))[1]["data"] == changed["data"]
    expected = {**made["data"], "tech_prefix": "77#", "forwarded_headers": ["X-A"]}
    assert {**changed["data"], "updated_at": made["data"]["updated_at"]} == expected
    status, refused = await api("PATCH", carrier, {"trunk_type": "reg"})
    assert (status, refused["error"]["details"]["errors"][0]["field"]) == (400, "register_username")
    place = f"{carrier}/gateways/{gateway['data']['gateway_sid']}"
    status, changed = await api("PATCH", place, {"port": 5070, "max_concurrent_calls": 3})
    assert (status, changed["data"]["port"], changed["data"]["host"]) == (200, 5070, "192.0.2.1")
    assert (await api("PATCH", place, {"protocol": "auto"}))[0] == 400
    account, key = await api.server.storage.accounts.create("Other", 0, True, 10, 10)
    async with aiohttp.ClientSession() as session:
        other = Api(api.server, session, key)
        for method, path, body in (
            ("GET", carrier, None),
            ("PATCH", carrier, {"name": "Theirs"}),
            ("PATCH", place, {"weight": 2}),
            ("DELETE", carrier, None),
            ("GET", f"{carrier}/gateways", None),
            ("POST", f"{carrier}/gateways", {"host": "192.0.2.1"}),
            ("DELETE", f"{carrier}/gateways/{gateway['data']['gateway_sid']}", None),
        ):
            status, refused = await other(method, path, body)
            assert (status, refused["error"]["code"]) == (403, "FORBIDDEN"), (method, path)
    assert (await api("DELETE", f"{carrier}/gateways/{gateway['data']['gateway_sid']}"))[0] == 204
    assert (await api("DELETE", carrier))[0] == 204
    assert (await api("GET", carrier))[0] == 404


async def test_a_revoked_key(api: Api) -> None:
    storage = api.server.storage
    account, key = await storage.accounts.create("Gone", 0, True, 10, 10)
    (record,) = await storage.keys.list(account.account_sid)
    async with aiohttp.ClientSession() as session:
        gone = Api(api.server, session, key)
        assert (await gone("GET", "/v1/calls"))[0] == 200
        await storage.keys.revoke(account.account_sid, record.key_id)
        status, refused = await gone("GET", "/v1/calls")
        assert (status, refused["error"]["code"]) == (401, "UNAUTHORIZED")


async def test_a_second_run_keeps_everything_but_the_key(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        first = server.demo
        assert first is not None and first.api_key is not None
        key = first.api_key
    async with running(tmp_path) as server, aiohttp.ClientSession() as session:
        demo = server.demo
        assert demo is not None
        assert (demo.account_sid, demo.api_key) == (first.account_sid, None)
        text = greeting(demo, server.url)
        assert f"trunkline keys create --account {demo.account_sid} --service all --scopes '*'" in text
        assert key not in text
        # The sandbox listens on another port this time; its carrier has followed it.
        api = Api(server, session, key)
        body = {"from": demo.number, "to": BUSY, "verbs": [{"verb": "hangup"}]}
        _, answer = await api("POST", "/v1/calls", body)
        assert (await api.ended(answer["data"]["call_sid"]))["status"] == "busy"
    async with running(tmp_path, SANDBOX_CARRIER="0") as server, aiohttp.ClientSession() as session:
        api = Api(server, session, key)
        status, refused = await api("POST", "/v1/calls", body)
        assert (status, refused["error"]["code"]) == (400, "VALIDATION_ERROR")
        assert refused["error"]["details"]["errors"][0]["reason"] == "no_route"
        assert await server.storage.trunks.platform_carriers() == []


async def test_no_demo_account_without_the_sandbox(tmp_path: Path) -> None:
    async with running(tmp_path, SANDBOX_CARRIER="0") as server:
        assert server.demo is None
        assert await server.storage.accounts.list() == []
        assert "trunkline accounts create" in greeting(server.demo, server.url)


async def test_draining(tmp_path: Path) -> None:
    async with running(tmp_path, DRAIN_S="0.3") as server, aiohttp.ClientSession() as session:
        assert server.demo is not None and server.demo.api_key is not None
        api = Api(server, session, server.demo.api_key)
        assert (await api("GET", "/ready")) == (200, {"status": "ready"})
        body = {"from": server.demo.number, "to": ECHO, "verbs": [{"verb": "pause", "length": 600}]}
        _, answer = await api("POST", "/v1/calls", body)
        call_sid = answer["data"]["call_sid"]
        drain = asyncio.create_task(server.drain())
        async with asyncio.timeout(40):
            while server.lifecycle.phase is not Phase.DRAINING:  # noqa: ASYNC110 - a figure, not an event
                await look_again()
        assert (await api("GET", "/ready"))[0] == 503
        assert (await api("GET", "/health"))[0] == 200
        status, refused = await api("POST", "/v1/calls", body)
        assert (status, refused["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
        await drain
        call = await api.ended(call_sid)
        assert call["hangup_source"] == "system"
        assert server.control.active_calls == 0


@pytest.mark.parametrize("variable", ["HTTP_LISTEN", "SIP_LISTEN", "SANDBOX_LISTEN"])
async def test_an_address_that_is_taken_is_named(tmp_path: Path, variable: str) -> None:
    async with running(tmp_path / "one") as server:
        assert server.sandbox is not None
        sip = next(listen for listen in server.control.user_agent.addresses if listen.transport == "tcp")
        taken = {
            "HTTP_LISTEN": server.url.removeprefix("http://"),
            "SIP_LISTEN": f"tcp:{sip.host}:{sip.port}",
            "SANDBOX_LISTEN": f"udp:127.0.0.1:{server.sandbox.address[1]}",
        }[variable]
        before = len(asyncio.all_tasks())
        with pytest.raises(StartFailed, match=f"TRUNKLINE_{variable}"):
            async with running(tmp_path / "two", **{variable: taken}):
                pass
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) <= before


async def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    settings = {"SIP_LISTEN": "tls:127.0.0.1:0", "SIP_TLS_CERT": str(missing), "SIP_TLS_KEY": str(missing)}
    with pytest.raises(StartFailed, match=r"TRUNKLINE_SIP_TLS_CERT.*missing\.pem: No such file"):
        async with running(tmp_path / "server", **settings):
            pass
