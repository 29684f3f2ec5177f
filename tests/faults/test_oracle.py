"""The oracle itself: it agrees with what is right, and finds everything that is not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults.lengths import count
from tests.faults.oracle import Evidence, Hook, Leg, assert_nothing_lost, reconcile
from tests.faults.oracle.dialogs import Caller, Dialog, Manner
from tests.faults.oracle.far_ends import Side
from tests.faults.oracle.sip_text import Message, answer, request
from tests.faults.oracle.stage import OracleStage
from tests.support.ports import free_port
from tests.support.virtual_time import VirtualTimeLoop
from tests.support.waiting import PATIENCE_S

_A, _B = "session-a", "session-b"


def _leg(call_id: str, role: Any, session_id: str, **changes: Any) -> Leg:
    leg = Leg(
        call_id,
        role,
        "forwarded" if role == "caller" else "",
        "+918047000001",
        session_id,
        began_at=100.0,
        invites=1,
        rang_at=100.1,
        status=200,
        answered_at=101.0,
        confirmed_at=101.1,
        acks=1,
        byes_received=1,
        ended_at=111.0,
        ended_by="peer",
        rtp_received=40,
        first_rtp_at=101.2,
        last_rtp_at=110.9,
    )
    return replace(leg, **changes)


def _record(sid: str, call_id: str, direction: str, rupees: float) -> dict[str, Any]:
    return {
        "call_sid": sid,
        "sip_call_id": call_id,
        "direction": direction,
        "created_at": "1970-01-01T00:01:40.000Z",
        "status": "completed",
        "answered_at": "2026-01-31T12:00:01.000Z",
        "ended_at": "2026-01-31T12:00:11.000Z",
        "duration_sec": 10,
        "hangup_cause": "NORMAL_CLEARING",
        "price": rupees,
    }


def _hooks(sid: str, rupees: float) -> list[Hook]:
    return [
        Hook(f"{sid}-{place}", f"call.{name}", sid, place, True, 100.0 + place, {"price": price})
        for place, (name, price) in enumerate(
            (("initiated", None), ("ringing", None), ("answered", None), ("completed", rupees)), 1
        )
    ]


def _right() -> Evidence:
    """A forwarded call and one that the API placed, in which everybody agrees."""
    charges = {"in": 1.0, "out": 0.6}
    return Evidence(
        legs=[
            _leg("dialog-a", "caller", _A),
            _leg("dialog-b", "callee", _A),
            _leg("dialog-c", "callee", _B),
        ],
        hooks=[*_hooks("in", 1.0), *_hooks("out", 0.6)],
        placed={"out": "outbound"},
        records=[_record("in", "dialog-a", "inbound", 1.0), _record("out", "dialog-c", "outbound", 0.6)],
        ledger=[{"kind": "charge", "call_sid": sid, "amount": -rupees} for sid, rupees in charges.items()],
        balance_before_paise=1000,
        balance_after_paise=840,
    )


def _bill(evidence: Evidence, place: int, rupees: float) -> None:
    """Change the price of a call, in every book."""
    sid = evidence.records[place]["call_sid"]
    evidence.records[place]["price"] = rupees
    evidence.ledger = [entry for entry in evidence.ledger if entry["call_sid"] != sid]
    if rupees:
        evidence.ledger.append({"kind": "charge", "call_sid": sid, "amount": -rupees})
    evidence.hooks = [hook for hook in evidence.hooks if hook.call_sid != sid] + _hooks(sid, rupees)
    spent = sum(round(-100 * entry["amount"]) for entry in evidence.ledger)
    evidence.balance_after_paise = evidence.balance_before_paise - spent


def _no_record(evidence: Evidence) -> None:
    sid = evidence.records.pop(0)["call_sid"]
    evidence.hooks = [hook for hook in evidence.hooks if hook.call_sid != sid]
    evidence.ledger = [entry for entry in evidence.ledger if entry["call_sid"] != sid]
    evidence.balance_after_paise += 100


def _nobody_called(evidence: Evidence) -> None:
    del evidence.legs[:2]


def _nobody_asked(evidence: Evidence) -> None:
    evidence.placed.clear()


def _promised(evidence: Evidence) -> None:
    evidence.placed["gone"] = "outbound"


def _no_end(evidence: Evidence) -> None:
    evidence.records[0].update(status="in-progress", ended_at=None)


def _no_cause(evidence: Evidence) -> None:
    evidence.records[0]["hangup_cause"] = None


def _unanswered(evidence: Evidence) -> None:
    for leg in evidence.legs[:2]:
        leg.status, leg.answered_at, leg.confirmed_at = 486, None, None
        leg.first_rtp_at = leg.last_rtp_at = None
    evidence.records[0]["answered_at"] = None


def _longer(evidence: Evidence) -> None:
    for leg in evidence.legs[:2]:
        leg.ended_at = 241.0
    evidence.records[0]["duration_sec"] = 140


def _told_longer(evidence: Evidence) -> None:
    evidence.records[0]["duration_sec"] = 30


def _heard_longer(evidence: Evidence) -> None:
    evidence.legs[0].last_rtp_at = 140.0


def _stray_charge(evidence: Evidence) -> None:
    evidence.ledger.append({"kind": "charge", "call_sid": "nobody's", "amount": -0.4})
    evidence.balance_after_paise -= 40


def _second_charge(evidence: Evidence) -> None:
    evidence.ledger.append(dict(evidence.ledger[0]))


def _uncharged(evidence: Evidence) -> None:
    del evidence.ledger[0]


def _wallet_off(evidence: Evidence) -> None:
    evidence.balance_after_paise -= 1


def _reserved(evidence: Evidence) -> None:
    evidence.reserved_paise = 500


def _no_last_event(evidence: Evidence) -> None:
    del evidence.hooks[3]


def _gap(evidence: Evidence) -> None:
    del evidence.hooks[1]


def _stray_event(evidence: Evidence) -> None:
    evidence.hooks += _hooks("nobody's", 0.4)


def _disorder(evidence: Evidence) -> None:
    evidence.hooks[1], evidence.hooks[2] = evidence.hooks[2], evidence.hooks[1]


def _unsigned(evidence: Evidence) -> None:
    evidence.hooks[0].signed = False


def _told_otherwise(evidence: Evidence) -> None:
    evidence.hooks[3].data["price"] = 7.0


def _ended_twice(evidence: Evidence) -> None:
    evidence.hooks.append(replace(evidence.hooks[3], delivery_id="again", sequence=5))


def _one_side(evidence: Evidence) -> None:
    evidence.legs[1].ended_at = 131.0


def _for_ever(evidence: Evidence) -> None:
    evidence.legs[1].ended_at = None


def _alone(evidence: Evidence) -> None:
    del evidence.legs[1]
    _bill(evidence, 0, 0.4)


def _two_records(evidence: Evidence) -> None:
    evidence.records.append({**evidence.records[0], "call_sid": "in-2", "price": 0.0})
    evidence.hooks += _hooks("in-2", 0.0)


def _two_callees(evidence: Evidence) -> None:
    evidence.legs.append(_leg("dialog-d", "callee", _A))
    _bill(evidence, 0, 1.6)


def _two_branches(evidence: Evidence) -> None:
    evidence.legs[1].invites = 2


_PLANTED: dict[str, tuple[str, Callable[[Evidence], None]]] = {
    "a record that is missing": ("call without record", _no_record),
    "a call that the API promised": ("call without record", _promised),
    "a record of no caller's call": ("record without call", _nobody_called),
    "a record of a call nobody asked for": ("record without call", _nobody_asked),
    "a record without an end": ("record without end", _no_end),
    "a record without a cause": ("record without end", _no_cause),
    "an answered call that costs nothing": ("answered but not billed", lambda e: _bill(e, 0, 0.0)),
    "a call that costs too much": ("billed wrong", lambda e: _bill(e, 1, 1.2)),
    "an unanswered call that costs": ("billed unanswered", _unanswered),
    "a long call that costs as a short one": ("billed wrong", _longer),
    "seconds that were told": ("seconds differ", _told_longer),
    "seconds that were heard": ("seconds differ", _heard_longer),
    "a charge of no call": ("charge without call", _stray_charge),
    "two charges of one call": ("charged twice", _second_charge),
    "a price that was not taken": ("charge differs", _uncharged),
    "a wallet that moved otherwise": ("sums differ", _wallet_off),
    "money that is held for ever": ("reserve left", _reserved),
    "an end that was not told": ("webhook missing", _no_last_event),
    "an event that did not come": ("webhook missing", _gap),
    "events of no record": ("webhook without record", _stray_event),
    "events in disorder": ("webhooks out of order", _disorder),
    "an event without a signature": ("webhook not signed", _unsigned),
    "an event that tells another price": ("webhook differs", _told_otherwise),
    "an end that is told twice": ("ended twice", _ended_twice),
    "a side that ends late": ("up at one side only", _one_side),
    "a side that never ends": ("still up", _for_ever),
    "a caller whom nobody answered": ("up at one side only", _alone),
    "two records of one INVITE": ("doubled call", _two_records),
    "two callees of one call": ("doubled call", _two_callees),
    "two INVITEs to one callee": ("doubled call", _two_branches),
}


def _killed(evidence: Evidence, at: float) -> None:
    """The server was killed, and the second call, which cost nothing then, was ended by the next one."""
    _bill(evidence, 1, 0.0)
    evidence.kills = [at]
    evidence.records[1].update(hangup_cause="CRASH", status="failed", answered_at=None, duration_sec=0)


def test_the_oracle_agrees_with_what_is_right() -> None:
    """Calls in which far ends, records, webhooks and wallet agree are found to be right."""
    assert reconcile(_right()) == []


@pytest.mark.parametrize("at", [99.0, 105.0])
def test_a_call_that_was_up_when_the_server_was_killed_is_billed(at: float) -> None:
    """A kill before the call, and one four seconds after its answer, excuse nothing."""
    evidence = _right()
    _killed(evidence, at)
    assert {found.kind for found in reconcile(evidence)} == {"answered but not billed"}


@pytest.mark.parametrize("at", [100.002, 102.0])
def test_what_a_killed_server_cannot_have_recorded_is_not_billed(at: float) -> None:
    """The INVITE was read after the kill, or the answer came less than two seconds before it."""
    evidence = _right()
    evidence.legs[2].began_at = 100.01
    _killed(evidence, at)
    assert reconcile(evidence) == []


def _late(evidence: Evidence, **changes: Any) -> None:
    """The placed call was given up after silence, and its callee's answer waited six seconds for the ACK."""
    late = {"confirmed_at": 107.0, "ended_at": 107.1, "first_rtp_at": None, "last_rtp_at": None}
    evidence.legs[2] = replace(evidence.legs[2], **{**late, **changes})
    _bill(evidence, 1, 0.0)
    evidence.records[1].update(
        status="no-answer", answered_at=None, duration_sec=0, hangup_cause="NO_USER_RESPONSE"
    )


def test_an_answer_after_its_leg_was_given_up_costs_nothing() -> None:
    """A callee that answers when its leg was given up after silence gets ACK and BYE, and nobody pays."""
    evidence = _right()
    _late(evidence)
    assert reconcile(evidence) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"ended_at": 110.0},
        {"first_rtp_at": 101.1, "last_rtp_at": 107.0},
        {"ended_by": "us", "byes_received": 0},
        {"ended_at": None, "ended_by": None},
    ],
    ids=["went on", "heard", "ended by the callee", "up"],
)
def test_an_answer_that_was_used_is_billed_however_late_its_ack_came(changes: dict[str, Any]) -> None:
    """A leg that went on after its ACK, was heard, or was ended by its callee was no answer too late."""
    evidence = _right()
    _late(evidence, **changes)
    assert "answered but not billed" in {found.kind for found in reconcile(evidence)}


@pytest.mark.parametrize("name", _PLANTED)
def test_the_oracle_finds_what_is_wrong(name: str) -> None:
    """Every kind of loss, double or false charge that is planted among right calls is found and named."""
    kind, plant = _PLANTED[name]
    evidence = _right()
    plant(evidence)
    assert kind in {found.kind for found in reconcile(evidence)}, reconcile(evidence)


def test_far_ends_records_webhooks_and_wallet_agree(tmp_path: Path) -> None:
    """
    Forwarded, cancelled, refused, streamed, placed, masked and OTP calls are recorded, reported and billed.
    """
    with OracleStage(tmp_path) as stage:
        stage.callees(ring_s=(0.0, 0.2), hold_s=(1.0, 3.0), refuse_share=0.15)
        mix = {"forwarded": 3, "cancelled": 1, "streamed": 1, "outbound": 1, "otp": 1, "masked": 1}
        stage.load(12.0, mix, calls=40, hold_s=(1.0, 3.0))
        stage.wait(lambda: not stage.far.counts()["placing"], "calls are not placed")
        stage.end_calls()
        evidence = stage.evidence()
        assert_nothing_lost(evidence)
        assert len(evidence.records) >= 35 and len(evidence.ledger) >= 15
        assert {leg.role for leg in evidence.legs if leg.rtp_received} == {"caller", "callee"}


def test_a_cancel_that_crosses_the_answer_costs_nothing(tmp_path: Path) -> None:
    """Callers who cancel in the moment of the answer pay nothing when they got none, and no side stays up."""
    calls = count("CROSSED", short=60, long=2000)
    with OracleStage(tmp_path) as stage:
        stage.callees(ring_s=(0.0, 0.12), hold_s=(0.0, 0.1))
        stage.load(20.0, {"cancelled": 1}, calls=calls, hold_s=(0.0, 0.1))
        stage.wait(lambda: not stage.far.counts()["placing"], "calls are not placed", calls / 10 + PATIENCE_S)
        stage.end_calls()
        evidence = stage.evidence()
        assert_nothing_lost(evidence)
        ends = {(leg.role, leg.answered) for leg in evidence.legs}
        assert ends >= {("caller", False), ("caller", True), ("callee", True)}, "they did not cross"


class _Sent:
    """A wire that keeps the requests of a far end."""

    address = "127.0.0.1:9"

    def __init__(self) -> None:
        self.requests: dict[str, Message] = {}

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        message = Message.read(data)
        assert message is not None
        self.requests[message.method] = message

    def over(self, dialog: Dialog) -> None:
        """Nothing is kept."""


def test_a_caller_gives_up_that_never_hears_the_end_of_what_it_cancelled() -> None:
    """A caller whose CANCEL is answered and whose INVITE is not waits for 32 s, and the oracle sees that."""
    leg, wire = _leg("c", "caller", _A, status=None, ended_at=None, ended_by=None), _Sent()

    async def give_up() -> None:
        caller = Caller(wire, leg, ("127.0.0.1", 9), Manner(cancel_s=1.0), "+919812345678")
        caller.call()
        for method, status in (("INVITE", 100), ("CANCEL", 200)):
            response = Message.read(answer(wire.requests[method], status, "far"))
            assert response is not None
            caller.on_answer(response)
            await asyncio.sleep(2.0)
        await asyncio.sleep(28.0)
        assert leg.ended_by is None
        await asyncio.sleep(2.0)
        assert leg.ended_by == "unanswered"

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(give_up())


def test_far_ends_read_all_messages_that_have_come() -> None:
    """Audio of hundreds of calls leaves few looks at the socket of all messages, which must not overflow."""
    port, messages = free_port(), 50
    options = request(f"OPTIONS sip:127.0.0.1:{port} SIP/2.0", [("Call-ID", "c"), ("CSeq", "1 OPTIONS")])

    async def answered(asker: socket.socket) -> None:
        side = Side("callee", lambda _: Manner())
        side.open(port)
        for _ in range(messages):
            asker.sendto(options, ("127.0.0.1", port))
        for _ in range(2):  # One look at the sockets, and what it has found.
            await asyncio.sleep(0)
        side.close()
        for _ in range(messages):
            assert asker.recv(65_535).startswith(b"SIP/2.0 200 ")

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.setblocking(False)
        asyncio.run(answered(asker))
