"""Messages, URIs and addresses as they are written natively, beside a writer in Python."""

import gc
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip import _wire
from sip.errors import InvalidValue
from sip.message.fields import NameAddr
from sip.message.message import Headers, Request, Response, serialise
from sip.message.uri import SipUri
from tests.support.sip_reference import address_text, message_bytes, uri_text

ODD = st.text(max_size=12)
"""Any text, half surrogate pairs included."""
URIS = [
    SipUri("sip", host="h"),
    SipUri("sips", "a", "secret", "2001:db8::1", 65535, (("transport", "tls"), ("lr", None)), "Subject=x"),
    SipUri("tel", user="+91-80", params=(("phone-context", "\u00e9\udce9"),)),
    SipUri("sip", "a%20b;x=1", "", "h", params=(("a", ""),)),
]
URI = URIS[0]


@pytest.mark.parametrize("uri", URIS, ids=str)
def test_a_uri_is_written_by_the_grammar(uri: SipUri) -> None:
    assert str(uri) == f"{uri}" == uri_text(uri)
    assert SipUri.parse(str(uri)) == uri


@given(
    name=st.none() | ODD, params=st.lists(st.tuples(st.just("x"), st.none() | st.just('"\\"q"')), max_size=3)
)
def test_an_address_is_written_by_the_grammar(name: str | None, params: list[tuple[str, str | None]]) -> None:
    for uri in URIS:
        address = NameAddr(name, uri, tuple(params))
        assert str(address) == address_text(address)


@given(reason=ODD, value=ODD, body=st.binary(max_size=12), status=st.integers(90, 710))
def test_a_message_is_written_as_in_python_or_refused(
    reason: str, value: str, body: bytes, status: int
) -> None:
    headers = Headers.from_entries([("x", "X", value), ("content-length", "l", "99"), ("y", "Y", "1")])
    for message in (Response(status, reason, headers, body), Request("INFO", URIS[2], headers, body)):
        try:
            written = serialise(message)
        except InvalidValue:
            assert isinstance(message, Response)
            assert not 100 <= status <= 699 or not reason.isprintable()
        except UnicodeEncodeError:
            with pytest.raises(UnicodeEncodeError):
                message_bytes(message)
        else:
            assert written == message_bytes(message)


@pytest.mark.parametrize("method", ["", "IN VITE", "INFO\r\n", "\u00e9", "a/b", "\ud800"])
def test_a_method_is_a_token(method: str) -> None:
    with pytest.raises(InvalidValue, match="method"):
        serialise(Request(method, URI))


@pytest.mark.parametrize("reason", ["a\r\nX: y", "a\nb", "a\rb", "\ud800", "\udc0a"])
def test_a_reason_phrase_fits_its_line(reason: str) -> None:
    with pytest.raises(InvalidValue):
        serialise(Response(200, reason))


def test_what_is_no_message_is_refused() -> None:
    unset = Request.__new__(Request)
    # Without their types, which would not let them be made.
    request: Any = Request
    response: Any = Response
    address: Any = NameAddr
    write: Any = serialise
    for wrong in (None, URI, Headers(), b"", request("INFO", "sip:h"), request(None, URI), response(None)):
        with pytest.raises(TypeError):
            write(wrong)
    for wrong in (request("INFO", URI, []), request("INFO", URI, body=bytearray()), response(200, b"OK")):
        with pytest.raises(TypeError):
            serialise(wrong)
    with pytest.raises(AttributeError):
        serialise(unset)
    with pytest.raises(InvalidValue):
        serialise(Response(10**30))
    for bare in (_wire.UriText(), _wire.AddressText(), address(None, "sip:h"), address(b"", URI)):
        with pytest.raises(TypeError):
            str(bare)


def test_writing_keeps_nothing() -> None:
    name = "".join(["Jos", "\u00e9"])
    uri = SipUri("sip", host="h")
    message = Request("INFO", uri, Headers([("From", str(NameAddr(name, uri)))]))
    before = [sys.getrefcount(value) for value in (name, uri, message, message.headers.entries)]
    for _ in range(3):
        serialise(message)
        assert str(NameAddr(name, uri))
    gc.collect()
    assert [sys.getrefcount(value) for value in (name, uri, message, message.headers.entries)] == before
