"""Targets of what extensions put into header fields and bodies, and of telephone numbers in addresses."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

from callcontrol.e164 import read_number
from callcontrol.trunks.inbound_invite import Received
from callcontrol.trunks.number_format import dialled_numbers, numbers_in
from fuzz.harness import Target
from fuzz.targets.sip import MESSAGES, WORDS
from sip.auth.server import DigestServer, DigestSettings, Outcome, Secret
from sip.errors import InvalidValue, ParseError
from sip.message.encoding import to_text
from sip.message.message import Request, serialise
from sip.message.multipart import unwrap
from sip.message.parser import parse_message
from sip.message.reason_header import read_reasons
from sip.session.prack import parse_rack
from sip.session.refer import event_id, is_terminated, parse_refer, parse_sipfrag
from sip.session.replaces import Replaces, replaces_of
from sip.session.session_refresh import read_min_se, read_session_expires
from tests.unit.sip.transactions.test_transactions import make_request

SOURCE = "192.0.2.9"
NOW_S = 1000.0

MULTIPART = (
    b"INVITE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\n"
    b"From: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\nCall-ID: m\r\n"
    b"CSeq: 1 INVITE\r\nContact: <sip:a@h>\r\nContent-Type: multipart/mixed;boundary=xx\r\n\r\n"
    b"--xx\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n\r\n--xx\r\nContent-Type: application/isup\r\n"
    b"Content-Disposition: signal;handling=optional\r\n\r\n\x01\r\n--xx--"
)

READERS: tuple[Callable[[Request], object], ...] = (
    *(parse_refer, replaces_of, parse_rack, read_session_expires, read_min_se),
    *(event_id, is_terminated),
)

FIELDS = (
    "Refer-To",
    "Referred-By",
    "Refer-Sub",
    "Replaces",
    "RAck",
    "RSeq",
    "Session-Expires",
    "Min-SE",
    "Reason",
    "Event",
    "Subscription-State",
    "Diversion",
    "History-Info",
    "User-to-User",
    "Identity",
    "X-Custom",
)


def check_multipart(data: bytes) -> str:
    """A multipart body gives way to the session description in it, or stays as it is; it can be written."""
    message = parse_message(data)
    before = message.body
    unwrap(message)
    assert message.body in (before, b"") or message.content_type == "application/sdp"
    parse_message(serialise(message))
    kind = message.content_type
    return f"{kind if kind in (None, 'application/sdp') else '-'} {len(message.body) > 0}"


def check_extension_fields(data: bytes) -> str:
    """Whatever stands in the fields of extensions, reading them gives a value or the parser's own error."""
    request = make_request("REFER")
    lines = to_text(data).split("\n")
    for line in lines[:8]:
        with contextlib.suppress(InvalidValue):
            name = FIELDS[ord(line[0]) % len(FIELDS)] if line else FIELDS[0]
            request.headers.add(name, line[1:])
    words = []
    for read in READERS:
        try:
            value = read(request)
        except ParseError as error:
            words.append(error.reason)
            continue
        words.append("-" if value is None else type(value).__name__)
        if isinstance(value, Replaces):
            assert Replaces.parse(str(value)) == value
    words.append(str(min(len(read_reasons(request.headers.get("Reason"))), 3)))
    shown = Received.of(request.headers).shown()
    assert sum(len(repr(fact)) for fact in shown.values()) < 64_000
    json.dumps(shown, ensure_ascii=False).encode()  # No lone surrogate leaves the SIP stack.
    return " ".join(words)


def check_sipfrag(data: bytes) -> str:
    """The body of a NOTIFY has a status line or says nothing."""
    found = parse_sipfrag(data)
    assert found is None or 100 <= found[0] <= 699
    return "none" if found is None else str(found[0] // 100)


def make_server() -> DigestServer:
    """A server whose nonces are the same every time."""
    return DigestServer(DigestSettings(realm="h"), b"k" * 32, lambda: "0" * 20)


NONCE = make_server().challenge(SOURCE, NOW_S)[0][1].split('nonce="')[1].partition('"')[0]


def check_authorization(data: bytes) -> str:
    """No text proves a password that was not in it."""
    server = make_server()
    request = make_request("INVITE")
    try:
        request.headers.add("Authorization", to_text(data))
    except InvalidValue:
        return "unusable"
    verdict = server.judge(request, SOURCE, lambda name: [Secret("s3cret", name)], NOW_S)
    assert verdict.outcome is not Outcome.ACCEPTED
    return verdict.outcome.name


def check_numbers(data: bytes) -> str:
    """A number that is read is one in E.164, and what a switch would dial is never overlooked."""
    text = to_text(data)
    numbers = list(numbers_in(text))
    assert len(numbers) <= 16
    for number in numbers:
        assert number.startswith("+") and number[1:].isdecimal()
    dialled = dialled_numbers(text)
    assert all(number.startswith("+") for number in dialled)
    with contextlib.suppress(ValueError):
        number = read_number(text)
        assert number[1:].isdecimal() and read_number(number) == number
    return f"{min(len(numbers), 3)} {min(len(dialled), 3)}"


TARGETS = [
    Target(
        "sip-multipart",
        check_multipart,
        (ParseError,),
        [MULTIPART, *(data for data in MESSAGES if b"multipart" in data)],
        [
            *WORDS,
            b"--xx",
            b"--xx--",
            b"Content-Type: application/sdp\r\n\r\n",
            b"handling=required",
            b"boundary=",
        ],
    ),
    Target(
        "sip-extensions",
        check_extension_fields,
        (),
        [
            b"0<sip:c@h?Replaces=x%3Bto-tag%3Da%3Bfrom-tag%3Db&X-A=1>\n1<sip:a@h>\n2false",
            b"3call;to-tag=a;from-tag=b;early-only\n4 7 1 INVITE\n58",
            b'61800;refresher=uas\n790\n8Q.850;cause=16;text="a, b", SIP;cause=200',
            b"9refer;id=3\n:terminated;reason=noresource\n;<sip:d@h>;reason=unconditional",
            b"<<sip:a@h?Reason=SIP%3Bcause%3D302>;index=1.1\n=00FA;encoding=hex\n>x\n?value",
        ],
        [
            b"refresher=uac",
            b"to-tag=",
            b"from-tag=",
            b"%3B",
            b"?Replaces=",
            b"tel:+91",
            b"cause=",
            b"Q.850",
            b"\n",
        ],
    ),
    Target(
        "sip-fragment", check_sipfrag, (), [b"SIP/2.0 100 Trying\r\n", b"SIP/2.0 486 Busy Here", b"SIP/2.0 9"]
    ),
    Target(
        "sip-authorization",
        check_authorization,
        (),
        [
            b'Digest username="u", realm="h", uri="'
            + str(make_request("INVITE").uri).encode()
            + b'", response="0", algorithm=SHA-256,'
            b' nonce="' + NONCE.encode() + b'", qop=auth, nc=00000001, cnonce="c", opaque="o"',
            b"Basic dTpw",
        ],
        [
            b"username=",
            b"nonce=",
            b"response=",
            b"nc=",
            b"qop=auth-int",
            b"algorithm=MD5",
            b'"',
            b", ",
            b"Digest ",
        ],
    ),
    Target(
        "telephone-numbers",
        check_numbers,
        (),
        [
            b"+919876543210",
            b"00919876543210",
            b"080-4700.0001",
            b"77%23919876543210;phone-context=+91",
            b"%2b44207",
        ],
        [b"+91", b"%2B", b"00", b";phone-context=", b"#", b"*", b"0"],
    ),
]
