from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from callcontrol.errors import ValidationFailed
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.validation import address_of, check_carrier, check_gateway, check_media, typed

NOW = datetime(2026, 8, 1, tzinfo=UTC)
CARRIER = Carrier("c", "a", "Carrier", NOW, NOW)
GATEWAY = Gateway("g", "c", "192.0.2.10", NOW, NOW)


def wrong_fields(check: Any, item: Any) -> set[str]:
    with pytest.raises(ValidationFailed) as caught:
        check(item)
    return {error.field for error in caught.value.errors}


def test_the_defaults_are_valid() -> None:
    check_carrier(CARRIER)
    check_gateway(GATEWAY)
    assert (GATEWAY.port, GATEWAY.netmask, GATEWAY.protocol) == (5060, 32, "udp")


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"name": " "}, {"name"}),
        ({"name": "x" * 300}, {"name"}),
        ({"outbound_proxy": "sip:x\r\nEvil: 1"}, {"outbound_proxy"}),
        ({"trunk_type": "pigeon", "dtmf_type": "x", "srtp": "y"}, {"trunk_type", "dtmf_type", "srtp"}),
        ({"trunk_type": "auth"}, {"register_username"}),
        ({"inbound_auth_username": "u"}, {"inbound_auth_password"}),
        ({"inbound_auth_password": "p"}, {"inbound_auth_username"}),
        ({"register_username": "u"}, {"register_password"}),
        ({"register_password": "p"}, {"register_username"}),
        ({"trunk_type": "auth", "inbound_auth_username": "u"}, {"register_username"}),
        (
            {"trunk_type": "reg", "inbound_auth_username": "u", "inbound_auth_password": "p"},
            {"register_username"},
        ),
        ({"trunk_type": "reg", "register_username": "u"}, {"register_username"}),
        ({"codecs": ()}, {"codecs"}),
        ({"codecs": ("PCMU", "AMR")}, {"codecs"}),
        ({"codecs": ("OPUS", "PCMA", "OPUS")}, {"codecs"}),
        ({"max_cps": 0, "max_concurrent_calls": -1}, {"max_cps", "max_concurrent_calls"}),
        ({"register_transport": "sctp"}, {"register_transport"}),
        ({"prefixes": ("+91", "91")}, {"prefixes"}),
        ({"registrars": ("sip:x",)}, {"registrars"}),
        ({"registrars": ("reg.example.com:99999",)}, {"registrars"}),
        ({"registrars": ("r.example.com",) * 9}, {"registrars"}),
        ({"forwarded_headers": ("From",)}, {"forwarded_headers"}),
        ({"outbound_proxy": "no proxy"}, {"outbound_proxy"}),
        ({"outbound_proxy": "sip:proxy.example:99999"}, {"outbound_proxy"}),
        ({"diversion": "the switchboard"}, {"diversion"}),
        ({"diversion": "98047"}, {"diversion"}),
        ({"register_from_domain": "a b"}, {"register_from_domain"}),
        ({"session_expires_s": 60, "register_expires_s": 1}, {"session_expires_s", "register_expires_s"}),
        (
            {"number_format": "x", "identity_header": "y", "rel100": "z"},
            {"number_format", "identity_header", "rel100"},
        ),
    ],
)
def test_wrong_fields_of_a_carrier(changes: dict[str, Any], wrong: set[str]) -> None:
    assert wrong_fields(check_carrier, replace(CARRIER, **changes)) == wrong


@pytest.mark.parametrize("pair", ["register", "inbound_auth"])
def test_a_carrier_with_passwords_has_those_of_one_direction_at_least(pair: str) -> None:
    passwords: dict[str, Any] = {f"{pair}_username": "u", f"{pair}_password": "p"}
    check_carrier(replace(CARRIER, trunk_type="auth", **passwords))


@pytest.mark.parametrize(
    "host", ["sip.example.com", "gw-1.example.", "192.0.2.1", "2001:db8::1", "localhost", "a_b.example"]
)
def test_hosts(host: str) -> None:
    check_gateway(replace(GATEWAY, host=host))


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"host": ""}, {"host"}),
        ({"host": "999.1.1.1"}, {"host"}),
        ({"host": "0x7f.0.0.1.0x1"}, {"host"}),
        ({"host": "a b"}, {"host"}),
        ({"host": "-x.example"}, {"host"}),
        ({"host": "x;y"}, {"host"}),
        ({"host": "x" * 300}, {"host"}),
        ({"host": "224.0.0.1"}, {"host"}),
        ({"host": "0.0.0.0"}, {"host"}),
        ({"host": "169.254.169.254"}, {"host"}),
        ({"host": "fe80::1"}, {"host"}),
        ({"port": 0}, {"port"}),
        ({"port": 65536}, {"port"}),
        ({"protocol": "sctp"}, {"protocol"}),
        ({"protocol": "auto", "host": "gw.example"}, {"protocol"}),
        ({"max_cps": 0, "max_concurrent_calls": 0}, {"max_cps", "max_concurrent_calls"}),
        ({"netmask": 33}, {"netmask"}),
        ({"netmask": 0, "outbound": False}, {"netmask"}),
        ({"netmask": 24}, {"netmask"}),
        ({"netmask": 24, "outbound": False, "host": "sip.example.com"}, {"netmask"}),
        ({"priority": -1, "weight": 70000}, {"priority", "weight"}),
    ],
)
def test_wrong_fields_of_a_gateway(changes: dict[str, Any], wrong: set[str]) -> None:
    assert wrong_fields(check_gateway, replace(GATEWAY, **changes)) == wrong


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"host": "GW.example."}, {"host": "gw.example"}),
        ({"host": "2001:db8::1"}, {"host": "2001:DB8:0::1"}),
        ({}, {"priority": 3, "weight": 9, "inbound": False, "gateway_sid": "other"}),
    ],
)
def test_gateways_at_one_address(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert address_of(replace(GATEWAY, **one)) == address_of(replace(GATEWAY, **other))


@pytest.mark.parametrize("changes", [{"host": "192.0.2.11"}, {"port": 5070}, {"protocol": "tcp"}])
def test_gateways_at_different_addresses(changes: dict[str, Any]) -> None:
    assert address_of(replace(GATEWAY, **changes)) != address_of(GATEWAY)


def test_what_is_looked_up() -> None:
    check_gateway(replace(GATEWAY, host="gw.example", port=0))
    check_gateway(replace(GATEWAY, host="gw.example", port=0, protocol="auto"))


def test_a_network_may_only_call_in() -> None:
    check_gateway(replace(GATEWAY, netmask=24, outbound=False))


def test_a_gateway_may_ask_for_encrypted_media() -> None:
    gateway = replace(GATEWAY, protocol="tls/srtp")
    check_gateway(gateway)
    assert (gateway.transport, gateway.encrypts) == ("tls", True)
    assert (GATEWAY.transport, GATEWAY.encrypts) == ("udp", False)
    assert replace(GATEWAY, protocol="auto").transport is None


def test_what_the_engine_was_built_without_is_refused_by_name() -> None:
    carrier = replace(CARRIER, codecs=("OPUS", "PCMA", "G722"), srtp="require")
    check_carrier(carrier)
    check_media(carrier, ("PCMA", "G722", "OPUS"), srtp=True)
    with pytest.raises(ValidationFailed) as refusal:
        check_media(carrier, ("PCMA",), srtp=False)
    assert [error.field for error in refusal.value.errors] == ["codecs", "srtp"]
    assert "OPUS, G722: " in refusal.value.errors[0].message


def test_no_secret_is_shown() -> None:
    carrier = replace(CARRIER, register_password="hush", inbound_auth_password="hush")
    assert "hush" not in repr(carrier)


def test_values_get_the_types_of_their_fields() -> None:
    given = {"codecs": ["PCMA"], "tech_prefix": 77, "max_cps": 5, "diversion": None, "is_active": False}
    assert typed(Carrier, given) == {**given, "codecs": ("PCMA",), "tech_prefix": "77"}
    assert typed(Gateway, {"host": "192.0.2.1", "port": 5060}) == {"host": "192.0.2.1", "port": 5060}


@pytest.mark.parametrize(
    "given",
    [
        {"max_cps": "5"},
        {"max_cps": True},
        {"max_cps": 5.5},
        {"is_active": 1},
        {"codecs": "PCMA"},
        {"codecs": ["PCMA", 1]},
        {"name": None},
        {"number_format": ["e164"]},
        {"diversion": {"a": 1}},
    ],
)
def test_values_of_another_type_are_refused_by_name(given: dict[str, object]) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        typed(Carrier, given)
    assert [error.field for error in refusal.value.errors] == list(given)
