"""Connections on virtual time: keep-alives, deadlines, limits (RFC 3261 18.3, RFC 5626 4.4.1)."""

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.aio.tcp import StreamLimits
from tests.support.memory_stream import MemoryStream, News, Streams
from tests.unit.sip.message.test_framer import feed_in_pieces, message

PING, PONG = b"\r\n\r\n", b"\r\n"

REQUEST = (
    b"OPTIONS sip:h SIP/2.0\r\nVia: SIP/2.0/TCP 10.0.0.1;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=1\r\n"
    b"To: <sip:c@d>\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\n"
)


# Keep-alives of ours.


def test_a_connection_that_is_needed_is_pinged_when_it_is_silent() -> None:
    streams = Streams()
    connection = streams.connect()
    stream = streams.come_up(connection)
    connection.hold()
    streams.pass_time(29)
    assert stream.written == []
    streams.pass_time(1)
    assert stream.written == [PING]
    connection.data_received(PONG)
    streams.pass_time(29)
    assert stream.written == [PING]
    streams.pass_time(1)
    assert stream.written == [PING, PING]
    assert streams.messages == []


def test_messages_are_as_good_as_pongs() -> None:
    streams = Streams()
    connection = streams.connect()
    stream = streams.come_up(connection)
    connection.hold()
    for _ in range(10):
        streams.pass_time(20)
        connection.data_received(message())
    assert stream.written == []
    assert len(streams.messages) == 10


def test_a_peer_that_answers_no_more_is_gone() -> None:
    streams = Streams()
    connection, news = streams.connect(), News()
    streams.come_up(connection)
    connection.watch(news)
    streams.pass_time(30)
    connection.data_received(PONG)
    streams.pass_time(39)
    assert not connection.closed
    streams.pass_time(1)
    assert connection.closed
    assert news.broken == 1
    assert connection.transport_error == "The peer answers keep-alives no more"
    assert streams.transport.connection_count == 0
    streams.pass_time(100)
    assert news.broken == 1


def test_a_peer_that_never_answered_a_ping_need_not() -> None:
    """RFC 3261 7.5 lets it ignore line ends; that the host is gone shows in TCP itself."""
    streams = Streams()
    connection = streams.connect()
    stream = streams.come_up(connection)
    connection.hold()
    streams.pass_time(300)
    assert not connection.closed
    assert stream.written == [PING] * 10


@pytest.mark.parametrize("opened_by_us", [True, False])
def test_only_connections_of_ours_that_somebody_needs_are_pinged(opened_by_us: bool) -> None:
    streams = Streams()
    if opened_by_us:
        stream = streams.come_up(streams.connect())
    else:
        connection, stream = streams.accept()
        connection.data_received(message())
        connection.hold()
    streams.pass_time(100)
    assert stream.written == []


def test_pings_can_be_turned_off() -> None:
    streams = Streams(StreamLimits(keepalive_s=0))
    connection = streams.connect()
    stream = streams.come_up(connection)
    connection.hold()
    streams.pass_time(300)
    assert stream.written == []


# Keep-alives of peers.


def test_pings_are_answered() -> None:
    streams = Streams()
    connection, stream = streams.accept()
    connection.data_received(PING + message() + b"\r\n")
    connection.data_received(b"\r\n")
    assert stream.written == [PONG, PONG]
    assert len(streams.messages) == 1


# Deadlines.


def test_a_message_that_is_never_complete() -> None:
    streams = Streams()
    connection, stream = streams.accept()
    connection.data_received(message())
    for byte in REQUEST[:20]:
        connection.data_received(bytes([byte]))
        streams.pass_time(0.7)
    assert not connection.closed
    streams.pass_time(1)
    assert connection.closed and stream.closing
    assert connection.transport_error == "A message was not complete in time"


def test_each_message_has_its_own_time() -> None:
    streams = Streams()
    connection, _ = streams.accept()
    whole = message(b"x" * 10)
    for _ in range(5):
        connection.data_received(whole[:30])
        streams.pass_time(10)
        connection.data_received(whole[30:] + whole[:5])
        streams.pass_time(10)
        connection.data_received(whole[5:])
    assert not connection.closed
    assert len(streams.messages) == 10


def test_a_peer_that_connects_and_says_nothing() -> None:
    streams = Streams()
    connection, stream = streams.accept()
    streams.pass_time(29)
    assert not connection.closed
    streams.pass_time(1)
    assert connection.closed and stream.closing


def test_a_connection_that_nobody_uses_is_closed_in_the_end() -> None:
    streams = Streams(StreamLimits(idle_s=60))
    connection, _ = streams.accept()
    connection.data_received(message())
    connection.hold()
    streams.pass_time(100)
    assert not connection.closed, "a dialog may need it"
    connection.release()
    streams.pass_time(1)
    assert connection.closed


def test_what_waits_for_a_connection_that_does_not_come_up_is_not_sent() -> None:
    streams = Streams()
    connection, news = streams.connect(), News()
    connection.watch(news)
    assert connection.send(b"one")
    connection.give_up("too late")
    assert (connection.closed, connection.established, news.broken) == (True, False, 1)
    stream = streams.come_up(connection)
    assert stream.written == [] and stream.closing
    assert not connection.send(b"two")


def test_what_waits_goes_out_in_order() -> None:
    streams = Streams()
    connection = streams.connect()
    connection.send(b"one")
    connection.send(b"two")
    stream = streams.come_up(connection)
    connection.give_up("no matter")
    connection.send(b"three")
    assert stream.written == [b"one", b"two", b"three"]


def test_a_peer_that_does_not_read_is_cut_off() -> None:
    streams = Streams(StreamLimits(max_unsent_bytes=100))
    connection, stream = streams.accept()
    stream.unsent_bytes = 101
    assert not connection.send(b"x")
    assert stream.closing
    waiting = streams.connect()
    assert waiting.send(b"x" * 100)
    assert not waiting.send(b"x")


def test_a_closed_connection_does_not_linger() -> None:
    streams = Streams()
    connection, stream = streams.accept()
    connection.data_received(REQUEST + b"\r\n")
    assert stream.closing and not stream.aborted, "its answer may still go out"
    streams.pass_time(4)
    assert not stream.aborted
    streams.pass_time(1)
    assert stream.aborted


def test_why_a_connection_broke_is_known() -> None:
    streams = Streams()
    connection, news = streams.connect(), News()
    streams.come_up(connection)
    connection.watch(news)
    connection.connection_lost(ConnectionResetError(104, "Connection reset by peer"))
    assert (connection.transport_error, news.broken) == ("Connection reset by peer", 1)


def test_a_connection_that_breaks_as_it_comes_up() -> None:
    streams = Streams()
    connection, news = streams.connect(), News()
    connection.watch(news)
    connection.send(b"one")
    stream = MemoryStream(connection.remote)
    stream.peer = None
    connection.connection_made(cast(asyncio.BaseTransport, stream))
    assert stream.aborted and stream.written == []
    assert (connection.closed, connection.established, news.broken) == (True, False, 1)
    assert streams.transport.connection_count == 0


def test_nothing_is_said_to_a_peer_that_was_cut_off() -> None:
    """By the user of the message before the one that cannot be framed."""
    streams = Streams()
    connection, stream = streams.accept()
    streams.transport.deliver = lambda data, connection: connection.abort()
    connection.data_received(message() + REQUEST + b"\r\n")
    assert stream.aborted and stream.written == []


# Limits.


def test_connections_of_one_source_are_limited() -> None:
    streams = Streams(StreamLimits(max_per_source=2))
    first, _ = streams.accept(port=1)
    streams.accept(port=2)
    refused, stream = streams.accept(port=3)
    assert refused.closed and stream.closing
    other, _ = streams.accept("192.0.2.3")
    assert not other.closed
    first.connection_lost(None)
    again, _ = streams.accept(port=4)
    assert not again.closed
    assert streams.transport.connection_count == 3


def test_connections_of_ours_do_not_count_for_the_peer() -> None:
    streams = Streams(StreamLimits(max_per_source=1))
    streams.come_up(streams.connect())
    accepted, _ = streams.accept()
    assert not accepted.closed


def test_room_is_made_by_closing_what_nobody_uses() -> None:
    streams = Streams(StreamLimits(max_connections=2, evict_after_s=5))
    needed, _ = streams.accept(port=1)
    needed.hold()
    idle, _ = streams.accept(port=2)
    refused, _ = streams.accept(port=3)
    assert refused.closed
    streams.pass_time(6)
    taken, _ = streams.accept(port=4)
    assert not taken.closed and idle.closed and not needed.closed


def test_a_network_of_ipv6_is_one_source() -> None:
    streams = Streams(StreamLimits(max_per_source=2))
    taken = [streams.accept(f"2001:db8::{number}", port=number + 1)[0] for number in range(3)]
    assert [connection.closed for connection in taken] == [False, False, True]
    taken[0].connection_lost(None)
    assert not streams.accept("2001:db8::9")[0].closed
    assert not streams.accept("2001:db8:0:1::1")[0].closed


def test_strangers_have_few_connections_and_none_that_a_known_peer_needs() -> None:
    streams = Streams(StreamLimits(max_connections=4, max_per_unknown_source=2, evict_after_s=5))
    # The guard that the transport asks is no part of this test.
    streams.transport.is_unknown = lambda host: not host.startswith("192.0.2.")  # type: ignore[method-assign]
    known, _ = streams.accept("192.0.2.9")
    strangers = [streams.accept(f"198.51.100.{number // 2}", port=number + 1)[0] for number in range(4)]
    assert [connection.closed for connection in strangers] == [False, False, False, True]
    again, _ = streams.accept("198.51.100.0", port=9)
    assert again.closed
    # They all keep busy, so nothing would be idle enough to go.
    for connection in (known, *strangers[:3]):
        connection.data_received(b"\r\n\r\n")
    gateway, _ = streams.accept("192.0.2.10")
    assert not gateway.closed and not known.closed
    assert sum(connection.closed for connection in strangers[:3]) == 1


def test_a_peer_that_sends_nothing_but_keep_alives_is_not_kept() -> None:
    streams = Streams(StreamLimits(first_message_s=30, idle_s=600))
    idle, _ = streams.accept(port=1)
    talking, _ = streams.accept(port=2)
    talking.data_received(message())
    for _ in range(7):
        for connection in (idle, talking):
            if not connection.closed:
                connection.data_received(b"\r\n\r\n")
        streams.pass_time(5)
    assert idle.closed and not talking.closed


# Framing.


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        (b"\r\n", b"SIP/2.0 400 A message on a stream needs one Content-Length"),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", b"SIP/2.0 400 A message on a stream needs"),
        (b"Content-Length: some\r\n\r\n", b"SIP/2.0 400 Malformed Content-Length"),
        (b"Content-Length: 99999\r\n\r\n", b"SIP/2.0 513 "),
    ],
)
def test_a_request_without_a_certain_end_is_answered_and_ends_the_connection(
    end: bytes, answer: bytes
) -> None:
    streams = Streams()
    connection, stream = streams.accept()
    connection.data_received(message() + REQUEST + end)
    assert len(streams.messages) == 1, "what came before is served"
    [written] = stream.written
    assert written.startswith(answer)
    assert b"received=192.0.2.2" in written
    assert connection.closed and stream.closing
    connection.data_received(message())
    assert len(streams.messages) == 1


def test_a_response_without_a_certain_end_is_not_answered() -> None:
    streams = Streams()
    connection, stream = streams.accept()
    connection.data_received(REQUEST.replace(b"OPTIONS sip:h SIP/2.0", b"SIP/2.0 200 OK") + b"\r\n")
    assert stream.written == [] and connection.closed


@given(
    st.lists(st.binary(max_size=30) | st.just(PING) | st.just(message(b"inner")), max_size=4),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_however_messages_are_cut_they_arrive_whole(parts: list[bytes], cuts: list[int]) -> None:
    streams = Streams()
    connection, _ = streams.accept()
    messages = [message(body) for body in parts]

    class Feed:
        def feed(self, data: bytes) -> list[bytes]:
            connection.data_received(data)
            return []

    feed_in_pieces(Feed(), b"".join(messages), cuts)  # type: ignore[arg-type]
    assert [data for data, _ in streams.messages] == messages
