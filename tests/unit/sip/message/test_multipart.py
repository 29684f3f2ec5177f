"""Session descriptions within multipart bodies (RFC 5621)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.message.message import Message, serialise
from sip.message.multipart import unwrap
from sip.message.parser import parse_message
from tests.support.sip_agents import SDP
from tests.support.sip_stage import Stage, make_stage

ISUP = (
    b"Content-Type: application/isup;version=itu-t92+\r\n"
    b"Content-Disposition: signal;handling=optional\r\n\r\n\x01\x00\r\n"
)
OFFER = b"Content-Type: application/sdp\r\n\r\n" + SDP


def message(
    *parts: bytes, kind: str = "multipart/mixed", boundary: str = "frontier", end: bytes = b"--"
) -> Message:
    mark = f"--{boundary}".encode()
    body = b"".join(mark + b"\r\n" + part + b"\r\n" for part in parts) + mark + end
    head = (
        "INVITE sip:b@example.net SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKm;rport\r\n"
        "From: <sip:a@example.net>;tag=1\r\nTo: <sip:b@example.net>\r\nCall-ID: m\r\nCSeq: 1 INVITE\r\n"
        f'Contact: <sip:a@192.0.2.9>\r\nMax-Forwards: 70\r\nContent-Type: {kind};boundary="{boundary}"\r\n'
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return parse_message(head.encode() + body)


@pytest.mark.parametrize("parts", [(OFFER,), (ISUP, OFFER), (OFFER, ISUP)])
@pytest.mark.parametrize("kind", ["multipart/mixed", "Multipart/Related", "multipart/alternative"])
def test_the_description_is_found(parts: tuple[bytes, ...], kind: str) -> None:
    found = message(*parts, kind=kind)
    unwrap(found)
    assert (found.content_type, found.body) == ("application/sdp", SDP)


def test_no_description_is_no_body() -> None:
    found = message(ISUP)
    unwrap(found)
    assert (found.content_type, found.body) == (None, b"")


@pytest.mark.parametrize(
    "parts",
    [
        (OFFER, OFFER),
        (OFFER, ISUP.replace(b"optional", b"required")),
        (
            OFFER.replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n", 1) + b"=",
            ISUP.replace(b"optional", b"required"),
        ),
        (b"no empty line",),
        (OFFER,) * 40,
    ],
)
def test_what_cannot_be_taken_stays_as_it_is(parts: tuple[bytes, ...]) -> None:
    found = message(*parts)
    before = serialise(found)
    unwrap(found)
    assert serialise(found) == before


def test_a_body_without_its_end_stays_as_it_is() -> None:
    found = message(OFFER, end=b"")
    unwrap(found)
    assert found.content_type == "multipart/mixed"


@given(st.lists(st.binary(max_size=80), max_size=5), st.text(max_size=12))
def test_anything_is_taken_or_left(parts: list[bytes], boundary: str) -> None:
    boundary = "".join(c for c in boundary if c.isalnum() and c.isascii()) or "x"
    found = message(*parts, boundary=boundary)
    unwrap(found)
    assert found.content_type in (None, "application/sdp", "multipart/mixed")


async def test_a_call_with_isup_beside_its_offer() -> None:
    stage: Stage = await make_stage()
    raw = stage.raw()
    raw.send(serialise(message(ISUP, OFFER)))
    stage.advance()
    [side] = stage.bob.inbound
    assert side.session.request.body == SDP
    assert raw.responses("INVITE", 200)


@pytest.mark.parametrize(
    ("accept", "status"),
    [("text/plain", 406), ("", 406), ("application/*", 200), ("a/b, application/sdp;level=1", 200)],
)
async def test_what_the_caller_accepts(accept: str, status: int) -> None:
    stage: Stage = await make_stage()
    raw = stage.raw()
    request = raw.request("INVITE", branch="acc", body=SDP)
    request.headers.add("Accept", accept)
    raw.send(request)
    stage.advance()
    assert raw.responses("INVITE", status)


@pytest.mark.parametrize(
    ("disposition", "status"),
    [
        ("render;handling=optional", 200),
        ("signal ; Handling = OPTIONAL", 200),
        ("render;handling=required", 415),
        ("render", 415),
        ("render;handling=optional;\x01", 415),
    ],
)
async def test_a_body_of_another_kind(disposition: str, status: int) -> None:
    """RFC 3261 8.2.3: one that need not be understood is passed over, and the call has no offer."""
    stage: Stage = await make_stage()
    raw = stage.raw()
    request = raw.request("INVITE", branch="odd", body=b"<x/>", Content_Type="text/xml")
    raw.send(serialise(request).replace(b"CSeq:", f"Content-Disposition: {disposition}\r\nCSeq:".encode()))
    stage.advance()
    assert raw.responses("INVITE", status)
    assert len(stage.bob.inbound) == (status == 200)
