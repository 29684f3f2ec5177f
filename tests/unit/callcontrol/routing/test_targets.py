"""Numbers, countries, addresses, and which gateways are tried."""

from dataclasses import replace
from typing import Any

import pytest

from callcontrol.errors import (
    NO_ROUTE,
    FieldError,
    Forbidden,
    NumberNotOwned,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.models import TEST_PREFIX
from callcontrol.models.parties import Party, PhoneTarget, SipTarget
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.router import Router
from callcontrol.routing.targets import (
    may_fail_over,
    normalise_number,
    parse_address,
    parse_target,
    region_of,
    type_of,
)
from tests.support.call_drive import make_party
from tests.support.domain import (
    ACCOUNT_SID,
    OTHER_SID,
    OWN_NUMBER,
    MemoryDirectory,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)

INDIA = frozenset({"IN"})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+919876543210", "+919876543210"),
        ("9876543210", "+919876543210"),
        ("09876543210", "+919876543210"),
        ("08047491899", "+918047491899"),
        ("+12025550123", "+12025550123"),
        ("12025550123", "+12025550123"),
        ("+91-98765-43210", "+919876543210"),
    ],
)
def test_numbers_are_brought_to_e164(text: str, number: str) -> None:
    assert normalise_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "12345",
        "+91",
        "sip:desk@10.0.0.1",
        "abc",
        "٩٨٧٦٥٤٣٢١٠",
        "+9198765432109999",
        "9" * 300,
    ],
)
def test_what_is_no_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        normalise_number(text, field="caller_id")
    assert refusal.value.errors[0].field == "caller_id"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("9876543210", PhoneTarget("+919876543210")),
        ("919876543210", PhoneTarget("+919876543210")),
        ("tel:+91-98765-43210", PhoneTarget("+919876543210")),
        ("sip:desk@10.0.0.1", SipTarget("desk", "10.0.0.1")),
        ("SIP:desk@Trunk.Example:5070", SipTarget("desk", "trunk.example", 5070)),
        ("sip:a@[::1]:5060", SipTarget("a", "::1", 5060)),
        ("sip:a@[::1]", SipTarget("a", "::1")),
    ],
)
def test_targets(text: str, target: PhoneTarget | SipTarget) -> None:
    assert parse_target(text, INDIA) == target


@pytest.mark.parametrize(
    "text",
    [
        "sip:",
        "sip:host",
        "sip:@host",
        "sip:a@",
        "sip:a b@host",
        "sip:a@host:0",
        "sip:a@host:99999",
        "sip:a@host:x",
        "sip:a@[::1",
        "sip:a@[::1]x",
        "sip:a@host;maddr=10.0.0.1",
        "sip:a@host?X=1",
        "sip:a\r\nX: 1@host",
        "sips:a@host",
        "sip:a@host" + "x" * 300,
    ],
)
def test_addresses_that_are_refused(text: str) -> None:
    with pytest.raises(ValidationFailed):
        parse_target(text, INDIA)


@pytest.mark.parametrize(
    "text",
    [
        *("+12025550123", "+442079460000", "442079460000", "0044 20 7946 0000"),
        *("+8821612345678", "+881612345678"),
    ],
)
def test_countries_that_may_not_be_dialled(text: str) -> None:
    with pytest.raises(Forbidden):
        parse_target(text, INDIA)


def test_countries_are_told_apart() -> None:
    assert region_of("+12025550123") == "US"
    assert region_of("+14165550123") == "CA"
    assert region_of("+919800000001") == "IN"
    assert parse_target("+12025550123", {"US"}) == PhoneTarget("+12025550123")
    with pytest.raises(Forbidden):
        parse_target("+14165550123", {"US"})


def test_premium_numbers_are_refused_even_at_home() -> None:
    with pytest.raises(Forbidden):
        parse_target("+19002345678", {"US"})


@pytest.mark.parametrize(
    ("status", "kind", "rang", "again"),
    [
        (503, "response", False, True),
        (500, "response", True, True),
        (408, "response", False, True),
        (408, "response", True, False),
        (408, "timeout", False, True),
        (503, "transport", False, True),
        (404, "resolve", False, True),
        (486, "response", False, False),
        (600, "response", False, False),
        (603, "response", False, False),
        (404, "response", False, False),
        (487, "cancelled", True, False),
    ],
)
def test_failover(status: int, kind: str, rang: bool, again: bool) -> None:
    assert may_fail_over(status, kind, rang=rang) is again


class TestRouter:
    def setup_method(self) -> None:
        self.directory = MemoryDirectory()
        self.directory.put(
            numbers=[make_number()],
            carriers=[make_carrier()],
            gateways=[
                make_gateway("g1"),
                make_gateway("g2", priority=1, protocol="tls/srtp"),
            ],
        )
        self.capacity = Capacity(10, 10)
        self.router = Router(self.directory, self.capacity, INDIA)

    def gateways(self, party: Party) -> list[str]:
        return [item.gateway.gateway_sid for item in self.router.attempts(ACCOUNT_SID, party, 0.0)]

    def test_by_priority(self) -> None:
        assert self.gateways(make_party()) == ["g1", "g2"]

    def test_gateways_at_rest_and_carriers_at_their_limit_are_left_out(self) -> None:
        self.router.gateways.failed("g1", 0.0, retry_after_s=5.0)
        assert self.gateways(make_party()) == ["g2"]
        self.directory.put(carriers=[make_carrier(max_concurrent_calls=1)])
        self.capacity.enter_trunk(make_carrier(), make_gateway(), 0.0)
        with pytest.raises(ServiceUnavailable):
            self.gateways(make_party())
        self.capacity.leave_trunk(make_carrier(), make_gateway())
        self.directory.put(carriers=[make_carrier(max_cps=1)])
        self.capacity.enter_trunk(make_carrier(max_cps=1), make_gateway(), 0.0)
        with pytest.raises(ServiceUnavailable):
            self.gateways(make_party())

    def test_gateways_that_failed_are_better_than_none_but_not_those_that_asked_for_a_rest(self) -> None:
        self.router.gateways.failed("g1", 0.0)
        assert self.gateways(make_party()) == ["g2", "g1"], "the last resort comes last"
        self.router.gateways.failed("g2", 0.0)
        assert self.gateways(make_party()) == ["g1", "g2"]
        self.router.gateways.failed("g1", 0.0, retry_after_s=60.0)
        assert self.gateways(make_party()) == ["g2"]
        self.router.gateways.failed("g2", 0.0, retry_after_s=60.0)
        with pytest.raises(ServiceUnavailable):
            self.gateways(make_party())

    def test_the_guard_holds_whoever_asks(self) -> None:
        with pytest.raises(Forbidden):
            self.gateways(make_party("+12025550123"))
        with pytest.raises(NumberNotOwned):
            self.gateways(make_party(caller_id="+918047491800"))
        assert self.gateways(make_party(caller_id="+918047491800", passthrough=True)) == ["g1", "g2"]
        self.directory.put(numbers=[make_number(registered=False)])
        with pytest.raises(NumberNotOwned):
            self.gateways(make_party())

    def test_another_accounts_number_is_not_ours(self) -> None:
        self.directory.put(
            accounts=[make_account(OTHER_SID)],
            numbers=[make_number("+918047491800", account_sid=OTHER_SID)],
        )
        with pytest.raises(NumberNotOwned):
            self.gateways(make_party(caller_id="+918047491800"))

    def test_sip_addresses_lead_to_gateways_only(self) -> None:
        party = Party(SipTarget("desk", "127.0.0.1", 5080), OWN_NUMBER)
        (attempt,) = self.router.attempts(ACCOUNT_SID, party, 0.0)
        assert attempt.user == "desk"
        assert self.refusal(Party(SipTarget("desk", "10.9.9.9"), OWN_NUMBER)).reason == NO_ROUTE

    def refusal(self, party: Party) -> FieldError:
        """Return the error that names a party without a route."""
        with pytest.raises(ValidationFailed) as caught:
            self.gateways(party)
        (error,) = caught.value.errors
        return error

    def test_a_number_that_no_carrier_serves_has_no_route(self) -> None:
        self.directory.put(carriers=[make_carrier(prefixes=(TEST_PREFIX, "+9180"))])
        error = self.refusal(make_party())
        assert (error.field, error.reason) == ("to", NO_ROUTE)
        reached = "can call numbers that begin with +9180, +919800000 (the sandbox);"
        assert f"{OWN_NUMBER} {reached}" in error.message
        here = Router(self.directory, Capacity(100, 100), ("IN",), on_net=lambda: make_gateway("here"))
        with pytest.raises(ValidationFailed) as caught:
            here.attempts(ACCOUNT_SID, make_party(), 0.0)
        assert f"{reached[:-1]}, and numbers that accounts hold here;" in caught.value.errors[0].message
        assert "trunkline carriers add" in error.message and "trunk-portal/carriers" in error.message
        self.directory.put(carriers=[make_carrier("mine", ACCOUNT_SID, name="Office")])
        self.directory.put(gateways=[make_gateway("g3", carrier_sid="mine")])
        assert "yours: Office" in self.refusal(make_party()).message
        assert self.gateways(make_party("+918047491800")) == ["g1", "g2"]

    def test_a_platform_without_carriers_has_no_route(self) -> None:
        self.directory.put(carriers=[make_carrier(is_active=False)])
        error = self.refusal(make_party())
        assert error.reason == NO_ROUTE and f"no carrier takes calls from {OWN_NUMBER}" in error.message

    def test_a_number_on_an_own_carrier_is_not_sent_to_the_operator(self) -> None:
        self.directory.put(
            numbers=[make_number(carrier_sid="mine")], carriers=[make_carrier("mine", ACCOUNT_SID)]
        )
        error = self.refusal(make_party())
        assert error.reason == NO_ROUTE and "outbound gateway" in error.message
        assert "trunkline" not in error.message

    def test_many_prefixes_are_not_all_named(self) -> None:
        prefixes = tuple(f"+91{area}" for area in range(200, 250))
        self.directory.put(carriers=[make_carrier(prefixes=prefixes)])
        assert "+91209 and 40 more;" in self.refusal(make_party()).message

    def test_a_carrier_that_is_full_is_no_missing_route(self) -> None:
        self.directory.put(carriers=[make_carrier(prefixes=("+91",), max_concurrent_calls=1)])
        self.capacity.enter_trunk(make_carrier(), make_gateway(), 0.0)
        with pytest.raises(ServiceUnavailable) as caught:
            self.gateways(make_party())
        assert caught.value.retry_after_s > 0

    def test_a_forced_carrier_must_be_one_of_the_accounts(self) -> None:
        assert self.gateways(make_party(carrier_sid="carrier-1")) == ["g1", "g2"]
        self.directory.put(
            carriers=[make_carrier("mine", ACCOUNT_SID), make_carrier("theirs", OTHER_SID)],
            gateways=[make_gateway("g3", carrier_sid="theirs")],
        )
        unknown = self.refusal(make_party(carrier_sid="none"))
        assert (unknown.field, unknown.message, unknown.reason) == (
            "carrier_sid",
            "names no carrier",
            None,
        )
        silent = self.refusal(make_party(carrier_sid="mine"))
        assert (silent.field, silent.reason) == ("carrier_sid", NO_ROUTE)
        with pytest.raises(Forbidden, match="another account"):
            self.gateways(make_party(carrier_sid="theirs"))


@pytest.mark.parametrize(
    "number", ["+91442071234567", "+9144207123456", "+9100442071234567", "+910019005550"]
)
def test_no_number_becomes_one_of_another_country_without_its_country_code(number: str) -> None:
    """A carrier that wants the national form would get 442071234567, or 00 and a country code."""
    assert region_of(number) is None
    with pytest.raises((Forbidden, ValidationFailed)):
        parse_target(number, INDIA)


def test_a_new_range_of_the_usual_length_still_counts() -> None:
    assert region_of("+911234567890") == "IN"


def test_a_call_passed_through_leaves_by_the_carriers_of_the_number_it_came_in_to() -> None:
    routes = MemoryDirectory()
    routes.put(
        carriers=[make_carrier(), make_carrier("own", ACCOUNT_SID)],
        gateways=[make_gateway(), make_gateway("gateway-own", "127.0.0.2", carrier_sid="own")],
        numbers=[make_number(carrier_sid="own")],
    )
    router = Router(routes, Capacity(10, 10), INDIA)

    def carriers(number: str | None) -> list[str]:
        party = replace(make_party(caller_id="+919811111111", passthrough=True), number=number)
        return [attempt.carrier.carrier_sid for attempt in router.attempts(ACCOUNT_SID, party, 0.0)]

    assert carriers(OWN_NUMBER) == ["own"]
    assert carriers(None) == ["carrier-1"]


BROUGHT, BOUGHT = "+912222222222", OWN_NUMBER


@pytest.mark.parametrize(
    "party",
    [
        make_party(caller_id=BROUGHT, carrier_sid="carrier-1"),
        Party(SipTarget("9876543210", "127.0.0.1"), BROUGHT),
        replace(make_party(caller_id="+911111111111", passthrough=True), number=BOUGHT, trusted=False),
        Party(SipTarget("9876543210", "127.0.0.1"), "+911111111111", passthrough=True, trusted=False),
    ],
)
def test_the_platforms_carriers_are_shown_no_number_that_only_the_customer_answers_for(party: Party) -> None:
    """Else anybody could register anybody's number on a carrier of his own, and call as it through ours."""
    routes = MemoryDirectory()
    routes.put(
        carriers=[make_carrier(), make_carrier("own", ACCOUNT_SID)],
        gateways=[make_gateway(), make_gateway("gateway-own", "127.0.0.2", carrier_sid="own")],
        numbers=[make_number(), make_number(BROUGHT, carrier_sid="own")],
    )
    router = Router(routes, Capacity(10, 10), INDIA)
    with pytest.raises(NumberNotOwned, match="own carriers only"):
        router.attempts(ACCOUNT_SID, party, 0.0)

    def carrier(**changes: Any) -> str:
        (attempt,) = router.attempts(ACCOUNT_SID, replace(party, **changes), 0.0)
        return attempt.carrier.carrier_sid

    assert carrier(caller_id=BOUGHT, passthrough=False) == "carrier-1"
    assert carrier(target=SipTarget("desk", "127.0.0.2"), carrier_sid=None) == "own"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        ("+919876543210", "mobile"),
        ("+918047491899", "local"),
        ("+911800123456", "toll_free"),
        ("+911401234567", "140_series"),
        ("+911601234567", "160_series"),
        ("+999123456789", "local"),
    ],
)
def test_what_a_number_is(number: str, kind: str) -> None:
    assert type_of(number) == kind


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        ("9812345678", "+919812345678"),
        ("+919812345678", "+919812345678"),
        ("sip:alice@10.0.0.1:5070", "sip:alice@10.0.0.1:5070"),
        ("SIP:alice@Host.Example", "sip:alice@host.example"),
        ("91 98123 45678", "+919812345678"),
        ("+44 20 7946 0000", "+442079460000"),
    ],
)
def test_an_address_is_written_as_records_have_it(text: str, recorded: str) -> None:
    assert str(parse_address(text)) == recorded


@pytest.mark.parametrize("text", ["anonymous", "sip:", "12345", "+91" * 100])
def test_what_is_no_address_names_its_field(text: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        parse_address(text, field="phone_number")
    assert [error.field for error in refusal.value.errors] == ["phone_number"]
