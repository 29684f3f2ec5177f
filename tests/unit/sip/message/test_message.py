"""Requests and responses: typed views, building responses, writing."""

import pytest

from sip.errors import InvalidValue, ParseError
from sip.message.message import Headers, Request, Response, reply, serialise
from sip.message.parser import parse_message
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri


def invite(*extra: tuple[str, str], to: str = "<sip:b@h>") -> Request:
    return Request(
        "INVITE",
        SipUri.parse("sip:b@h"),
        Headers(
            [
                ("Via", "SIP/2.0/UDP one;branch=z9hG4bK1"),
                ("Via", "SIP/2.0/UDP two;branch=z9hG4bK2"),
                ("Max-Forwards", "70"),
                ("From", "<sip:a@h>;tag=1"),
                ("To", to),
                ("Call-ID", "call"),
                ("CSeq", "1 INVITE"),
                *extra,
            ]
        ),
    )


def test_request_on_the_wire() -> None:
    request = invite(("Content-Length", "999"), ("Content-Type", "text/plain"))
    request.body = "é".encode()
    assert serialise(request) == (
        b"INVITE sip:b@h SIP/2.0\r\n"
        b"Via: SIP/2.0/UDP one;branch=z9hG4bK1\r\n"
        b"Via: SIP/2.0/UDP two;branch=z9hG4bK2\r\n"
        b"Max-Forwards: 70\r\n"
        b"From: <sip:a@h>;tag=1\r\n"
        b"To: <sip:b@h>\r\n"
        b"Call-ID: call\r\n"
        b"CSeq: 1 INVITE\r\n"
        b"Content-Type: text/plain\r\n"
        b"Content-Length: 2\r\n"
        b"\r\n\xc3\xa9"
    )


def test_response_repeats_what_rfc_3261_8_2_6_asks_for() -> None:
    request = invite(("Timestamp", "54"), ("Record-Route", "<sip:p;lr>"))
    ringing = reply(request, 180, to_tag="t")
    assert list(ringing.headers.items()) == [
        ("Via", "SIP/2.0/UDP one;branch=z9hG4bK1"),
        ("Via", "SIP/2.0/UDP two;branch=z9hG4bK2"),
        ("From", "<sip:a@h>;tag=1"),
        ("To", "<sip:b@h>;tag=t"),
        ("Call-ID", "call"),
        ("CSeq", "1 INVITE"),
    ]
    assert ringing.reason == "Ringing" and ringing.to.tag == "t"
    trying = reply(request, 100)
    assert trying.headers.get("Timestamp") == "54" and trying.to.tag is None


def test_a_tag_that_is_there_stays() -> None:
    response = reply(invite(to="sip:b@h;tag=x"), 200, "Fine", to_tag="y")
    assert response.to.tag == "x" and response.reason == "Fine"


def test_a_tag_is_added_to_an_address_without_brackets() -> None:
    response = reply(invite(to="sip:b@h"), 404, to_tag="y")
    assert parse_message(serialise(response)).to.tag == "y"


@pytest.mark.parametrize(
    ("status", "reason", "line"),
    [
        (200, "", b"SIP/2.0 200 OK\r\n"),
        (487, "", b"SIP/2.0 487 Request Terminated\r\n"),
        (499, "", b"SIP/2.0 499 Request Failure\r\n"),
        (600, "Nein, später", "SIP/2.0 600 Nein, später\r\n".encode()),
    ],
)
def test_status_lines(status: int, reason: str, line: bytes) -> None:
    assert serialise(Response(status, reason)).startswith(line)


@pytest.mark.parametrize(
    "message",
    [
        Request("IN VITE", SipUri.parse("sip:h")),
        Request("INVITE\r\nX: y", SipUri.parse("sip:h")),
        Request("", SipUri.parse("sip:h")),
        Response(99),
        Response(700),
        Response(200, "OK\r\nX: y"),
        Response(200, "OK\nX"),
        Response(200, "\udfff"),
    ],
)
def test_what_would_break_the_start_line_is_refused(message: Request | Response) -> None:
    with pytest.raises(InvalidValue):
        serialise(message)


def test_typed_views() -> None:
    request = invite(
        ("Contact", '"A, B" <sip:c@h>;q=1, <sip:d@h>'),
        ("Route", "<sip:r1;lr>, <sip:r2;lr>"),
        ("Record-Route", "<sip:rr;lr>"),
        ("Content-Type", "Application/SDP ; charset=x"),
        ("Retry-After", "120 (soon);duration=5"),
        ("Require", "100rel, Timer"),
        ("Supported", ""),
    )
    assert request.max_forwards == 70 and request.call_id == "call" and request.cseq.method == "INVITE"
    assert [contact.uri.user for contact in request.contacts] == ["c", "d"]
    assert request.record_routes[0].uri.param("lr") == ""
    assert request.content_type == "application/sdp"
    assert request.retry_after_s == 120
    assert request.option_tags("Require") == ["100rel", "timer"]
    assert request.option_tags("Supported") == []


def test_absent_fields() -> None:
    request = Request("OPTIONS", SipUri.parse("sip:h"))
    views = (request.max_forwards, request.contact, request.content_type, request.retry_after_s)
    assert views == (None, None, None, None)
    assert request.record_routes == []
    for view in ("via", "from_", "to", "call_id", "cseq"):
        with pytest.raises(ParseError, match="^Missing"):
            getattr(request, view)


@pytest.mark.parametrize("value", ["soon", "-1", "9" * 12, "²"])
def test_unreadable_retry_after_counts_as_none(value: str) -> None:
    assert Response(503, headers=Headers([("Retry-After", value)])).retry_after_s is None


@pytest.mark.parametrize(
    ("field", "view"), [("Contact", "contact"), ("Record-Route", "record_routes"), ("Contact", "contacts")]
)
def test_optional_fields_raise_only_when_asked_for(field: str, view: str) -> None:
    message = parse_message(serialise(invite((field, "*"))))
    with pytest.raises(ParseError):
        getattr(message, view)


def test_zero_hops_are_not_none() -> None:
    request = invite()
    request.headers.set("Max-Forwards", "0")
    assert request.max_forwards == 0 and request.max_forwards == 0


def test_reason_phrases_cover_every_class() -> None:
    assert reason_phrase(503) == "Service Unavailable"
    assert [reason_phrase(status * 100 + 98) for status in range(1, 7)] == [
        "Progress",
        "Success",
        "Redirection",
        "Request Failure",
        "Server Failure",
        "Global Failure",
    ]
