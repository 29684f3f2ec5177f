"""Calls placed over the API: verbs, money, recordings, limits, and every way they end."""

import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.calls.charges import Rates
from callcontrol.clock import WallClock
from callcontrol.errors import (
    CallEnded,
    Forbidden,
    InsufficientBalance,
    NotFound,
    NumberNotOwned,
    RateLimited,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.models import CallFilter, CallStatus
from media.audio import Clip, tone, write_wav
from sip import Cancelled, Confirmed, Ended
from tests.support.domain import (
    ACCOUNT_SID,
    CALLEE,
    NOW,
    OTHER_SID,
    OWN_NUMBER,
    make_account,
    make_carrier,
    make_record,
)
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.world import World, running

SECOND = "+919812345678"


@pytest.fixture
async def prompts(tmp_path: Path) -> Path:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "beep.wav").write_bytes(write_wav(Clip(tone(700.0, 1500))))
    return folder


@pytest.fixture
async def world(tmp_path: Path, prompts: Path) -> AsyncIterator[World]:
    async with running(tmp_path, prompts_dir=prompts) as world:
        yield world


def play() -> dict[str, Any]:
    return {"verb": "play", "url": "prompt:beep"}


def pause(length: float = 30) -> dict[str, Any]:
    return {"verb": "pause", "length": length}


def dial(number: str = SECOND, **fields: Any) -> dict[str, Any]:
    return {"verb": "dial", "target": [{"type": "phone", "number": number}], **fields}


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


async def test_a_prompt_is_played_and_the_call_ends(world: World) -> None:
    world.phone.on_call = ring_and_answer
    record = await world.place(play(), tag="t", caller_name="Trunk Line", headers={"X-Order": "7"})
    b = await world.phone.next_call()
    await b.hears(700.0)
    await b.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.COMPLETED,
        "NORMAL_CLEARING",
        "system",
    )
    assert (record.direction, record.tag, record.price_paise) == ("outbound", "t", 60)
    assert record.bill_duration_sec == 60 and record.duration_sec is not None and record.duration_sec >= 1
    assert record.carrier_sid == "carrier-1" and record.sip_call_id == b.session.call_id
    assert b.request.headers.get("X-Order") == "7"
    assert str(b.request.from_).startswith('"Trunk Line" <sip:+918047491899@127.0.0.1')
    assert world.records.event_names() == [
        "call.initiated",
        "call.ringing",
        "call.answered",
        "call.completed",
    ]
    completed = world.published("call.completed")
    assert completed["sequence"] == 4


async def test_a_prompt_then_a_second_party(world: World) -> None:
    second = await world.add_phone()
    answered: list[PhoneCall] = []

    def first_or_second(call: PhoneCall) -> None:
        if call.request.uri.user == CALLEE:
            ring_and_answer(call)
        else:
            call.ring()
            answered.append(call)

    world.phone.on_call = first_or_second
    await world.place(play(), dial())
    a = await world.phone.next_call()
    await a.hears(700.0)
    b = await world.phone.next_call(2)
    await a.hears(400.0)  # ringing tone
    b.answer()
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    b.hang_up()
    await a.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_source, record.price_paise) == (CallStatus.COMPLETED, "callee", 120)
    assert not second.calls
    assert b.request.from_.uri.user == OWN_NUMBER


async def test_a_second_party_that_is_busy_lets_the_plan_go_on(world: World) -> None:
    def answer_or_reject(call: PhoneCall) -> None:
        if call.request.uri.user == CALLEE:
            call.answer()
        else:
            call.reject(486)

    world.phone.on_call = answer_or_reject
    await world.place(dial(), play())
    a = await world.phone.next_call()
    await a.hears(700.0)
    await a.wait(Ended)
    record = await world.ended()
    assert (record.status, record.price_paise) == (CallStatus.COMPLETED, 60)


async def test_a_second_party_that_is_busy_ends_a_call_with_nothing_more_to_do(world: World) -> None:
    def answer_or_reject(call: PhoneCall) -> None:
        if call.request.uri.user == CALLEE:
            call.answer()
        else:
            call.reject(486)

    world.phone.on_call = answer_or_reject
    await world.place(dial())
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "USER_BUSY")


async def test_a_hangs_up_while_b_rings(world: World) -> None:
    def answer_or_ring(call: PhoneCall) -> None:
        if call.request.uri.user == CALLEE:
            call.answer()
        else:
            call.ring()

    world.phone.on_call = answer_or_ring
    await world.place(dial())
    b = await world.phone.next_call(2)
    (await world.phone.next_call()).hang_up()
    await b.wait(Cancelled)
    record = await world.ended()
    assert (record.status, record.hangup_source, record.price_paise) == (CallStatus.COMPLETED, "callee", 60)


async def test_digits_pause_and_hangup(world: World) -> None:
    await world.place(
        pause(0.1), {"verb": "send_digits", "digits": "9w8"}, {"verb": "hangup"}, send_digits="1#"
    )
    b = await world.phone.next_call()
    await b.wait(Ended)
    record = await world.ended()
    assert b.digits == "1#98"
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "api")


async def test_a_wav_is_fetched_and_played(world: World) -> None:
    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=write_wav(Clip(tone(900.0, 1500, sample_rate=16_000), 16_000)))

    app = web.Application()
    app.router.add_get("/a.wav", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/a.wav"
        await world.place({"verb": "play", "url": url}, {"verb": "play", "url": url + "x"}, play())
        b = await world.phone.next_call()
        await b.hears(900.0)
        await b.hears(700.0)  # the file that is not there is passed over
        await world.ended()
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "call_status", "cause", "source"),
    [
        (486, CallStatus.BUSY, "USER_BUSY", "callee"),
        (603, CallStatus.BUSY, "CALL_REJECTED", "callee"),
        (480, CallStatus.NO_ANSWER, "NO_ANSWER", "callee"),
        (404, CallStatus.FAILED, "UNALLOCATED_NUMBER", "carrier"),
        (484, CallStatus.FAILED, "INVALID_NUMBER_FORMAT", "carrier"),
        (500, CallStatus.FAILED, "NORMAL_TEMPORARY_FAILURE", "carrier"),
    ],
)
async def test_a_party_that_is_not_reached(
    world: World, status: int, call_status: CallStatus, cause: str, source: str
) -> None:
    world.phone.on_call = lambda call: call.reject(status)
    await world.place(pause())
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (call_status, cause, source)
    assert (record.sip_status, record.price_paise, record.duration_sec) == (status, 0, 0)
    assert world.wallets.balance_paise == 100_000


async def test_ring_timeout(world: World) -> None:
    world.phone.on_call = PhoneCall.ring
    await world.place(pause(), timeout_s=1)
    await (await world.phone.next_call()).wait(Cancelled)
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source) == (
        CallStatus.NO_ANSWER,
        "NO_ANSWER",
        "system",
    )


async def test_failover_before_the_call_fails(world: World) -> None:
    second = await world.add_phone()
    world.phone.on_call = lambda call: call.reject(503)
    await world.place(pause(0.1))
    await second.next_call()
    record = await world.ended()
    assert (record.status, record.gateway_sid) == (CallStatus.COMPLETED, "gateway-2")
    assert world.records.event_names().count("call.initiated") == 1


async def test_the_api_hangs_up_before_the_answer(world: World) -> None:
    world.phone.on_call = PhoneCall.ring
    record = await world.place(pause())
    b = await world.phone.next_call()
    await world.control.hangup_call(ACCOUNT_SID, record.call_sid)
    await b.wait(Cancelled)
    record = await world.ended()
    assert (record.status, record.hangup_cause, record.hangup_source, record.price_paise) == (
        CallStatus.CANCELED,
        "ORIGINATOR_CANCEL",
        "api",
        0,
    )


async def test_the_api_hangs_up_after_the_answer(world: World) -> None:
    record = await world.place(pause())
    b = await world.phone.next_call()
    await b.wait(Confirmed)
    with pytest.raises(NotFound):
        await world.control.hangup_call(OTHER_SID, record.call_sid)
    await world.control.hangup_call(ACCOUNT_SID, record.call_sid)
    await b.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_source, record.price_paise) == (CallStatus.COMPLETED, "api", 60)
    with pytest.raises(CallEnded):
        await world.control.hangup_call(ACCOUNT_SID, record.call_sid)
    assert (await world.control.get_call(ACCOUNT_SID, record.call_sid)) is record
    page = await world.control.list_calls(ACCOUNT_SID, CallFilter(), 1, 20)
    assert page.total == 1


async def test_the_time_limit(world: World) -> None:
    await world.place(pause(), time_limit_s=1)
    b = await world.phone.next_call()
    await b.wait(Ended)
    record = await world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "ALLOTTED_TIMEOUT")


async def test_a_party_that_falls_silent(tmp_path: Path) -> None:
    async with running(tmp_path, media_timeout_s=1.0) as world:
        await world.place(pause())
        b = await world.phone.next_call()
        await b.wait(Confirmed)
        b.speak(440.0)
        await time_passes(1.5)
        assert not [event for event in b.events if isinstance(event, Ended)]
        assert b.stream is not None and b.tap is not None
        b.tap.close()
        b.stream.stop_playback()
        await b.wait(Ended)
        record = await world.ended()
        assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "MEDIA_TIMEOUT")


async def test_the_wallet_runs_out(tmp_path: Path) -> None:
    rates = Rates(outbound_paise=60, inbound_paise=40, pulse_s=1.0, reserve_pulses=2)
    async with running(tmp_path, rates=rates) as world:
        world.wallets.balance_paise = 60 * 5
        await world.place(pause())
        b = await world.phone.next_call()
        await b.wait(Ended)
        record = await world.ended()
        assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "BALANCE_EXHAUSTED")
        assert record.price_paise is not None and record.price_paise <= 300
        assert world.wallets.balance_paise >= 0


async def test_a_failing_database_does_not_cut_calls(tmp_path: Path) -> None:
    rates = Rates(outbound_paise=60, inbound_paise=40, pulse_s=1.0, reserve_pulses=2)
    async with running(tmp_path, rates=rates) as world:
        record = await world.place(pause())
        world.wallets.failing = True
        b = await world.phone.next_call()
        await b.wait(Confirmed)
        await time_passes(3)
        assert not [event for event in b.events if isinstance(event, Ended)]
        await world.control.hangup_call(ACCOUNT_SID, record.call_sid)
        assert (await world.ended()).price_paise in (180, 240)


async def test_a_call_is_recorded_in_stereo(world: World, tmp_path: Path) -> None:
    await world.place(play(), pause(0.5), record=True)
    b = await world.phone.next_call()
    b.speak(440.0)
    await b.wait(Ended)
    record = await world.ended()
    assert await eventually(lambda: "call.recording.ready" in world.records.event_names())
    assert record.recording_url == f"/recordings/{record.call_sid}.wav"
    assert record.recording_path == str(tmp_path / "recordings" / f"{record.call_sid}.wav")
    assert record.recording_status == "completed"
    with wave.open(record.recording_path) as recording:
        assert (recording.getnchannels(), recording.getframerate(), recording.getsampwidth()) == (2, 8000, 2)
        clip = Clip(recording.readframes(recording.getnframes()), 8000, 2)
    assert clip.duration_ms > 1500
    assert tone_level_dbfs(clip.channel(0).pcm, 440.0) > -20.0, "left: what the party said"
    assert tone_level_dbfs(clip.channel(1).pcm, 700.0) > -20.0, "right: what it heard"
    assert tone_level_dbfs(clip.channel(0).pcm, 700.0) < -40.0


async def test_a_recording_that_cannot_be_written_leaves_the_call_alone(world: World, tmp_path: Path) -> None:
    (tmp_path / "recordings").rmdir()
    await world.place(play(), record=True)
    await (await world.phone.next_call()).hears(700.0)
    record = await world.ended()
    assert record.status is CallStatus.COMPLETED and record.recording_url is None
    assert record.recording_status == "failed"


async def test_requests_that_are_refused_leave_nothing(world: World) -> None:
    with pytest.raises(NumberNotOwned):
        await world.place(pause(), from_="+918047491877")
    with pytest.raises(Forbidden):
        await world.place(pause(), to="+12025550123")
    with pytest.raises(ValidationFailed) as refusal:
        await world.place({"verb": "say"}, {"verb": "play", "url": "prompt:none"}, to="nobody")
    assert [error.field for error in refusal.value.errors] == ["to", "verbs[0].text", "verbs[1].url"]
    with pytest.raises(ValidationFailed) as refusal:
        await world.place(stream_url="http://bot.example/")
    assert [error.field for error in refusal.value.errors] == ["stream_url"]
    with pytest.raises(ValidationFailed):
        await world.place(stream_url="ws://forbidden.example/")
    with pytest.raises(NumberNotOwned):
        await world.place(dial(caller_id="+918047491877"))
    with pytest.raises(ValidationFailed) as refusal:
        await world.place(
            pause(), {"verb": "dial", "target": [{"type": "sip", "sip_uri": "sip:x@elsewhere.example"}]}
        )
    assert [error.field for error in refusal.value.errors] == ["verbs[1].target[0].sip_uri"]
    with pytest.raises(ValidationFailed, match="carrier_sid"):
        await world.place(pause(), carrier_sid="none")
    with pytest.raises(ValidationFailed):
        await world.place(pause(), to="sip:x@elsewhere.example")
    world.wallets.balance_paise = 10
    with pytest.raises(InsufficientBalance):
        await world.place(pause())
    world.wallets.balance_paise = 100_000
    world.directory.put(carriers=[make_carrier(max_concurrent_calls=0)])
    with pytest.raises(ServiceUnavailable):
        await world.place(pause())
    world.directory.put(carriers=[make_carrier()], accounts=[make_account(max_cps=0)])
    with pytest.raises((RateLimited, ServiceUnavailable)):
        await world.place(pause())
    assert not world.records.records and not world.phone.calls
    assert world.control.active_calls == 0


async def test_the_servers_capacity(tmp_path: Path) -> None:
    async with running(tmp_path, max_calls=1) as world:
        record = await world.place(pause())
        with pytest.raises(ServiceUnavailable):
            await world.place(pause())
        await world.phone.next_call()
        await world.control.hangup_call(ACCOUNT_SID, record.call_sid)
        assert await eventually(lambda: world.control.active_calls == 0)
        again = await world.place(pause())
        await world.control.hangup_call(ACCOUNT_SID, again.call_sid)
        assert await eventually(lambda: world.control.active_calls == 0)
        assert world.control.metrics.ended.total() == 2


async def test_a_restart_ends_what_a_former_process_left(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number, status in enumerate((CallStatus.RINGING, CallStatus.IN_PROGRESS)):
        record = make_record(
            call_sid=f"call-{number}",
            status=status,
            status_webhook_url="https://customer.example/",
            status_webhook_events=("completed",),
            sequence=2,
        )
        if status is CallStatus.IN_PROGRESS:
            record.answered_at = WallClock(0.0, NOW).at(1.0)
        world.records.records[record.call_sid] = record
        world.wallets.reserves[record.call_sid] = 300
    recordings_dir = tmp_path / "recordings"
    recordings_dir.mkdir()
    (recordings_dir / "call-0.wav").write_bytes(write_wav(Clip(b"")))  # nothing was said yet
    (recordings_dir / "call-1.wav").write_bytes(write_wav(Clip(tone(700.0, 100))))
    await world.start()
    try:
        ringing, answered = world.records.records.values()
        assert (ringing.recording_url, ringing.recording_path) == (None, None)
        assert answered.recording_url == "/recordings/call-1.wav"
        assert answered.recording_path == str(recordings_dir / "call-1.wav")
        assert (ringing.status, ringing.price_paise) == (CallStatus.FAILED, 0)
        assert (answered.status, answered.price_paise) == (CallStatus.COMPLETED, 60)
        assert answered.ended_at == answered.answered_at
        assert {ringing.hangup_cause, answered.hangup_cause} == {"CRASH"}
        assert ringing.hangup_source == "system"
        assert not world.wallets.reserves
        assert [ringing.sequence, answered.sequence] == [3, 4]
        assert world.records.event_names() == ["call.completed", "call.completed", "call.recording.ready"]
    finally:
        await world.close()


async def test_nothing_of_the_call_is_left_when_the_server_is_closed_under_it(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.place(pause())
        b = await world.phone.next_call()
        await b.wait(Confirmed)
        await world.control.close()
        await b.wait(Ended)
        assert (await world.ended()).hangup_cause == "SYSTEM_SHUTDOWN"
