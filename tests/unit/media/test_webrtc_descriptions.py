"""Session descriptions of browsers: offers of Chromium and Firefox, answers, and the engine's offer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.sdp import LocalMedia, answer_offer, parse_session_description
from media.types import SrtpKey
from media.webrtc.descriptions import (
    CODECS,
    BrowserOffer,
    OfferRefused,
    check_change,
    engine_port,
    make_answer,
    make_engine_offer,
    parse_offer,
)
from media.webrtc.ice import IceCredentials
from tests.support.browser_peer import offer_lines

ICE = IceCredentials("ours1234", "p" * 24)
KEY = SrtpKey("AES_CM_128_HMAC_SHA1_80", bytes(range(30)))
LINES = offer_lines(bytes(range(32)))
# As Chromium writes it: video and data beside, the codecs of its choice, ICE in every section.
CHROMIUM = [
    *("v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0 1 2", "a=msid-semantic: WMS"),
    "m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126",
    *(
        "c=IN IP4 0.0.0.0",
        "a=rtcp:9 IN IP4 0.0.0.0",
        "a=ice-ufrag:Yx3q",
        "a=ice-pwd:nEr5bQ0pT2mKc8vWsLz4hUaJ",
    ),
    *("a=ice-options:trickle", f"a=fingerprint:sha-256 {bytes(32).hex(':')}", "a=setup:actpass", "a=mid:0"),
    *("a=sendrecv", "a=rtcp-mux", "a=rtpmap:111 opus/48000/2", "a=fmtp:111 minptime=10;useinbandfec=1"),
    *("a=rtpmap:63 red/48000/2", "a=fmtp:63 111/111", "a=rtpmap:9 G722/8000", "a=rtpmap:0 PCMU/8000"),
    *("a=rtpmap:8 PCMA/8000", "a=rtpmap:13 CN/8000", "a=rtpmap:110 telephone-event/48000"),
    *("a=rtpmap:126 telephone-event/8000", "a=ssrc:1 cname:x"),
    "m=video 9 UDP/TLS/RTP/SAVPF 96",
    *("c=IN IP4 0.0.0.0", "a=mid:1", "a=rtpmap:96 VP8/90000", "a=rtcp-mux"),
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    *("c=IN IP4 0.0.0.0", "a=mid:2", "a=sctp-port:5000"),
]


def parsed(lines: list[str], codecs: tuple[str, ...] = CODECS) -> BrowserOffer:
    return parse_offer("\r\n".join([*lines, ""]), codecs)


def test_an_offer_of_chromium_is_answered_with_its_first_codec() -> None:
    offer = parsed(CHROMIUM)
    assert (offer.formats.codec.name, offer.formats.numbers, offer.mid) == ("OPUS", ("111", "110"), "0")
    text = make_answer(offer, ("192.0.2.9", 31000), ICE, bytes(range(32)), (7, 1))
    answer = parse_session_description(text.encode())
    audio, video, data = answer.media
    assert (audio.port, audio.protocol, audio.formats) == (31000, "UDP/TLS/RTP/SAVPF", ("111", "110"))
    assert (video.port, data.port, data.formats) == (0, 0, ("webrtc-datachannel",))
    assert audio.attribute("candidate") == "1 1 udp 2130706431 192.0.2.9 31000 typ host"
    assert (audio.attribute("setup"), audio.attribute("rtcp-mux")) == ("passive", "")
    assert audio.attribute("fingerprint") == f"sha-256 {bytes(range(32)).hex(':').upper()}"
    session = [str(attribute) for attribute in answer.attributes]
    assert session == ["ice-lite", "group:BUNDLE 0"]


def test_the_first_codec_of_the_offer_that_the_engine_has_is_used() -> None:
    assert parsed(CHROMIUM, ("PCMU", "PCMA")).formats.numbers == ("0", "126")
    reordered = [line.replace("111 63 9 0 8 13", "8 0 111 63 9 13") for line in CHROMIUM]
    assert parsed(reordered).formats.codec.name == "PCMA"


def test_ice_and_fingerprint_of_the_session_count_for_the_section() -> None:
    moved = [line for line in LINES if line.startswith(("a=ice", "a=finger", "a=setup"))]
    rest = [line for line in LINES if line not in moved]
    assert parsed([*rest[:4], *moved, *rest[4:]]).ufrag == "peer"


def test_the_engine_takes_the_offer_with_the_browser_s_key() -> None:
    offer = make_engine_offer(parsed(CHROMIUM), ("127.0.0.1", 31000), KEY, (7, 1))
    ours = SrtpKey("AES_CM_128_HMAC_SHA1_80", bytes(30))
    local = LocalMedia("127.0.0.1", 20000, CODECS, srtp="required", srtp_keys=(ours,), session_id=1)
    agreed = answer_offer(parse_session_description(offer), local)
    assert (agreed.remote.codec, agreed.remote.payload_type, agreed.remote.port) == ("OPUS", 111, 31000)
    assert (agreed.remote.srtp_receive, agreed.remote.srtp_send) == (KEY, ours)
    assert agreed.answer is not None and engine_port(agreed.answer.to_bytes()) == 20000
    assert engine_port(b"nonsense") is None


def test_a_change_is_one_of_path_or_direction_alone() -> None:
    first = parsed(LINES)
    check_change(first, parsed([line.replace("ufrag:peer", "ufrag:other") for line in LINES]))
    check_change(first, parsed([line.replace("sendrecv", "inactive") for line in LINES]))
    for was, becomes in (
        ("ufrag:peer", "ufrag:peer"),
        ("00:01", "01:00"),
        ("a=mid:0", "a=mid:1"),
        ("101", "102"),
    ):
        changed = [line.replace("ufrag:peer", "ufrag:other").replace(was, becomes) for line in LINES]
        if was == becomes:
            changed = LINES
        with pytest.raises(OfferRefused):
            check_change(first, parsed(changed))


@given(st.sets(st.sampled_from(LINES), max_size=3), st.integers(0, len(LINES)), st.text(max_size=40))
def test_any_lines_are_read_or_refused(lacking: set[str], place: int, added: str) -> None:
    lines = [line for line in LINES if line not in lacking]
    lines.insert(place, added)
    try:
        offer = parsed(lines)
    except OfferRefused as refusal:
        assert str(refusal).startswith("must ")
    else:
        assert make_answer(offer, ("192.0.2.9", 31000), ICE, bytes(32), (7, 1))
