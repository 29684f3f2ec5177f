"""Cutting streams into messages (RFC 3261 18.3, RFC 5626 3.5.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.errors import ParseError
from sip.message.framer import PING, PONG, StreamFramer
from sip.message.parser import Limits


def message(body: bytes = b"", name: bytes = b"Content-Length") -> bytes:
    return b"OPTIONS sip:h SIP/2.0\r\nX: y\r\n%b: %d\r\n\r\n%b" % (name, len(body), body)


def feed_in_pieces(framer: StreamFramer, data: bytes, cuts: list[int]) -> list[bytes]:
    frames: list[bytes] = []
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in zip(places, places[1:], strict=False):
        frames += framer.feed(data[start:end])
    return frames


bodies = st.binary(max_size=30) | st.just(b"\r\n\r\n") | st.just(message(b"inner"))


@given(st.lists(bodies, max_size=4), st.lists(st.integers(0, 400), max_size=8))
def test_messages_come_out_as_they_went_in_however_they_are_cut(parts: list[bytes], cuts: list[int]) -> None:
    framer = StreamFramer()
    messages = [message(body) for body in parts]
    assert feed_in_pieces(framer, b"".join(messages), cuts) == messages
    assert framer.buffered_bytes == 0


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_give_the_same_frames_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    def outcome(cuts: list[int]) -> tuple[list[bytes], bool]:
        framer, frames = StreamFramer(), []
        try:
            for piece in [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]:
                frames += framer.feed(piece)
            frames += framer.feed(b"")
        except ParseError:
            return frames, False
        return frames, True

    assert outcome(sorted(min(cut, len(data)) for cut in cuts)) == outcome([])


def test_keep_alives_between_messages() -> None:
    framer = StreamFramer()
    assert framer.feed(b"\r\n\r\n") == [PING]
    assert framer.feed(message() + b"\r\n\r\n" + message()) == [message(), PING, message()]
    # A single line end is a pong, or sloppiness; it is dropped once something else follows.
    assert framer.feed(b"\r\n" + message()) == [message()]
    assert framer.feed(b"\r\n") == []
    assert framer.feed(b"\r\n") == [PING]
    assert framer.feed(b"\r") == [] and framer.feed(b"\n\r") == [] and framer.feed(b"\n") == [PING]
    assert framer.feed(b"\n\n\n" + message()) == [message()]


@pytest.mark.parametrize(
    "name", [b"Content-Length", b"CONTENT-LENGTH ", b"l", b"L\t", b"content-length:\r\n "]
)
def test_spellings_of_content_length(name: bytes) -> None:
    data = message(b"12345", name).replace(b"\r\n :", b"\r\n ")
    assert StreamFramer().feed(data) == [data]


def test_bare_line_feeds() -> None:
    data = message(b"ab").replace(b"\r\n", b"\n")
    assert StreamFramer().feed(data + data) == [data, data]


@pytest.mark.parametrize(
    "head",
    [
        b"X: y\r\n",
        b"Content-Length: x\r\n",
        b"Content-Length:\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 99999999999\r\n",
        b"Content-Length: 70000\r\n",
        b"Content-Length: 1\r\nl: 1\r\n",
        b"X: Content-Length: 1\r\n",
    ],
)
def test_a_message_without_a_certain_end_ends_the_stream(head: bytes) -> None:
    framer = StreamFramer()
    with pytest.raises(ParseError):
        framer.feed(b"OPTIONS sip:h SIP/2.0\r\n" + head + b"\r\n")
    assert framer.buffered_bytes == 0
    with pytest.raises(ParseError):
        framer.feed(message())


def test_messages_before_the_failure_are_delivered() -> None:
    framer = StreamFramer()
    assert framer.feed(message(b"ok") + b"BAD\r\n\r\n" + message()) == [message(b"ok")]
    with pytest.raises(ParseError):
        framer.feed(b"")


@pytest.mark.parametrize("chunk_bytes", [1, 100])
def test_a_head_that_never_ends_is_bounded(chunk_bytes: int) -> None:
    framer = StreamFramer(Limits(message_bytes=1000))
    with pytest.raises(ParseError) as caught:
        for _ in range(2000):
            framer.feed(b"x" * chunk_bytes)
            assert framer.buffered_bytes <= 1000
    assert caught.value.status == 513


def test_the_largest_message_passes_and_one_byte_more_does_not() -> None:
    largest = message(b"x" * 100)
    framer = StreamFramer(Limits(message_bytes=len(largest)))
    assert framer.feed(largest) == [largest]
    with pytest.raises(ParseError):
        framer.feed(message(b"x" * 101))


def test_the_answer_to_a_ping_of_ours() -> None:
    framer = StreamFramer()
    framer.expect_pong()
    assert framer.feed(b"\r\n") == [PONG]
    assert framer.feed(b"\r\n") == [], "nobody expects a second one"
    framer = StreamFramer()
    framer.expect_pong()
    assert framer.feed(message() + b"\r") == [message()]
    assert framer.feed(b"\n" + message()) == [PONG, message()]
    framer.expect_pong()
    assert framer.feed(b"\r\n\r\n\r\n") == [PING, PONG], "both sides may ask at once"


def test_what_cannot_be_framed_is_answered_when_its_head_can_be_read() -> None:
    head = (
        b"INVITE sip:h SIP/2.0\r\nVia: SIP/2.0/TCP h;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\n"
        b"To: <sip:c@d>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n\r\n"
    )
    with pytest.raises(ParseError) as caught:
        StreamFramer().feed(head)
    assert caught.value.answer is not None
    assert caught.value.answer.status == 400
    framer = StreamFramer()
    assert framer.feed(message() + b"nonsense\r\n\r\n") == [message()]
    assert framer.failure is not None and framer.failure.answer is None
