"""Carrier of an inbound call: by certificate, password, address, and shared addresses."""

from typing import Any

import pytest

from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.inbound import Arrival, Invitation, receive
from callcontrol.models import Binding
from callcontrol.trunks.inbound_invite import Identification, identify, origins_of
from sip import Headers, NameAddr, Request, SipUri
from tests.support.domain import (
    ACCOUNT_SID,
    CALLEE,
    OTHER_SID,
    OWN_NUMBER,
    MemoryDirectory,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)

HERE, ELSEWHERE = ("127.0.0.1", 5080), ("192.0.2.77", 5060)
CALLED = SipUri.parse(f"sip:{OWN_NUMBER}@127.0.0.1")
BY_PASSWORD: dict[str, Any] = {"inbound_auth_username": "user", "inbound_auth_password": "secret"}


def directory(*carriers: Any) -> MemoryDirectory:
    """Carriers that all have the gateway 127.0.0.1:5080, and a number of the first account."""
    made = MemoryDirectory()
    made.put(
        accounts=[make_account(OTHER_SID)],
        numbers=[make_number(binding=Binding("forward", forward_to=CALLEE))],
        carriers=list(carriers),
        gateways=[make_gateway(f"gw-{item.carrier_sid}", carrier_sid=item.carrier_sid) for item in carriers],
    )
    return made


def known(
    routes: MemoryDirectory, source: tuple[str, int] = HERE, *, names: Any = (), answers: bool = False
) -> Identification:
    request = Request("INVITE", CALLED, Headers([("To", f"<{CALLED}>")]))
    if answers:
        request.headers.add("Authorization", "Digest")
    return identify(source, frozenset(names), request, routes)


def test_an_address_is_enough_for_a_carrier_without_proofs() -> None:
    assert known(directory(make_carrier())) == Identification(known=True)
    assert known(directory(make_carrier()), ELSEWHERE) == Identification()


@pytest.mark.parametrize("source", [HERE, ELSEWHERE])
def test_a_carrier_with_a_password_is_asked_for_it_wherever_it_calls_from(source: tuple[str, int]) -> None:
    routes = directory(make_carrier(**BY_PASSWORD))
    assert known(routes, source) == Identification(asked=True)
    assert routes.gateway_for_source(*HERE) is None


def test_a_carrier_that_is_off_asks_nobody() -> None:
    assert known(directory(make_carrier(is_active=False, **BY_PASSWORD)), ELSEWHERE) == Identification()


def test_a_certificate_proves_a_carrier_from_anywhere() -> None:
    routes = directory(make_carrier(certificate_name="SBC.carrier.example"))
    caller = known(routes, ELSEWHERE, names=["other.example", "sbc.carrier.example"])
    assert caller == Identification(known=True, carriers=("carrier-1",))
    assert known(routes, HERE, names=["other.example"]) == Identification()


def test_the_certificate_comes_before_the_password() -> None:
    routes = directory(make_carrier(certificate_name="a.example", **BY_PASSWORD))
    assert known(routes, names=["a.example"]).carriers == ("carrier-1",)


class TestASharedAddress:
    def test_who_has_no_password_is_not_asked(self) -> None:
        routes = directory(make_carrier("open"), make_carrier("closed", **BY_PASSWORD))
        assert known(routes) == Identification(known=True)

    def test_who_brings_credentials_is_judged_by_them(self) -> None:
        routes = directory(make_carrier("open"), make_carrier("closed", **BY_PASSWORD))
        assert known(routes, answers=True) == Identification(asked=True)

    def test_the_called_number_says_who_is_meant(self) -> None:
        routes = directory(
            make_carrier("open", OTHER_SID), make_carrier("closed", ACCOUNT_SID, **BY_PASSWORD)
        )
        assert known(routes) == Identification(asked=True)

    def test_a_platform_carrier_does_not_speak_for_a_number_on_an_own_carrier(self) -> None:
        routes = directory(make_carrier("open"), make_carrier("closed", ACCOUNT_SID, **BY_PASSWORD))
        routes.put(numbers=[make_number(carrier_sid="closed")])
        assert known(routes) == Identification(asked=True)

    def test_a_carrier_with_a_password_may_call_from_the_address_of_another(self) -> None:
        """Else an account that names that address as its gateway would shut the carrier out."""
        routes = directory(make_carrier("theirs", OTHER_SID))
        routes.put(carriers=[make_carrier("ours", ACCOUNT_SID, **BY_PASSWORD)])
        assert known(routes) == Identification(asked=True)
        routes.put(numbers=[make_number(account_sid=OTHER_SID)])
        assert known(routes) == Identification(known=True)


class TestReceiving:
    def receive(self, routes: MemoryDirectory, **changes: Any) -> Arrival | int:
        facts: dict[str, Any] = {
            "source": HERE,
            "request_uri": CALLED,
            "to": NameAddr(None, CALLED),
            "from_": NameAddr.parse("<sip:+919811111111@carrier.example>"),
            **changes,
        }
        return receive(Invitation(**facts), routes, PRODUCTS, allowed_countries={"IN"}, time_limit_s=60.0)

    def test_a_proved_carrier_from_an_address_that_is_not_its_own(self) -> None:
        routes = directory(make_carrier(**BY_PASSWORD))
        arrival = self.receive(routes, source=ELSEWHERE, carriers=("carrier-1",))
        assert isinstance(arrival, Arrival)
        assert (arrival.carrier.carrier_sid, arrival.gateway.gateway_sid) == ("carrier-1", "")

    def test_a_proved_carrier_at_its_own_gateway(self) -> None:
        routes = directory(make_carrier(**BY_PASSWORD))
        ((carrier, gateway),) = origins_of(("carrier-1",), HERE, routes)
        assert (carrier.carrier_sid, gateway.gateway_sid) == ("carrier-1", "gw-carrier-1")

    def test_without_the_proof_it_is_nobody(self) -> None:
        routes = directory(make_carrier(**BY_PASSWORD))
        assert self.receive(routes) == 403

    def test_another_accounts_carrier_has_no_business_with_the_number(self) -> None:
        routes = directory(make_carrier("theirs", OTHER_SID, **BY_PASSWORD))
        assert self.receive(routes, carriers=("theirs",)) == 404

    def test_the_platforms_carriers_deliver_no_calls_to_a_number_on_an_own_carrier(self) -> None:
        """Else an account could claim a number that the platform leases, and take its calls."""
        routes = directory(make_carrier("open"), make_carrier("mine", ACCOUNT_SID, **BY_PASSWORD))
        routes.put(numbers=[make_number(carrier_sid="mine")])
        assert self.receive(routes) == 404
        arrival = self.receive(routes, carriers=("mine",))
        assert isinstance(arrival, Arrival) and arrival.carrier.carrier_sid == "mine"
        routes.put(numbers=[make_number()])
        arrival = self.receive(routes)
        assert isinstance(arrival, Arrival) and arrival.carrier.carrier_sid == "open"

    def test_all_carriers_of_an_account_may_deliver_calls_to_its_numbers(self) -> None:
        routes = directory(make_carrier("first", ACCOUNT_SID), make_carrier("second", ACCOUNT_SID))
        for home in ("first", "second", None):
            routes.put(numbers=[make_number(carrier_sid=home)])
            assert isinstance(self.receive(routes), Arrival)

    def test_of_two_carriers_with_one_password_the_numbers_own_counts(self) -> None:
        routes = directory(
            make_carrier("theirs", OTHER_SID, **BY_PASSWORD), make_carrier("ours", ACCOUNT_SID, **BY_PASSWORD)
        )
        arrival = self.receive(routes, carriers=("theirs", "ours"))
        assert isinstance(arrival, Arrival) and arrival.carrier.carrier_sid == "ours"

    def test_the_registered_user_is_not_the_number_called(self) -> None:
        """It looks like a number of ours, yet To says which one was called."""
        carrier = make_carrier(requires_register=True, register_username="918047491800")
        routes = directory(carrier)
        routes.put(numbers=[make_number("+918047491800", phone_number_id="pilot")])
        arrival = self.receive(routes, request_uri=SipUri.parse("sip:918047491800@127.0.0.1"))
        assert isinstance(arrival, Arrival) and arrival.to == OWN_NUMBER
        plain = directory(make_carrier())
        plain.put(numbers=[make_number("+918047491800", phone_number_id="pilot")])
        arrival = self.receive(plain, request_uri=SipUri.parse("sip:918047491800@127.0.0.1"))
        assert isinstance(arrival, Arrival) and arrival.to == "+918047491800"


def test_networks_of_ipv6() -> None:
    routes = directory()
    routes.put(
        carriers=[make_carrier()],
        gateways=[make_gateway("six", host="2001:db8:1::", netmask=48, outbound=False)],
    )
    assert routes.gateway_for_source("2001:db8:1:2::9", 5060) is not None
    assert routes.gateway_for_source("2001:db8:2::9", 5060) is None
    assert routes.gateway_for_source("10.0.0.1", 5060) is None
