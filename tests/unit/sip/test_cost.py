"""Cost of the most expensive messages: a peer must not be able to buy seconds of our time with one."""

import time

import pytest

from sip.auth.digest import parse_digest
from sip.errors import ParseError
from sip.message.framer import StreamFramer
from sip.message.message import Message
from sip.message.multipart import unwrap
from sip.message.parser import parse_message
from sip.message.reason_header import reason_value

HEAD = (
    b"INVITE sip:a@b.example SIP/2.0\r\nVia: SIP/2.0/TCP h.example;branch=z9hG4bKx\r\nMax-Forwards: 70\r\n"
    b"From: <sip:a@b.example>;tag=1\r\nTo: <sip:b@b.example>\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\n"
)
END = b"l: 0\r\n\r\n"
MANY = 60_000
LINES = 14
"""Lines of 4 kB that a message can hold."""
LIMIT_S = 0.5
"""Reading takes some milliseconds; what takes quadratic time takes seconds."""

DEAR = {
    "spaces in a Content-Length": HEAD + b"Content-Length: a" + b" " * MANY + b"b\r\n\r\n",
    "spaces before a Content-Length": HEAD + b"Content-Length:" + b" " * MANY + b"b\r\n\r\n",
    "folds in a Content-Length": HEAD + b"Content-Length:" + b"\r\n " * (MANY // 3) + b"b\r\n\r\n",
    "many Content-Lengths": HEAD + b"l: 0\r\n" * (MANY // 6) + b"\r\n",
    "spaces in a line": HEAD + b"X: a" + b" " * MANY + b"b\r\n" + END,
    "spaces in many lines": HEAD + (b"X: a" + b" " * 4000 + b"b\r\n") * LINES + END,
    "folds": HEAD + b"X: a" + b"\r\n " * 2600 + b"b\r\n" + END,
    "no end of the head": b"OPTIONS\nuser-agent" + b" " * MANY,
    "quotes": HEAD + (b"Contact: " + b'"' * 4000 + b"\r\n") * LINES + END,
    "quotes never closed": HEAD + (b"Contact: " + b'"\\' * 2000 + b"\r\n") * LINES + END,
    "brackets never closed": HEAD + (b"Record-Route: " + b"<" * 4000 + b"\r\n") * LINES + END,
    "commas": HEAD + (b"Require: " + b"," * 4000 + b"\r\n") * LINES + END,
    "routes": HEAD + (b"Record-Route: " + b"<sip:a;lr>," * 360 + b"<sip:b>\r\n") * LINES + END,
    "parameters": HEAD + (b"Contact: <sip:b" + b";a" * 2000 + b">\r\n") * LINES + END,
    "credentials": HEAD + (b"Authorization: Digest " + b'a="\\' * 1000 + b"\r\n") * LINES + END,
    "reasons": HEAD + (b"Reason: " + b'SIP;text="\\",' * 300 + b"\r\n") * LINES + END,
    "parts": HEAD
    + b"Content-Type: multipart/mixed;boundary=a\r\nl: 50000\r\n\r\n"
    + (b"\r\n--a" * 12_000)[:50_000],
    "keep-alives": b"\r\n\r\n" * (MANY // 4),
    "line ends": b"\n" * MANY,
}


@pytest.mark.parametrize("name", DEAR)
def test_no_message_is_dear_to_read(name: str) -> None:
    data = DEAR[name]
    began = time.process_time()
    try:
        StreamFramer().feed(data)
    except ParseError:
        pass
    try:
        use(parse_message(data))
    except ParseError:
        pass
    assert time.process_time() - began < LIMIT_S


def use(message: Message) -> None:
    """Look at what every call looks at."""
    unwrap(message)
    reason_value(message.headers)
    for name in ("Contact", "Record-Route", "Require", "Supported"):
        message.headers.get_all(name)
    for value in message.headers.get_all("Authorization"):
        parse_digest(value)
    try:
        assert message.contact is None or message.contact.uri
    except ParseError:
        pass
    assert message.record_routes is not None


def test_a_stream_that_trickles_is_searched_once() -> None:
    framer, data = StreamFramer(), HEAD + b"X: " + b"a" * MANY
    began = time.process_time()
    for place in range(0, len(data), 4):
        framer.feed(data[place : place + 4])
    assert time.process_time() - began < LIMIT_S


def test_a_folded_length_is_read_whole() -> None:
    """The next line belongs to the value, for the framer of a stream and for the parser."""
    assert StreamFramer().feed(HEAD + b"Content-Length:\r\n 2\r\n\r\nab") == [
        HEAD + b"Content-Length:\r\n 2\r\n\r\nab"
    ]
    with pytest.raises(ParseError):
        StreamFramer().feed(HEAD + b"Content-Length: 2\r\n 3\r\n\r\nab")
