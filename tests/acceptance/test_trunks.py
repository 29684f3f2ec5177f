"""Carriers, gateways, numbers and applications of the customer, and call logs (telephony specification)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.clients.agent import Agent
from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner, Phone
from tests.acceptance.clients.waiting import appears
from tests.acceptance.resources import APPLICATION, CALL_LOG, CARRIER, GATEWAY, META, PAGE, TRUNK_NUMBER
from tests.acceptance.shapes import assert_fits, assert_platform_error
from tests.acceptance.stage import Customer, Line, mobile, open_line, own_number
from tests.support.server_process import ServerProcess

PORTAL = "/v1/trunk-portal"
UNKNOWN = "01a1ffc4-0000-7000-8000-000000000000"
BOT = {"name": "Bot", "target": "media_stream", "stream_url": "wss://bot.example.com/ws"}


async def carrier(api: Api, **fields: Any) -> dict[str, Any]:
    """A new carrier."""
    reply = await api.post(f"{PORTAL}/carriers", {"name": "My carrier", **fields})
    made: dict[str, Any] = reply.expect(201).data
    return made


async def test_a_carrier_is_created_shown_changed_and_deleted(api: Api) -> None:
    reply = (await api.post(f"{PORTAL}/carriers", {"name": "My carrier", "description": "For tests"})).expect(
        201
    )
    assert_fits(reply.body, {"data": CARRIER, "meta": META})
    made = reply.data
    path = f"{PORTAL}/carriers/{made['carrier_sid']}"
    assert (made["name"], made["trunk_type"], made["is_active"]) == ("My carrier", "static_ip", True)
    assert made["sid"] == made["carrier_sid"]
    assert (await api.get(path)).expect(200).data == made
    listed = (await api.get(f"{PORTAL}/carriers", per_page=100)).expect(200)
    assert_fits(listed.body, {"data": [CARRIER], "meta": PAGE})
    assert made in listed.data
    change = {"name": "Renamed", "codecs": ["PCMA"], "max_concurrent_calls": 5}
    changed = (await api.patch(path, change)).expect(200)
    assert_fits(changed.body, {"data": CARRIER})
    assert {name: changed.data[name] for name in change} == change
    assert changed.data["description"] == "For tests"
    assert (await api.delete(path)).expect(204).content == b""
    assert_platform_error(await api.get(path), 404, "NOT_FOUND")


async def test_the_password_of_a_carrier_is_never_shown(api: Api) -> None:
    secret = "a password of the carrier"
    made = await carrier(api, inbound_auth_username="shop", inbound_auth_password=secret)
    listed = await api.get(f"{PORTAL}/carriers", per_page=100)
    assert secret.encode() not in listed.content
    assert made["inbound_auth_username"] == "shop" and "inbound_auth_password" not in made


async def test_wrong_fields_of_a_carrier_are_named(api: Api) -> None:
    path = f"{PORTAL}/carriers"
    assert_platform_error(await api.post(path, {}), 400, "VALIDATION_ERROR", "name")
    wrong = {"name": "", "trunk_type": "magic", "codecs": [], "colour": 1}
    reply = await api.post(path, wrong)
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "name", "trunk_type", "codecs", "colour")
    made = await carrier(api)
    reply = await api.patch(f"{path}/{made['carrier_sid']}", {"srtp": "maybe"})
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "srtp")


async def test_a_carrier_of_the_type_auth_may_have_its_own_password_only(api: Api) -> None:
    made = await carrier(api)
    change = {
        "trunk_type": "auth",
        "inbound_auth_username": "shop",
        "inbound_auth_password": "a long password",
    }
    changed = (await api.patch(f"{PORTAL}/carriers/{made['carrier_sid']}", change)).expect(200).data
    assert (changed["trunk_type"], changed["inbound_auth_username"]) == ("auth", "shop")


async def test_a_carrier_that_registers_is_registered(api: Api, phone: Phone) -> None:
    made = await carrier(
        api, requires_register=True, register_username="shop", register_password="a long password"
    )
    path = f"{PORTAL}/carriers/{made['carrier_sid']}"
    gateway = {"host": phone.host, "port": phone.port}
    (await api.post(f"{path}/gateways", gateway)).expect(201)
    registered = await api.until(path, lambda found: found["register_status"]["state"] == "registered")
    assert_fits(registered, CARRIER)
    assert "sip:shop@" in phone.registrations[0].get("to")
    (await api.delete(path)).expect(204)
    await appears(lambda: phone.registrations[-1].get("expires") == "0", "the end of the registration")


async def test_a_gateway_is_created_listed_and_deleted(api: Api) -> None:
    made = await carrier(api)
    path = f"{PORTAL}/carriers/{made['carrier_sid']}/gateways"
    body = {
        "host": "192.0.2.7",
        "port": 5062,
        "protocol": "tcp",
        "inbound": False,
        "priority": 1,
        "weight": 3,
    }
    reply = (await api.post(path, body)).expect(201)
    assert_fits(reply.body, {"data": GATEWAY, "meta": META})
    assert {name: reply.data[name] for name in body} == body
    assert reply.data["outbound"] is True and reply.data["carrier_sid"] == made["carrier_sid"]
    first = (await api.post(path, {"host": "sip.carrier.example"})).expect(201).data
    assert (first["port"], first["protocol"], first["netmask"]) == (5060, "udp", 32)
    listed = (await api.get(path)).expect(200)
    assert_fits(listed.body, {"data": [GATEWAY], "meta": PAGE})
    sids = [gateway["gateway_sid"] for gateway in listed.data]
    assert sids == [first["gateway_sid"], reply.data["gateway_sid"]]
    one = f"{path}/{first['gateway_sid']}"
    assert (await api.delete(one)).expect(204).content == b""
    assert_platform_error(await api.delete(one), 404, "NOT_FOUND")
    wrong = await api.post(path, {"host": "not a host", "port": 0, "protocol": "smoke"})
    assert_platform_error(wrong, 400, "VALIDATION_ERROR", "host", "port", "protocol")


async def test_a_gateway_is_taken_once(api: Api) -> None:
    made = await carrier(api)
    path = f"{PORTAL}/carriers/{made['carrier_sid']}/gateways"
    gateway = {"host": "192.0.2.7", "port": 5062, "protocol": "udp"}
    (await api.post(path, gateway)).expect(201)
    assert_platform_error(await api.post(path, gateway), 409, "CONFLICT")
    (await api.post(path, {**gateway, "protocol": "tcp"})).expect(201)
    assert len((await api.get(path)).expect(200).data) == 2


async def test_a_number_is_registered_listed_changed_and_removed(api: Api) -> None:
    made = await carrier(api)
    app = (await api.post(f"{PORTAL}/applications", BOT)).expect(201).data
    body = {"number": own_number(), "carrier_sid": made["carrier_sid"], "friendly_name": "Desk"}
    reply = (await api.post(f"{PORTAL}/numbers", body)).expect(201)
    assert_fits(reply.body, {"data": TRUNK_NUMBER, "meta": META})
    assert {name: reply.data[name] for name in body} == body
    listed = (await api.get(f"{PORTAL}/numbers", carrier_sid=made["carrier_sid"])).expect(200)
    assert_fits(listed.body, {"data": [TRUNK_NUMBER], "meta": PAGE})
    assert [number["number_sid"] for number in listed.data] == [reply.data["number_sid"]]
    assert_platform_error(await api.post(f"{PORTAL}/numbers", body), 409, "CONFLICT")
    path = f"{PORTAL}/numbers/{reply.data['number_sid']}"
    changed = (await api.patch(path, {"app_sid": app["app_sid"], "friendly_name": None})).expect(200)
    assert_fits(changed.body, {"data": TRUNK_NUMBER})
    assert (changed.data["app_sid"], changed.data["friendly_name"]) == (app["app_sid"], None)
    assert (await api.delete(path)).expect(204).content == b""
    assert_platform_error(await api.delete(path), 404, "NOT_FOUND")
    assert_platform_error(await api.patch(path, {"friendly_name": "x"}), 404, "NOT_FOUND")


async def test_wrong_fields_of_a_number_are_named(api: Api, line: Line) -> None:
    path = f"{PORTAL}/numbers"
    wrong = {"number": "seven", "carrier_sid": line.carrier_sid}
    assert_platform_error(await api.post(path, wrong), 400, "VALIDATION_ERROR", "number")
    wrong = {"number": own_number(), "carrier_sid": UNKNOWN}
    assert_platform_error(await api.post(path, wrong), 400, "VALIDATION_ERROR", "carrier_sid")
    reply = await api.patch(f"{path}/{line.number_id}", {"app_sid": UNKNOWN})
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "app_sid")


async def test_an_application_is_created_shown_changed_and_deleted(api: Api) -> None:
    body = {**BOT, "sample_rate": 16000, "record_all_calls": True}
    reply = (await api.post(f"{PORTAL}/applications", body)).expect(201)
    assert_fits(reply.body, {"data": APPLICATION, "meta": META})
    assert {name: reply.data[name] for name in body} == body
    path = f"{PORTAL}/applications/{reply.data['app_sid']}"
    assert (await api.get(path)).expect(200).data == reply.data
    listed = (await api.get(f"{PORTAL}/applications", per_page=100)).expect(200)
    assert_fits(listed.body, {"data": [APPLICATION], "meta": PAGE})
    assert reply.data in listed.data
    hook = {"target": "webhook", "webhook_url": "https://shop.example.com/calls", "webhook_method": "GET"}
    changed = (await api.patch(path, hook)).expect(200)
    assert_fits(changed.body, {"data": APPLICATION})
    assert {name: changed.data[name] for name in hook} == hook
    assert changed.data["stream_url"] is None and changed.data["name"] == "Bot"
    assert (await api.delete(path)).expect(204).content == b""
    for method, change in (("GET", None), ("PATCH", {"name": "x"}), ("DELETE", None)):
        assert_platform_error(await api.request(method, path, change), 404, "NOT_FOUND")


async def test_wrong_fields_of_an_application_are_named(api: Api) -> None:
    path = f"{PORTAL}/applications"
    assert_platform_error(await api.post(path, {}), 400, "VALIDATION_ERROR", "name", "target")
    reply = await api.post(path, {"name": "Bot", "target": "media_stream"})
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "stream_url")
    made = (await api.post(path, BOT)).expect(201).data
    reply = await api.patch(f"{path}/{made['app_sid']}", {"sample_rate": 44100})
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "sample_rate")


async def test_objects_that_are_not_there(api: Api) -> None:
    rows: tuple[tuple[str, str, Any], ...] = (
        *(("GET", f"carriers/{UNKNOWN}", None), ("PATCH", f"carriers/{UNKNOWN}", {"name": "x"})),
        *(("DELETE", f"carriers/{UNKNOWN}", None), ("GET", f"carriers/{UNKNOWN}/gateways", None)),
        ("POST", f"carriers/{UNKNOWN}/gateways", {"host": "192.0.2.7"}),
        ("DELETE", f"carriers/{UNKNOWN}/gateways/{UNKNOWN}", None),
        *(("PATCH", f"numbers/{UNKNOWN}", {"friendly_name": "x"}), ("DELETE", f"numbers/{UNKNOWN}", None)),
        *(("GET", f"applications/{UNKNOWN}", None), ("PATCH", f"applications/{UNKNOWN}", {"name": "x"})),
        ("DELETE", f"applications/{UNKNOWN}", None),
    )
    for method, path, body in rows:
        assert_platform_error(await api.request(method, f"{PORTAL}/{path}", body), 404, "NOT_FOUND")
        reply = await api.with_key("vp_unknown").request(method, f"{PORTAL}/{path}", body)
        assert_platform_error(reply, 401, "UNAUTHORIZED")


async def test_the_portal_needs_a_key(api: Api) -> None:
    for path in ("carriers", "numbers", "applications"):
        for method, body in (("POST", {"name": "x"}), ("GET", None)):
            reply = await api.with_key(None).request(method, f"{PORTAL}/{path}", body)
            assert_platform_error(reply, 401, "UNAUTHORIZED")
    assert_platform_error(await api.with_key(None).get(f"{PORTAL}/call-logs"), 401, "UNAUTHORIZED")


async def test_objects_of_another_account_are_forbidden(line: Line, stranger: Customer) -> None:
    app = (await line.api.post(f"{PORTAL}/applications", BOT)).expect(201).data
    other = line.api.with_key(stranger.key)
    for path in (
        *(f"carriers/{line.carrier_sid}", f"carriers/{line.carrier_sid}/gateways/{line.gateway_sid}"),
        *(f"numbers/{line.number_id}", f"applications/{app['app_sid']}"),
    ):
        assert_platform_error(await other.delete(f"{PORTAL}/{path}"), 403, "FORBIDDEN")
    assert_platform_error(await other.get(f"{PORTAL}/carriers/{line.carrier_sid}"), 403, "FORBIDDEN")


async def test_a_carrier_in_use_is_not_deleted(line: Line) -> None:
    path = f"{PORTAL}/carriers/{line.carrier_sid}"
    error = assert_platform_error(await line.api.delete(path), 409, "CONFLICT")
    assert error["details"]["numbers"] == 1
    placed, rung = await line.connect(mobile())
    gateway = await line.api.delete(f"{path}/gateways/{line.gateway_sid}")
    assert assert_platform_error(gateway, 409, "CONFLICT")["details"]["calls"] == 1
    await rung.hang_up()
    await line.ended(placed)


# Calls over a trunk


async def test_a_call_goes_by_its_application(line: Line, agent: Agent) -> None:
    app = await line.api.post(f"{PORTAL}/applications", {**BOT, "stream_url": agent.url()})
    app_sid = app.expect(201).data["app_sid"]
    placed, rung = await line.connect(mobile(), app_sid=app_sid)
    assert placed["app_sid"] == app_sid
    assert (await (await agent.connected()).frame("start"))["start"]["call_sid"] == placed["call_sid"]
    await rung.hang_up()
    (await line.api.patch(f"{PORTAL}/numbers/{line.number_id}", {"app_sid": app_sid})).expect(200)
    call = line.phone.dial(line.number, mobile())
    started = await (await agent.connected()).frame("start")
    assert started["start"]["direction"] == "inbound"
    await (await call.until_answered()).hang_up()


async def test_numbers_are_written_as_the_carrier_wants_them(api: Api, phone: Phone) -> None:
    line = await open_line(api, phone, number_format="national", tech_prefix="77#")
    await line.place(mobile(), verbs=[{"verb": "hangup"}])
    rung = await phone.rings()
    assert rung.number == "77#0" + mobile().removeprefix("+91")
    await rung.until_ended()


async def test_a_carrier_with_a_password_is_challenged(api: Api, phone: Phone) -> None:
    line = await open_line(
        api, phone, inbound_auth_username="shop-1", inbound_auth_password="a long password"
    )
    await line.bind(target="missed_call", timeout=5)
    refused = await phone.dial(line.number, mobile()).until_ended()
    assert refused.status == 401
    wrong = phone.dial(line.number, mobile(), username="shop-1", password="something else")
    assert (await wrong.until_ended()).status in (401, 403)
    right = phone.dial(line.number, mobile(), username="shop-1", password="a long password")
    await appears(lambda: 180 in right.provisional, "ringing")
    await right.hang_up()


async def test_calls_to_a_number_behind_a_password_come_by_its_carrier_alone(
    api: Api, phone: Phone, server: ServerProcess
) -> None:
    line = await open_line(
        api, phone, inbound_auth_username="shop-2", inbound_auth_password="a long password"
    )
    await line.bind(target="missed_call", timeout=5)
    async with Phone(("127.0.0.1", server.sip_port)) as platform:
        server.add_carrier("Platform", f"udp:{platform.host}:{platform.port}", inbound=True)
        refused = await platform.dial(line.number, mobile()).until_ended()
    assert refused.status in (401, 403, 404)
    assert 180 not in refused.provisional


# Call logs


async def test_call_logs_show_calls_in_both_directions(line: Line) -> None:
    line.phone.manners = {mobile(2): Manner(status=486)}
    answered, rung = await line.connect(mobile(1))
    await rung.hang_up()
    await line.ended(answered)
    busy = await line.ended(await line.place(mobile(2)))
    await line.phone.dial(line.number, mobile(3)).until_ended()
    path = f"{PORTAL}/call-logs"
    logs = await line.api.until(path, lambda found: len(found) == 3, carrier_sid=line.carrier_sid)
    listed = (await line.api.get(path, carrier_sid=line.carrier_sid)).expect(200)
    assert_fits(listed.body, {"data": [CALL_LOG], "meta": PAGE})
    inbound, second, first = logs
    assert (inbound["direction"], inbound["from"], inbound["to"]) == ("inbound", mobile(3), line.number)
    assert not inbound["answered"] and inbound["sip_status"] == 480
    assert second["call_sid"] == busy["call_sid"] and second["termination_reason"] == "USER_BUSY"
    assert first["call_sid"] == answered["call_sid"] and first["answered"]
    assert first["sip_call_id"] == rung.call_id and first["remote_host"] == line.phone.host
    assert first["codec"] == "PCMU"

    async def found(**query: str) -> list[str]:
        reply = await line.api.get(path, carrier_sid=line.carrier_sid, **query)
        return [log["call_sid"] for log in reply.expect(200).data]

    assert await found(direction="inbound") == [inbound["call_sid"]]
    assert await found(answered="true") == [first["call_sid"]]
    assert await found(filter=mobile(2)[-5:]) == [second["call_sid"]]
    assert len(await found(days="1")) == 3
    today = first["attempted_at"][:10]
    assert first["call_sid"] in await found(start=today, end=inbound["attempted_at"][:10])


@pytest.mark.parametrize(
    ("name", "value"),
    [("days", "31"), ("direction", "up"), ("answered", "perhaps"), ("start", "yesterday"), ("page", "0")],
)
async def test_a_wrong_filter_of_call_logs_is_refused(api: Api, name: str, value: str) -> None:
    assert_platform_error(
        await api.get(f"{PORTAL}/call-logs", **{name: value}), 400, "VALIDATION_ERROR", name
    )
