"""Codecs, payload types and parameters in offers and answers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.sdp import (
    LocalMedia,
    NegotiationError,
    RtpMap,
    SessionDescription,
    accept_answer,
    answer_offer,
    make_offer,
    remember,
)
from media.types import OpusSettings

ALL = ("OPUS", "G722", "L16", "PCMA", "PCMU")
LOCAL = LocalMedia("192.0.2.10", 20_000, ALL, session_id=99)


def described(formats: str, *lines: str) -> SessionDescription:
    head = ["v=0", "o=- 5 6 IN IP4 203.0.113.7", "s=-", "c=IN IP4 203.0.113.7", "t=0 0"]
    return SessionDescription.parse("\r\n".join([*head, f"m=audio 4000 RTP/AVP {formats}", *lines]).encode())


def section_of(session: SessionDescription | None) -> list[str]:
    assert session is not None
    return session.to_bytes().decode().split("\r\n")[5:-1]


def test_everything_is_offered_with_its_clock_parameters_and_digits() -> None:
    assert section_of(make_offer(replace(LOCAL, comfort_noise=True))) == [
        "m=audio 20000 RTP/AVP 111 9 118 117 8 0 13 119 110 101 102",
        "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 maxplaybackrate=16000;sprop-maxcapturerate=16000;maxaveragebitrate=32000;useinbandfec=1",
        "a=rtpmap:9 G722/8000",
        "a=rtpmap:118 L16/16000",
        "a=rtpmap:117 L16/8000",
        "a=rtpmap:8 PCMA/8000",
        "a=rtpmap:0 PCMU/8000",
        "a=rtpmap:13 CN/8000",
        "a=rtpmap:119 CN/16000",
        "a=rtpmap:110 telephone-event/48000",
        "a=fmtp:110 0-15",
        "a=rtpmap:101 telephone-event/8000",
        "a=fmtp:101 0-15",
        "a=rtpmap:102 telephone-event/16000",
        "a=fmtp:102 0-15",
        "a=ptime:20",
        "a=maxptime:60",
        "a=sendrecv",
        "a=rtcp:20001",
        "a=rtcp-mux",
    ]


def test_an_unknown_codec_of_ours_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="G729"):
        make_offer(replace(LOCAL, codecs=("PCMU", "G729")))


@pytest.mark.parametrize(
    ("formats", "lines", "codec", "clock_rate", "payload_type", "answered"),
    [
        ("9", [], "G722", 8000, 9, "a=rtpmap:9 G722/8000"),
        ("96", ["a=rtpmap:96 g722/8000/1"], "G722", 8000, 96, "a=rtpmap:96 G722/8000"),
        ("97", ["a=rtpmap:97 l16/16000"], "L16", 16000, 97, "a=rtpmap:97 L16/16000"),
        ("97", ["a=rtpmap:97 L16/8000/1"], "L16", 8000, 97, "a=rtpmap:97 L16/8000"),
        ("120", ["a=rtpmap:120 OPUS/48000/2"], "OPUS", 48000, 120, "a=rtpmap:120 opus/48000/2"),
        ("120", ["a=rtpmap:120 opus/48000"], "OPUS", 48000, 120, "a=rtpmap:120 opus/48000/2"),
        ("18 3 96 8", ["a=rtpmap:96 SILK/16000"], "PCMA", 8000, 8, "a=rtpmap:8 PCMA/8000"),
        ("0", ["a=rtpmap:0 G722/8000"], "G722", 8000, 0, "a=rtpmap:0 G722/8000"),
    ],
)
def test_codecs_are_known_by_name_clock_and_channels(
    formats: str, lines: list[str], codec: str, clock_rate: int, payload_type: int, answered: str
) -> None:
    negotiated = answer_offer(described(formats, *lines), LOCAL)
    remote = negotiated.remote
    assert (remote.codec, remote.clock_rate, remote.payload_type) == (codec, clock_rate, payload_type)
    assert remote.receive_payload_type is None
    assert answered in section_of(negotiated.answer)


@pytest.mark.parametrize(
    "rtpmap", ["L16/44100", "L16/16000/2", "G722/16000", "opus/16000", "PCMU/16000", "PCMA/8000/2", "CN/8000"]
)
def test_the_same_name_with_another_clock_is_another_codec(rtpmap: str) -> None:
    with pytest.raises(NegotiationError, match="No common codec"):
        answer_offer(described("96", f"a=rtpmap:96 {rtpmap}"), LOCAL)


@pytest.mark.parametrize("formats", ["10", "11"])
def test_static_l16_is_too_fast(formats: str) -> None:
    with pytest.raises(NegotiationError, match="No common codec"):
        answer_offer(described(formats), LOCAL)


def test_the_offers_order_counts_unless_ours_is_asked_for() -> None:
    offer = described("0 8 9 96", "a=rtpmap:96 opus/48000/2")
    assert answer_offer(offer, LOCAL).codec == "PCMU"
    assert answer_offer(offer, replace(LOCAL, ours_first=True)).codec == "OPUS"
    assert answer_offer(offer, replace(LOCAL, ours_first=True, codecs=("PCMA", "PCMU"))).codec == "PCMA"


def test_digits_go_with_the_clock_of_the_codec() -> None:
    lines = [
        "a=rtpmap:96 opus/48000/2",
        "a=rtpmap:97 telephone-event/8000",
        "a=rtpmap:98 telephone-event/48000",
        "a=rtpmap:99 L16/16000",
        "a=rtpmap:100 telephone-event/16000",
    ]
    for formats, expected in (("96 0 99 97 98 100", 98), ("0 96 97 98 100", 97), ("99 96 97 98 100", 100)):
        negotiated = answer_offer(described(formats, *lines), LOCAL)
        assert negotiated.remote.dtmf_payload_type == expected
        answer = section_of(negotiated.answer)
        assert sum("telephone-event" in line for line in answer) == 1
        assert f"a=rtpmap:{expected} telephone-event/{negotiated.remote.clock_rate}" in answer
    assert answer_offer(described("96 97", *lines), LOCAL).remote.dtmf_payload_type is None


def test_comfort_noise_is_answered_when_offered_and_offered_when_wanted() -> None:
    negotiated = answer_offer(described("0 13 101", "a=rtpmap:101 telephone-event/8000"), LOCAL)
    assert negotiated.remote.comfort_noise_payload_type == 13
    assert section_of(negotiated.answer)[0] == "m=audio 20000 RTP/AVP 0 13 101"
    lines = ["a=rtpmap:96 L16/16000", "a=rtpmap:97 CN/16000"]
    assert answer_offer(described("96 13", *lines), LOCAL).remote.comfort_noise_payload_type is None
    assert answer_offer(described("96 97", *lines), LOCAL).remote.comfort_noise_payload_type == 97
    assert answer_offer(described("0", *lines), LOCAL).remote.comfort_noise_payload_type is None
    assert accept_answer(make_offer(LOCAL), described("0 13")).remote.comfort_noise_payload_type is None
    wanting = make_offer(replace(LOCAL, comfort_noise=True))
    assert accept_answer(wanting, described("0 13")).remote.comfort_noise_payload_type == 13


@pytest.mark.parametrize(
    ("fmtp", "settings"),
    [
        (None, OpusSettings(32_000, fec=False)),
        ("useinbandfec=1", OpusSettings(32_000)),
        ("useinbandfec=1; usedtx=1;stereo=1;sprop-stereo=1;cbr=1", OpusSettings(32_000, dtx=True)),
        ("maxaveragebitrate=12000;useinbandfec=0", OpusSettings(12_000, fec=False)),
        ("maxaveragebitrate=128000", OpusSettings(32_000, fec=False)),
        ("maxplaybackrate=8000 ; MAXAVERAGEBITRATE=16000", OpusSettings(16_000, False, False, 8000)),
        ("maxplaybackrate=48000", OpusSettings(32_000, fec=False)),
        ("maxaveragebitrate=5999;maxplaybackrate=7999;usedtx=2", OpusSettings(32_000, fec=False)),
        ("maxaveragebitrate=-1;maxplaybackrate=9999999999;;=;x", OpusSettings(32_000, fec=False)),
        ("useinbandfec=1;useinbandfec=0", OpusSettings(32_000)),
    ],
)
def test_what_opus_is_asked_for_is_read_as_far_as_it_can_be(fmtp: str | None, settings: OpusSettings) -> None:
    lines = ["a=rtpmap:96 opus/48000/2", *([f"a=fmtp:96 {fmtp}"] if fmtp else [])]
    assert answer_offer(described("96", *lines), LOCAL).remote.opus == settings
    assert accept_answer(make_offer(LOCAL), described("96", *lines)).remote.opus == settings


def test_we_send_no_more_opus_than_we_would_receive() -> None:
    modest = replace(LOCAL, opus=OpusSettings(12_000, fec=False, dtx=True, max_playback_hz=8000))
    theirs = described("96", "a=rtpmap:96 opus/48000/2", "a=fmtp:96 maxaveragebitrate=64000;useinbandfec=1")
    expected = OpusSettings(12_000, fec=False)
    negotiated = answer_offer(theirs, modest)
    assert negotiated.remote.opus == expected
    asked = "maxplaybackrate=8000;sprop-maxcapturerate=16000;maxaveragebitrate=12000;useinbandfec=0;usedtx=1"
    assert f"a=fmtp:96 {asked}" in section_of(negotiated.answer)
    assert accept_answer(make_offer(modest), theirs).remote.opus == expected


def test_each_side_sends_with_the_numbers_of_the_other() -> None:
    theirs = described("120 96", "a=rtpmap:120 opus/48000/2", "a=rtpmap:96 telephone-event/48000")
    remote = accept_answer(make_offer(LOCAL), theirs).remote
    assert (remote.payload_type, remote.receive_payload_type) == (120, 111)
    assert (remote.dtmf_payload_type, remote.dtmf_receive_payload_type) == (96, 110)


def test_of_an_answer_with_several_codecs_the_first_is_used() -> None:
    theirs = described("18 9 0 8 101", "a=rtpmap:101 telephone-event/8000")
    remote = accept_answer(make_offer(LOCAL), theirs).remote
    assert (remote.codec, remote.payload_type, remote.dtmf_payload_type) == ("G722", 9, 101)


class TestNumbersOfASession:
    """Payload types keep their meaning (RFC 3264 8.3.2)."""

    def test_a_later_offer_of_ours_keeps_their_numbers(self) -> None:
        offer = described(
            "96 97 111",
            "a=rtpmap:96 opus/48000/2",
            "a=rtpmap:97 telephone-event/48000",
            "a=rtpmap:111 X/8000",
        )
        local = remember(LOCAL, answer_offer(offer, LOCAL))
        lines = section_of(make_offer(local))
        assert lines[0] == "m=audio 20000 RTP/AVP 96 9 118 117 8 0 97 101 102"
        assert "a=rtpmap:96 opus/48000/2" in lines
        assert not any(line.startswith("a=rtpmap:111 ") for line in lines)

    def test_a_number_that_means_something_else_is_not_used(self) -> None:
        offer = described("0 101", "a=rtpmap:101 iLBC/8000")
        local = remember(LOCAL, answer_offer(offer, LOCAL))
        lines = section_of(make_offer(local))
        assert "a=rtpmap:96 telephone-event/8000" in lines
        assert not any(":101 " in line for line in lines)

    def test_numbers_of_an_answer_are_kept_beside_ours(self) -> None:
        offer = make_offer(LOCAL)
        answer = described("120", "a=rtpmap:120 opus/48000/2")
        local = remember(LOCAL, accept_answer(offer, answer))
        assert section_of(make_offer(local)) == section_of(offer)
        assert RtpMap(120, "opus", 48000, 2) in local.numbers
        assert remember(local, accept_answer(offer, answer)) == local

    def test_the_first_meaning_of_a_number_stays(self) -> None:
        first = answer_offer(described("96 0", "a=rtpmap:96 opus/48000/2"), LOCAL)
        second = answer_offer(described("96 0", "a=rtpmap:96 L16/8000"), LOCAL)
        local = remember(remember(LOCAL, first), second)
        assert local.numbers == (RtpMap(96, "opus", 48000, 2),)

    def test_when_no_number_is_left_the_codec_is_not_offered(self) -> None:
        numbers = [str(number) for number in range(96, 128)]
        lines = [f"a=rtpmap:{number} X{number}/8000" for number in numbers]
        local = remember(LOCAL, answer_offer(described(" ".join(["0", *numbers]), *lines), LOCAL))
        assert section_of(make_offer(local))[0] == "m=audio 20000 RTP/AVP 9 8 0"


CODECS = st.lists(st.sampled_from(ALL), min_size=1, max_size=5, unique=True).map(tuple)
LOCALS = st.builds(
    LocalMedia,
    st.just("192.0.2.10"),
    st.just(20_000),
    CODECS,
    ptime_ms=st.sampled_from([10, 20, 30, 40, 50, 60]),
    dtmf=st.booleans(),
    comfort_noise=st.booleans(),
    ours_first=st.booleans(),
    session_id=st.just(1),
)


@given(LOCALS, LOCALS)
def test_two_sides_agree_on_one_codec_and_its_numbers(ours: LocalMedia, theirs: LocalMedia) -> None:
    offer = SessionDescription.parse(make_offer(ours).to_bytes())
    try:
        answered = answer_offer(offer, theirs)
    except NegotiationError:
        assert not set(ours.codecs) & set(theirs.codecs)
        return
    assert answered.answer is not None
    accepted = accept_answer(offer, SessionDescription.parse(answered.answer.to_bytes()))
    one, other = accepted.remote, answered.remote
    assert one.codec == other.codec in set(ours.codecs) & set(theirs.codecs)
    assert (one.payload_type, one.clock_rate) == (other.payload_type, other.clock_rate)
    assert one.receive_payload_type is None
    assert one.dtmf_payload_type == other.dtmf_payload_type
    assert (one.dtmf_payload_type is not None) == (ours.dtmf and theirs.dtmf)
    assert one.comfort_noise_payload_type == other.comfort_noise_payload_type
    assert one.ptime_ms == other.ptime_ms == ours.ptime_ms
    again = make_offer(remember(theirs, answered))
    meanings = {entry.payload_type: entry for entry in offer.media[0].codecs()}
    for entry in again.media[0].codecs():
        assert meanings.get(entry.payload_type, entry) == entry
