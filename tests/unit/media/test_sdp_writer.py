"""Writing session descriptions; what is written is read back as it was."""

from hypothesis import example, given
from hypothesis import strategies as st

from media.sdp import (
    Attribute,
    Connection,
    MediaDescription,
    Origin,
    SdpError,
    SessionDescription,
)

TOKENS = st.text("abcXYZ019-_.", min_size=1, max_size=12)
FREE_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=20).map(str.strip)
CONNECTIONS = st.one_of(
    st.ip_addresses(v=4).map(lambda address: Connection(str(address), "IP4")),
    st.ip_addresses(v=6).map(lambda address: Connection(str(address), "IP6")),
    st.just(Connection("233.252.0.1", "IP4", "/127/3")),
)
ATTRIBUTES = st.lists(st.builds(Attribute, TOKENS, st.none() | FREE_TEXT), max_size=6).map(tuple)
BANDWIDTHS = st.lists(st.tuples(TOKENS, st.integers(0, 2**40)), max_size=3).map(tuple)
MEDIA = st.builds(
    MediaDescription,
    kind=TOKENS,
    port=st.integers(0, 65_535),
    protocol=st.sampled_from(["RTP/AVP", "udp", "UDP/TLS/RTP/SAVPF"]),
    formats=st.lists(TOKENS, min_size=1, max_size=8).map(tuple),
    connection=st.none() | CONNECTIONS,
    bandwidths=BANDWIDTHS,
    attributes=ATTRIBUTES,
    port_count=st.integers(1, 4),
)
SESSIONS = st.builds(
    SessionDescription,
    origin=st.builds(
        Origin,
        session_id=st.integers(0, 2**64),
        version=st.integers(0, 2**64),
        address=st.ip_addresses(v=4).map(str),
        username=TOKENS,
    ),
    session_name=FREE_TEXT.map(lambda text: text or "-"),
    connection=st.none() | CONNECTIONS,
    bandwidths=BANDWIDTHS,
    times=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), min_size=1, max_size=3).map(
        tuple
    ),
    attributes=ATTRIBUTES,
    media=st.lists(MEDIA, max_size=4).map(tuple),
)


def test_lines_stand_in_the_order_of_the_grammar() -> None:
    session = SessionDescription(
        Origin(7, 8, "192.0.2.1"),
        connection=Connection("192.0.2.1"),
        bandwidths=(("AS", 64),),
        attributes=(Attribute("tool", "x"),),
        media=(MediaDescription("audio", 4000, "RTP/AVP", ("0", "8"), port_count=2),),
    )
    assert session.to_bytes() == (
        b"v=0\r\no=- 7 8 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nb=AS:64\r\nt=0 0\r\na=tool:x\r\n"
        b"m=audio 4000/2 RTP/AVP 0 8\r\n"
    )


@given(SESSIONS)
def test_what_is_written_is_read_back(session: SessionDescription) -> None:
    assert SessionDescription.parse(session.to_bytes()) == session


LINES = st.sampled_from(
    [
        b"v=0",
        b"o=- 1 1 IN IP4 192.0.2.1",
        b"s=-",
        b"t=0 0",
        b"c=IN IP4 192.0.2.1",
        b"m=audio 1 RTP/AVP 0",
        b"a=x:y",
    ]
)


@given(st.lists(LINES | st.binary(max_size=20), max_size=12).map(b"\r\n".join) | st.binary(max_size=200))
@example(b"v=0\no= 1 1 IN IP4 x\ns=\nm=a 1 b c\na=ptime:\na=rtpmap:")
def test_any_bytes_are_read_or_refused_and_stay_what_they_were(data: bytes) -> None:
    try:
        session = SessionDescription.parse(data)
    except SdpError:
        return
    assert SessionDescription.parse(session.to_bytes()) == session
    for media in session.media:
        media.codecs(), media.ptime_ms, media.direction, media.fmtp(101)
