"""Plain messages are read and written natively: which those are, and that it makes no difference."""

import importlib
import sys
from types import ModuleType

import pytest

from fuzz.harness import Fuzzer
from fuzz.targets.sip import MESSAGES, PLAIN, TARGETS, check_plain
from sip.errors import ParseError
from sip.message.message import KNOWN_NAMES, Request, identify, serialise
from sip.message.parser import DEFAULT_LIMITS, SINGLE, Limits, parse_carefully, parse_message, read_plain
from tests.support.sip_reference import message_bytes

MUTATIONS = 3000


@pytest.mark.parametrize(
    "found", [None, ModuleType("sip._wire")], ids=["not built", "built from older sources"]
)
def test_without_the_native_part_nothing_starts(
    monkeypatch: pytest.MonkeyPatch, found: ModuleType | None
) -> None:
    monkeypatch.setitem(sys.modules, "sip._wire", found)
    monkeypatch.delattr("sip._wire")
    monkeypatch.delitem(sys.modules, "sip.message.native")
    with pytest.raises(ImportError, match="make setup"):
        importlib.import_module("sip.message.native")


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_a_field_that_may_stand_once_is_plain_once(name: str) -> None:
    """A field that Python refuses when it stands twice, in any spelling, is then never read natively."""
    head, empty, body = PLAIN[0].partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if identify(line.partition(b":")[0].decode())[0] != name]
    spellings = [spelling for spelling, (key, _) in KNOWN_NAMES.items() if key == name]
    assert spellings
    for one in spellings:
        for other in (name, name.upper()):
            twice = [*lines, f"{one}: 0".encode(), f"{other}: 0".encode()]
            data = b"\r\n".join(twice) + empty + body
            assert read_plain(data, DEFAULT_LIMITS) is None
            with pytest.raises(ParseError):
                parse_message(data)


@pytest.mark.parametrize("data", PLAIN)
def test_what_nearly_every_peer_sends_is_plain(data: bytes) -> None:
    assert read_plain(data, DEFAULT_LIMITS) is not None
    assert check_plain(data)


@pytest.mark.parametrize("data", MESSAGES)
def test_every_vector_reads_the_same_natively_or_is_left_to_python(data: bytes) -> None:
    check_plain(data)


@pytest.mark.parametrize("empty", [b"Via:", b"Via: ", b"v:\t", b"VIA:  \t "])
def test_an_empty_via_does_not_make_the_next_one_the_first(empty: bytes) -> None:
    data = PLAIN[0].replace(b"Via: ", empty + b"\r\nVia: ", 1)
    assert read_plain(data, DEFAULT_LIMITS) is None
    with pytest.raises(ParseError):
        parse_message(data)


def test_mutated_messages_read_the_same() -> None:
    target = next(target for target in TARGETS if target.name == "sip-plain")
    fuzzer = Fuzzer(target, 20261122)
    assert fuzzer.run(executions=MUTATIONS) is None
    plain = sum(count for outcome, count in fuzzer.outcomes.items() if not outcome.startswith("not plain"))
    assert plain > MUTATIONS / 50


@pytest.mark.parametrize(
    "limits",
    [Limits(message_bytes=300), Limits(header_count=5), Limits(line_chars=40), Limits(value_chars=30)],
    ids=["bytes", "fields", "line", "value"],
)
def test_limits_hold_natively(limits: Limits) -> None:
    assert read_plain(PLAIN[0], limits) is None
    with pytest.raises(ParseError):
        parse_message(PLAIN[0], limits)


@pytest.mark.parametrize("data", PLAIN)
def test_tags_are_read_alike(data: bytes) -> None:
    plain, careful = read_plain(data.replace(b";tag=", b";TAG="), DEFAULT_LIMITS), parse_carefully(data)
    assert plain is not None
    assert (plain.from_.tag, plain.to.tag) == (careful.from_.tag, careful.to.tag)


def test_a_view_that_was_made_natively_changes_with_its_field() -> None:
    request = parse_message(PLAIN[0])
    assert isinstance(request, Request) and request.to.tag is None
    request.headers.set("To", "<sip:b@h.example>;tag=9d8c")
    assert request.to.tag == "9d8c"
    assert parse_message(serialise(request)).to.tag == "9d8c"


def test_text_beyond_ascii_is_written_as_utf_8() -> None:
    request = parse_carefully(PLAIN[0])
    request.headers.set("Subject", "नमस्ते é")
    assert serialise(request) == message_bytes(request)
    assert "Subject: नमस्ते é\r\n".encode() in serialise(request)


def test_bytes_that_are_not_utf_8_are_written_as_they_came() -> None:
    request = parse_message(PLAIN[0].replace(b"Asha Rao", b"Jos\xe9"))
    assert read_plain(serialise(request), DEFAULT_LIMITS) is None
    assert b'\r\nFrom: "Jos\xe9" <sip:+918047000001@' in serialise(request)
    assert request.from_.display_name == "José"
