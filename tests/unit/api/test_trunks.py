"""The trunk portal's carriers and gateways."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Services, Storage
from callcontrol.trunks.registration import RegistrationKey
from tests.support.api_facts import (
    ACCOUNT,
    CARRIER_SID,
    GATEWAY_HOST,
    GATEWAY_SID,
    NOWHERE,
    OTHER_CARRIER_SID,
    call,
)
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

CARRIERS = "/v1/trunk-portal/carriers"
GATEWAYS = f"{CARRIERS}/{CARRIER_SID}/gateways"


async def test_a_carrier_is_created_and_shows_no_secret(client: Client, storage: Storage) -> None:
    answer = await client.post(
        CARRIERS,
        {
            "name": "Own trunk",
            "trunk_type": "auth",
            "register_username": "user",
            "register_password": "s3cret",
            "codecs": ["PCMA"],
        },
    )
    assert answer.status == 201
    assert answer.data["carrier_sid"] == answer.data["sid"]
    assert answer.data["codecs"] == ["PCMA"]
    assert answer.data["register_username"] == "user"
    assert "s3cret" not in answer.body.decode()
    assert "register_password" not in answer.data
    kept = await storage.trunks.get_carrier(ACCOUNT, answer.data["sid"])
    assert kept.register_password == "s3cret"


async def test_a_carrier_that_only_its_own_password_identifies(client: Client, storage: Storage) -> None:
    passwords = {"trunk_type": "auth", "inbound_auth_username": "user", "inbound_auth_password": "s3cret"}
    made = await client.post(CARRIERS, {"name": "Own trunk", **passwords})
    assert (made.status, made.data["inbound_auth_username"]) == (201, "user")
    plain = (await client.post(CARRIERS, {"name": "Other trunk"})).data["sid"]
    changed = await client.patch(f"{CARRIERS}/{plain}", passwords)
    assert (changed.status, changed.data["trunk_type"]) == (200, "auth")
    assert (await storage.trunks.get_carrier(ACCOUNT, plain)).inbound_auth_password == "s3cret"
    refused = await client.patch(f"{CARRIERS}/{plain}", {"inbound_auth_password": None})
    assert (refused.status, list(refused.fields)) == (400, ["register_username"])


async def test_the_number_of_a_diversion_is_shown_in_e164(client: Client) -> None:
    made = await client.post(CARRIERS, {"name": "Own trunk", "diversion": "(080) 4749 1899"})
    assert (made.status, made.data["diversion"]) == (201, "+918047491899")
    changed = await client.patch(f"{CARRIERS}/{made.data['sid']}", {"diversion": "080-4749-1898"})
    assert (changed.status, changed.data["diversion"]) == (200, "+918047491898")


@pytest.mark.parametrize("blank", ["", "  "])
async def test_no_text_of_a_carrier_is_blank(client: Client, blank: str) -> None:
    texts = dict.fromkeys(
        ("description", "tech_prefix", "register_sip_realm", "register_from_user", "register_from_domain")
        + ("inbound_auth_username", "certificate_name", "outbound_proxy", "diversion"),
        blank,
    )
    for refused in (
        await client.post(CARRIERS, {"name": "x", "inbound_auth_password": "p", **texts}),
        await client.patch(f"{CARRIERS}/{CARRIER_SID}", texts),
    ):
        assert (refused.status, set(refused.fields)) == (400, set(texts))
    nothing = dict.fromkeys(texts)
    changed = await client.patch(f"{CARRIERS}/{CARRIER_SID}", nothing)
    assert changed.status == 200 and nothing.items() <= changed.data.items()


async def test_read_and_delete(client: Client) -> None:
    listed = await client.get(CARRIERS + "?per_page=1")
    assert [carrier["name"] for carrier in listed.data] == ["Own trunk"]
    assert "s3cret" not in listed.body.decode()
    got = await client.get(f"{CARRIERS}/{CARRIER_SID}")
    assert got.data == listed.data[0]
    gone = await client.delete(f"{CARRIERS}/{CARRIER_SID}")
    assert (gone.status, gone.body) == (204, b"")
    assert "X-Request-Id" in gone.headers


async def test_a_change_answers_how_the_registrations_stand(client: Client, services: Services) -> None:
    key = RegistrationKey(CARRIER_SID, "sip.example.com")
    services.calls._registrations._refused[key] = "the registrar forbids it"
    changed = await client.patch(f"{CARRIERS}/{CARRIER_SID}", {"name": "Renamed"})
    assert changed.data["register_status"]["reason"] == "the registrar forbids it"
    assert [item["registrar"] for item in changed.data["registrations"]] == ["sip.example.com"]


async def test_only_what_is_given_changes(client: Client, services: Services) -> None:
    carriers, gateways = (asked(services.trunks, f"update_{kind}") for kind in ("carrier", "gateway"))
    named = (await client.post(GATEWAYS, {"host": "sip.example.com"})).data["gateway_sid"]
    changed = await client.patch(
        f"{CARRIERS}/{CARRIER_SID}", {"codecs": ["PCMA"], "diversion": None, "max_cps": 5}
    )
    assert (changed.status, changed.data["codecs"], changed.data["max_cps"]) == (200, ["PCMA"], 5)
    assert carriers == [(ACCOUNT, CARRIER_SID, {"codecs": ["PCMA"], "diversion": None, "max_cps": 5})]
    await client.patch(f"{CARRIERS}/{CARRIER_SID}", {"register_password": "n3w"})
    await client.patch(f"{GATEWAYS}/{named}", {"port": None, "protocol": "auto"})
    assert carriers[1:] == [(ACCOUNT, CARRIER_SID, {"register_password": "n3w"})]
    assert gateways == [(ACCOUNT, CARRIER_SID, named, {"port": 0, "protocol": "auto"})]
    for path, body in (
        (f"{CARRIERS}/{CARRIER_SID}", {"name": None}),
        (f"{CARRIERS}/{CARRIER_SID}", {"name": ""}),
        (f"{CARRIERS}/{CARRIER_SID}", {"dtmf_type": "morse"}),
        (f"{CARRIERS}/{CARRIER_SID}", {"carrier_sid": "x"}),
        (f"{GATEWAYS}/{GATEWAY_SID}", {"host": None}),
        (f"{GATEWAYS}/{GATEWAY_SID}", {"max_cps": 0}),
    ):
        refused = await client.patch(path, body)
        assert (refused.status, refused.code) == (400, "VALIDATION_ERROR"), body
    assert (await client.patch(f"{CARRIERS}/{NOWHERE}", {})).code == "NOT_FOUND"
    assert (await client.patch(f"{CARRIERS}/{OTHER_CARRIER_SID}", {})).code == "FORBIDDEN"


async def test_one_address_is_one_gateway(client: Client) -> None:
    made = (await client.post(GATEWAYS, {"host": "sip.example.com"})).data["gateway_sid"]
    other = (await client.post(GATEWAYS, {"host": "sip.example.com", "port": 5070})).data["gateway_sid"]
    again = {"host": "SIP.example.com", "weight": 5}
    for refused in (
        await client.post(GATEWAYS, again),
        await client.patch(f"{GATEWAYS}/{other}", {"port": 5060}),
    ):
        assert (refused.status, refused.code) == (409, "CONFLICT")
        assert refused.json()["error"]["details"] == {"gateway_sid": made}
    assert (await client.post(GATEWAYS, {**again, "protocol": "tcp"})).status == 201
    for body in ({"weight": 5}, {"host": "sip.example.com", "port": 5070}):
        assert (await client.patch(f"{GATEWAYS}/{other}", body)).status == 200
    assert (await client.delete(f"{GATEWAYS}/{made}")).status == 204
    assert (await client.post(GATEWAYS, again)).status == 201


async def test_gateways(client: Client, services: Services) -> None:
    made = await client.post(GATEWAYS, {"host": "sip.example.com", "priority": 2, "inbound": False})
    assert made.status == 201
    assert (made.data["port"], made.data["protocol"]) == (5060, "udp")
    assert made.data["health"] == {"state": "unknown", "last_ok_at": None, "rtt_ms": None}
    services.calls.gateways.probed(made.data["gateway_sid"], datetime(2026, 1, 1, tzinfo=UTC), 0.0, 12.34)
    shown = await client.get(f"{GATEWAYS}/{made.data['gateway_sid']}")
    assert shown.data["health"] == {"state": "up", "last_ok_at": "2026-01-01T00:00:00.000Z", "rtt_ms": 12.3}
    kept = await services.trunks.get_gateway(ACCOUNT, CARRIER_SID, made.data["gateway_sid"])
    assert (kept.priority, kept.inbound) == (2, False)
    listed = await client.get(GATEWAYS)
    assert [gateway["host"] for gateway in listed.data] == [GATEWAY_HOST, "sip.example.com"]
    one = await client.get(f"{GATEWAYS}/{GATEWAY_SID}")
    assert (one.status, one.data["gateway_sid"]) == (200, GATEWAY_SID)
    assert (await client.get(f"{GATEWAYS}/{NOWHERE}")).code == "NOT_FOUND"
    assert (await client.delete(f"{GATEWAYS}/{GATEWAY_SID}")).status == 204
    missing = await client.delete(f"{GATEWAYS}/{NOWHERE}")
    assert (missing.status, missing.code) == (404, "NOT_FOUND")


async def test_what_trunks_say_of_media(client: Client, storage: Storage) -> None:
    media = {"codecs": ["OPUS", "G722", "L16", "PCMA", "PCMU"], "srtp": "sdes", "dtmf_type": "tones"}
    made = await client.post(CARRIERS, {"name": "Wide", **media})
    assert made.status == 201
    assert (await storage.trunks.get_carrier(ACCOUNT, made.data["sid"])).srtp == "sdes"
    changed = await client.patch(f"{CARRIERS}/{CARRIER_SID}", media)
    assert changed.status == 200
    assert {name: changed.data[name] for name in media} == media
    gateway = await client.post(GATEWAYS, {"host": "sip.example.com", "protocol": "tls/srtp"})
    assert (gateway.status, gateway.data["protocol"]) == (201, "tls/srtp")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["name"]),
        ({"name": ""}, ["name"]),
        ({"name": "x", "trunk_type": "auth"}, ["register_password", "register_username"]),
        ({"name": "x", "trunk_type": "auth", "register_password": "p"}, ["register_username"]),
        ({"name": "x", "register_username": "u"}, ["register_password"]),
        ({"name": "x", "trunk_type": "reg"}, ["register_password", "register_username"]),
        ({"name": "x", "requires_register": True}, ["register_password", "register_username"]),
        ({"name": "x", "inbound_auth_password": "p"}, ["inbound_auth_username"]),
        (
            {"name": "x", "trunk_type": "auth", "inbound_auth_username": "u"},
            ["inbound_auth_password"],
        ),
        (
            {"name": "x", "trunk_type": "reg", "inbound_auth_username": "u", "inbound_auth_password": "p"},
            ["register_password", "register_username"],
        ),
        (
            {"name": "x", "session_expires_s": 60, "register_expires_s": 1},
            ["register_expires_s", "session_expires_s"],
        ),
        (
            {"name": "x", "srtp": "dtls", "dtmf_type": "morse", "app_sid": ""},
            ["app_sid", "dtmf_type", "srtp"],
        ),
        ({"name": 5, "app_sid": "nope"}, ["app_sid", "name"]),
        ({"name": "x", "codecs": []}, ["codecs"]),
        ({"name": "x", "codecs": ["G729"]}, ["codecs[0]"]),
        ({"name": "x", "max_cps": 0, "max_concurrent_calls": -1}, ["max_concurrent_calls", "max_cps"]),
        ({"name": "x", "tech_prefix": "abc"}, ["tech_prefix"]),
        ({"name": "x", "carrier_sid": "mine"}, ["carrier_sid"]),
    ],
)
async def test_carriers_that_are_wrong(client: Client, body: Any, fields: list[str]) -> None:
    answer = await client.post(CARRIERS, body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert sorted(answer.fields) == fields


async def test_refusals_name_the_ways_that_there_are(client: Client) -> None:
    answer = await client.post(CARRIERS, {"name": "x", "trunk_type": "auth"})
    either = "unless inbound_auth_username and inbound_auth_password are given"
    assert all(message.endswith(either) for message in answer.fields.values())
    gateway = await client.post(f"{CARRIERS}/{CARRIER_SID}/gateways", {"host": "10.0.0.1", "protocol": "sip"})
    assert gateway.fields == {"protocol": "must be one of udp, tcp, tls, tls/srtp or auto"}
    prefixed = await client.post(CARRIERS, {"name": "x", "tech_prefix": "abc"})
    assert prefixed.fields == {"tech_prefix": "must be 1 to 16 of 0-9, * and #"}


async def test_a_carrier_with_a_call_that_nobody_has_answered_stays(client: Client, stage: ApiStage) -> None:
    await stage.add_call(call(NOWHERE, carrier_sid=CARRIER_SID))
    answer = await client.delete(f"{CARRIERS}/{CARRIER_SID}")
    assert (answer.status, answer.json()["error"]["details"]) == (409, {"calls": 1})
    message = answer.json()["error"]["message"]
    assert message == "Calls on this carrier have not ended; wait until they have."


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["host"]),
        ({"host": "no spaces here"}, ["host"]),
        ({"host": "300.1.1.1"}, ["host"]),
        ({"host": "http://x"}, ["host"]),
        ({"host": "192.0.2.1", "port": 0}, ["port"]),
        ({"host": "192.0.2.1", "port": 65536}, ["port"]),
        ({"host": "sip.example.com", "netmask": 24}, ["netmask"]),
        ({"host": "192.0.2.1", "netmask": 0}, ["netmask"]),
        ({"host": "192.0.2.1", "protocol": "sctp"}, ["protocol"]),
        ({"host": "192.0.2.1", "max_cps": 0}, ["max_cps"]),
        ({"host": "192.0.2.1", "weight": 1.5}, ["weight"]),
    ],
)
async def test_gateways_that_are_wrong(client: Client, body: Any, fields: list[str]) -> None:
    answer = await client.post(GATEWAYS, body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert sorted(answer.fields) == fields


@pytest.mark.parametrize(
    ("body", "port"),
    [
        ({"host": "192.0.2.2"}, 5060),
        ({"host": "sip.example.com", "port": None, "protocol": "auto"}, None),
    ],
)
async def test_the_port_of_a_gateway(client: Client, body: Any, port: int | None) -> None:
    made = await client.post(GATEWAYS, body)
    assert (made.status, made.data["port"]) == (201, port)


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("GET", "", None),
        ("DELETE", "", None),
        ("GET", "/gateways", None),
        ("POST", "/gateways", {"host": "192.0.2.1"}),
        ("GET", f"/gateways/{GATEWAY_SID}", None),
        ("DELETE", f"/gateways/{GATEWAY_SID}", None),
    ],
)
async def test_carriers_of_others_and_of_nobody(client: Client, method: str, rest: str, body: Any) -> None:
    other = await client.request(method, f"{CARRIERS}/{OTHER_CARRIER_SID}{rest}", json_body=body)
    assert (other.status, other.code) == (403, "FORBIDDEN")
    for sid in (NOWHERE, "nonsense"):
        missing = await client.request(method, f"{CARRIERS}/{sid}{rest}", json_body=body)
        assert (missing.status, missing.code) == (404, "NOT_FOUND")
