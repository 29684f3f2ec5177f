"""Reading messages: limits, bodies, and round trips of what can be built (RFC 3261 7, 18.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.errors import ParseError
from sip.message.fields import CSeq, NameAddr, Via
from sip.message.message import Headers, Request, Response, serialise
from sip.message.parser import Limits, find_body, parse_message
from sip.message.uri import SipUri
from tests.unit.sip import strategies

HEAD = (
    b"BYE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\n"
    b"To: <sip:b@h>;tag=2\r\nCall-ID: c\r\nCSeq: 2 BYE\r\n"
)

common_headers = st.builds(
    lambda vias, sender, receiver, call_id: [
        *(("Via", str(via)) for via in vias),
        ("From", str(sender)),
        ("To", str(receiver)),
        ("Call-ID", call_id),
    ],
    st.lists(strategies.vias, min_size=1, max_size=3),
    strategies.name_addrs,
    strategies.name_addrs,
    strategies.tokens,
)


@given(
    strategies.tokens,
    strategies.uris.filter(lambda uri: uri.headers is None),
    common_headers,
    st.integers(0, 2**31 - 1),
    st.binary(max_size=40),
)
def test_requests_read_back(
    method: str, uri: SipUri, fields: list[tuple[str, str]], number: int, body: bytes
) -> None:
    request = Request(method, uri, Headers([*fields, ("CSeq", str(CSeq(number, method)))]), body)
    again = parse_message(serialise(request))
    assert isinstance(again, Request)
    assert again.method == method and str(again.uri) == str(SipUri.parse(str(uri)))
    assert again.via == Via.parse(fields[0][1])
    assert again.to == NameAddr.parse(request.headers.get("To") or "")
    assert again.cseq == CSeq(number, method) and again.body == body
    assert serialise(again) == serialise(parse_message(serialise(again)))


@given(st.integers(100, 699), st.text("abc xyzé€", max_size=20), common_headers, st.binary(max_size=40))
def test_responses_read_back(status: int, reason: str, fields: list[tuple[str, str]], body: bytes) -> None:
    response = Response(status, reason, Headers([*fields, ("CSeq", "1 INVITE")]), body)
    again = parse_message(serialise(response))
    assert isinstance(again, Response)
    assert again.status == status and again.body == body
    if reason.strip():
        assert again.reason == reason.strip()


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for message in (data, HEAD + data, HEAD + b"\r\n" + data, HEAD + data + b"\r\n\r\n"):
        try:
            serialise(parse_message(message))
        except ParseError as error:
            if error.answer is not None:
                serialise(error.answer)


def test_a_message_over_the_limit_gets_no_further() -> None:
    limits = Limits(message_bytes=200)
    assert parse_message(HEAD + b"\r\n", limits).body == b""
    with pytest.raises(ParseError) as caught:
        parse_message(HEAD + b"\r\n" + b"x" * 200, limits)
    assert caught.value.status == 513 and caught.value.answer is None


@pytest.mark.parametrize(
    ("limits", "extra"),
    [
        (Limits(header_count=6), b"A: 1\r\nB: 2\r\n"),
        (Limits(line_chars=60), b"A: " + b"x" * 60 + b"\r\n"),
        (Limits(value_chars=60), b"A: x\r\n " + b"x" * 40 + b"\r\n " + b"x" * 40 + b"\r\n"),
    ],
)
def test_limits(limits: Limits, extra: bytes) -> None:
    parse_message(HEAD + b"\r\n", limits)
    parse_message(HEAD + extra + b"\r\n")
    with pytest.raises(ParseError) as caught:
        parse_message(HEAD + extra + b"\r\n", limits)
    assert caught.value.answer is not None and caught.value.answer.status == 400


@pytest.mark.parametrize(
    "name", ["From", "To", "Call-ID", "CSeq", "Max-Forwards", "Content-Type", "Refer-To"]
)
def test_single_fields_must_not_repeat_even_when_equal(name: str) -> None:
    value = {"Max-Forwards": "70", "Content-Type": "a/b", "Refer-To": "<sip:x@h>"}.get(name)
    line = f"{name}: {value}\r\n" if value else ""
    if not value:
        line = next(row for row in HEAD.decode().splitlines(keepends=True) if row.startswith(name))
    repeated = (line if value else "") + line
    with pytest.raises(ParseError, match=f"^More than one {name}"):
        parse_message(HEAD + repeated.encode() + b"\r\n")


@pytest.mark.parametrize("name", ["Via", "From", "To", "Call-ID", "CSeq"])
def test_mandatory_fields(name: str) -> None:
    lines = [line for line in HEAD.splitlines(keepends=True) if not line.startswith(name.encode() + b":")]
    with pytest.raises(ParseError) as caught:
        parse_message(b"".join(lines) + b"\r\n")
    assert caught.value.reason == f"Missing {name} header field"
    assert caught.value.answer is None


@pytest.mark.parametrize(
    ("before", "after", "reason", "place"),
    [
        (
            b"Call-ID: c\r\n",
            b"Call-ID: c\r\nX: y\r\nno colon\r\n",
            "Malformed header field name",
            b"no colon",
        ),
        (b"Call-ID: c\r\n", b"Call-ID: c\r\nXYZ\r\n", "Header line without a colon", b"XYZ"),
        (b";tag=1", b";tag=1;tag=2", "Empty or repeated tag in From", b"<sip:a@h>;tag=1;tag=2"),
        (b"CSeq: 2 BYE", b"CSeq: 2 INVITE", "CSeq names another method", b"2 INVITE"),
        (b"SIP/2.0/UDP h", b"SIP/2.0/UDP h:0", "Port out of range in Via", b"SIP/2.0/UDP h:0"),
        (b"SIP/2.0\r\n", b"SIP/2.1\r\n", "Unsupported version", b"SIP/2.1"),
    ],
)
def test_errors_name_what_and_where(before: bytes, after: bytes, reason: str, place: bytes) -> None:
    data = HEAD.replace(before, after) + b"\r\n"
    with pytest.raises(ParseError) as caught:
        parse_message(data)
    error = caught.value
    assert (error.reason, error.offset) == (reason, data.index(place))
    assert str(error) == f"{reason} (at offset {error.offset})"


def test_answer_repeats_every_via_and_the_peers_own_text() -> None:
    text = HEAD.replace(b"Via:", b"v: SIP/2.0/TCP top;branch=z9hG4bKt, SIP/2.0/UDP mid\r\nVia:").replace(
        b"To: <sip:b@h>;tag=2", b't: "Bob <sip:b@h>'
    )
    with pytest.raises(ParseError) as caught:
        parse_message(text + b"\r\n")
    answer = caught.value.answer
    assert answer is not None and answer.via.host == "top"
    assert len(answer.headers.get_all("Via")) == 3
    assert (answer.headers.get("To") or "").startswith('"Bob <sip:b@h>;tag=')
    assert answer.reason == caught.value.reason


def test_answer_keeps_a_to_tag() -> None:
    with pytest.raises(ParseError) as caught:
        parse_message(HEAD + b"no colon\r\n\r\n")
    assert caught.value.answer is not None and caught.value.answer.to.tag == "2"


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"a\r\n\r\nb", 5),
        (b"a\n\nb", 3),
        (b"a\n\r\nb", 4),
        (b"a\n\nb\r\n\r\nc", 3),
        (b"a\r\n\n\r\nb", 4),
        (b"a\r\n\r\nb\n\nc", 5),
        (b"a\r\nb\r\n", None),
        (b"", None),
    ],
)
def test_the_earliest_empty_line_ends_the_head(data: bytes, offset: int | None) -> None:
    assert find_body(data) == offset


def test_addresses_in_one_line_are_kept_apart() -> None:
    routes = b'Route: "a, b" <sip:r1;lr>, <sip:r2;lr>\r\nRoute: <sip:r3;lr>\r\n\r\n'
    message = parse_message(HEAD + routes)
    assert [value for name, value in message.headers.items() if name == "Route"] == [
        '"a, b" <sip:r1;lr>',
        "<sip:r2;lr>",
        "<sip:r3;lr>",
    ]
