"""Reading session descriptions."""

import pytest

from media.sdp import (
    Attribute,
    Connection,
    Origin,
    SdpError,
    SessionDescription,
)

OFFER = (
    b"v=0\r\n"
    b"o=alice 2890844526 2890844527 IN IP4 203.0.113.7\r\n"
    b"s=Call\r\n"
    b"i=ignored\r\n"
    b"c=IN IP4 203.0.113.7\r\n"
    b"b=AS:84\r\n"
    b"t=0 0\r\n"
    b"a=sendrecv\r\n"
    b"m=audio 49170 RTP/AVP 0 8 101\r\n"
    b"a=rtpmap:101 telephone-event/8000\r\n"
    b"a=fmtp:101 0-15\r\n"
    b"a=ptime:20\r\n"
    b"m=video 51372/2 RTP/AVP 99\r\n"
    b"c=IN IP6 2001:db8::1\r\n"
    b"a=rtpmap:99 h263-1998/90000\r\n"
)


def test_reads_every_part_that_is_kept() -> None:
    session = SessionDescription.parse(OFFER)

    assert session.origin == Origin(2890844526, 2890844527, "203.0.113.7", "IP4", "alice")
    assert session.session_name == "Call"
    assert session.connection == Connection("203.0.113.7")
    assert session.bandwidths == (("AS", 84),)
    assert session.times == ((0, 0),)
    assert session.attributes == (Attribute("sendrecv"),)
    audio, video = session.media
    assert (audio.kind, audio.port, audio.protocol, audio.formats) == (
        "audio",
        49170,
        "RTP/AVP",
        ("0", "8", "101"),
    )
    assert audio.ptime_ms == 20
    assert audio.fmtp(101) == "0-15"
    assert [str(codec) for codec in audio.codecs()] == [
        "0 PCMU/8000",
        "8 PCMA/8000",
        "101 telephone-event/8000",
    ]
    assert video.port_count == 2
    assert session.connection_of(video) == Connection("2001:db8::1", "IP6")
    assert session.connection_of(audio) == session.connection


def test_tolerates_what_peers_are_known_to_do() -> None:
    session = SessionDescription.parse(
        b"v=0\n"
        b"o=Front Desk 1 1 IN IP4 192.0.2.1\n"
        b"s= \n"
        b"a=tool:x:y z\n"
        b"c=IN IP4 192.0.2.1\n"
        b"m=audio 4000 RTP/AVP 0\n"
        b"a=ptime:20.0\n"
        b"\n\n"
    )
    assert session.origin.username == "Front Desk"
    assert session.session_name == "-"
    assert session.times == ((0, 0),)
    assert session.attributes == (Attribute("tool", "x:y z"),)
    assert session.media[0].ptime_ms == 20


def test_text_that_is_not_utf8_is_only_replaced() -> None:
    session = SessionDescription.parse(OFFER.replace(b"s=Call", b"s=\xe9t\xe9"))
    assert session.session_name == "�t�"


@pytest.mark.parametrize(
    ("wrong", "right", "line", "reason"),
    [
        (b"v=1", b"v=0", 1, "version"),
        (b"o=alice IN IP4", b"o=alice 2890844526 2890844527 IN IP4", 2, "six fields"),
        (b"o=alice x", b"o=alice 2890844526", 2, "session id"),
        (b"o=alice 2890844526 -1", b"o=alice 2890844526 2890844527", 2, "version"),
        (b"IN ATM 203.0.113.7\r\ns", b"IN IP4 203.0.113.7\r\ns", 2, "network"),
        (b"c=IN IP4\r\nb", b"c=IN IP4 203.0.113.7\r\nb", 5, "three fields"),
        (b"c=IN IP4 /127\r\nb", b"c=IN IP4 203.0.113.7\r\nb", 5, "address"),
        (b"b=AS:many", b"b=AS:84", 6, "bandwidth"),
        (b"b=A S:1", b"b=AS:84", 6, "bandwidth type"),
        (b"t=0", b"t=0 0", 7, "two fields"),
        (b"t=0 x", b"t=0 0", 7, "time"),
        (b"a=", b"a=sendrecv", 8, "attribute name"),
        (b"a=\xc2\xb2:x", b"a=sendrecv", 8, "attribute name"),
        (b"x=1", b"a=sendrecv", 8, "type"),
        (b"v=0", b"a=sendrecv", 8, "second v="),
        (b"sendrecv", b"a=sendrecv", 8, "'='"),
        (b"m=audio 65536 RTP", b"m=audio 49170 RTP", 9, "out of range"),
        (b"m=audio -1 RTP", b"m=audio 49170 RTP", 9, "not a number"),
        ("m=audio \u0664\u0669 RTP".encode(), b"m=audio 49170 RTP", 9, "not a number"),
        (b"m=audio 49170 RTP/AVP\r\na=r", b"m=audio 49170 RTP/AVP 0 8 101\r\na=r", 9, "four fields"),
        (b"m=audio 49170 RTP//AVP 0", b"m=audio 49170 RTP/AVP 0", 9, "protocol"),
        (b"m=audio 49170 RTP/AVP 0 (", b"m=audio 49170 RTP/AVP 0", 9, "format"),
        (b"s=1\r\na=ptime:20", b"a=ptime:20", 12, "type"),
    ],
)
def test_names_the_line_that_is_wrong(wrong: bytes, right: bytes, line: int, reason: str) -> None:
    data = OFFER.replace(right, wrong, 1)
    assert data != OFFER
    with pytest.raises(SdpError, match=reason) as caught:
        SessionDescription.parse(data)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\r\n\r\n", "empty"),
        (b"v=0\r\n", "no o="),
        (b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\n", "no s="),
        (b"s=-\r\nv=0\r\n", "begin with v="),
        (b"v=0\r\n\r\ns=-\r\n", "blank line"),
        (b"v=0\r\ns=\0\r\n", "NUL"),
        (b"v=0\r\ns=a\rb\r\n", "carriage return"),
        (b"v=0\r\ns=-\r\ns=-\r\n", "second s="),
    ],
)
def test_refuses_what_is_no_description(data: bytes, reason: str) -> None:
    with pytest.raises(SdpError, match=reason):
        SessionDescription.parse(data)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (b"a=x\r\n" * 6_600, "more than 32768 bytes"),
        (b"a=" + b"x" * 2_047 + b"\r\n", "line of more than 2048"),
        (b"b=A:1\r\n" * 1_000, "more than 1000 lines"),
        (b"m=audio 1 RTP/AVP 0\r\n" * 17, "m= sections"),
        (b"m=audio 1 RTP/AVP" + b" 0" * 65 + b"\r\n", "64 formats"),
        (b"a=x\r\n" * 257, "256 attributes"),
    ],
)
def test_keeps_to_its_limits(more: bytes, reason: str) -> None:
    with pytest.raises(SdpError, match=reason):
        SessionDescription.parse(OFFER + more)


@pytest.mark.parametrize("kind", [b"b=AS:1\r\n", b"t=0 0\r\n"])
def test_lines_that_may_repeat_do_not_repeat_for_ever(kind: bytes) -> None:
    with pytest.raises(SdpError, match="too many"):
        SessionDescription.parse(b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\n" + kind * 17)


def test_huge_numbers_are_refused_not_converted() -> None:
    data = OFFER.replace(b"2890844526", b"9" * 2000)
    with pytest.raises(SdpError, match="session id"):
        SessionDescription.parse(data)
