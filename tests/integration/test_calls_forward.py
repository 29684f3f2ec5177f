"""Inbound calls that are forwarded: two real far ends, and the server between them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.models import CallStatus
from media.sdp import SessionDescription
from sip import Answered, Cancelled, Confirmed, Ended, Failed, OfferAnswered, Progress
from sip.aio import InboundSession
from tests.support.domain import (
    CALLEE,
    OWN_NUMBER,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)
from tests.support.phone import PhoneCall, engine_settings, eventually
from tests.support.waiting import time_passes
from tests.support.world import World, running

_ONLY_G722 = (
    b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 9\r\n"
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


def only_ring(call: PhoneCall) -> None:
    call.ring()


def reject_with(status: int, *headers: tuple[str, str]) -> Callable[[PhoneCall], None]:
    return lambda call: call.reject(status, headers)


async def test_caller_and_callee_hear_each_other(world: World) -> None:
    world.forward()
    world.phone.on_call = ring_and_answer
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    a.hang_up()
    await b.wait(Ended)
    record = await world.ended()
    assert record.status is CallStatus.COMPLETED
    assert (record.hangup_cause, record.hangup_source) == ("NORMAL_CLEARING", "caller")
    assert (record.from_, record.to, record.direction) == ("+919811111111", OWN_NUMBER, "inbound")
    assert record.price_paise == 40 + 60
    assert record.quality is not None and record.quality.codec == "PCMU"
    assert any(isinstance(event, Progress) and event.status == 180 for event in a.events)
    assert world.records.event_names() == [
        "call.initiated",
        "call.ringing",
        "call.answered",
        "call.completed",
    ]


async def test_nothing_of_the_callers_signalling_reaches_the_callee(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, headers=[("X-Secret", "caller"), ("Diversion", "<sip:x@y>")])
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    assert b.request.uri.user == CALLEE
    assert b.request.from_.uri.user == "+919811111111"
    assert b.request.call_id != a.session.call_id
    assert "X-Secret" not in b.request.headers
    assert "Diversion" not in b.request.headers
    a.hang_up()
    await world.ended()


async def test_the_hops_that_are_left_grow_fewer(world: World) -> None:
    """A number that is forwarded back to us would otherwise ring for ever."""
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, max_forwards=3)
    await a.wait(Answered)
    assert (await world.phone.next_call(2)).request.max_forwards == 2
    a.hang_up()
    await world.ended()


async def test_headers_are_passed_on_when_the_settings_name_them(tmp_path: Path) -> None:
    async with running(tmp_path, forwarded_headers={"x-campaign"}) as world:
        world.forward()
        a = world.phone.call(OWN_NUMBER, world.port, headers=[("X-Campaign", "42"), ("X-Secret", "caller")])
        await a.wait(Answered)
        b = await world.phone.next_call(2)
        assert b.request.headers.get("X-Campaign") == "42"
        assert "X-Secret" not in b.request.headers
        a.hang_up()
        await world.ended()


async def test_a_number_of_the_account_may_be_shown_instead_of_the_caller(world: World) -> None:
    world.directory.put(numbers=[make_number("+918047491800")])
    world.forward(caller_id="+918047491800")
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    assert b.request.from_.uri.user == "+918047491800"
    a.hang_up()
    await world.ended()


async def test_a_foreign_number_is_never_shown(world: World) -> None:
    world.forward(caller_id="+918047491801")
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 403
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "CALL_REJECTED")
    assert len(world.phone.calls) == 1


async def test_callee_hangs_up(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    (await world.phone.next_call(2)).hang_up()
    await a.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "callee")


async def test_both_hang_up_at_once(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    await b.wait(Confirmed)
    a.hang_up()
    b.hang_up()
    assert (await world.ended()).status is CallStatus.COMPLETED


async def test_caller_cancels_while_the_callee_rings(world: World) -> None:
    world.forward()
    world.phone.on_call = only_ring
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Progress)
    b = await world.phone.next_call(2)
    a.hang_up()
    await b.wait(Cancelled)
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.NO_ANSWER,
        "ORIGINATOR_CANCEL",
        "caller",
    )
    assert (record.price_paise, record.sip_status) == (0, 487)


@pytest.mark.parametrize(
    ("status", "passed_on", "call_status", "cause"),
    [
        (486, 486, CallStatus.BUSY, "USER_BUSY"),
        (480, 480, CallStatus.NO_ANSWER, "NO_ANSWER"),
        (404, 404, CallStatus.FAILED, "UNALLOCATED_NUMBER"),
        (603, 603, CallStatus.BUSY, "CALL_REJECTED"),
        (401, 403, CallStatus.FAILED, "CALL_REJECTED"),
        (503, 503, CallStatus.FAILED, "NORMAL_CIRCUIT_CONGESTION"),
    ],
)
async def test_the_callees_refusal_is_passed_on(
    world: World, status: int, passed_on: int, call_status: CallStatus, cause: str
) -> None:
    world.forward()
    world.phone.on_call = reject_with(status)
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == passed_on
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.sip_status) == (call_status, cause, status)
    assert record.price_paise == 0


async def test_a_callee_that_no_carrier_serves(world: World) -> None:
    world.forward()
    world.directory.put(carriers=[make_carrier(prefixes=("+9180",))])
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 404
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "NO_ROUTE_DESTINATION")
    assert len(world.phone.calls) == 1 and record.price_paise == 0


async def test_the_next_gateway_is_tried_after_503_and_the_first_rests(world: World) -> None:
    second = await world.add_phone()
    world.forward()
    world.phone.on_call = reject_with(503, ("Retry-After", "60"))
    for number in (1, 2):
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        await second.next_call(number)
        a.hang_up()
        await a.wait(Ended)
        assert await eventually(lambda: world.control.active_calls == 0)
    asked = [call for call in world.phone.calls if isinstance(call.session, InboundSession)]
    assert len(asked) == 1


async def test_no_other_gateway_is_tried_after_busy(world: World) -> None:
    second = await world.add_phone()
    world.forward()
    world.phone.on_call = reject_with(486)
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Failed)
    await world.ended()
    assert not second.calls


async def test_a_gateway_that_says_nothing_gives_way_to_the_next(world: World) -> None:
    # A socket that swallows what comes: nothing at all is heard of it.
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
    )
    try:
        dead_port = transport.get_extra_info("sockname")[1]
        world.sessions_linger = True
        world.directory.put(gateways=[make_gateway("gateway-dead", port=dead_port, priority=-1)])
        world.forward()
        a = world.phone.call(OWN_NUMBER, world.port)
        await a.wait(Answered)
        a.hang_up()
        record = await world.ended()
        assert record.status is CallStatus.COMPLETED
    finally:
        transport.close()


async def test_all_gateways_silent(world: World) -> None:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
    )
    try:
        port = transport.get_extra_info("sockname")[1]
        world.directory.put(gateways=[make_gateway(outbound=False, port=world.phone.port)])
        world.sessions_linger = True
        world.directory.put(gateways=[make_gateway("gateway-dead", port=port)])
        world.forward()
        a = world.phone.call(OWN_NUMBER, world.port)
        failed = await a.wait(Failed)
        assert isinstance(failed, Failed) and failed.status == 408
        record = await world.ended()
        assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "NO_USER_RESPONSE")
        assert record.hangup_source == "carrier"
    finally:
        transport.close()


async def test_ring_timeout_cancels_the_callee(world: World) -> None:
    world.forward(timeout_s=1)
    world.phone.on_call = only_ring
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    await (await world.phone.next_call(2)).wait(Cancelled)
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.NO_ANSWER,
        "NO_ANSWER",
        "system",
    )


async def test_early_media_is_heard_before_the_answer(world: World) -> None:
    world.forward()

    def announce(call: PhoneCall) -> None:
        call.ring_early()
        call.speak(660.0)

    world.phone.on_call = announce
    a = world.phone.call(OWN_NUMBER, world.port)
    progress = await a.wait(Progress)
    assert isinstance(progress, Progress) and progress.status == 183
    await a.hears(660.0)
    assert world.records.only().answered_at is None
    (await world.phone.next_call(2)).answer()
    await a.wait(Answered)
    a.hang_up()
    assert (await world.ended()).price_paise == 100


async def test_codecs_that_differ_are_transcoded(world: World) -> None:
    other = await world.add_phone(priority=-1)
    other.codecs = ("PCMA",)
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, codecs=("PCMU",))
    await a.wait(Answered)
    b = await other.next_call()
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    a.hang_up()
    await world.ended()


async def test_the_callers_codec_is_the_one_that_the_callee_took(world: World) -> None:
    """The caller would rather have PCMU, and so would its trunk; with PCMA nothing need be transcoded."""
    other = await world.add_phone(priority=-1)
    other.codecs = ("PCMA",)
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, codecs=("PCMU", "PCMA"))
    await a.wait(Answered)
    b = await other.next_call()
    remote = a.open().remote
    assert remote is not None and remote.codec == "PCMA"
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    a.hang_up()
    assert (quality := (await world.ended()).quality) is not None and quality.codec == "PCMA"


async def test_either_side_may_hold_and_resume(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    await b.wait(Confirmed)
    for held, other in ((a, b), (b, a)):
        held.events.clear()
        other.events.clear()
        held.hold()
        answered = await held.wait(OfferAnswered)
        assert isinstance(answered, OfferAnswered)
        answer = SessionDescription.parse(answered.body)
        assert answer.direction_of(answer.media[0]) == "recvonly"
        held.events.clear()
        held.resume()
        answered = await held.wait(OfferAnswered)
        assert isinstance(answered, OfferAnswered)
        answer = SessionDescription.parse(answered.body)
        assert answer.direction_of(answer.media[0]) == "sendrecv"
        assert not other.events, "the other side hears nothing of it"
    a.speak(440.0)
    await b.hears(440.0)
    a.hang_up()
    await world.ended()


async def test_a_bad_new_offer_is_refused_and_the_call_goes_on(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    a.session.reinvite(b"v=0\r\nthis is no description\r\n")
    await a.until(lambda: any(type(event).__name__ == "OfferFailed" for event in a.events))
    a.speak(440.0)
    await b.hears(440.0)
    a.hang_up()
    assert (await world.ended()).status is CallStatus.COMPLETED


async def test_an_invite_without_an_offer_gets_ours_and_answers_it_in_the_ack(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, body=b"")
    answered = await a.wait(Answered)
    assert isinstance(answered, Answered) and answered.needs_answer
    a.session.accept_offer(a._answer_to(answered.body))
    b = await world.phone.next_call(2)
    a.speak(440.0)
    await b.hears(440.0)
    a.hang_up()
    await world.ended()


@pytest.mark.parametrize("body", [b"this is no description", _ONLY_G722])
async def test_a_call_without_a_common_codec_is_refused_and_recorded(world: World, body: bytes) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, body=body)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 488
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "BEARERCAPABILITY_NOTAVAIL")
    assert len(world.phone.calls) == 1, "nobody was dialled"


async def test_a_callee_without_a_common_codec_is_hung_up(world: World) -> None:
    world.forward()

    def answer_nonsense(call: PhoneCall) -> None:
        call.session.answer(b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n")  # type: ignore[attr-defined]

    world.phone.on_call = answer_nonsense
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 488
    await (await world.phone.next_call(2)).wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "BEARERCAPABILITY_NOTAVAIL")
    assert record.price_paise == 0


async def test_ports_run_out(tmp_path: Path) -> None:
    async with running(tmp_path, media=engine_settings(2)) as world:
        world.forward()
        a = world.phone.call(OWN_NUMBER, world.port)
        failed = await a.wait(Failed)
        assert isinstance(failed, Failed) and failed.status == 503
        record = await world.ended()
        assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "NORMAL_CIRCUIT_CONGESTION")


async def test_unknown_source_and_unknown_number(world: World) -> None:
    world.forward()
    a = world.phone.call("+918047491802", world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 404
    world.directory.put(gateways=[make_gateway(inbound=False, port=world.phone.port)])
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 403
    assert not world.records.records


async def test_a_number_without_a_target_is_recorded_and_refused(world: World) -> None:
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    assert (await world.ended()).status is CallStatus.NO_ANSWER


async def test_an_empty_wallet_refuses_the_call(world: World) -> None:
    world.forward()
    world.wallets.balance_paise = 10
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "BALANCE_EXHAUSTED")
    assert world.wallets.balance_paise == 10


async def test_a_call_that_cannot_be_recorded_is_not_taken(world: World) -> None:
    world.forward()
    world.records.failing = True
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 503
    assert await eventually(lambda: world.control.active_calls == 0)


async def test_more_calls_than_the_account_may_have(world: World) -> None:
    world.directory.put(accounts=[make_account(max_calls=1)])
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    other = world.phone.call(OWN_NUMBER, world.port)
    failed = await other.wait(Failed)
    assert isinstance(failed, Failed) and (failed.status, failed.retry_after_s) == (503, 5)
    a.hang_up()
    await world.ended()


async def test_draining_refuses_new_calls_and_ends_those_that_stay(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    draining = asyncio.create_task(world.control.drain(3600.0))
    await time_passes(0.1)
    late = world.phone.call(OWN_NUMBER, world.port)
    failed = await late.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 503
    assert a.session.state.name == "CONFIRMED"
    draining.cancel()
    await world.control.drain(0.1)
    await a.wait(Ended)
    await b.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.COMPLETED,
        "SYSTEM_SHUTDOWN",
        "system",
    )


async def test_digits_in_info_are_sent_on_as_telephone_events(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    b.open()
    a.session.info("application/dtmf-relay", b"Signal=7\r\nDuration=160\r\n")
    await b.until(lambda: b.digits == "7")
    assert world.published("call.dtmf")["data"]["digit"] == "7"
    a.hang_up()
    await world.ended()


async def test_digits_in_rtp_are_relayed_and_reported(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    a.open().send_dtmf("42")
    await b.until(lambda: b.digits == "42")
    assert await eventually(lambda: world.records.event_names().count("call.dtmf") == 2)
    a.hang_up()
    await world.ended()


async def test_a_forward_to_a_sip_address_goes_to_the_gateway_it_names(world: World) -> None:
    second = await world.add_phone(priority=5)
    world.forward(to=f"sip:desk@127.0.0.1:{second.port}")
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    assert (await second.next_call()).request.uri.user == "desk"
    a.hang_up()
    await world.ended()


async def test_a_forward_to_a_sip_address_elsewhere_is_refused(world: World) -> None:
    world.forward(to="sip:desk@elsewhere.example")
    a = world.phone.call(OWN_NUMBER, world.port)
    failed = await a.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 404
    await world.ended()


async def test_the_trace_shows_both_legs(world: World) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    a.hang_up()
    record = await world.ended()
    entries = world.control.trace(record.call_sid)
    assert entries[0].message.startswith("INVITE ") and entries[0].direction == "in"
    assert {entry.leg for entry in entries} == {"a", "b"}
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    assert any(entry.leg == "b" and entry.message.startswith("BYE ") for entry in entries)


async def test_a_defect_ends_the_call_and_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    (runner,) = world.control._runners.values()

    def fail(*_: object) -> None:
        raise RuntimeError("defect")

    monkeypatch.setattr(runner._machine, "forward", fail)
    runner._mailbox._due.add(Timer.PAUSE)
    runner.post(TimerFired(Timer.PAUSE))
    await a.wait(Ended)
    record = await world.ended()
    assert (record.hangup_cause, record.hangup_source) == ("NORMAL_TEMPORARY_FAILURE", "system")
