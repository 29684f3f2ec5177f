"""Bytes of header fields as text, and text as bytes: none is lost, and none that is not UTF-8 gets out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.message.encoding import readable, to_bytes, to_text


@given(st.binary(max_size=60))
def test_every_byte_survives(data: bytes) -> None:
    assert to_bytes(to_text(data)) == data
    readable(to_text(data)).encode()


@given(st.text(max_size=60))
def test_text_of_utf_8_stays_as_it_is(text: str) -> None:
    assert to_text(text.encode()) == readable(text) == text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"Jos\xe9", "José"),
        ("José".encode(), "José"),
        (b"a\x80b\x9fc", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"),
        (b"\xed\xa0\x80", "í\N{NO-BREAK SPACE}\N{REPLACEMENT CHARACTER}"),
    ],
    ids=["latin-1", "utf-8", "controls", "a surrogate"],
)
def test_what_people_see_of_bytes_that_are_not_utf_8(data: bytes, shown: str) -> None:
    assert readable(to_text(data)) == shown


def test_a_surrogate_that_stands_for_no_byte_is_shown_as_lost_and_never_written() -> None:
    assert readable("half \ud800 a pair") == "half \N{REPLACEMENT CHARACTER} a pair"
    with pytest.raises(UnicodeEncodeError):
        to_bytes("\ud800")
