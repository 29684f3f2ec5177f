"""Addresses, Via and CSeq (RFC 3261 20.10, 20.16, 20.42; RFC 3581)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.errors import InvalidValue, ParseError
from sip.message.fields import CSeq, NameAddr, Via
from sip.message.grammar import parse_params, quote, split_list, unquote
from sip.message.uri import SipUri
from tests.unit.sip import strategies

URI = SipUri.parse("sip:alice@example.org")


@given(strategies.name_addrs)
def test_addresses_read_back(address: NameAddr) -> None:
    again = NameAddr.parse(str(address))
    # Space around a name is not told from space before the bracket once quoted, so it is kept.
    assert again.display_name == address.display_name
    assert again.params == address.params
    assert NameAddr.parse(str(again)) == again


@given(strategies.vias)
def test_vias_read_back(via: Via) -> None:
    assert Via.parse(str(via)) == via


@given(st.text(max_size=50) | st.from_regex(r'("[^"]{0,9}")? ?<?sip:[a-z@;=?]{0,20}>?(;tag=.{0,5})?'))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = NameAddr.parse(text)
    except ParseError:
        return
    assert NameAddr.parse(str(address)) == address


@given(st.text(max_size=30))
def test_quoting_loses_nothing_but_control_characters(text: str) -> None:
    plain = "".join(char for char in text if char >= " " and char != "\x7f")
    assert unquote(quote(text)) == plain


@pytest.mark.parametrize(
    ("text", "name", "uri", "tag"),
    [
        ('"Alice \\"A\\" <x>" <sip:a@h>;tag=1', 'Alice "A" <x>', "sip:a@h", "1"),
        ("Alice B <sip:a@h>", "Alice B", "sip:a@h", None),
        ("<sip:a@h;lr>;tag=2", None, "sip:a@h;lr", "2"),
        ("sip:a@h;tag=3", None, "sip:a@h", "3"),
        ('"" <sip:a@h> ; TAG = 4 ;x="y;z"', None, "sip:a@h", "4"),
        ("<sip:a@h?Subject=x>", None, "sip:a@h?Subject=x", None),
        ("<tel:+9198>;tag=a@b:c", None, "tel:+9198", "a@b:c"),
    ],
)
def test_address_forms(text: str, name: str | None, uri: str, tag: str | None) -> None:
    address = NameAddr.parse(text)
    assert (address.display_name, str(address.uri), address.tag) == (name, uri, tag)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "Alice",
        '"Alice <sip:a@h>',
        '"Alice" sip:a@h',
        "<sip:a@h",
        "sip:a@h>",
        'A"B <sip:a@h>',
        "A > <sip:a@h>",
        "<sip:a@h> garbage",
        "<sip:a@h>;tag=1;tag=1",
        "<sip:a@h>;tag",
        "<sip:a@h>;tag=",
        "<sip:a@h>;a b=c",
        "sip:a@h?Subject=x",
        "sip:user;par=x@h",
        "<mailto:a@h>",
        "<sip:a@h>;x=1,<sip:b@h>",
    ],
)
def test_malformed_addresses(text: str) -> None:
    with pytest.raises(ParseError):
        NameAddr.parse(text)


def test_tag_is_replaced() -> None:
    address = NameAddr.parse('"A" <sip:a@h>;tag=old;x=y').with_tag("new")
    assert address.tag == "new" and address.param("X") == "y"
    assert str(address) == '"A" <sip:a@h>;x=y;tag=new'


@pytest.mark.parametrize("tag", ["a;b", "a\r\nX: y", "a,b", 'a"', "a b"])
def test_a_tag_cannot_smuggle(tag: str) -> None:
    with pytest.raises(InvalidValue):
        NameAddr(None, URI).with_tag(tag)


def test_a_display_name_cannot_smuggle() -> None:
    text = str(NameAddr('x" <sip:evil@h>, "\r\ny', URI))
    assert text == '"x\\" <sip:evil@h>, \\"y" <sip:alice@example.org>'
    assert NameAddr.parse(text).uri == URI
    assert len(split_list(text)) == 1


def test_via_parts() -> None:
    via = Via.parse(
        "sip / 2.0 / udp  Pbx.Example.ORG : 5062 ; Branch = z9hG4bK1 ;rport;ttl=16;received=192.0.2.1"
    )
    assert via == Via("UDP", "pbx.example.org", 5062, "z9hG4bK1", "192.0.2.1", "", (("ttl", "16"),))
    assert via.param("TTL") == "16"
    assert str(via) == "SIP/2.0/UDP pbx.example.org:5062;branch=z9hG4bK1;received=192.0.2.1;rport;ttl=16"


@pytest.mark.parametrize(
    ("plain", "unusual"),
    [
        ("SIP/2.0/UDP H:5062;branch=z9hG4bK1;rport", "sip/2.0/udp h:5062 ;branch=z9hG4bK1;rport"),
        ("SIP/2.0/TLS h;rport;branch=z9=a:b@c", "SIP/2.0/tls h;branch=z9=a:b@c;rport"),
        ("SIP/2.0/TCP h;branch=z", "SIP / 2.0 / TCP h;Branch=z"),
    ],
)
def test_how_a_via_is_written_makes_no_difference(plain: str, unusual: str) -> None:
    assert Via.parse(plain) == Via.parse(unusual)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SIP/2.0/UDP",
        "SIP/2.0/UDP ;branch=z",
        "SIP/3.0/UDP h",
        "HTTP/2.0/UDP h",
        "SIP/2.0/UDP h:0",
        "SIP/2.0/UDP h:70000",
        "SIP/2.0/UDP h garbage",
        "SIP/2.0/UDP h;branch=1;branch=1",
        "SIP/2.0/UDP h;branch",
        "SIP/2.0/UDP h;branch=",
        "SIP/2.0/UDP h;received=a b",
        "SIP/2.0/UDP h;received=",
        "SIP/2.0/UDP h;rport;branch=z;rport",
        "SIP/2.0/UDP h:0;branch=z;rport",
        "SIP/2.0/UDP h;rport=0",
        "SIP/2.0/UDP h;rport=99999",
        "SIP/2.0/UDP h;rport=x",
        "SIP/2.0/UDP h;rport=²",
        "SIP/2.0/UDP [1::2::3]",
    ],
)
def test_malformed_vias(text: str) -> None:
    with pytest.raises(ParseError):
        Via.parse(text)


@pytest.mark.parametrize(
    "parts",
    [
        {"transport": "U P", "host": "h"},
        {"transport": "UDP", "host": "h;x"},
        {"transport": "UDP", "host": "h", "port": 70000},
        {"transport": "UDP", "host": "h", "branch": "a;b"},
        {"transport": "UDP", "host": "h", "received": "a b"},
        {"transport": "UDP", "host": "h", "params": (("x y", None),)},
    ],
)
def test_the_application_cannot_build_a_bad_via(parts: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Via(**parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("via", "result"),
    [
        # RFC 3261 18.2.1: received only where it differs from sent-by.
        ("SIP/2.0/UDP 192.0.2.1;branch=z", "SIP/2.0/UDP 192.0.2.1;branch=z"),
        ("SIP/2.0/UDP pbx.example;branch=z", "SIP/2.0/UDP pbx.example;branch=z;received=192.0.2.1"),
        # RFC 3581 4: both when rport is asked for, even where the host is right.
        ("SIP/2.0/UDP 192.0.2.1;rport", "SIP/2.0/UDP 192.0.2.1;received=192.0.2.1;rport=5099"),
        # A received that the sender invented is overwritten.
        ("SIP/2.0/UDP pbx;received=10.0.0.1", "SIP/2.0/UDP pbx;received=192.0.2.1"),
        ("SIP/2.0/UDP 192.0.2.1;received=10.0.0.1", "SIP/2.0/UDP 192.0.2.1"),
        ("SIP/2.0/UDP pbx;rport=1", "SIP/2.0/UDP pbx;received=192.0.2.1;rport=5099"),
    ],
)
def test_source_is_recorded(via: str, result: str) -> None:
    assert str(Via.parse(via).with_source("192.0.2.1", 5099)) == result


def test_the_zone_of_a_link_local_source_is_not_told() -> None:
    via = Via.parse("SIP/2.0/UDP pbx.example;rport;branch=z9hG4bKz").with_source("fe80::1%eth0", 5099)
    assert str(via) == "SIP/2.0/UDP pbx.example;branch=z9hG4bKz;received=fe80::1;rport=5099"
    assert Via.parse(str(via)) == via


def test_cseq() -> None:
    assert CSeq.parse("0009  INVITE") == CSeq(9, "INVITE")
    assert str(CSeq(2**31 - 1, "BYE")) == "2147483647 BYE"


@pytest.mark.parametrize(
    "text", ["", "INVITE", "1", "1INVITE", "-1 INVITE", "1 INVITE x", "2147483648 BYE", "² BYE"]
)
def test_malformed_cseq(text: str) -> None:
    with pytest.raises(ParseError):
        CSeq.parse(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, b,,c ,", ["a", "b", "c"]),
        ('"a, b" <sip:x,y@h>, <sip:z@h>;p="q,r"', ['"a, b" <sip:x,y@h>', '<sip:z@h>;p="q,r"']),
        ('"a\\", b", c', ['"a\\", b"', "c"]),
        ('"open, b', ['"open, b']),
        ("a, <open, b", ["a", "<open, b"]),
        ("", []),
    ],
)
def test_lists(text: str, parts: list[str]) -> None:
    assert split_list(text) == parts


def test_params_keep_order_quotes_and_bare_names() -> None:
    params = parse_params('; A = "x;y" ;; b;c=')
    assert params == (("a", '"x;y"'), ("b", None), ("c", ""))
