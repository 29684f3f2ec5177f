"""Validation of contacts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from callcontrol.messaging.contacts import folded, is_email, search_text, wanted
from callcontrol.messaging.models import Contact


@pytest.mark.parametrize(
    "text",
    [
        "asha@example.com",
        "a.b+c@mail.example.co.in",
        "आशा@उदाहरण.भारत",
        "x@xn--h2brj9c.in",
        "o'neil@ex-a.org",
    ],
)
def test_what_is_an_address(text: str) -> None:
    assert is_email(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "asha", "asha@", "@example.com", "asha@example", "asha@@example.com", "asha @example.com"),
        *(
            "asha@example..com",
            ".asha@example.com",
            "asha.@example.com",
            "asha@-example.com",
            "asha@example-.com",
        ),
        *(
            "asha@example.com ",
            "asha@example.com\n",
            "a" * 65 + "@example.com",
            "é" * 33 + "@example.com",
            "a@" + "b." * 130 + "com",
        ),
        *("Asha <asha@example.com>", "asha@[192.0.2.1]", '"a b"@example.com'),
    ],
)
def test_what_is_no_address(text: str) -> None:
    assert not is_email(text)


def test_case_and_composition_are_overlooked() -> None:
    assert folded("ÉLODIE Straße") == folded("e\u0301lodie STRASSE")


@pytest.mark.parametrize(
    ("typed", "looked_for"),
    [
        (" 98765-432 10 ", ("9876543210",)),
        ("+91 (98) 765", ("+9198765",)),
        ("09876543210", ("09876543210", "+919876543210")),
        ("00 91 98765-43210", ("00919876543210", "+919876543210")),
        (" 91 98765 43210", ("919876543210",)),
        ("TEL:+91-98765-43210", ("tel:+91-98765-43210", "+919876543210")),
        ("  Asha   Rao ", ("asha rao",)),
        ("a-1", ("a-1",)),
        ("-", ("-",)),
        ("   ", ()),
    ],
)
def test_what_is_looked_for(typed: str, looked_for: tuple[str, ...]) -> None:
    assert wanted(typed) == looked_for


def test_what_is_searched_fits_into_an_index() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    # A sign that is three of four bytes each once it is composed.
    signs = "\U0001d160" * 100
    contact = Contact(1, "account", "+919876543210", now, now, signs, signs, "asha@example.com")
    text = search_text(contact)
    assert 2000 < len(text.encode()) <= 2400
    assert text.startswith("+919876543210\nasha@example.com\n") and folded(signs) in text
