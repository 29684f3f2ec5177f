"""Registrations that carriers ask for, and their display."""

from datetime import UTC, datetime
from typing import Any

import pytest

from api.schemas.trunks import carrier_json
from callcontrol.trunks.outbound_invite import route_by
from callcontrol.trunks.registration import (
    RegistrationView,
    contact_user,
    counted,
    registration_with,
    registrations_of,
    worst_first,
)
from sip import Destination, InvalidValue, NameAddr, OutboundInvite, RegistrationState, SipUri
from tests.support.domain import MemoryDirectory, make_carrier, make_gateway

LOGIN: dict[str, Any] = {
    "requires_register": True,
    "register_username": "user",
    "register_password": "secret",
}
REGISTRAR = Destination("udp", "sip.carrier.example", 0)


def found(*gateways: Any, **carrier: Any) -> dict[str, Destination]:
    routes = MemoryDirectory()
    made = make_carrier(**LOGIN, **carrier)
    routes.put(carriers=[made], gateways=list(gateways))
    return {key.registrar: place for key, place in registrations_of(made, routes).items()}


def test_who_registers() -> None:
    assert make_carrier(**LOGIN).registers and make_carrier(trunk_type="reg").registers
    assert not make_carrier().registers and not make_carrier(is_active=False, **LOGIN).registers


def test_named_registrars_come_before_gateways() -> None:
    registrars = ("sip.carrier.example", "192.0.2.1:5070", "[2001:db8::1]:5060")
    assert found(make_gateway("a"), registrars=registrars, register_transport="tcp") == {
        "sip.carrier.example": Destination("tcp", "sip.carrier.example", 0),
        "192.0.2.1:5070": Destination("tcp", "192.0.2.1", 5070),
        "[2001:db8::1]:5060": Destination("tcp", "2001:db8::1", 5060),
    }


def test_active_outbound_gateways_else() -> None:
    gateways = [
        make_gateway("a", host="192.0.2.1", port=5060),
        make_gateway("b", host="192.0.2.2", port=5060, is_active=False),
        make_gateway("c", host="192.0.2.3", port=5060, outbound=False),
        make_gateway("d", host="sip.carrier.example", port=0, protocol="auto"),
        make_gateway("e", host="192.0.2.5", port=5061, protocol="tls"),
    ]
    assert found(*gateways) == {
        "192.0.2.1:5060": Destination("udp", "192.0.2.1", 5060),
        "sip.carrier.example": Destination(None, "sip.carrier.example", 0),
        "192.0.2.5:5061": Destination("tls", "192.0.2.5", 5061),
    }


def test_what_is_registered() -> None:
    made = registration_with(make_carrier(**LOGIN), REGISTRAR)
    assert (str(made.uri), str(made.aor)) == ("sip:sip.carrier.example", "<sip:user@sip.carrier.example>")
    assert made.credentials is not None and made.credentials.realm is None
    assert (made.contact_user, made.expires_s, made.routes) == ("user", 3600, ())
    assert made.destination == REGISTRAR
    assert "secret" not in repr(made)


def test_what_is_registered_by_the_carriers_rules() -> None:
    carrier = make_carrier(
        **LOGIN,
        register_from_user="+918012345678",
        register_from_domain="carrier.example",
        register_sip_realm="realm.example",
        register_expires_s=600,
        outbound_proxy="proxy.carrier.example:5070",
    )
    made = registration_with(carrier, REGISTRAR)
    assert (str(made.uri), str(made.aor)) == ("sip:carrier.example", "<sip:+918012345678@carrier.example>")
    assert made.credentials is not None
    assert (made.credentials.username, made.credentials.realm) == ("user", "realm.example")
    assert made.routes == ("<sip:proxy.carrier.example:5070;lr>",)
    assert made.destination == Destination("udp", "proxy.carrier.example", 5070)
    assert made.expires_s == 600


@pytest.mark.parametrize(
    ("name", "user"), [("line1", "line1"), ("line1@carrier.example", "line1"), ("a b", "a%20b"), ("", None)]
)
def test_the_user_of_the_contact(name: str, user: str | None) -> None:
    assert contact_user(make_carrier(**{**LOGIN, "register_username": name})) == user


@pytest.mark.parametrize(
    "wrong", [{"register_from_domain": "a b"}, {"outbound_proxy": "b c"}, {"register_username": ""}]
)
def test_what_no_uri_can_hold(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidValue):
        registration_with(make_carrier(**{**LOGIN, **wrong}), REGISTRAR)


def test_the_worst_is_shown() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    good = RegistrationView("a", RegistrationState.REGISTERED, None, moment)
    bad = RegistrationView("b", RegistrationState.REJECTED, "the registrar forbids it")
    shown = carrier_json(make_carrier(**LOGIN), worst_first([good, bad]))
    assert shown["register_status"]["state"] == "rejected"
    assert [item["registrar"] for item in shown["registrations"]] == ["b", "a"]
    assert shown["registrations"][1]["expires_at"] == "2026-01-02T03:04:05.000Z"
    assert counted([good, bad, bad])["rejected"] == 2
    assert "secret" not in str(shown)
    assert carrier_json(make_carrier())["register_status"]["state"] is None
    assert carrier_json(make_carrier(**LOGIN))["register_status"]["state"] == "unregistered"


class TestServiceRoute:
    def invite(self, *headers: tuple[str, str]) -> OutboundInvite:
        address = NameAddr.parse("<sip:a@b>")
        return OutboundInvite(
            SipUri.parse("sip:a@b"), address, address, Destination("udp", "192.0.2.1"), headers=list(headers)
        )

    def test_calls_go_by_it(self) -> None:
        invite = self.invite(("X-A", "1"))
        route_by(invite, ("<sip:edge.example:5070;lr;transport=tcp>", "<sip:core.example;lr>"))
        assert [value for name, value in invite.headers if name == "Route"][1] == "<sip:core.example;lr>"
        assert invite.destination == Destination("tcp", "edge.example", 5070)

    def test_a_proxy_of_the_carriers_own_comes_first(self) -> None:
        invite = self.invite(("Route", "<sip:proxy.example;lr>"))
        route_by(invite, ("<sip:edge.example;lr>",))
        assert invite.headers == [("Route", "<sip:proxy.example;lr>")]
        assert invite.destination.host == "192.0.2.1"
