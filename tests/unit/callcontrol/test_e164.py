"""Telephone numbers, read from every writing that people and programs use."""

from __future__ import annotations

from collections.abc import Iterable

import phonenumbers
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from callcontrol.e164 import MAX_NUMBER_CHARS, NOT_A_NUMBER, SEPARATORS, read_number, to_e164
from fixtures.inventory import standard_listings

SPACES = ["", "", "", " ", "-", ".", "\u00a0", "\u202f", "\u2011"]


def example_numbers(*kinds: int) -> Iterable[str]:
    """One number of each kind of every country."""
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        for kind in kinds:
            found = phonenumbers.example_number_for_type(region, kind)
            if found is not None:
                yield phonenumbers.format_number(found, PhoneNumberFormat.E164)


ABROAD = sorted(set(example_numbers(PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE)))
mobiles = st.integers(6_000_000_000, 9_999_999_999).map("+91{}".format)
sandbox = st.integers(1, 699).map("+919800000{:03}".format)
offered = st.sampled_from([listing.number for listing in standard_listings()])
home = mobiles | sandbox | offered | st.sampled_from(["+911123456789", "+911800123456", "+918047491899"])
anywhere = home | st.sampled_from(ABROAD)


def spread(draw: st.DrawFn, text: str) -> str:
    """Text with separators between its characters, and sometimes parentheses around two of them."""
    pieces = [character + draw(st.sampled_from(SPACES)) for character in text]
    if len(pieces) > 4 and draw(st.booleans()):
        start = draw(st.integers(0, len(pieces) - 3))
        pieces[start] = "(" + pieces[start]
        pieces[start + 2] += ")"
    return "".join(pieces)


@st.composite
def written(draw: st.DrawFn, numbers: st.SearchStrategy[str]) -> tuple[str, str]:
    """A number, and one of its writings."""
    number = draw(numbers)
    digits = number.removeprefix("+")
    parsed = phonenumbers.parse(number)
    forms = [
        *(number, "00" + digits, f"tel:{number}", f"TEL:{number};phone-context=+{parsed.country_code}"),
        phonenumbers.format_number(parsed, PhoneNumberFormat.INTERNATIONAL),
        phonenumbers.format_number(parsed, PhoneNumberFormat.RFC3966),
    ]
    if len(digits) >= 11:
        forms.append(digits)
    if number.startswith("+91"):
        national = digits.removeprefix("91")
        forms += [national, "0" + national, f"tel:{national}", f"tel:{national};phone-context=+91"]
        forms += [f"+91 (0) {national}", f"tel:{national[2:]};phone-context=+91{national[:2]}"]
    text = draw(st.sampled_from(forms))
    return number, text if "tel" in text.lower() else spread(draw, text)


@given(written(anywhere))
def test_every_writing_of_a_number_reads_as_the_number(given_: tuple[str, str]) -> None:
    number, text = given_
    assert read_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *("+919876543210", "919876543210", "00919876543210", "9876543210", "09876543210"),
        *("+91 98765 43210", "91-98765-43210", "0091 98765 43210", "098765-43210", "98765.43210"),
        *("+91 (98765) 43210", "(+91) 98765 43210", "+91-(0)-98765-43210", "91 0 98765 43210"),
        *("tel:+919876543210", "tel:+91-98765-43210", "TEL:98765-43210", "tel:09876543210"),
        *("tel:9876543210;phone-context=+91", "tel:43210;Phone-Context=+91-98765"),
        *("tel:+919876543210;phone-context=+1", "+91\u00a098765\u202f43210", "+91\u201198765\u201343210"),
        "\u202a+91 98765 43210\u202c",
    ],
)
def test_writings_of_an_indian_mobile_number(text: str) -> None:
    assert read_number(text) == "+919876543210"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("919800000003", "+919800000003"),
        ("+91 98000 00003", "+919800000003"),
        ("911110000100", "+911110000100"),
        ("1110000100", "+911110000100"),
        ("918047000001", "+918047000001"),
        ("(080) 4700 0001", "+918047000001"),
        ("911800123456", "+911800123456"),
        ("1800 123 456", "+911800123456"),
        ("+91 1800 1234", "+9118001234"),
        ("+91 1860 266 2666", "+9118602662666"),
        ("9118000000100", "+9118000000100"),
        ("1800 000 0100", "+9118000000100"),
        ("01800 000 0100", "+9118000000100"),
        ("915000000100", "+915000000100"),
        ("911400000100", "+911400000100"),
        ("12025550123", "+12025550123"),
        ("1 (202) 555-0123", "+12025550123"),
        ("44 20 7946 0000", "+442079460000"),
        ("+44 (0)20 7946 0000", "+442079460000"),
        ("0044 20 7946 0000", "+442079460000"),
        ("4915123456789", "+4915123456789"),
        ("39 02 1234 5678", "+390212345678"),
    ],
)
def test_numbers_of_the_sandbox_of_services_and_of_other_countries(text: str, number: str) -> None:
    assert read_number(text) == number


def test_ten_digits_are_a_number_of_the_home_region() -> None:
    assert read_number("6531234567") == "+916531234567"
    assert read_number("+6531234567") == read_number("00 65 3123 4567") == "+6531234567"


@pytest.mark.parametrize("text", ["18602662666", "1800 266 7890"])
def test_digits_that_are_numbers_of_two_countries_are_refused(text: str) -> None:
    """India's 1860 and 1800 and North America's +1 860 and +1 800 look alike without their country code."""
    digits = text.replace(" ", "")
    assert to_e164("+" + digits) is not None and to_e164("+91" + digits) is not None
    with pytest.raises(ValueError) as refusal:
        read_number(text)
    told = f"is a telephone number of two countries: write +{digits} or +91{digits}"
    assert str(refusal.value) == told


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "+", "()", "0", "00", "tel:", "12345", "100", "1800 1234", "980000000", "+91", "garbage"),
        *("anonymous", "sip:desk@10.0.0.1", "1-800-FLOWERS", "98765x43210", "++919876543210", "98765+43210"),
        *("+0123456789", "+999123456789", "+9198765432109999", "91987654321012", "999999999999999"),
        *("9876543210\n", "98765\t43210", "98765,43210", "9876543210;ext=5", "9876543210 ext 5"),
        *("tel:+919876543210;ext=5", "tel:9876543210;phone-context=example.com", "tel:9876543210;x"),
        *("tel:43210;phone-context=+9198765;phone-context=+9198765", "tel:tel:+919876543210"),
        "tel :9876543210",
        *("٩٨٧٦٥٤٣٢١٠", "+९१९८७६५४३२१०", "+９１9876543210"),
        *("9" * 300, "+91 98765 4321" + "0" * 60),
        *("+91009876543210", "+9100442071234567", "\x009876543210"),
        # A digit or two are missing, or too many; services such as 1800 have other lengths.
        *("+91980000000", "+9198000000", "0091 98000 0000", "tel:+91-98765-4321", "+91198000000"),
        *("+9198000000011", "+91442071234567", "+91186012345", "+91 11 2345 678"),
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as refusal:
        read_number(text)
    assert str(refusal.value) == NOT_A_NUMBER


def test_a_writing_has_a_limit() -> None:
    longest = "9876543210" + " " * (MAX_NUMBER_CHARS - 10)
    assert read_number(longest) == "+919876543210"
    with pytest.raises(ValueError):
        read_number(longest + " ")


_ALMOST = st.text("0123456789+-.() ;=telxphon,#*\u00a0", max_size=40)


@given(st.text(max_size=80) | _ALMOST | _ALMOST.map("tel:{}".format))
@example("0" * 15)
@example("tel:1;phone-context=+" + "-" * 20)
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    try:
        number = read_number(text)
    except ValueError as error:
        assert str(error) == NOT_A_NUMBER or "two countries" in str(error)
        return
    assert number.startswith("+") and number[1:].isascii() and number[1:].isdecimal()
    assert len(number) <= 18
    assert read_number(number) == number, "what has been read is read no further"


def test_separators_are_no_digits() -> None:
    assert not any(chr(point).isalnum() or chr(point) in "+;=" for point in SEPARATORS)
