"""Caller identity: the trusted part of a message, and the part that a trunk is sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.trunks.inbound_invite import Caller, caller_of, privacy_of
from callcontrol.trunks.outbound_invite import caller_address, from_address, identity_headers
from sip import Headers, InvalidValue, NameAddr, SipUri, parse_message
from tests.support.domain import make_carrier

HOST = "192.0.2.1"
ASHA = Caller("+919811122233", "Asha")


def caller(*fields: tuple[str, str], from_: str = "<sip:9800000000@pbx.example>", **carrier: Any) -> Caller:
    return caller_of(NameAddr.parse(from_), Headers(fields), make_carrier(**carrier))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("P-Asserted-Identity", '"Asha" <sip:+919811122233@carrier.example>'),
        ("P-Asserted-Identity", '"Asha" <tel:+91-98111-22233>'),
        ("P-Asserted-Identity", 'sip:line@carrier.example, "Asha" <tel:9811122233;phone-context=+91>'),
        ("P-Preferred-Identity", '"Asha" <sip:09811122233@carrier.example;user=phone>'),
        ("Remote-Party-ID", '"Asha" <sip:919811122233@x>;party=calling;screen=yes;privacy=off'),
        ("Remote-Party-ID", '"Asha" <sip:919811122233@x>'),
    ],
)
def test_a_trusted_trunk_is_believed(name: str, value: str) -> None:
    assert caller((name, value)) == ASHA
    assert caller((name, value), trusts_identity=False) == Caller("+919800000000")


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [("P-Asserted-Identity", "<<broken")],
        [("P-Asserted-Identity", "<https://x.example>")],
        [("Remote-Party-ID", "<sip:+919811122233@x>;party=called")],
    ],
)
def test_what_asserts_nothing_leaves_from(fields: list[tuple[str, str]]) -> None:
    assert caller(*fields) == Caller("+919800000000")


@pytest.mark.parametrize(
    ("fields", "from_", "withheld"),
    [
        ([("Privacy", "id")], "<sip:9800000000@x>", True),
        ([("Privacy", "Header; ID ;critical")], "<sip:9800000000@x>", True),
        ([("Privacy", "user")], "<sip:9800000000@x>", True),
        ([("Privacy", "history")], "<sip:9800000000@x>", False),
        ([("Privacy", "none")], "<sip:anonymous@anonymous.invalid>", False),
        ([], "<sip:anonymous@anonymous.invalid>", True),
        ([], "<sip:Anonymous@carrier.example>", True),
        ([("Remote-Party-ID", "<sip:98@x>;privacy=full")], "<sip:9800000000@x>", True),
        ([("Remote-Party-ID", "<sip:98@x>;privacy=off")], "<sip:9800000000@x>", False),
        ([("Privacy", "\x00;;;")], "<sip:9800000000@x>", False),
    ],
)
def test_when_a_number_is_withheld(fields: list[tuple[str, str]], from_: str, withheld: bool) -> None:
    found = caller(*fields, from_=from_)
    assert found.withheld is withheld
    assert (found.shown == "anonymous") is (withheld or "anonymous" in from_)


def test_words_of_privacy() -> None:
    assert privacy_of(Headers([("Privacy", "ID;critical"), ("Privacy", " none ")])) == (
        "id",
        "critical",
        "none",
    )


# --- what goes out ------------------------------------------------------------------------------------------


def told(caller: Caller, **carrier: Any) -> tuple[str, dict[str, str]]:
    made = make_carrier(**carrier)
    address = caller_address(made, caller, HOST)
    headers = identity_headers(made, caller, address)
    return str(from_address(made, caller, address, HOST)), dict(headers)


@pytest.mark.parametrize(
    ("policy", "headers"),
    [
        ({}, {"P-Asserted-Identity": f'"Asha" <sip:+919811122233@{HOST}>'}),
        ({"identity_header": "ppi"}, {"P-Preferred-Identity": f'"Asha" <sip:+919811122233@{HOST}>'}),
        (
            {"identity_header": "rpid"},
            {
                "Remote-Party-ID": f'"Asha" <sip:+919811122233@{HOST}>;party=calling;screen=yes;privacy=off',
            },
        ),
        ({"identity_header": "none"}, {}),
    ],
)
def test_a_caller_is_told_as_the_trunk_wants_it(policy: dict[str, Any], headers: dict[str, str]) -> None:
    assert told(ASHA, **policy) == (f'"Asha" <sip:+919811122233@{HOST}>', headers)


def test_the_form_of_the_number_is_the_trunks() -> None:
    from_, headers = told(ASHA, number_format="national", tech_prefix="77#")
    assert from_ == f'"Asha" <sip:09811122233@{HOST}>'
    assert headers["P-Asserted-Identity"] == from_


HIDDEN = Caller("+919811122233", "Asha", withheld=True)
NOBODY = '"Anonymous" <sip:anonymous@anonymous.invalid>'


def test_a_withheld_number() -> None:
    asserted = f'"Asha" <sip:+919811122233@{HOST}>'
    assert told(HIDDEN) == (NOBODY, {"P-Asserted-Identity": asserted, "Privacy": "id"})
    assert told(HIDDEN, trusts_identity=False) == (NOBODY, {"Privacy": "id"})
    assert told(HIDDEN, identity_header="none") == (NOBODY, {"Privacy": "id"})
    assert told(HIDDEN, identity_header="rpid")[1]["Remote-Party-ID"].endswith("privacy=full")


def test_nobody_is_told_of_a_caller_that_is_not_known() -> None:
    assert told(Caller("anonymous", withheld=True)) == (NOBODY, {"Privacy": "id"})


def test_the_user_a_trunk_knows_us_by() -> None:
    policy = {"register_from_user": "account 7", "register_from_domain": "pbx.example"}
    from_, headers = told(ASHA, **policy)
    assert from_ == '"Asha" <sip:account%207@pbx.example>'
    assert headers["P-Asserted-Identity"] == '"Asha" <sip:+919811122233@pbx.example>'
    assert told(HIDDEN, **policy)[0] == '"Anonymous" <sip:account%207@pbx.example>'


@given(
    number=st.text(max_size=80),
    name=st.none() | st.text(max_size=80),
    user=st.none() | st.text(min_size=1, max_size=40),
    withheld=st.booleans(),
    header=st.sampled_from(["pai", "ppi", "rpid", "none"]),
)
def test_no_caller_can_add_a_header_field(
    number: str, name: str | None, user: str | None, withheld: bool, header: str
) -> None:
    """Whatever a caller calls itself, the message that is made of it has the fields it was given."""
    carrier = make_carrier(identity_header=header, register_from_user=user)
    try:
        name.encode() if name else None
        (number + (user or "")).encode()
    except UnicodeEncodeError:
        return  # these do not come out of the parser, nor out of the API
    made = Caller(number, name, withheld)
    address = caller_address(carrier, made, HOST)
    shown = str(from_address(carrier, made, address, HOST))
    fields = [("From", shown), *identity_headers(carrier, made, address)]
    lines = ["INVITE sip:x@y SIP/2.0", "Via: SIP/2.0/UDP y;branch=z9hG4bK1", "To: <sip:x@y>", "Call-ID: 1"]
    lines += ["CSeq: 1 INVITE", "Max-Forwards: 70", *(f"{key}: {value}" for key, value in fields)]
    message = parse_message("\r\n".join([*lines, "Content-Length: 0", "", ""]).encode())
    assert len(message.headers.entries) == 6 + len(fields)
    assert message.from_.uri.host in (HOST, "anonymous.invalid")


@given(st.text(max_size=200), st.text(max_size=200))
def test_nothing_that_comes_from_outside_raises(value: str, other: str) -> None:
    try:
        headers = Headers([("P-Asserted-Identity", value), ("Remote-Party-ID", other), ("Privacy", other)])
    except InvalidValue:  # What cannot be a header field value never comes in.
        return
    found = caller_of(NameAddr(None, SipUri("sip", host="x")), headers, make_carrier())
    assert len(found.number) <= 64 and found.number.isprintable()


def test_privacy_is_kept_once_and_not_without_end() -> None:
    headers = Headers([("Privacy", ";".join(["id", "user"] * 500))])
    assert privacy_of(headers) == ("id", "user")
    headers = Headers([("Privacy", ";".join(f"w{number}" for number in range(500)))])
    assert len(privacy_of(headers)) == 32
