"""Machines fed anything in any order: no exception, no way back, one end."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sip import Ended, Failed, Request, reply, serialise
from sip.aio import UserAgentSettings
from sip.events import Cancelled, SessionEvent
from sip.message.message import Response
from tests.support.examples import examples
from tests.support.sip_agents import OTHER_SDP, SDP, RawPeer, Side
from tests.support.sip_stage import RAW, Stage, make_stage
from tests.unit.sip.transactions.test_transactions import Driver, make_request

TERMINAL = (Ended, Failed, Cancelled)
STATUSES = st.sampled_from([100, 180, 183, 200, 202, 302, 401, 408, 481, 486, 487, 491, 500, 503, 603])


@pytest.mark.parametrize("reliable", [False, True])
@pytest.mark.parametrize("method", ["INVITE", "BYE"])
@pytest.mark.parametrize("client", [True, False], ids=["client", "server"])
@given(data=st.data())
@settings(max_examples=examples(60))
def test_a_transaction(data: st.DataObject, client: bool, method: str, reliable: bool) -> None:
    request = make_request(method)
    driver = Driver(request, client=client, reliable=reliable)
    for _ in range(data.draw(st.integers(0, 20))):
        before = driver.engine.state_of(driver.number)
        if data.draw(st.booleans()):
            response = reply(request, data.draw(STATUSES), to_tag="2")
            if client:
                driver.receive(response)
            else:
                driver.respond(response)
        elif not client and data.draw(st.booleans()):
            driver.receive(data.draw(st.sampled_from([request, make_request("ACK")])))
        elif data.draw(st.booleans()):
            driver.fail_transport()
        else:
            driver.advance(data.draw(st.sampled_from([0.1, 0.5, 1.0, 5.0, 32.0])))
        after = driver.engine.state_of(driver.number)
        if driver.done_at is not None:
            assert after is None
            break
        assert before is not None and after is not None and after >= before


def command(side: Side, name: str) -> None:
    """Run one command of a session, if it has it."""
    session = side.session
    commands: dict[str, Callable[[], None]] = {
        "hangup": session.hangup,
        "reinvite": lambda: session.reinvite(OTHER_SDP),
        "accept": lambda: session.accept_offer(SDP),
        "refuse": session.reject_offer,
        "info": lambda: session.info("text/plain", b"x"),
        "update": lambda: session.update(OTHER_SDP),
        "refresh": session.update,
    }
    if hasattr(session, "answer"):
        commands |= {
            "progress": session.progress,
            "early": lambda: session.progress(183, SDP),
            "answer": lambda: session.answer(SDP),
            "reject": lambda: session.reject(486),
        }
    commands.get(name, lambda: None)()


COMMANDS = st.sampled_from(
    [
        *("hangup", "reinvite", "accept", "refuse", "info", "progress", "answer", "reject"),
        *("early", "update", "refresh"),
    ]
)
METHODS = st.sampled_from(["INVITE", "ACK", "BYE", "CANCEL", "UPDATE", "PRACK", "INFO", "OPTIONS", "REFER"])
RELIABLE = st.sampled_from([{}, {}, {"Require": "100rel", "RSeq": "1"}, {"Require": "100rel", "RSeq": "2"}])
PEERS = st.sampled_from([{}, {"Supported": "100rel"}, {"Require": "100rel"}])
ALLOWS = {"Allow": "INVITE, ACK, BYE, UPDATE, PRACK"}
COIN = st.booleans()
WAITS = st.sampled_from([0.0, 0.0, 0.01, 0.6, 5.0, 33.0])


def check_events(events: list[SessionEvent]) -> None:
    ends = [event for event in events if isinstance(event, TERMINAL)]
    assert len(ends) == 1, events
    assert events[-1] is ends[0], events


def say_anything_to_the_caller(data: st.DataObject, raw: RawPeer, tag: str) -> None:
    """One random message from a called peer: a response to what it was sent, or a request of its own."""
    requests = [message for message in raw.received if isinstance(message, Request)]
    request: Request = data.draw(st.sampled_from(requests))
    if data.draw(COIN):
        body = data.draw(st.sampled_from([b"", SDP]))
        raw.respond(request, data.draw(STATUSES), tag=tag, body=body, **ALLOWS, **data.draw(RELIABLE))
        return
    method = data.draw(METHODS)
    own = raw.request(
        method,
        branch=str(data.draw(st.integers(0, 5))),
        From=f"<sip:bob@example.net>;tag={tag}",
        To=request.headers.get("From") or "",
        Call_ID=request.call_id,
        CSeq=f"{data.draw(st.integers(0, 9))} {method}",
        body=data.draw(st.sampled_from([b"", SDP])),
    )
    raw.send(own)


@given(data=st.data())
@settings(max_examples=examples(150))
async def test_a_caller_and_an_erratic_peer(data: st.DataObject) -> None:
    stage = await make_stage()
    raw = stage.raw(stage.alice)
    side = stage.alice.call(RAW, body=data.draw(st.sampled_from([SDP, b""])))
    stage.advance(0.01)
    for _ in range(data.draw(st.integers(0, 12))):
        if data.draw(st.booleans()):
            command(side, data.draw(COMMANDS))
        else:
            say_anything_to_the_caller(data, raw, data.draw(st.sampled_from(["one", "two"])))
        stage.advance(data.draw(WAITS))
    side.session.hangup()
    stage.advance(400)
    check_events(side.events)
    stage.finish()


@given(data=st.data())
@settings(max_examples=examples(150))
async def test_a_called_side_and_an_erratic_peer(data: st.DataObject) -> None:
    stage = await make_stage(UserAgentSettings(max_ringing_s=60))
    stage.bob.answer = lambda session: None
    raw = stage.raw()
    invite: dict[str, Any] = {**ALLOWS, **data.draw(PEERS), "body": data.draw(st.sampled_from([SDP, b""]))}
    raw.send(raw.request("INVITE", branch="0", CSeq="3 INVITE", **invite))
    stage.advance(0.01)
    bob = stage.bob.inbound[0]
    for _ in range(data.draw(st.integers(0, 12))):
        if data.draw(st.booleans()):
            command(bob, data.draw(COMMANDS))
        else:
            erratic_caller(data, stage, raw)
        stage.advance(data.draw(WAITS))
    bob.session.hangup()
    stage.advance(400)
    check_events(bob.events)
    for other in stage.bob.inbound[1:]:
        check_events(other.events)
    stage.finish()


def erratic_caller(data: st.DataObject, stage: Stage, raw: RawPeer) -> None:
    """One random message from a calling peer, within the dialog or not."""
    asked = [message for message in raw.received if isinstance(message, Request)]
    responds = bool(asked) and data.draw(COIN)
    if responds:
        raw.respond(data.draw(st.sampled_from(asked)), data.draw(STATUSES), tag="raw", body=SDP)
        return
    method = data.draw(METHODS)
    tag = stage.bob.inbound[0].session.key[1]
    numbers = [r.headers.get("RSeq") for r in raw.responses("INVITE") if r.headers.get("RSeq")]
    raw.send(
        raw.request(
            method,
            branch=str(data.draw(st.integers(0, 5))),
            To=f"<sip:ua@example.net>;tag={tag}" if data.draw(st.booleans()) else "<sip:ua@example.net>",
            CSeq=f"{data.draw(st.integers(0, 9))} {method}",
            RAck=f"{data.draw(st.sampled_from([*numbers, '1']))} 3 INVITE",
            body=data.draw(st.sampled_from([b"", SDP])),
        )
    )


@example(b"A", 223, 4)  # The Contact's address becomes a name.
@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=examples(200))
async def test_a_datagram_with_its_middle_replaced(noise: bytes, start: int, length: int) -> None:
    """Nothing that arrives raises, and nothing but a well-formed INVITE makes a session."""
    stage = await make_stage()
    raw = stage.raw()
    good = serialise(raw.request("INVITE", branch="a", body=SDP))
    raw.send(good[:start] + noise + good[start + length :])
    stage.advance()
    for side in stage.bob.inbound:
        side.session.hangup()
    assert all(isinstance(message, Response | Request) for message in raw.received)
    stage.finish()
