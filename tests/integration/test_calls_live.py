"""Calls that are changed while they are up, who answered, and all that their status webhook hears of it."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from fixtures.agent import AgentSession
from fixtures.audio_check import find_tone, samples_of
from tests.support.live_stage import (
    BUSY,
    DIGITS,
    EARLY,
    ECHO,
    MACHINE,
    NUMBER,
    PATIENCE_S,
    PERSON,
    SILENT,
    TONE,
    LiveStage,
    live_stage,
)
from tests.support.waiting import look_again, time_passes, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG_PAUSE = [{"verb": "pause", "length": 60}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveStage]:
    async with live_stage(tmp_path_factory.mktemp("live")) as running:
        yield running


async def talking(stage: LiveStage, to: str = TONE, **body: Any) -> tuple[str, AgentSession]:
    """A call whose party and agent hear each other."""
    before = len(stage.agent.sessions)
    call_sid = await stage.place(to, stream_url=stage.agent.url, **body)
    session = await asyncio.wait_for(stage.agent.session(before), PATIENCE_S)
    await stage.told(call_sid, "stream.started")
    return call_sid, session


async def hang_up(stage: LiveStage, call_sid: str) -> dict[str, Any]:
    await stage.change(call_sid, call_status="completed")
    return await stage.ended(call_sid)


# --- what is told -------------------------------------------------------------------------------------------


async def test_every_transition_is_told_in_order(stage: LiveStage) -> None:
    call_sid, session = await talking(
        stage,
        EARLY,
        record=True,
        headers={"X-Order": "7"},
        custom_parameters={"order": "7"},
        tag="told",
    )
    assert session.start["custom_parameters"]["order"] == "7"
    far = await stage.far(EARLY)
    assert far.session is not None and far.session.request.headers.get("X-Order") == "7"  # type: ignore[union-attr]
    await asyncio.wait_for(session.greeted.wait(), PATIENCE_S)
    await session.hang_up()
    await stage.told(call_sid, "call.recording.ready")
    events = stage.events(call_sid)
    assert [(event["event"], event["data"]["status"]) for event in events] == [
        ("call.initiated", "initiated"),
        ("call.ringing", "ringing"),
        ("call.early-media", "ringing"),
        ("call.answered", "in-progress"),
        ("stream.started", "in-progress"),
        ("stream.stopped", "in-progress"),
        ("call.completed", "completed"),
        ("call.recording.ready", "completed"),
    ]
    assert [event["sequence"] for event in events] == list(range(1, 9))
    assert len({event["event_id"] for event in events}) == 8
    assert {event["data"]["tag"] for event in events} == {"told"}
    assert events[-1]["data"]["recording_url"] == f"/recordings/{call_sid}.wav"


async def test_a_webhook_hears_only_of_what_it_chose(stage: LiveStage) -> None:
    call_sid = await stage.place(
        EARLY, status_webhook_events=["completed"], verbs=[{"verb": "hangup"}], machine_detection="off"
    )
    await stage.ended(call_sid)
    assert [event["event"] for event in stage.events(call_sid)] == ["call.completed"]


async def test_keys_that_are_pressed_are_told(stage: LiveStage) -> None:
    call_sid = await stage.up(DIGITS, verbs=LONG_PAUSE)

    def pressed() -> str:
        events = [event for event in stage.events(call_sid) if event["event"] == "call.dtmf"]
        return "".join(event["data"]["digit"] for event in events)

    await until(lambda: pressed() == "123#")
    await hang_up(stage, call_sid)


async def test_a_stream_that_fails_is_told(stage: LiveStage) -> None:
    call_sid = await stage.place(SILENT, stream_url="ws://127.0.0.1:9/nobody")
    call = await stage.ended(call_sid)
    failed = await stage.told(call_sid, "stream.failed")
    assert (failed["data"]["reason"], failed["data"]["http_status"]) == ("connect", None)
    assert call["status"] == "failed" and call["hangup_cause"] == "STREAM_DISCONNECTED"


@pytest.mark.parametrize("way", ["verbs", "stream"])
async def test_an_unanswered_call_never_streams(stage: LiveStage, way: str) -> None:
    asked: dict[str, Any] = {"verbs": LONG_PAUSE} if way == "verbs" else {"stream_url": stage.agent.url}
    call_sid = await stage.place(BUSY, **asked)
    call = await stage.ended(call_sid)
    assert [event["event"] for event in stage.events(call_sid)] == ["call.initiated", "call.completed"]
    assert (call["status"], call["hangup_cause_code"], call["price"]) == ("busy", 17, 0)


async def test_causes_are_those_of_the_table(stage: LiveStage) -> None:
    table = {
        **dict.fromkeys((486, 600), ("busy", "USER_BUSY", 17)),
        603: ("busy", "CALL_REJECTED", 21),
        408: ("no-answer", "NO_USER_RESPONSE", 18),
        480: ("no-answer", "NO_ANSWER", 19),
        **dict.fromkeys((401, 403, 407), ("failed", "CALL_REJECTED", 21)),
        **dict.fromkeys((404, 485, 604), ("failed", "UNALLOCATED_NUMBER", 1)),
        410: ("failed", "NUMBER_CHANGED", 22),
        484: ("failed", "INVALID_NUMBER_FORMAT", 28),
        **dict.fromkeys((488, 606), ("failed", "BEARERCAPABILITY_NOTAVAIL", 58)),
        500: ("failed", "NORMAL_TEMPORARY_FAILURE", 41),
        502: ("failed", "DESTINATION_OUT_OF_ORDER", 27),
        503: ("failed", "NORMAL_CIRCUIT_CONGESTION", 34),
        504: ("failed", "RECOVERY_ON_TIMER_EXPIRE", 102),
    }
    placed = {status: await stage.place(f"+919800000{status}", verbs=LONG_PAUSE) for status in table}
    for status, call_sid in placed.items():
        call = await stage.ended(call_sid)
        found = (call["status"], call["hangup_cause"], call["hangup_cause_code"])
        assert (found, call["sip_status"]) == (table[status], status)
        assert (call["price"], call["duration_sec"]) == (0, 0)


# --- ends ---------------------------------------------------------------------------------------------------


async def test_a_call_that_rings_is_given_up(stage: LiveStage) -> None:
    call_sid = await stage.place(SILENT, verbs=LONG_PAUSE)
    await stage.told(call_sid, "call.ringing")
    assert await stage.refused(call_sid, webhook_url=stage.receiver.url("/next")) == "CONFLICT"
    await stage.change(call_sid, call_status="no-answer")
    call = await stage.ended(call_sid)
    assert (call["status"], call["hangup_cause"], call["hangup_source"]) == ("no-answer", "NO_ANSWER", "api")
    assert await stage.refused(call_sid, mute_status="mute") == "CALL_ENDED"
    status, error = await stage.ask("DELETE", stage.path(call_sid))
    assert (status, error["code"]) == (409, "CALL_ENDED")


async def test_an_answered_call_is_ended(stage: LiveStage) -> None:
    call_sid = await stage.up(ECHO, verbs=LONG_PAUSE)
    assert await stage.refused(call_sid, call_status="no-answer") == "CONFLICT"
    call = await hang_up(stage, call_sid)
    assert (call["status"], call["hangup_cause"], call["hangup_source"]) == (
        "completed",
        "NORMAL_CLEARING",
        "api",
    )


async def test_a_time_limit_is_shortened(stage: LiveStage) -> None:
    call_sid = await stage.up(ECHO, verbs=LONG_PAUSE)
    await stage.change(call_sid, time_limit=1)
    assert (await stage.ended(call_sid))["hangup_cause"] == "ALLOTTED_TIMEOUT"


async def test_a_call_is_sent_elsewhere_by_webhook(stage: LiveStage) -> None:
    answer = [{"verb": "send_digits", "digits": "7"}, {"verb": "hangup"}]
    stage.receiver.answers["/next"] = lambda _: web.json_response(answer)
    call_sid = await stage.up(ECHO, verbs=LONG_PAUSE)
    await stage.change(call_sid, webhook_url=stage.receiver.url("/next"))
    call = await stage.ended(call_sid)
    assert (call["hangup_source"], call["hangup_cause"]) == ("api", "NORMAL_CLEARING")
    [asked] = [json.loads(got.body) for got in stage.receiver.requests if got.path == "/next"]
    assert asked["data"]["call_sid"] == call_sid
    far = await stage.far(ECHO)
    assert "7" in (await asyncio.wait_for(far.finished(), PATIENCE_S)).digits


# --- what is heard ------------------------------------------------------------------------------------------


async def test_an_agent_hears_nothing_or_silence_while_that_is_asked_for(stage: LiveStage) -> None:
    call_sid, session = await talking(stage)
    await asyncio.wait_for(session.hears(16_000), PATIENCE_S)

    async def state_is(state: str) -> None:
        await stage.becomes(call_sid, lambda call: bool(call["stream"]["state"] == state))
        await time_passes(0.1)  # what was on its way to the agent arrives

    await stage.change(call_sid, listen_status="pause")
    await state_is("paused")
    heard_bytes = len(session.heard)
    await time_passes(0.3)
    assert len(session.heard) == heard_bytes
    await stage.change(call_sid, listen_status="silence")
    await state_is("silenced")
    silent_from = len(session.heard)
    await asyncio.wait_for(session.hears(silent_from + 3200), PATIENCE_S)
    assert not any(session.heard[silent_from : silent_from + 3200])
    await stage.change(call_sid, listen_status="resume")
    await state_is("streaming")
    tone_from = len(session.heard)
    await asyncio.wait_for(session.hears(tone_from + 16_000), PATIENCE_S)
    found = find_tone(samples_of(bytes(session.heard[tone_from:])), 8000)
    assert found.frequency_hz == pytest.approx(1000, abs=3)
    assert session.problems == [], "no chunk is missing in the numbering"
    await stage.change(call_sid, mute_status="mute")
    await until(lambda: not any(session.heard[-3200:]))
    await hang_up(stage, call_sid)


async def test_a_recording_leaves_out_what_was_paused(stage: LiveStage) -> None:
    loop = asyncio.get_running_loop()
    call_sid = await stage.up(TONE, verbs=LONG_PAUSE)
    begun = loop.time()

    async def status_is(status: str) -> None:
        await stage.becomes(call_sid, lambda call: bool(call["recording_status"] == status))

    await stage.change(call_sid, record={"action": "start"})
    await status_is("in-progress")
    assert await stage.refused(call_sid, record={"action": "start"}) == "CONFLICT"
    await time_passes(0.3)
    await stage.change(call_sid, record={"action": "pause"})
    await status_is("paused")
    await time_passes(0.6)
    await stage.change(call_sid, record={"action": "resume"})
    await status_is("in-progress")
    await time_passes(0.3)
    await stage.change(call_sid, record={"action": "stop"})
    ready = await stage.told(call_sid, "call.recording.ready")
    lasted_ms = (loop.time() - begun) * 1000
    assert ready["data"]["status"] == "in-progress"
    assert 300 <= ready["data"]["recording_duration_ms"] <= lasted_ms - 500
    assert await stage.refused(call_sid, record={"action": "resume"}) == "CONFLICT"
    headers = {"Authorization": f"Bearer {stage.key}"}
    async with stage.http.get(stage.server.url + ready["data"]["recording_url"], headers=headers) as got:
        assert got.status == 200
        with wave.open(io.BytesIO(await got.read())) as wav:
            assert wav.getnchannels() == 2
    await hang_up(stage, call_sid)


async def test_digits_are_sent_while_the_plan_goes_on(stage: LiveStage) -> None:
    call_sid = await stage.up(ECHO, verbs=LONG_PAUSE)
    await stage.change(call_sid, dtmf={"digits": "42#"})
    far = await stage.far(ECHO)
    await until(lambda: far.heard.digits == "42#")
    assert (await hang_up(stage, call_sid))["status"] == "completed"


async def test_all_is_done_or_nothing(stage: LiveStage) -> None:
    call_sid, session = await talking(stage)
    status, error = await stage.ask(
        "POST",
        stage.path(call_sid),
        {"listen_status": "pause", "record": {"action": "stop"}, "mute_status": "mute", "party": "b"},
    )
    assert (status, error["code"]) == (409, "CONFLICT")
    assert error["details"]["conflicts"] == {
        "mute_status": "its party b is not there",
        "record": "the call is not being recorded",
    }
    assert (await stage.get(call_sid))["stream"]["state"] == "streaming"
    await hang_up(stage, call_sid)
    assert session.stop is not None and session.stop["detail"] == "api_hangup"


# --- transfers ----------------------------------------------------------------------------------------------


async def test_the_party_of_an_agent_is_put_through(stage: LiveStage) -> None:
    call_sid, session = await talking(stage, ECHO)
    await stage.change(call_sid, transfer={"to": BUSY})
    failed = await stage.told(call_sid, "call.transfer_failed")
    assert failed["data"]["transfer"] == {
        "mode": "bridge",
        "to": BUSY,
        "sip_status": 486,
        "hangup_cause": "USER_BUSY",
    }
    assert (await stage.get(call_sid))["stream"]["state"] == "streaming", "the agent still has its party"
    await stage.change(call_sid, transfer={"to": TONE, "headers": {"X-Why": "asked"}})
    told = await stage.told(call_sid, "call.transferred")
    assert told["data"]["transfer"] == {"mode": "bridge", "to": TONE}
    stopped = await stage.told(call_sid, "stream.stopped")
    assert stopped["data"]["reason"] == "transferred"
    await asyncio.wait_for(session.closed.wait(), PATIENCE_S)
    far = await stage.far(TONE)
    assert far.session.request.headers.get("X-Why") == "asked"  # type: ignore[union-attr]
    await stage.change(call_sid, mute_status="mute", party="b")
    await hang_up(stage, call_sid)
    assert (await asyncio.wait_for(far.finished(), PATIENCE_S)).packets > 0


async def test_a_member_stays_in_its_conference_until_somebody_answers(stage: LiveStage) -> None:
    call_sid = await stage.up(ECHO, verbs=[{"verb": "conference", "name": "sales"}])
    await stage.told(call_sid, "conference.joined")
    await stage.change(call_sid, transfer={"to": BUSY})
    failed = await stage.told(call_sid, "call.transfer_failed")
    assert failed["data"]["transfer"]["sip_status"] == 486
    assert (await stage.get(call_sid))["status"] == "in-progress"
    await stage.change(call_sid, transfer={"to": TONE})
    await stage.told(call_sid, "conference.left")
    told = await stage.told(call_sid, "call.transferred")
    assert told["data"]["transfer"] == {"mode": "bridge", "to": TONE}
    far = await stage.far(TONE)
    await hang_up(stage, call_sid)
    assert (await asyncio.wait_for(far.finished(), PATIENCE_S)).packets > 0


async def test_a_party_is_put_through_and_the_other_one_leaves(stage: LiveStage) -> None:
    call_sid = await stage.up(ECHO, verbs=[{"verb": "dial", "target": [{"type": "phone", "number": TONE}]}])
    second = await stage.far(TONE, lambda call: call.heard.ended_by is None)
    await asyncio.wait_for(second.answered(), PATIENCE_S)
    await until(lambda: second.heard.ended_by is None)

    async def transferable() -> None:
        """The second party hears the first a moment after it has answered."""
        while True:
            status, _ = await stage.ask("POST", stage.path(call_sid), {"transfer": {"to": DIGITS}})
            if status != 409:
                return
            await look_again()

    await asyncio.wait_for(transferable(), PATIENCE_S)
    await stage.told(call_sid, "call.transferred")
    await asyncio.wait_for(second.finished(), PATIENCE_S)
    assert second.heard.ended_by == "remote"
    call = await stage.get(call_sid)
    assert call["status"] == "in-progress"
    await hang_up(stage, call_sid)


async def test_transfers_to_nobody_are_refused_at_once(stage: LiveStage) -> None:
    call_sid, _ = await talking(stage)
    for transfer, code, field in (
        ({"to": "nobody"}, "VALIDATION_ERROR", "transfer.to"),
        ({"to": "+919876543210"}, "VALIDATION_ERROR", "transfer.to"),
        ({"to": "+14155550100"}, "FORBIDDEN", None),
        ({"to": TONE, "caller_id": "+918047555999"}, "NUMBER_NOT_OWNED", None),
        ({"to": "sip:x@unknown.example"}, "VALIDATION_ERROR", "transfer.to"),
    ):
        status, error = await stage.ask("POST", stage.path(call_sid), {"transfer": transfer})
        assert (error["code"], status >= 400) == (code, True), error
        assert field is None or error["details"]["errors"][0]["field"] == field
    await hang_up(stage, call_sid)


# --- who answered -------------------------------------------------------------------------------------------


async def test_a_person_is_told_from_a_machine(stage: LiveStage) -> None:
    person, machine = [
        await stage.place(number, verbs=LONG_PAUSE, machine_detection=wanted)
        for number, wanted in ((PERSON, "hangup"), (MACHINE, "detect"))
    ]
    told = await stage.told(person, "call.machine_detection")
    assert (told["data"]["answered_by"], told["data"]["reason"]) == ("human", "short_greeting")
    told = await stage.told(machine, "call.machine_detection")
    assert (told["data"]["answered_by"], told["data"]["status"]) == ("machine", "in-progress")
    assert told["data"]["detection_ms"] > 0
    over = await stage.told(machine, "call.greeting_ended")
    assert over["data"]["reason"] in ("beep", "silence")
    assert (await hang_up(stage, person))["answered_by"] == "human"
    assert (await hang_up(stage, machine))["answered_by"] == "machine"


async def test_a_machine_is_hung_up_on_when_people_are_wanted(stage: LiveStage) -> None:
    call_sid = await stage.place(MACHINE, verbs=LONG_PAUSE, machine_detection="hangup")
    call = await stage.ended(call_sid)
    assert (call["status"], call["hangup_cause"], call["hangup_source"], call["answered_by"]) == (
        "completed",
        "MACHINE_DETECTED",
        "system",
        "machine",
    )


# --- lists --------------------------------------------------------------------------------------------------


async def test_calls_are_found_by_whom_they_were_from_and_to(stage: LiveStage) -> None:
    call_sid = await stage.place("+919800000486", verbs=LONG_PAUSE)
    await stage.ended(call_sid)
    for query, found in (
        ("to=%2B919800000486", True),
        ("to=+919800000486", True),
        ("to=9800000486", True),
        (f"from={NUMBER}&status=busy&direction=outbound", True),
        ("to=sip:nobody@carrier.example", False),
    ):
        status, calls = await stage.ask("GET", f"/v1/calls?{query}")
        assert status == 200
        assert (call_sid in [call["call_sid"] for call in calls]) is found, query
