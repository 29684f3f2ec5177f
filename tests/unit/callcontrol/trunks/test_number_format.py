"""Numbers as carriers want them written, and read in every form they use."""

from typing import Any

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.trunks.number_format import (
    caller_number_in,
    caller_user_for,
    number_in,
    numbers_in,
    user_for,
    user_of,
)
from sip import SipUri
from tests.support.domain import make_carrier

MOBILE = "+919876543210"
DELHI = "+911123456789"
TOLL_FREE = "+911800123456"
ABROAD = "+442079460000"

policies = st.fixed_dictionaries(
    {
        "number_format": st.sampled_from(["e164", "national", "significant"]),
        "e164_leading_plus": st.booleans(),
        "tech_prefix": st.sampled_from([None, "77#", "9", "00", "*12"]),
    }
)
indian = st.integers(6_000_000_000, 9_999_999_999).map("+91{}".format)
examples = st.sampled_from(
    [
        phonenumbers.format_number(found, phonenumbers.PhoneNumberFormat.E164)
        for region in sorted(phonenumbers.SUPPORTED_REGIONS)
        if (found := phonenumbers.example_number(region)) is not None
    ]
)


@pytest.mark.parametrize(
    ("policy", "number", "user"),
    [
        ({}, MOBILE, "+919876543210"),
        ({"e164_leading_plus": False}, MOBILE, "919876543210"),
        ({"tech_prefix": "77#"}, MOBILE, "77%23919876543210"),
        ({"number_format": "national"}, MOBILE, "09876543210"),
        ({"number_format": "national"}, DELHI, "01123456789"),
        ({"number_format": "national"}, TOLL_FREE, "1800123456"),
        ({"number_format": "national", "tech_prefix": "55"}, MOBILE, "5509876543210"),
        ({"number_format": "significant"}, MOBILE, "9876543210"),
        ({"number_format": "national"}, ABROAD, "+442079460000"),
        ({"number_format": "national", "e164_leading_plus": False}, ABROAD, "00442079460000"),
        ({"number_format": "significant", "tech_prefix": "55"}, ABROAD, "5500442079460000"),
    ],
)
def test_as_the_carrier_wants_it(policy: dict[str, Any], number: str, user: str) -> None:
    assert user_for(make_carrier(**policy), number) == user


def test_the_technical_prefix_is_not_put_before_the_callers_number() -> None:
    assert caller_user_for(make_carrier(tech_prefix="77#"), MOBILE) == MOBILE
    assert caller_user_for(make_carrier(tech_prefix="77#", number_format="national"), MOBILE) == "09876543210"


@given(policy=policies, number=indian | examples)
def test_a_caller_reads_back_as_its_number_whatever_the_technical_prefix(
    policy: dict[str, Any], number: str
) -> None:
    carrier = make_carrier(**policy)
    assert caller_number_in(caller_user_for(carrier, number), carrier) == number


def test_a_caller_behind_a_technical_prefix_is_understood_all_the_same() -> None:
    assert caller_number_in("77#919876543210", make_carrier(tech_prefix="77#")) == MOBILE


@given(policy=policies, number=indian | examples)
def test_what_is_written_reads_back_as_the_number(policy: dict[str, Any], number: str) -> None:
    carrier = make_carrier(**policy)
    uri = SipUri("sip", user=user_for(carrier, number), host="gateway.example")
    assert number in list(numbers_in(user_of(SipUri.parse(str(uri))), carrier))
    if not carrier.tech_prefix or carrier.tech_prefix == "77#":
        # Of a prefix that could be part of a number itself the number that was meant is one of two.
        assert number_in(uri.user or "", carrier) == number


@pytest.mark.parametrize(
    ("user", "number"),
    [
        ("+918047491899", "+918047491899"),
        ("918047491899", "+918047491899"),
        ("00918047491899", "+918047491899"),
        ("8047491899", "+918047491899"),
        ("08047491899", "+918047491899"),
        ("+91-80-4749.1899", "+918047491899"),
        ("(080) 4749-1899", "+918047491899"),
        ("%2B918047491899", "+918047491899"),
        ("+918047491899;phone-context=x", "+918047491899"),
        ("8047491899;phone-context=+91", "+918047491899"),
        ("47491899;phone-context=+9180", "+918047491899"),
        ("47491899;npdi;phone-context=+91-80", "+918047491899"),
        ("8047491899;phone-context=carrier.example", "+918047491899"),
        ("anonymous", None),
        ("", None),
        ("++918047491899", None),
        ("9" * 300, None),
        ("9" * 200, None),
        ("%zz", None),
        ("*123#", None),
    ],
)
def test_numbers_in_sip_addresses(user: str, number: str | None) -> None:
    assert number_in(user) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("tel:+91-98765-43210", "+919876543210"),
        ("tel:9876543210;phone-context=+91", "+919876543210"),
        ("tel:43210;phone-context=+9198765", "+919876543210"),
        ("sip:9876543210;phone-context=+91@10.0.0.1;user=phone", "+919876543210"),
        ("sip:+919876543210@10.0.0.1;user=phone", "+919876543210"),
        ("sip:10.0.0.1", None),
    ],
)
def test_numbers_in_addresses_of_every_scheme(text: str, number: str | None) -> None:
    assert number_in(user_of(SipUri.parse(text))) == number


def test_digits_alone_are_read_in_the_carriers_own_form_first() -> None:
    singapore = "6531234567"
    assert number_in(singapore) == "+916531234567"
    assert number_in(singapore, make_carrier(e164_leading_plus=False)) == "+6531234567"
    assert number_in(singapore, make_carrier(number_format="significant")) == "+916531234567"
    assert number_in("9876543210", make_carrier(e164_leading_plus=False)) == MOBILE


def test_a_technical_prefix_is_taken_off_and_may_be_missing() -> None:
    carrier = make_carrier(tech_prefix="77#")
    assert number_in("77%23919876543210", carrier) == MOBILE
    assert number_in("+919876543210", carrier) == MOBILE
    assert number_in("77%23919876543210") is None


@given(st.text(max_size=300))
def test_nothing_that_comes_from_outside_raises(user: str) -> None:
    for carrier in (None, make_carrier(tech_prefix="9", number_format="national")):
        for number in numbers_in(user, carrier):
            assert number.startswith("+") and number[1:].isdecimal() and len(number) <= 18
