"""The log of a delivery's attempts: what is kept of a response, and that it repeats no secret."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.egress.requests import signed_headers
from callcontrol.models import Attempt, WebhookEvent
from callcontrol.webhooks.attempts import (
    MAX_ATTEMPTS,
    MAX_BODY_BYTES,
    MAX_EARLIER_CHARS,
    Body,
    added,
    kept_body,
    margin_bytes,
    packed,
    unpacked,
    withheld_values,
)

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECRETS = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a/former secret of the customer")
FORM_SECRET = "a secret for forms"
EVENT = WebhookEvent("e", "acc", "call.answered", "https://a.example/?a=b", b"CallSid=1", AT, "call")
HEADERS = signed_headers(EVENT, SECRETS, 1_800_000_000, FORM_SECRET)
WITHHELD = withheld_values(HEADERS, (*SECRETS, FORM_SECRET))


def kept(body: bytes, withheld: tuple[bytes, ...] = ()) -> Body:
    begin = body[: MAX_BODY_BYTES + margin_bytes(withheld)]
    return kept_body(begin, len(body), withheld, is_whole=True)


def test_a_short_text_is_kept_whole() -> None:
    assert kept("grüß <b>dich</b>\r\n".encode()) == Body("grüß <b>dich</b>\r\n", 20, True)
    assert kept(b"") == Body("", 0, True)


@pytest.mark.parametrize("more", range(4))
def test_a_long_text_is_cut_between_characters(more: int) -> None:
    body = b"x" * more + "\N{GRINNING FACE}".encode() * MAX_BODY_BYTES
    found = kept(body)
    assert found.text is not None and not found.is_whole and found.length_bytes == len(body)
    assert found.text.strip("x") == "\N{GRINNING FACE}" * ((MAX_BODY_BYTES - more) // 4)


@pytest.mark.parametrize("body", [b"\x89PNG\r\n", b"\xff\xfe", b"a\0b", b"\x1b[31m", b"abc\xe2\x82", b"\x7f"])
def test_what_is_no_text_is_kept_as_its_length(body: bytes) -> None:
    assert kept(body) == Body(None, len(body), True)


@pytest.mark.parametrize(
    "written",
    [
        "TkZa+/1x0yEJ2Q5mD9cV8w==",
        "whsec_TkZa+\\/1x0yEJ2Q5mD9cV8w==",
        "TkZa\\u002B/1x0yEJ2Q5mD9cV8w==",
        "TkZa\\u002b\\u002f1x0yEJ2Q5mD9cV8w\\u003d\\u003d",
        "TkZa&#43;&#47;1x0yEJ2Q5mD9cV8w&#61;&#61;",
        "TkZa%2B%2F1x0yEJ2Q5mD9cV8w%3D%3D",
    ],
)
def test_a_secret_is_withheld_in_every_writing(written: str) -> None:
    withheld = withheld_values({}, ("whsec_TkZa+/1x0yEJ2Q5mD9cV8w==", "whsec_", ""))
    found = kept(f"<{written}>".encode(), tuple(withheld)).text
    assert found == f"<{'*' * len(written)}>"


def test_the_signatures_are_those_of_every_field() -> None:
    fields = ["Jambonz-Signature", "X-Service-Signature", "X-Twilio-Signature", "webhook-signature"]
    headers = {**HEADERS, "Jambonz-Signature": f"t=1800000000,v1={'ab' * 32},v1={'cd' * 32}"}
    assert set(fields) <= headers.keys()
    values = withheld_values(headers, SECRETS)
    assert b"ab" * 32 in values and b"cd" * 32 in values
    assert headers["X-Service-Signature"].removeprefix("sha256=").encode() in values
    assert [len(value) for value in values] == sorted((len(value) for value in values), reverse=True)


def test_an_answer_that_repeats_its_request_holds_no_secret() -> None:
    said = [*HEADERS.values(), *SECRETS, FORM_SECRET]
    body = "\n".join([*said, *(text.replace("/", "\\/") for text in said)]).encode()
    found = kept_body(body, len(body), WITHHELD, is_whole=True)
    assert found.text is not None and HEADERS["webhook-id"] in found.text
    for value in WITHHELD:
        assert value.decode() not in found.text
    for signature in HEADERS["webhook-signature"].split():
        assert signature.removeprefix("v1,") not in found.text


@given(st.integers(MAX_BODY_BYTES - 200, MAX_BODY_BYTES + 20), st.integers(0, 40))
def test_a_secret_across_the_end_is_not_kept_in_part(place: int, repeats: int) -> None:
    secret = SECRETS[0].encode()
    # Shorter texts in place of secrets would move the end.
    begin = secret * repeats
    body = begin + b"." * max(0, place - len(begin)) + secret * 3
    found = kept(body, (secret,))
    assert found.text is not None and "whsec" not in found.text
    assert len(found.text) <= MAX_BODY_BYTES


def test_a_log_is_bounded_and_shows_the_newest_answer_best() -> None:
    log: tuple[Attempt, ...] = ()
    body = "\N{GRINNING FACE}" * MAX_BODY_BYTES
    for number in range(MAX_ATTEMPTS + 3):
        attempt = Attempt(AT + timedelta(seconds=number), number, 5, 500, "answered 500", body, 9, True)
        log = tuple(added(log, attempt))
    assert len(log) == MAX_ATTEMPTS and log[-1] == attempt
    assert [item.at.second for item in log] == list(range(3, MAX_ATTEMPTS + 3))
    assert {(len(item.body or ""), item.is_whole) for item in log[:-1]} == {(MAX_EARLIER_CHARS, False)}


def test_a_log_is_read_back_as_it_was() -> None:
    one = Attempt(AT, 1, None, problem="the destination has stopped answering")
    log = (
        one,
        replace(one, number=3, took_ms=3, status=200, problem=None, body=None, body_bytes=7, is_whole=False),
    )
    assert unpacked(packed(log), 3) == log
    assert packed(()) is None and unpacked(None, 0) == ()
    stored = packed([replace(one, problem="a\0b\ud800")])
    assert stored is not None and unpacked(stored, 1)[0].problem == "ab?"


@pytest.mark.parametrize(
    ("attempts", "numbers"),
    [
        pytest.param(3, [2, 3], id="the newest"),
        pytest.param(1, [1], id="of before a replay"),
        pytest.param(0, [], id="all of before a replay"),
    ],
)
def test_attempts_that_were_stored_without_numbers_get_them(attempts: int, numbers: list[int]) -> None:
    stored = packed([Attempt(AT, number, 5, 500) for number in (1, 2)])
    assert stored is not None
    bare = re.sub('"number":[ 0-9]+,', "", stored)
    assert "number" not in bare
    assert [attempt.number for attempt in unpacked(bare, attempts)] == numbers


def test_more_of_an_attempt_that_a_newer_node_stored_is_left_out() -> None:
    log = (Attempt(AT, 1, 5, 200),)
    stored = packed(log)
    assert stored is not None
    assert unpacked(stored.replace('"number"', '"peer":"192.0.2.1","number"'), 1) == log


def test_attempts_of_nodes_that_log_none_leave_the_numbers_of_others() -> None:
    log = added(unpacked(packed([Attempt(AT, 1, 5, 500)]), 2), Attempt(AT, 3, 5, 200))
    assert [attempt.number for attempt in unpacked(packed(log), 4)] == [1, 3]
    # It has replayed the delivery, and left the log.
    assert unpacked(packed(log), 0) == ()
