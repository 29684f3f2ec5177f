"""Offers and answers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.sdp import (
    LocalMedia,
    MediaDescription,
    NegotiationError,
    SdpError,
    SessionDescription,
    accept_answer,
    answer_offer,
    is_unchanged,
    make_offer,
    revise,
)
from media.types import Direction, RemoteMedia

LOCAL = LocalMedia("192.0.2.10", 20_000, session_id=99)


def offer(
    *media_lines: str, connection: str = "c=IN IP4 203.0.113.7", session_lines: str = ""
) -> SessionDescription:
    lines = ["v=0", "o=- 5 6 IN IP4 203.0.113.7", "s=-", connection, "t=0 0", session_lines, *media_lines]
    return SessionDescription.parse("\r\n".join(line for line in lines if line).encode())


def answer_lines(session: SessionDescription | None) -> list[str]:
    assert session is not None
    return session.to_bytes().decode().split("\r\n")


def test_offer_lists_all_codecs_digits_and_packet_length() -> None:
    assert make_offer(LOCAL).to_bytes() == (
        b"v=0\r\no=- 99 0 IN IP4 192.0.2.10\r\ns=-\r\nc=IN IP4 192.0.2.10\r\nt=0 0\r\n"
        b"m=audio 20000 RTP/AVP 0 8 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\n"
        b"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\n"
        b"a=ptime:20\r\na=maxptime:60\r\na=sendrecv\r\na=rtcp:20001\r\na=rtcp-mux\r\n"
    )


def test_offer_keeps_to_what_the_side_has() -> None:
    session = make_offer(replace(LOCAL, codecs=("PCMA",), dtmf=False, ptime_ms=30, direction="sendonly"))
    assert answer_lines(session)[5:-1] == [
        "m=audio 20000 RTP/AVP 8",
        "a=rtpmap:8 PCMA/8000",
        "a=ptime:30",
        "a=maxptime:60",
        "a=sendonly",
        "a=rtcp:20001",
        "a=rtcp-mux",
    ]


def test_answer_takes_the_offers_first_codec_that_we_have() -> None:
    negotiated = answer_offer(
        offer("m=audio 4000 RTP/AVP 18 8 0 96", "a=rtpmap:96 telephone-event/8000", "a=fmtp:96 0-11,16"),
        LOCAL,
    )
    assert negotiated.remote == RemoteMedia(
        address="203.0.113.7",
        port=4000,
        codec="PCMA",
        payload_type=8,
        ptime_ms=20,
        dtmf_payload_type=96,
        direction="sendrecv",
        rtcp_port=4001,
    )
    assert negotiated.codec == "PCMA"
    assert not negotiated.held
    assert answer_lines(negotiated.answer)[5:-1] == [
        "m=audio 20000 RTP/AVP 8 96",
        "a=rtpmap:8 PCMA/8000",
        "a=rtpmap:96 telephone-event/8000",
        "a=fmtp:96 0-11",
        "a=ptime:20",
        "a=maxptime:60",
        "a=sendrecv",
        "a=rtcp:20001",
    ]


def test_answer_without_rtpmap_or_digits_in_the_offer() -> None:
    negotiated = answer_offer(offer("m=audio 4000 RTP/AVP 0"), LOCAL)
    assert negotiated.remote.payload_type == 0
    assert negotiated.remote.dtmf_payload_type is None
    assert "telephone-event" not in "".join(answer_lines(negotiated.answer))


def test_a_codec_may_have_a_dynamic_number_and_any_case() -> None:
    negotiated = answer_offer(offer("m=audio 4000 RTP/AVP 98", "a=rtpmap:98 pcmu/8000/1"), LOCAL)
    assert (negotiated.remote.codec, negotiated.remote.payload_type) == ("PCMU", 98)
    assert "a=rtpmap:98 PCMU/8000" in answer_lines(negotiated.answer)


@pytest.mark.parametrize(
    ("fmtp", "answered"),
    [
        (None, "0-15"),
        ("0-15", "0-15"),
        ("0-16", "0-15"),
        ("events=0-9", "0-9"),
        ("0,2,3", "0,2-3"),
        ("9-0,x,1000-2,5", "5"),
        ("32-34", None),
        ("junk", None),
    ],
)
def test_digits_are_those_that_both_know(fmtp: str | None, answered: str | None) -> None:
    lines = ["m=audio 4000 RTP/AVP 0 101", "a=rtpmap:101 telephone-event/8000"]
    negotiated = answer_offer(offer(*lines, *([f"a=fmtp:101 {fmtp}"] if fmtp else [])), LOCAL)
    assert negotiated.remote.dtmf_payload_type == (101 if answered else None)
    assert (f"a=fmtp:101 {answered}" in answer_lines(negotiated.answer)) == (answered is not None)


def test_digits_of_another_clock_are_not_taken() -> None:
    negotiated = answer_offer(
        offer("m=audio 4000 RTP/AVP 0 101", "a=rtpmap:101 telephone-event/48000"), LOCAL
    )
    assert negotiated.remote.dtmf_payload_type is None


@pytest.mark.parametrize(
    ("lines", "ptime_ms"),
    [
        (["a=ptime:30"], 30),
        (["a=ptime:25"], 20),
        (["a=ptime:200"], 20),
        (["a=maxptime:10"], 10),
        (["a=ptime:60", "a=maxptime:45"], 40),
        (["a=ptime:20", "a=maxptime:5"], 10),
        (["a=ptime:x"], 20),
    ],
)
def test_packet_length_follows_the_offer_within_reason(lines: list[str], ptime_ms: int) -> None:
    negotiated = answer_offer(offer("m=audio 4000 RTP/AVP 0", *lines), LOCAL)
    assert negotiated.remote.ptime_ms == ptime_ms
    assert f"a=ptime:{ptime_ms}" in answer_lines(negotiated.answer)


def test_one_section_is_answered_and_the_others_refused() -> None:
    negotiated = answer_offer(
        offer(
            "m=video 5000 RTP/AVP 31",
            "m=audio 0 RTP/AVP 0",
            "m=audio 4000 RTP/SAVP 0",
            "m=audio 4002 RTP/AVP 18",
            "m=audio 4004 RTP/AVPF 0",
            "m=audio 4006 RTP/AVP 0",
            "m=application 6000 UDP/BFCP *",
        ),
        LOCAL,
    )
    assert negotiated.answer is not None
    assert negotiated.remote.port == 4004
    assert [(media.port, media.protocol, media.kind) for media in negotiated.answer.media] == [
        (0, "RTP/AVP", "video"),
        (0, "RTP/AVP", "audio"),
        (0, "RTP/SAVP", "audio"),
        (0, "RTP/AVP", "audio"),
        (20_000, "RTP/AVPF", "audio"),
        (0, "RTP/AVP", "audio"),
        (0, "UDP/BFCP", "application"),
    ]
    assert negotiated.answer.media[-1].formats == ("*",)


@pytest.mark.parametrize(
    ("lines", "connection", "code", "words"),
    [
        ([], "c=IN IP4 203.0.113.7", 304, "No audio"),
        (["m=video 5000 RTP/AVP 31"], "c=IN IP4 203.0.113.7", 304, "No audio"),
        (["m=audio 0 RTP/AVP 0"], "c=IN IP4 203.0.113.7", 304, "No audio"),
        (["m=audio 4000 RTP/SAVP 0"], "c=IN IP4 203.0.113.7", 302, "RTP/AVP"),
        (["m=audio 4000 RTP/AVP 18 9"], "c=IN IP4 203.0.113.7", 305, "PCMU, PCMA"),
        (["m=audio 4000 RTP/AVP 0"], "", 301, "no connection"),
        (["m=audio 4000 RTP/AVP 0"], "c=IN IP4 gw.example.com", 301, "not an IP"),
        (["m=audio 4000 RTP/AVP 0"], "c=IN IP4 233.252.0.1/127", 301, "Multicast"),
        (["m=audio 4000 RTP/AVP 0"], "c=IN IP4 255.255.255.255", 301, "Multicast"),
        (["m=audio 4000 RTP/AVP 0"], "c=IN IP6 203.0.113.7", 301, "type"),
        (["m=audio 4000 RTP/AVP 0"], "c=IN IP6 fe80::1%eth0", 301, "zone"),
        (["m=audio 4000 RTP/AVP 0"], "c=IN IP6 2001:db8::1", 301, "other IP version"),
        (["m=audio 4000 RTP/AVP 0", "a=rtpmap:0 L16/44100"], "c=IN IP4 203.0.113.7", 305, "No common"),
    ],
)
def test_an_offer_without_a_way_is_refused(lines: list[str], connection: str, code: int, words: str) -> None:
    with pytest.raises(NegotiationError, match=words) as caught:
        answer_offer(offer(*lines, connection=connection), LOCAL)
    assert caught.value.status == 488
    assert caught.value.warn_code == code
    assert caught.value.warning_header("edge").startswith(f'{code} edge "')


def test_ipv6_on_both_sides() -> None:
    local = replace(LOCAL, address="2001:db8::10")
    negotiated = answer_offer(offer("m=audio 4000 RTP/AVP 0", "c=IN IP6 2001:db8:0::7"), local)
    assert negotiated.remote.address == "2001:db8::7"
    assert "c=IN IP6 2001:db8::10" in answer_lines(negotiated.answer)
    assert answer_lines(negotiated.answer)[1] == "o=- 99 0 IN IP6 2001:db8::10"


@pytest.mark.parametrize(
    ("line", "local", "ours", "held"),
    [
        ("a=sendrecv", "sendrecv", "sendrecv", False),
        ("a=sendonly", "sendrecv", "recvonly", True),
        ("a=recvonly", "sendrecv", "sendonly", False),
        ("a=inactive", "sendrecv", "inactive", True),
        ("a=sendonly", "sendonly", "inactive", True),
        ("a=recvonly", "sendonly", "sendonly", False),
        ("a=sendrecv", "recvonly", "recvonly", False),
        ("a=sendrecv", "inactive", "inactive", False),
    ],
)
def test_direction_is_what_both_permit(line: str, local: Direction, ours: str, held: bool) -> None:
    wanting = replace(LOCAL, direction=local)
    negotiated = answer_offer(offer("m=audio 4000 RTP/AVP 0", line), wanting)
    assert negotiated.remote.direction == ours
    assert negotiated.held == held
    assert f"a={ours}" in answer_lines(negotiated.answer)
    at_session = answer_offer(offer("m=audio 4000 RTP/AVP 0", session_lines=line), wanting)
    assert at_session.remote.direction == ours


@pytest.mark.parametrize(
    ("line", "ours"), [("", "recvonly"), ("a=recvonly", "inactive"), ("a=inactive", "inactive")]
)
def test_hold_by_address_sends_nothing(line: str, ours: str) -> None:
    lines = ["m=audio 4000 RTP/AVP 0", *([line] if line else [])]
    negotiated = answer_offer(offer(*lines, connection="c=IN IP4 0.0.0.0"), LOCAL)
    assert negotiated.held
    assert negotiated.remote.direction == ours


def test_answer_copies_the_times_and_carries_the_version() -> None:
    described = SessionDescription.parse(
        b"v=0\r\no=- 5 6 IN IP4 203.0.113.7\r\ns=-\r\nc=IN IP4 203.0.113.7\r\nt=100 200\r\n"
        b"m=audio 4000 RTP/AVP 0\r\n"
    )
    lines = answer_lines(answer_offer(described, replace(LOCAL, version=3)).answer)
    assert "t=100 200" in lines
    assert lines[1] == "o=- 99 3 IN IP4 192.0.2.10"


def test_an_answer_is_taken_as_it_is_meant() -> None:
    ours = make_offer(LOCAL)
    theirs = offer(
        "m=audio 4000 RTP/AVP 8 96", "a=rtpmap:96 telephone-event/8000", "a=ptime:30", "a=recvonly"
    )
    negotiated = accept_answer(ours, theirs)
    assert negotiated.answer is None
    assert negotiated.remote == RemoteMedia(
        address="203.0.113.7",
        port=4000,
        codec="PCMA",
        payload_type=8,
        ptime_ms=30,
        dtmf_payload_type=96,
        direction="sendonly",
        dtmf_receive_payload_type=101,
        rtcp_port=4001,
    )
    assert not negotiated.held


def test_an_answer_without_a_packet_length_is_sent_that_of_the_offer() -> None:
    ours = make_offer(replace(LOCAL, ptime_ms=30))
    assert accept_answer(ours, offer("m=audio 4000 RTP/AVP 8")).remote.ptime_ms == 30


def test_digits_that_we_did_not_offer_are_not_taken() -> None:
    ours = make_offer(replace(LOCAL, dtmf=False))
    theirs = offer("m=audio 4000 RTP/AVP 0 101", "a=rtpmap:101 telephone-event/8000")
    assert accept_answer(ours, theirs).remote.dtmf_payload_type is None


@pytest.mark.parametrize(
    ("lines", "connection", "words"),
    [
        ([], "c=IN IP4 203.0.113.7", "lacks"),
        (["m=video 4000 RTP/AVP 31"], "c=IN IP4 203.0.113.7", "lacks"),
        (["m=audio 0 RTP/AVP 0"], "c=IN IP4 203.0.113.7", "refused"),
        (["m=audio 4000 RTP/SAVP 0"], "c=IN IP4 203.0.113.7", "transport"),
        (["m=audio 4000 RTP/AVP 18"], "c=IN IP4 203.0.113.7", "no offered codec"),
        (["m=audio 4000 RTP/AVP 8"], "c=IN IP6 2001:db8::1", "other IP version"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(lines: list[str], connection: str, words: str) -> None:
    with pytest.raises(NegotiationError, match=words):
        accept_answer(make_offer(LOCAL), offer(*lines, connection=connection))


def test_a_codec_outside_the_offer_is_refused() -> None:
    with pytest.raises(NegotiationError, match="no offered codec"):
        accept_answer(make_offer(replace(LOCAL, codecs=("PCMU",))), offer("m=audio 4000 RTP/AVP 8"))


def test_a_refresh_is_told_from_a_change() -> None:
    first = offer("m=audio 4000 RTP/AVP 0")
    again = SessionDescription.parse(first.to_bytes())
    newer = replace(first, origin=replace(first.origin, version=7))
    moved = replace(first, media=(replace(first.media[0], port=4002),))
    other = replace(first, origin=replace(first.origin, session_id=1))
    assert is_unchanged(first, first)
    assert is_unchanged(first, again)
    assert is_unchanged(first, newer)
    assert not is_unchanged(first, moved)
    assert not is_unchanged(first, other)


def test_the_version_rises_only_with_a_change() -> None:
    first = make_offer(replace(LOCAL, version=4))
    same = revise(first, make_offer(replace(LOCAL, version=77, session_id=1)))
    assert same == first
    held = revise(first, make_offer(replace(LOCAL, direction="sendonly")))
    assert (held.origin.session_id, held.origin.version) == (99, 5)
    moved = revise(held, make_offer(replace(LOCAL, address="192.0.2.11")))
    assert (moved.origin.version, moved.origin.address) == (6, "192.0.2.11")


PAYLOADS = st.lists(st.sampled_from(["0", "3", "8", "9", "18", "96", "101", "x"]), min_size=1, max_size=6)
EXTRAS = st.lists(
    st.sampled_from(
        [
            "a=rtpmap:96 PCMA/8000",
            "a=rtpmap:101 telephone-event/8000",
            "a=fmtp:101 0-11",
            "a=ptime:30",
            "a=maxptime:20",
            "a=sendonly",
            "a=inactive",
            "c=IN IP4 0.0.0.0",
            "c=IN IP4 198.51.100.4",
        ]
    ),
    max_size=5,
)
SECTIONS = st.lists(
    st.tuples(st.sampled_from(["audio", "video"]), st.integers(0, 65_535), PAYLOADS, EXTRAS),
    min_size=1,
    max_size=4,
)


@given(SECTIONS)
def test_any_offer_is_answered_in_a_way_that_its_maker_accepts(
    sections: list[tuple[str, int, list[str], list[str]]],
) -> None:
    lines = []
    for kind, port, payloads, extras in sections:
        lines += [f"m={kind} {port} RTP/AVP {' '.join(payloads)}", *extras]
    try:
        described = offer(*lines)
        negotiated = answer_offer(described, LOCAL)
    except (NegotiationError, SdpError):
        return
    answer = negotiated.answer
    assert answer is not None
    assert SessionDescription.parse(answer.to_bytes()) == answer
    assert len(answer.media) == len(described.media)
    used = [index for index, media in enumerate(answer.media) if media.port]
    assert len(used) == 1
    for theirs, ours in zip(described.media, answer.media, strict=True):
        assert (theirs.kind, theirs.protocol) == (ours.kind, ours.protocol)
        assert set(ours.formats) <= set(theirs.formats)
    # What the offerer makes of the section that was used mirrors what we made of it.
    alone: tuple[MediaDescription, ...] = (described.media[used[0]],)
    mirrored = accept_answer(replace(described, media=alone), replace(answer, media=(answer.media[used[0]],)))
    assert mirrored.codec == negotiated.codec
    assert mirrored.remote.payload_type == negotiated.remote.payload_type
    assert mirrored.remote.port == LOCAL.port
