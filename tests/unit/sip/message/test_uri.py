"""SIP, SIPS and tel URIs (RFC 3261 19.1, RFC 3966)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.errors import InvalidValue, ParseError
from sip.message.uri import SipUri
from tests.unit.sip import strategies


@given(strategies.uris)
def test_what_is_written_reads_back_equal(uri: SipUri) -> None:
    # An escape that is not needed is undone, so the second text is the canonical one.
    again = SipUri.parse(str(uri))
    assert SipUri.parse(str(again)) == again
    if uri.user is None or "%" not in uri.user:
        assert again == uri


@given(st.text(max_size=60) | st.from_regex(r"sips?:.{0,40}"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        uri = SipUri.parse(text)
    except ParseError:
        return
    assert SipUri.parse(str(uri)) == uri


def test_all_parts() -> None:
    uri = SipUri.parse(
        "SIPS:alice:secret@Atlanta.Example.COM:5071;transport=TCP;LR?Subject=x&Priority=urgent"
    )
    assert uri == SipUri(
        scheme="sips",
        user="alice",
        password="secret",
        host="atlanta.example.com",
        port=5071,
        params=(("transport", "TCP"), ("lr", None)),
        headers="Subject=x&Priority=urgent",
    )
    assert str(uri) == "sips:alice:secret@atlanta.example.com:5071;transport=TCP;lr?Subject=x&Priority=urgent"
    assert uri.transport == "tcp"
    assert uri.param("LR") == "" and uri.param("maddr") is None
    assert "secret" not in repr(uri)


def test_ipv6_host_has_no_brackets_inside_and_some_outside() -> None:
    uri = SipUri.parse("sip:[2001:DB8::1]:5060")
    assert uri.host == "2001:db8::1"
    assert str(uri) == "sip:[2001:db8::1]:5060"


@pytest.mark.parametrize(
    ("text", "user"),
    [
        ("sip:%2B9198@h", "+9198"),
        ("sip:%61li%63e@h", "alice"),
        ("sip:a%40b@h", "a%40b"),
        ("sip:a%00b@h", "a%00b"),
        ("sip:a%0d%0ab@h", "a%0D%0Ab"),
        ("sip:12#34@h", "12%2334"),
        ("sip:josé@h", "jos%C3%A9"),
        ("sip:a;b=c?d/e@h", "a;b=c?d/e"),
    ],
)
def test_user_has_one_canonical_form(text: str, user: str) -> None:
    uri = SipUri.parse(text)
    assert uri.user == user
    assert SipUri.parse(str(uri)) == uri


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("sip:+91-9800.000(001);phone-context=x@h", "+919800000001"),
        ("tel:+91-98-00;ext=5", "+919800"),
        ("sip:alice.b-c@h", "alice.b-c"),
        ("sip:*21%23@h", "*21%23"),
        ("sip:h", None),
    ],
)
def test_number(text: str, number: str | None) -> None:
    assert SipUri.parse(text).number == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sip",
        "sip:",
        "sip:@h",
        "sip:a@",
        "sip:a@b@h",
        "sip:a%@h",
        "sip:a%zz@h",
        "sip:a%4%41b@h",
        "sip:h;p=a@b ",
        "sip:h;p=a?b@c ",
        "sip:a b@h",
        "sip:a<b@h",
        "sip:a@h:0",
        "sip:a@h:65536",
        "sip:a@h:5x",
        "sip:a@h:",
        "sip:a@[::1",
        "sip:a@[:::]",
        "sip:a@ho st",
        "sip:a@h;p=a b",
        "sip:a@h;=b",
        'sip:a@h;p="a',
        "sip:a@h\r\n",
        "tel:",
        "tel:alice",
        "tel:123;ext=1@h",
        "sip:" + "h" * 300,
    ],
)
def test_malformed(text: str) -> None:
    with pytest.raises(ParseError):
        SipUri.parse(text)


def test_other_schemes_deserve_416() -> None:
    with pytest.raises(ParseError) as caught:
        SipUri.parse("mailto:a@example.org")
    assert caught.value.status == 416


@pytest.mark.parametrize(
    "parts",
    [
        {"scheme": "http", "host": "h"},
        {"scheme": "sip", "host": ""},
        {"scheme": "sip", "host": "h>;x"},
        {"scheme": "sip", "host": "h", "user": "a@b"},
        {"scheme": "sip", "host": "h", "user": "a\r\nX: y"},
        {"scheme": "sip", "host": "h", "user": ""},
        {"scheme": "sip", "host": "h", "password": "a@b"},
        {"scheme": "sip", "host": "h", "port": 0},
        {"scheme": "sip", "host": "h", "params": (("a b", None),)},
        {"scheme": "sip", "host": "h", "params": (("a", "b;c=d"),)},
        {"scheme": "sip", "host": "h", "params": (("a=b", None),)},
        {"scheme": "sip", "host": "h", "params": (("a", "b>"),)},
        {"scheme": "sip", "host": "h", "params": (("a", "b@c"),)},
        {"scheme": "sip", "host": "h", "params": (("a", "b?c"),)},
        {"scheme": "sip", "host": "h", "headers": "a=b c"},
        {"scheme": "sip", "host": "fe80::1%eth0"},
        {"scheme": "tel", "host": "", "user": None},
        {"scheme": "tel", "host": "h", "user": "123"},
    ],
)
def test_the_application_cannot_build_what_would_read_differently(parts: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        SipUri(**parts)  # type: ignore[arg-type]


def test_with_changes_and_checks() -> None:
    uri = SipUri.parse("sip:a@h")
    assert str(uri.with_(host="other.example", port=5080)) == "sip:a@other.example:5080"
    with pytest.raises(InvalidValue):
        uri.with_(user="x y")


def test_long_uris_are_read_without_being_remembered() -> None:
    text = "sip:" + "a" * 400 + "@h"
    assert str(SipUri.parse(text)) == text
