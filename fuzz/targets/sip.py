"""Targets of the SIP core: messages, stream framing, URIs, header fields, digest challenges."""

from __future__ import annotations

import contextlib

from fuzz.harness import VECTORS, Target
from sip.auth.digest import Credentials, answer_challenge, parse_challenges
from sip.errors import ParseError
from sip.message.encoding import to_text
from sip.message.fields import CSeq, NameAddr, Via
from sip.message.framer import StreamFramer
from sip.message.grammar import split_list
from sip.message.message import Message, Request, Response, serialise
from sip.message.parser import DEFAULT_LIMITS, find_body, parse_carefully, parse_message, read_plain
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri
from tests.support.sip_reference import address_text, message_bytes, uri_text

# One request or response per file, those that must be refused among them.
MESSAGES = [path.read_bytes() for path in sorted((VECTORS / "sip").glob("*.sip"))]

WORDS = [
    *(
        name + b": "
        for name in (b"Via", b"v", b"From", b"t", b"Call-ID", b"CSeq", b"Content-Length", b"l", b"m")
    ),
    *(b"INVITE", b"ACK", b"CANCEL", b"SIP/2.0", b"SIP/2.0 200 OK", b"sip:", b"tel:+91", b"[::1]", b"z9hG4bK"),
    *(
        b";tag=",
        b";branch=",
        b";rport",
        b";received=",
        b";lr",
        b"\r\n\r\n",
        b"Max-Forwards: 70\r\n",
        b"Route: ",
    ),
]

PERMITTED = (ParseError,)

_HEAD = (
    b"Via: SIP/2.0/UDP h.example:5062;branch=z9hG4bKa1;rport%s\r\nMax-Forwards: 70\r\n"
    b'From: "Asha Rao" <sip:+918047000001@192.0.2.1;user=phone>;tag=4fe1\r\nTo: <sip:b@h.example:5070>%s\r\n'
    b"Call-ID: 7c1f0e2a@192.0.2.1\r\nCSeq: 1 INVITE\r\nX-Account: 7\r\n"
    b"Contact: <sip:192.0.2.1:5060;transport=udp>\r\n"
    b"Record-Route: <sip:p1.example;lr>, <sip:p2.example;lr>\r\n"
    b"Content-Type: application/sdp\r\nContent-Length: 4\r\n\r\nv=0\n"
)
# As nearly all peers write them.
PLAIN = [
    b"INVITE sip:b@h.example:5070;user=phone SIP/2.0\r\n" + _HEAD % (b"", b""),
    b"SIP/2.0 200 OK\r\n" + _HEAD % (b"=5066;received=192.0.2.9", b";tag=9d8c"),
]


def check_message(data: bytes) -> str:
    """A message that is read is written so that it reads the same, with its Via; an error can be answered."""
    try:
        message = parse_message(data)
    except ParseError as error:
        check_error(error, data)
        raise
    wire = serialise(message)
    again = parse_message(wire)
    assert wire == message_bytes(message)
    assert describe(again) == describe(message)
    assert serialise(again) == wire
    for view in ("contacts", "record_routes"):
        with contextlib.suppress(ParseError):
            getattr(message, view)
    assert message.retry_after_s is None or message.retry_after_s >= 0
    message.headers.stamp_via("192.0.2.1", 5060)
    assert Via.parse(message.headers.first("via") or "") == message.via
    return f"{type(message).__name__} {len(message.headers.entries) // 4} {bool(message.body)}"


def check_plain(data: bytes) -> str:
    """The native parser agrees with the one in Python, and its message is written alike."""
    plain = read_plain(data, DEFAULT_LIMITS)
    if plain is None:
        return f"not plain: {_fate(data)}"
    careful = parse_carefully(data)
    assert plain == careful and type(plain) is type(careful)
    assert plain.headers.entries == careful.headers.entries
    views, expected = plain.headers.views, careful.headers.views
    assert {key: repr(view) for key, view in views.items()} == {
        key: repr(view) for key, view in expected.items() if view is not None
    }
    for name in ("via", "from_", "to", "call_id", "cseq"):
        assert repr(getattr(plain, name)) == repr(getattr(careful, name))
    assert (plain.from_.tag, plain.to.tag) == (careful.from_.tag, careful.to.tag)
    assert serialise(plain) == message_bytes(plain)
    size = len(plain.headers.entries) // 4
    return f"{type(plain).__name__} {size} {bool(plain.body)} {len(views)} {plain.via.rport}"


def _fate(data: bytes) -> str:
    try:
        return type(parse_carefully(data)).__name__
    except ParseError as error:
        return error.reason


def describe(message: Message) -> tuple[object, ...]:
    """Everything a message says, its Content-Length aside."""
    start = (
        (message.method, message.uri)
        if isinstance(message, Request)
        else (message.status, message.reason or reason_phrase(message.status))
    )
    fields = [field for field in message.headers.items() if field[0] != "Content-Length"]
    typed = (message.via, message.from_, message.to, message.call_id, message.cseq, message.max_forwards)
    return (*start, fields, message.body, typed)


def check_error(error: ParseError, data: bytes) -> None:
    """The error points into the input, quotes none of it, and its answer has no field it should not."""
    assert 0 <= error.offset <= len(data)
    assert error.reason.isascii() and error.reason.isprintable()
    if error.answer is None:
        return
    wire = serialise(error.answer)
    names = {line.partition(b":")[0] for line in wire.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]}
    assert names <= {b"Via", b"From", b"To", b"Call-ID", b"CSeq", b"Content-Length"}, names
    assert isinstance(error.answer, Response) and error.answer.status >= 400


def check_framing(data: bytes) -> str:
    """The cut of a stream into reads changes nothing, and framer and parser agree on every length."""
    whole = frames_of(data, len(data) or 1)
    # The first byte varies the size of the reads along with everything else.
    assert frames_of(data, data[0] % 13 + 1 if data else 1) == whole
    frames, failed = whole
    read = 0
    for frame in frames:
        with contextlib.suppress(ParseError):
            message = parse_message(frame)
            read += 1
            assert (find_body(frame) or 0) + len(message.body) == len(frame)
    return f"{min(len(frames), 4)} {min(read, 4)} {failed}"


def frames_of(data: bytes, step: int) -> tuple[list[bytes], bool]:
    """The frames of a stream read in steps, and whether it failed."""
    framer = StreamFramer()
    frames: list[bytes] = []
    try:
        for at in range(0, len(data), step):
            frames += framer.feed(data[at : at + step])
        frames += framer.feed(b"")
    except ParseError:
        return frames, True
    return frames, False


def check_uri(data: bytes) -> str:
    """A URI that is read is written so that it reads the same, and fits into angle brackets."""
    uri = SipUri.parse(to_text(data))
    text = str(uri)
    assert text == uri_text(uri)
    assert SipUri.parse(text) == uri
    assert not set(text) & set("<>\r\n\0 \t")
    assert NameAddr.parse(f"<{text}>").uri == uri
    shape = (
        uri.user is None,
        uri.port is None,
        min(len(uri.params), 3),
        uri.headers is None,
        uri.number == uri.user,
    )
    return f"{uri.scheme} {shape}"


def check_fields(data: bytes) -> str:
    """Addresses, Via and CSeq read back the same, and stay one element of a list."""
    text = to_text(data)
    outcomes = []
    for parse in (NameAddr.parse, Via.parse, CSeq.parse):
        try:
            value = parse(text)
        except ParseError as error:
            outcomes.append(error.reason)
            continue
        written = str(value)
        assert not isinstance(value, NameAddr) or written == address_text(value)
        assert parse(written) == value
        assert split_list(f"{written}, {written}") == [written, written]
        assert "\r" not in written and "\n" not in written
        outcomes.append(type(value).__name__)
    for element in split_list(text):
        assert element and element == element.strip(" \t")
    return " ".join(outcomes)


def check_digest(data: bytes) -> str:
    """Whatever the challenge says, its answer has the parameters it should, once each."""
    challenges = parse_challenges([to_text(data)])
    for challenge in challenges:
        answer = answer_challenge(challenge, Credentials("user", "pass"), "INVITE", "sip:h", b"x", "c0", 1)
        names = [part.partition("=")[0] for part in split_list(answer.removeprefix("Digest "))]
        assert len(names) == len(set(names))
        known = {
            "username",
            "realm",
            "nonce",
            "uri",
            "response",
            "algorithm",
            "qop",
            "nc",
            "cnonce",
            "opaque",
        }
        assert set(names) <= known, names
        algorithm = (challenge.algorithm or "none").lower()
        return f"{algorithm} {challenge.qop} {challenge.stale} {challenge.opaque is None}"
    return "none"


TARGETS = [
    Target("sip-message", check_message, PERMITTED, MESSAGES, WORDS),
    Target("sip-plain", check_plain, (), [*MESSAGES, *PLAIN], WORDS),
    Target(
        "sip-framing", check_framing, PERMITTED, [b"".join(MESSAGES[at : at + 3]) for at in range(30)], WORDS
    ),
    Target(
        "sip-uri",
        check_uri,
        PERMITTED,
        [
            b"sip:alice:pw@example.org:5061;transport=tcp;lr?Subject=x&To=y",
            b"sips:+9198%2B%40@[2001:db8::1]:5060",
            b"tel:+91-98(00)0.0;phone-context=+91;ext=1",
            b"sip:*21#;isub=1@192.0.2.1",
        ],
        [*WORDS, b"%41", b"%7F", b";a=b", b"?a=b", b'"a;b"'],
    ),
    Target(
        "sip-fields",
        check_fields,
        PERMITTED,
        [
            b'"A \\"quoted\\" name" <sip:a@h;lr>;tag=1;x="a;b,c"',
            b"Alice B <tel:+9198>;q=0.5",
            b"sip:a@h;tag=2",
            b"SIP / 2.0 / UDP [::1]:5060;branch=z9hG4bK1;rport=5060;received=192.0.2.1;ttl=1",
            b"17 INVITE",
        ],
        WORDS,
    ),
    Target(
        "sip-digest",
        check_digest,
        PERMITTED,
        [
            b'Digest realm="a \\"b\\"", nonce="n", opaque="", algorithm=SHA-256, qop="auth,auth-int"',
            b'Digest realm="", nonce="n", stale=TRUE, qop=auth-int',
            b'Digest realm="r", nonce=n, algorithm=MD5-sess',
            b'Basic realm="r"',
        ],
        [b'realm="', b"nonce=", b"algorithm=MD5", b"qop=auth-int", b'", ', b'opaque="', b"Digest "],
    ),
]
