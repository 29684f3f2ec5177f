"""Queries of a session description."""

import pytest

from media.sdp import Attribute, Connection, MediaDescription, Origin, RtpMap, SessionDescription


def audio(*attributes: str, formats: str = "0 8", protocol: str = "RTP/AVP") -> MediaDescription:
    parsed = []
    for text in attributes:
        name, colon, value = text.partition(":")
        parsed.append(Attribute(name, value if colon else None))
    return MediaDescription("audio", 4000, protocol, tuple(formats.split()), attributes=tuple(parsed))


def test_static_payload_types_need_no_rtpmap() -> None:
    assert audio(formats="8 0 18 77").codecs() == (
        RtpMap(8, "PCMA", 8000),
        RtpMap(0, "PCMU", 8000),
        RtpMap(18, "G729", 8000),
    )


def test_an_rtpmap_wins_over_the_static_meaning() -> None:
    assert audio("rtpmap:0 opus/48000/2", formats="0").codecs() == (RtpMap(0, "opus", 48000, 2),)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "300 PCMU/8000",
        "96",
        "96 PCMU",
        "96 PCMU/0",
        "96 PCMU/8000/0",
        "96 /8000",
        "96 PCMU/8000/1/1",
    ],
)
def test_an_unreadable_rtpmap_is_left_out(value: str) -> None:
    assert audio(f"rtpmap:{value}", formats="96 0").codecs() == (RtpMap(0, "PCMU", 8000),)


def test_formats_of_other_profiles_are_no_codecs() -> None:
    assert audio(formats="t38", protocol="udptl").codecs() == ()


def test_a_value_of_none_differs_from_an_empty_one() -> None:
    media = audio("rtcp-mux", "label:")
    assert media.attribute("rtcp-mux") == ""
    assert media.attribute("label") == ""
    assert media.attribute("mid") is None
    assert str(Attribute("rtcp-mux")) == "rtcp-mux"
    assert str(Attribute("label", "")) == "label:"


@pytest.mark.parametrize(
    ("text", "expected"), [("20", 20), ("0", None), ("x", None), ("-20", None), ("99999", None), ("30.5", 30)]
)
def test_ptime_that_cannot_be_used_is_none(text: str, expected: int | None) -> None:
    assert audio(f"ptime:{text}").ptime_ms == expected
    assert audio(f"maxptime:{text}").maxptime_ms == expected


def test_fmtp_belongs_to_its_payload_type() -> None:
    media = audio("fmtp:96 mode=1", "fmtp:101  0-15 ", "fmtp:x y")
    assert media.fmtp(101) == "0-15"
    assert media.fmtp(97) is None


def test_direction_is_the_sections_then_the_sessions_then_both_ways() -> None:
    origin = Origin(1, 1, "192.0.2.1")
    plain = audio()
    own = audio("sendonly")
    session = SessionDescription(origin, attributes=(Attribute("inactive"),), media=(plain, own))
    assert session.direction_of(own) == "sendonly"
    assert session.direction_of(plain) == "inactive"
    assert SessionDescription(origin, media=(plain,)).direction_of(plain) == "sendrecv"


def test_connection_line_follows_the_address() -> None:
    origin = Origin(1, 1, "192.0.2.1")
    for address, line in (("192.0.2.1", b"c=IN IP4 192.0.2.1"), ("2001:db8::1", b"c=IN IP6 2001:db8::1")):
        assert line in SessionDescription(origin, connection=Connection.to(address)).to_bytes().splitlines()
