"""Numbers in SIP addresses, none of which leads to a forbidden destination."""

import pytest

from callcontrol.errors import Forbidden
from callcontrol.routing.targets import parse_target
from callcontrol.trunks.number_format import _dialled_numbers, dialled_numbers


@pytest.mark.parametrize(
    ("user", "number"),
    [
        ("+442071234567", "+442071234567"),
        ("%2B442071234567", "+442071234567"),
        ("+44-20.7123(4567)", "+442071234567"),
        ("+442071234567;phone-context=x", "+442071234567"),
        ("00442071234567", "+442071234567"),
        ("442071234567", "+442071234567"),
        ("99*00442071234567", "+442071234567"),
        ("1234#442071234567", "+442071234567"),
        ("9812345678", "+919812345678"),
        ("09812345678", "+919812345678"),
        ("919812345678", "+919812345678"),
        ("+", "+"),
    ],
)
def test_a_number_is_read_as_the_switch_would(user: str, number: str) -> None:
    assert dialled_numbers(user) == (number,)


@pytest.mark.parametrize("user", ["callee", "1001", "200123", "alice+44", "agent-7x", "70001234", "*98"])
def test_names_and_extensions_are_no_numbers(user: str) -> None:
    assert dialled_numbers(user) == ()


@pytest.mark.parametrize(
    "user",
    [
        "+442071234567",
        "%2b442071234567",
        "00442071234567",
        "442071234567",
        "7#00442071234567",
        "+",
        "+999123",
    ],
)
def test_a_sip_address_leads_to_no_country_that_may_not_be_dialled(user: str) -> None:
    with pytest.raises(Forbidden):
        parse_target(f"sip:{user.replace('#', '%23')}@gateway.example", {"IN"})


@pytest.mark.parametrize("user", ["callee", "1001", "9812345678", "+919812345678", "00919812345678"])
def test_other_sip_addresses_pass(user: str) -> None:
    assert str(parse_target(f"sip:{user}@gateway.example", {"IN"})) == f"sip:{user}@gateway.example"


@pytest.mark.parametrize(
    "user",
    [
        "+442071234567#",
        "00442071234567*",
        "+442071234567,1",
        "1001&00442071234567",
        "tp00442071234567",
        "x+442071234567",
        "%252b442071234567",
        "+919876543210;rn=+442071234567",
        "9876543210;npdi;rn=00442071234567",
        "2071234567;phone-context=+44",
    ],
)
def test_a_number_is_found_wherever_it_hides(user: str) -> None:
    assert "+442071234567" in dialled_numbers(user)
    with pytest.raises(Forbidden):
        parse_target(f"sip:{user.replace('#', '%23')}@gateway.example", {"IN"})


@pytest.mark.parametrize(
    "user", ["9876543210;phone-context=+91", "9876543210;ext=12", "+919876543210;npdi", "+919876543210;rn=12"]
)
def test_parameters_that_lead_nowhere_else_pass(user: str) -> None:
    assert dialled_numbers(user) == ("+919876543210",)
    parse_target(f"sip:{user}@gateway.example", {"IN"})


def test_a_long_user_part_is_read_and_not_remembered() -> None:
    user = "9876543210;" * 100
    remembered = _dialled_numbers.cache_info().currsize
    assert dialled_numbers(user) == ("+919876543210",) * 100
    assert _dialled_numbers.cache_info().currsize == remembered
