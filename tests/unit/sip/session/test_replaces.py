"""INVITEs that take the place of a dialog (RFC 3891)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip import ParseError, Replaces
from sip.session.replaces import uri_headers
from tests.support.sip_agents import SDP, Side, replaces_of
from tests.support.sip_stage import BOB, Stage


@given(st.text(max_size=200))
def test_any_value_is_read_or_refused(text: str) -> None:
    try:
        replaces = Replaces.parse(text)
    except ParseError:
        return
    assert Replaces.parse(str(replaces)) == replaces
    assert uri_headers(replaces.in_uri()) == [("Replaces", str(replaces))]


def test_a_call_id_with_bytes_that_are_not_utf_8_is_escaped_in_a_uri() -> None:
    replaces = Replaces.parse("\udce9@h;to-tag=t;from-tag=f")
    assert replaces.in_uri() == "Replaces=%E9%40h%3Bto-tag%3Dt%3Bfrom-tag%3Df"
    assert uri_headers(replaces.in_uri()) == [("Replaces", str(replaces))]


@given(st.text(max_size=200))
def test_any_header_part_of_a_uri_is_read_or_refused(text: str) -> None:
    try:
        fields = uri_headers(text)
    except ParseError:
        return
    assert all("\r" not in value and "\n" not in value for _, value in fields)


def replacing(stage: Stage, alice: Side, **changes: str) -> str:
    """Return a Replaces for Alice's call to Bob, as a third party would write it to Bob."""
    named = replaces_of(alice.session)
    parts = {"call_id": named.call_id, "to_tag": named.to_tag, "from_tag": named.from_tag, **changes}
    return f"{parts['call_id']};from-tag={parts['from_tag']};to-tag={parts['to_tag']}{parts.get('more', '')}"


def invite(stage: Stage, value: str, **fields: str) -> int:
    """A third party's INVITE with Replaces to Bob; the status it gets, or 0."""
    raw = stage.raw()
    raw.send(raw.request("INVITE", branch="r", Replaces=value, Require="replaces", body=SDP, **fields))
    stage.advance()
    answers = raw.responses("INVITE")
    if answers and answers[-1].status == 200:
        raw.send(raw.request("ACK", branch="k", To=answers[-1].headers.get("To") or ""))
        stage.advance()
    return answers[-1].status if answers else 0


@pytest.fixture
async def alice(stage: Stage) -> Side:
    call = stage.alice.call(BOB)
    stage.advance()
    stage.bob.inbound[0].session.allows_refer = True
    return call


async def test_the_replaced_session_is_hung_up_when_the_new_one_is_answered(
    stage: Stage, alice: Side
) -> None:
    assert invite(stage, replacing(stage, alice)) == 200
    first, second = stage.bob.inbound
    assert (first.names, second.names) == (["Confirmed", "Ended"], ["Confirmed"])
    assert alice.names == ["Answered", "Ended"]
    second.session.hangup()
    stage.advance(60)


async def test_the_replaced_session_stays_when_the_new_one_is_refused(stage: Stage, alice: Side) -> None:
    stage.bob.answer = lambda session: session.reject(603)
    assert invite(stage, replacing(stage, alice)) == 603
    assert alice.names == ["Answered"]
    alice.session.hangup()
    stage.advance(60)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"call_id": "other"}, 481),
        ({"to_tag": "other"}, 481),
        ({"from_tag": "other"}, 481),
        ({"more": ";early-only"}, 486),
        ({"more": ";to-tag=twice"}, 400),
        ({"from_tag": ""}, 400),
    ],
)
async def test_what_does_not_match(stage: Stage, alice: Side, changes: dict[str, str], status: int) -> None:
    assert invite(stage, replacing(stage, alice, **changes)) == status
    assert len(stage.bob.inbound) == 1
    assert alice.names == ["Answered"]
    alice.session.hangup()
    stage.finish()


async def test_two_values_are_refused(stage: Stage, alice: Side) -> None:
    raw = stage.raw()
    request = raw.request("INVITE", branch="r", Replaces=replacing(stage, alice), body=SDP)
    request.headers.add("Replaces", replacing(stage, alice))
    raw.send(request)
    stage.advance()
    assert raw.responses("INVITE", 400)
    alice.session.hangup()
    stage.finish()


async def test_a_session_without_the_right_is_never_replaced(stage: Stage, alice: Side) -> None:
    stage.bob.inbound[0].session.allows_refer = False
    assert invite(stage, replacing(stage, alice)) == 603
    alice.session.hangup()
    stage.finish()


async def test_a_session_that_is_being_left_is_declined(stage: Stage, alice: Side) -> None:
    value = replacing(stage, alice)
    stage.network.drop = lambda data, source, target: data.startswith(b"BYE")
    stage.bob.inbound[0].session.hangup()
    assert invite(stage, value) == 603
    stage.advance(60)


async def test_an_early_session_that_we_did_not_call_is_not_replaced(stage: Stage) -> None:
    stage.bob.answer = lambda session: session.progress(180)
    alice = stage.alice.call(BOB)
    stage.advance()
    bob = stage.bob.inbound[0].session
    bob.allows_refer = True
    value = f"{bob.call_id};to-tag={bob.local.tag};from-tag={alice.session.local.tag}"
    assert invite(stage, value) == 481
    alice.session.hangup()
    stage.finish()
