"""The INVITE of a leg by its carrier's rules, and what of the caller's goes on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.calls.aio.sip_legs import NIL, SessionIds
from callcontrol.calls.sip_events import TRANSLATIONS, digit_body
from callcontrol.models.parties import Party, PhoneTarget, RouteAttempt
from callcontrol.trunks.inbound_invite import MAX_CUSTOM_HEADERS, Caller, Received, custom_headers
from callcontrol.trunks.number_format import user_for
from callcontrol.trunks.outbound_invite import (
    Origin,
    destination_of,
    invite_for,
    may_pass,
    request_uri,
)
from sip import Destination, Headers, InfoReceived, InvalidValue, OutboundInvite
from tests.support.domain import CALLEE, OWN_NUMBER, make_carrier, make_gateway

HOST = "192.0.2.1"
PASSPORT = "eyJhbGciOiJFUzI1NiJ9.e30.c2ln;info=<https://cert.example/a.cer>"


def invite(
    origin: Origin | None = None,
    gateway: dict[str, Any] | None = None,
    party: dict[str, Any] | None = None,
    **carrier: Any,
) -> OutboundInvite:
    made = make_carrier(**carrier)
    attempt = RouteAttempt(made, make_gateway(**(gateway or {})), user_for(made, CALLEE))
    who = Party(**{"target": PhoneTarget(CALLEE), "caller_id": OWN_NUMBER, **(party or {})})
    destination = destination_of(made, attempt.gateway)
    return invite_for(attempt, who, b"", destination, local_host=HOST, origin=origin)


def origin(*fields: tuple[str, str], open_headers: frozenset[str] = frozenset(), **carrier: Any) -> Origin:
    return Origin(
        make_carrier("carrier-a", **carrier), Received.of(Headers(fields)), open_headers=open_headers
    )


def values(made: OutboundInvite, name: str) -> list[str]:
    return [value for key, value in made.headers if key == name]


# --- the way ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gateway", "uri"),
    [
        ({}, "sip:x@127.0.0.1:5080"),
        ({"port": 5060}, "sip:x@127.0.0.1"),
        ({"port": 5060, "protocol": "tcp"}, "sip:x@127.0.0.1;transport=tcp"),
        ({"port": 5061, "protocol": "tls"}, "sip:x@127.0.0.1;transport=tls"),
        ({"port": 0, "protocol": "auto", "host": "gw.example"}, "sip:x@gw.example"),
        ({"host": "2001:db8::1"}, "sip:x@[2001:db8::1]:5080"),
    ],
)
def test_request_uris(gateway: dict[str, Any], uri: str) -> None:
    assert str(request_uri(make_gateway(**gateway), "x")) == uri


@pytest.mark.parametrize(
    ("proxy", "protocol", "route", "destination"),
    [
        ("proxy.example", "udp", "<sip:proxy.example;lr>", Destination("udp", "proxy.example", 0)),
        ("192.0.2.9:5070", "udp", "<sip:192.0.2.9:5070;lr>", Destination("udp", "192.0.2.9", 5070)),
        ("[2001:db8::9]:5070", "udp", "<sip:[2001:db8::9]:5070;lr>", Destination("udp", "2001:db8::9", 5070)),
        ("2001:db8::9", "udp", "<sip:[2001:db8::9];lr>", Destination("udp", "2001:db8::9", 0)),
        (
            "proxy.example",
            "tcp",
            "<sip:proxy.example;transport=tcp;lr>",
            Destination("tcp", "proxy.example", 0),
        ),
        (
            "sip:proxy.example;transport=tls;lr",
            "udp",
            "<sip:proxy.example;transport=tls;lr>",
            Destination("tls", "proxy.example", 0),
        ),
    ],
)
def test_an_outbound_proxy(proxy: str, protocol: str, route: str, destination: Destination) -> None:
    made = invite(outbound_proxy=proxy, gateway={"protocol": protocol})
    assert values(made, "Route") == [route]
    assert made.destination == destination
    assert made.uri.host == "127.0.0.1"


def test_without_a_proxy_the_gateway_is_the_way() -> None:
    assert invite().destination == Destination("udp", "127.0.0.1", 5080)
    assert values(invite(), "Route") == []
    with pytest.raises(InvalidValue):
        destination_of(make_carrier(outbound_proxy="no proxy"), make_gateway())


# --- what goes on -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "open_headers", "passes"),
    [
        (("X-A",), ("x-a",), (), True),
        (("X-A",), (), (), False),
        ((), ("X-A",), (), False),
        ((), (), ("x-a",), True),
    ],
)
def test_custom_fields_pass_when_both_trunks_list_them(
    first: tuple[str, ...], second: tuple[str, ...], open_headers: tuple[str, ...], passes: bool
) -> None:
    one, other = make_carrier(forwarded_headers=first), make_carrier(forwarded_headers=second)
    assert may_pass("X-a", one, other, open_headers) is passes
    made = invite(
        origin(("X-A", "1"), forwarded_headers=first, open_headers=frozenset(open_headers)),
        forwarded_headers=second,
    )
    assert values(made, "X-A") == (["1"] if passes else [])


def test_what_the_application_says_comes_before_what_passes() -> None:
    passing = origin(("X-A", "theirs"), ("X-B", "theirs"), open_headers=frozenset({"x-a", "x-b"}))
    made = invite(passing, party={"headers": (("x-a", "ours"), ("From", "no"))})
    assert [item for item in made.headers if item[0].lower().startswith("x-")] == [
        ("x-a", "ours"),
        ("X-B", "theirs"),
    ]
    assert values(made, "From") == []


def test_histories_are_rehosted_and_only_for_trunks_that_take_them() -> None:
    past = origin(
        ("Diversion", '"Desk" <sip:09811122233@pbx.example:5070;user=phone>;reason=user-busy;ext=1'),
        ("History-Info", "<sip:line-7@10.0.0.7?Reason=SIP%3Bcause%3D302&Subject=x>;index=1;secret=10.0.0.7"),
        ("History-Info", "<sip:+919800000000@pbx.example?Privacy=history>;index=1.1;mp=1"),
    )
    made = invite(past, forwards_history=True, e164_leading_plus=False)
    assert values(made, "Diversion") == [f'"Desk" <sip:919811122233@{HOST}>;reason=user-busy']
    assert values(made, "History-Info") == [
        f"<sip:line-7@{HOST}?Reason=SIP%3Bcause%3D302>;index=1",
        "<sip:anonymous@anonymous.invalid>;index=1.1;mp=1",
    ]
    assert not values(invite(past), "Diversion") and not values(invite(past), "History-Info")
    private = origin(("Diversion", "<sip:1@x>"), ("Privacy", "history"))
    assert not values(invite(private, forwards_history=True), "Diversion")


def test_our_own_diversion_answers_for_a_number_that_is_not_ours() -> None:
    forwarded = {"caller_id": "+919800000000", "passthrough": True}
    made = invite(party=forwarded, diversion="91 8047 009000", number_format="national")
    assert values(made, "Diversion") == [f"<sip:08047009000@{HOST}>;reason=unconditional;counter=1"]
    assert not values(invite(diversion="+918047009000"), "Diversion")


def test_the_signed_identity_goes_where_the_number_it_signs_is_shown() -> None:
    signed = origin(("Identity", PASSPORT), ("User-to-User", "00ab;encoding=hex"))
    shown = {"caller_id": "+919800000000", "passthrough": True}
    assert values(invite(signed, party=shown), "Identity") == [PASSPORT]
    assert not values(invite(signed, party={**shown, "withheld": True}), "Identity")
    assert not values(invite(signed), "Identity")
    assert values(invite(signed), "User-to-User") == ["00ab;encoding=hex"]


# --- what is received ---------------------------------------------------------------------------------------


def test_what_an_invite_said_is_shown_within_bounds() -> None:
    fields = [(f"X-Field-{index}", "v" * 900) for index in range(60)]
    received = Received.of(Headers([*fields, ("Diversion", "nonsense"), ("Session-ID", "0" * 500)]))
    assert len(received.custom) == MAX_CUSTOM_HEADERS
    assert not received.diversions and received.session_id is None
    assert "headers" not in received.shown()  # all together they are too long, and half of them no help
    assert Received.of(Headers([("X-A", "1")])).shown() == {"headers": {"X-A": "1"}}
    assert Received().shown() == {}


def test_bytes_that_are_not_utf_8_are_read_as_latin_1() -> None:
    fields = [("X-Name", "Jos\udce9"), ("X-Control", "\udc80"), ("Diversion", '"\udce9" <sip:1@h;x=\udce9>')]
    received = Received.of(Headers([*fields, ("User-to-User", "\udce9")]))
    assert received.shown() == {
        "headers": {"X-Name": "José", "X-Control": "\N{REPLACEMENT CHARACTER}"},
        "diversion": ['"é" <sip:1@h;x=é>'],
        "user_to_user": ["é"],
    }


def test_nothing_is_shown_that_has_a_withheld_number() -> None:
    received = Received.of(Headers([("Identity", PASSPORT), ("Privacy", "id"), ("User-to-User", "00")]))
    assert received.shown(Caller("+919800000000", "Asha")) == {
        "display_name": "Asha",
        "privacy": ["id"],
        "user_to_user": ["00"],
        "identity": [PASSPORT],
    }
    assert received.shown(Caller("+919800000000", "Asha", withheld=True)) == {
        "privacy": ["id"],
        "user_to_user": ["00"],
    }


@given(st.lists(st.tuples(st.text(max_size=70), st.text(max_size=1100)), max_size=40))
def test_custom_fields_can_always_stand_in_a_message(fields: list[tuple[str, str]]) -> None:
    kept = custom_headers([*fields, *(("X-" + name, value) for name, value in fields)])
    assert len(Headers(kept).entries) == len(kept) <= MAX_CUSTOM_HEADERS
    for name, value in kept:
        assert name[:2].lower() == "x-" and len(value) <= 1024
        assert not any(character in name + value for character in "\r\n\0")


# --- session identifiers ------------------------------------------------------------------------------------


def test_session_identifiers_of_both_parties() -> None:
    """RFC 7989 10.1: each party's own identifier reaches the other."""
    ours, alice, bob = "f" * 32, "a" * 32, "b" * 32
    ids = SessionIds(ours)
    assert ids.header(0, None) == f"{ours};remote={NIL}"
    ids.learn(0, f"{alice};remote={NIL}")
    assert ids.header(1, 0) == f"{alice};remote={NIL}"
    ids.learn(1, f"{bob};remote={alice}")
    assert ids.header(0, 1) == f"{bob};remote={alice}"
    assert ids.header(1, 0) == f"{alice};remote={bob}"
    ids.forget(1)
    assert ids.header(0, 1) == f"{ours};remote={alice}"


@pytest.mark.parametrize("value", [None, "", NIL, "A" * 32, "a" * 31, "a" * 33, "x;remote=" + "a" * 32])
def test_session_identifiers_that_are_none(value: str | None) -> None:
    ids = SessionIds("f" * 32)
    ids.learn(0, value)
    assert ids.header(0, None).endswith(NIL)


# --- digits in INFO -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("digit", list("0123456789*#ABCD"))
def test_a_digit_in_info_reads_back(digit: str) -> None:
    event = TRANSLATIONS[InfoReceived](0, InfoReceived("application/dtmf-relay", digit_body(digit, 200)))
    assert (getattr(event, "digit", None), getattr(event, "duration_ms", None)) == (digit, 200)
    assert getattr(event, "in_band", None) is False
