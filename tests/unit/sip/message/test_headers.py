"""The header field collection (RFC 3261 7.3)."""

import gc
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.errors import InvalidValue, ParseError
from sip.message.grammar import split_list
from sip.message.message import Headers, Request, Response, identify, serialise
from sip.message.parser import parse_message
from sip.message.uri import SipUri
from tests.unit.sip import strategies

EXAMPLE = [
    ("Via", "SIP/2.0/UDP a;branch=1"),
    ("Via", "SIP/2.0/UDP b;branch=2"),
    ("Subject", "one, two"),
    ("v", "SIP/2.0/UDP c;branch=3"),
    ("X-Custom", "1"),
    ("x-custom", "2"),
]


def test_names_in_any_case_and_compact_form_are_one() -> None:
    headers = Headers(EXAMPLE)
    assert headers.get("via") == headers.get("V") == headers.get("VIA")
    assert headers.get_all("Via") == [
        f"SIP/2.0/UDP {host};branch={n}" for host, n in (("a", 1), ("b", 2), ("c", 3))
    ]
    assert headers.get_all("s") == ["one, two"]
    assert Headers([("k", "a, b"), ("Supported", "c")]).get_all("Supported") == ["a", "b", "c"]
    assert headers.get_all("X-CUSTOM") == ["1", "2"]
    assert "x-Custom" in headers and "Route" not in headers
    assert headers.get("Route") is None
    assert identify("cSeQ") == ("cseq", "CSeq")


def test_known_names_are_written_in_their_long_form_and_others_as_given() -> None:
    headers = Headers([("i", "1"), ("CALL-ID", "2"), ("x-OwN", "3")])
    assert list(headers.items()) == [("Call-ID", "1"), ("Call-ID", "2"), ("x-OwN", "3")]


def test_set_keeps_the_place_of_the_first() -> None:
    headers = Headers(EXAMPLE)
    headers.set("X-Custom", "3")
    headers.set("VIA", "SIP/2.0/UDP d")
    assert list(headers.items()) == [("Via", "SIP/2.0/UDP d"), ("Subject", "one, two"), ("X-Custom", "3")]
    headers.set("Route", "<sip:r;lr>")
    assert list(headers.items())[-1] == ("Route", "<sip:r;lr>")


def test_the_top_via_is_stamped_alone_and_in_its_place() -> None:
    request = Request("OPTIONS", SipUri.parse("sip:h"), Headers([("Max-Forwards", "70"), *EXAMPLE]))
    request.headers.stamp_via("192.0.2.1", 5060)
    assert [name for name, _ in request.headers.items()][:3] == ["Max-Forwards", "Via", "Via"]
    assert request.headers.get_all("Via") == [
        "SIP/2.0/UDP a;branch=1;received=192.0.2.1",
        "SIP/2.0/UDP b;branch=2",
        "SIP/2.0/UDP c;branch=3",
    ]


def test_the_stamped_via_is_not_parsed_again() -> None:
    headers = Headers(EXAMPLE)
    headers.stamp_via("192.0.2.1", 5060)
    stamped = headers.via
    assert stamped.received == "192.0.2.1"
    headers.stamp_via("192.0.2.1", 5060)
    assert headers.via is stamped


def test_copy_push_and_remove() -> None:
    headers = Headers()
    headers.copy_keys(Headers(EXAMPLE), {"subject", "via"})
    headers.push_via("SIP/2.0/UDP new")
    assert [name for name, _ in headers.items()] == ["Via", "Via", "Via", "Subject", "Via"]
    headers.remove("v")
    headers.remove("Route")
    assert [name for name, _ in headers.items()] == ["Subject"]


def test_a_copy_is_independent() -> None:
    headers = Headers(EXAMPLE)
    copy = headers.copy()
    assert copy == headers and repr(copy) == repr(headers)
    copy.add("Via", "SIP/2.0/UDP z")
    assert copy != headers and headers != EXAMPLE


def test_typed_views_follow_changes() -> None:
    request = Request("OPTIONS", SipUri.parse("sip:h"), Headers([("From", "<sip:a@h>;tag=1"), *EXAMPLE]))
    assert request.from_ is request.from_
    assert request.from_.tag == "1" and request.via.host == "a" and request.contact is None
    request.headers.set("f", "<sip:a@h>;tag=2")
    request.headers.set("Via", "SIP/2.0/UDP b")
    request.headers.add("Contact", "<sip:c@h>")
    assert request.from_.tag == "2" and request.via.host == "b"
    assert request.contact is not None and request.contact.uri.user == "c"
    request.headers.push_via("SIP/2.0/UDP new")
    assert request.via.host == "new"
    other = Headers([("Contact", "<sip:d@h>")])
    request.headers.copy_keys(other, {"contact"})
    assert [contact.uri.user for contact in request.contacts] == ["c", "d"]
    request.headers.remove("m")
    request.headers.remove("VIA")
    assert request.contact is None
    with pytest.raises(ParseError):
        assert request.via


NAMES = st.sampled_from(["Via", "v", "TO", "Call-id", "k", "Supported", "X-Own", "x-oWN", "\N{KELVIN SIGN}"])
VALUES = st.sampled_from(
    ["", " a ", "a, b", ',"a,b", <sip:c,d>', "\tcaf\N{LATIN SMALL LETTER E WITH ACUTE}", "\udce9,"]
)


@given(
    st.lists(st.tuples(st.sampled_from(["add", "set", "remove", "push", "copy"]), NAMES, VALUES), max_size=12)
)
def test_header_fields_are_a_list_of_entries(changes: list[tuple[str, str, str]]) -> None:
    headers, model = Headers(), list[tuple[str, str, str]]()
    for change, name, value in changes:
        key, written = identify(name)
        if name.isascii() and change == "add":
            headers.add(name, value)
            model.append((key, written, value))
        elif name.isascii() and change == "set":
            headers.set(name, value)
            place = [entry[0] for entry in model].index(key) if key in [entry[0] for entry in model] else None
            rest = [entry for entry in model if entry[0] != key]
            before = len(rest) if place is None else place
            model = [*rest[:before], (key, written, value), *rest[before:]]
        elif change == "remove":
            headers.remove(name)
            model = [entry for entry in model if entry[0] != key]
        elif change == "push":
            headers.push_via(value)
            model.insert(0, ("via", "Via", value))
        elif change == "copy":
            headers.copy_keys(headers.copy(), {key})
            model += [entry for entry in model if entry[0] == key]
        values = [entry[2] for entry in model if entry[0] == key]
        assert headers.entries == model == headers.copy().entries
        assert headers.items() == [entry[1:] for entry in model]
        assert headers.get(name) == headers.first(key) == next(iter(values), None)
        assert headers.all_of(key) == values and (name in headers) is bool(values)
        is_list = key in ("via", "supported")
        assert headers.get_all(name) == (
            [element for value in values for element in split_list(value)] if is_list else values
        )


def test_arguments_of_other_types_are_refused() -> None:
    headers: Any = Headers([("To", "b")])
    arguments: tuple[Any, ...] = (b"To", None, 1)
    for wrong in arguments:
        for use in (headers.get, headers.first, headers.get_all, headers.remove, headers.push_via):
            with pytest.raises(TypeError):
                use(wrong)
        with pytest.raises(TypeError):
            headers.add("X", wrong)
        with pytest.raises(TypeError):
            headers.copy_keys(wrong, {"to"})
        with pytest.raises(TypeError):
            Headers.from_entries(wrong)
    no_pairs: tuple[Any, ...] = ([("To",)], [("To", "b", "c")])
    for pairs in no_pairs:
        with pytest.raises(ValueError, match="pair"):
            Headers(pairs)
    with pytest.raises(AttributeError):
        headers.entries = []


@pytest.mark.parametrize("name", ["Via", "v", "CALL-ID", "l", "Content-Length", "cseq"])
def test_an_application_sets_no_field_of_the_session_and_replaces_ours(name: str) -> None:
    headers = Headers([("Server", "ours"), ("X-A", "1")])
    with pytest.raises(InvalidValue, match=f"itself sets the header field {name}"):
        headers.add_custom([(name, "a")])
    headers.add_custom([("Server", "theirs"), ("x-a", "2")])
    assert headers.items() == [("Server", "theirs"), ("X-A", "1"), ("x-a", "2")]


def test_header_fields_are_freed_with_all_they_hold() -> None:
    class Mark:
        pass

    gone = []
    for tied in (False, True):
        headers = Headers([("To", "<sip:b@h>")])
        mark = headers.typed("contact", lambda headers, key: Mark())
        assert headers.to.uri.host == "h"
        if tied:
            headers.views["self"] = headers
        gone.append(weakref.ref(mark))
        del headers, mark
    gc.collect()
    assert [mark() for mark in gone] == [None, None]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", "a\r\nVia: evil"),
        ("X", "a\nVia: evil"),
        ("X", "a\r"),
        ("Via", "a\n"),
        ("X: y\r\nVia", "a"),
        ("X Y", "a"),
        ("", "a"),
        ("X:", "a"),
        ("X-\N{LATIN SMALL LETTER E WITH ACUTE}", "a"),
        ("X", "half a pair \ud800"),
    ],
)
def test_line_ends_and_bad_names_are_refused(name: str, value: str) -> None:
    headers = Headers()
    for change in (headers.add, headers.set):
        with pytest.raises(InvalidValue):
            change(name, value)
    assert headers.entries == []


@given(st.lists(st.tuples(strategies.tokens, st.text(max_size=20)), max_size=8))
def test_nothing_the_application_sets_makes_another_field(fields: list[tuple[str, str]]) -> None:
    response = Response(200)
    mandatory = "via", "from", "to", "call-id", "cseq", "content-length", "max-forwards"
    for name, value in fields:
        key = identify(name)[0]
        if key in mandatory or key in response.headers:
            continue
        try:
            response.headers.add(name, value)
        except InvalidValue:
            continue
    for name, value in (
        ("Via", "SIP/2.0/UDP h;branch=z"),
        ("From", "<sip:a@h>;tag=1"),
        ("To", "<sip:b@h>;tag=2"),
        ("Call-ID", "x"),
        ("CSeq", "1 INVITE"),
    ):
        response.headers.add(name, value)
    again = parse_message(serialise(response))
    names = [name for name, _ in again.headers.items()]
    expected = [name for name, _ in response.headers.items()] + ["Content-Length"]
    assert len(names) >= len(expected)
    assert set(names) == set(expected)
