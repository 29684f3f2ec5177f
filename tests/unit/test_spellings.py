"""The search for numbers finds them in every dress, and in no other number."""

import base64

import pytest

from tests.support.spellings import forms, found_in

NUMBER = "9811120043"

DRESSED = [
    *(form.encode() for form in forms(NUMBER)),
    b"sip:%2B91%39%38%31%31%31%32%30%30%34%33@host",
    b"+91 98111 20043",
    b"98111-20043",
    b"(981) 112-0043",
    *(base64.b64encode(b"x" * shift + f"tel:+91{NUMBER};x".encode()) for shift in range(3)),
    NUMBER.encode().hex().encode(),
    f"+91{NUMBER}".encode().hex().upper().encode(),
    NUMBER.encode("utf-16-le"),
    bytes.fromhex(NUMBER),
    bytes.fromhex("8911210034"),
    int(NUMBER).to_bytes(8, "big"),
]


@pytest.mark.parametrize("data", DRESSED, ids=repr)
def test_a_number_is_found_in_every_dress(data: bytes) -> None:
    assert found_in(b"INVITE " + data + b"\r\n", NUMBER)


def test_another_number_is_not_found() -> None:
    for other in ("9811120044", "9811120143", "8811120043"):
        assert found_in(b" ".join(form.encode() for form in forms(other)), NUMBER) == []
