"""The life of an agent's stream on virtual time: coming back, wishes, fallback, leaving during a transfer."""

import pytest

from callcontrol.calls.effects.agent import (
    ListenAgent,
    OpenAgent,
    StartAgent,
    StopAgent,
    TellAgentDigit,
    TellAgentDone,
    TellAgentError,
    TellAgentHold,
    TellAgentSpeech,
)
from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.media import (
    ControlRecording,
    DetectSpeech,
    FillSilence,
    LinkMedia,
    PlayRingback,
    StartRecording,
    StopAudio,
    StopSpeech,
)
from callcontrol.calls.effects.records import Save, Transcribe
from callcontrol.calls.events.agent import (
    AgentClosed,
    AgentExit,
    AgentHangup,
    AgentHold,
    AgentMute,
    AgentOpened,
    AgentRecord,
    AgentRefused,
    AgentTranscript,
    AgentTransfer,
)
from callcontrol.calls.events.answers import Timer
from callcontrol.calls.events.commands import ListenRequested
from callcontrol.calls.events.legs import LegAnswered, LegConfirmed, LegEnded, LegFailed
from callcontrol.calls.events.media import DigitReceived, LegHeld, SpeechEnded, SpeechStarted
from callcontrol.calls.events.transfers import LegReferred
from callcontrol.calls.plan import FALLBACK_EVENT, Pause, RequestInstructions, Stream
from callcontrol.calls.records.call_form import form_fields
from callcontrol.models import TranscriptSegment
from media.streams import AgentHold as Hold
from media.streams import AgentRecord as Record
from media.streams import Reconnect, choose_stream
from tests.support.call_drive import (
    AGENT,
    A,
    B,
    Drive,
    assert_nothing_left,
    lasting,
    outcome,
    streamed,
)
from tests.support.domain import CALLER

BREAK = AgentClosed(AgentExit.LOST, 1006)
FALLBACK = RequestInstructions("https://customer.example/fallback")


def opened(drive: Drive) -> list[OpenAgent]:
    return [effect for effect in drive.effects if isinstance(effect, OpenAgent)]


def test_an_agent_whose_connection_broke_is_sought_again() -> None:
    drive = lasting()
    first = drive.record.stream
    assert first is not None
    drive.feed(BREAK)
    assert FillSilence(A, "noise") in drive.effects
    assert first.state == "reconnecting"
    assert drive.events()[-1] == "stream.reconnecting"
    drive.feed(DigitReceived(A, "5", 100))
    assert not drive.done(TellAgentDigit), "what the caller presses meanwhile is lost"
    drive.after(0.2)
    assert not opened(drive)
    drive.after(0.1)
    (again,) = opened(drive)
    assert again.reconnect == Reconnect(1, first.stream_sid or "") and again.stream_sid != first.stream_sid
    assert again.budget_s == pytest.approx(4.75)
    drive.feed(AgentOpened())
    kinds = [type(effect) for effect in drive.effects]
    assert kinds.index(FillSilence) < kinds.index(StartAgent)
    second = drive.record.stream
    assert second is not None and (second.stream_sid, second.state) == (again.stream_sid, "streaming")
    started = [effect for effect in drive.done(Save) if effect.event == "stream.started"][-1]
    assert started.details["previous_stream_sid"] == first.stream_sid and started.details["attempt"] == 1
    drive.feed(LegEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "caller")
    assert_nothing_left(drive)


def test_attempts_have_their_times_and_their_end() -> None:
    drive = lasting(10)
    began = drive.now
    drive.feed(BREAK)
    times = []
    for delay_s in (0.25, 0.75, 1.0, 1.0, 1.0):
        drive.after(delay_s)
        assert len(opened(drive)) == 1
        times.append(drive.now - began)
        drive.feed(AgentRefused("connect"))
    assert times == pytest.approx([0.25, 1.0, 2.0, 3.0, 4.0])
    assert outcome(drive) == ("completed", "STREAM_DISCONNECTED", "stream")
    assert "stream.failed" in drive.events()
    assert_nothing_left(drive)


def test_an_attempt_that_takes_long_is_followed_at_once_and_within_the_time() -> None:
    drive = lasting(10)
    drive.feed(BREAK)
    drive.after(2.5)
    drive.feed(AgentRefused("timeout"))
    drive.after(0.0)
    assert [effect.budget_s for effect in opened(drive)] == [pytest.approx(2.5)]
    drive.after(2.5)
    drive.feed(AgentRefused("timeout"))
    assert outcome(drive)[1] == "STREAM_DISCONNECTED"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_agent_that_refuses_to_come_back_is_not_asked_again(status: int) -> None:
    drive = lasting()
    drive.feed(BREAK)
    drive.after(0.3)
    drive.feed(AgentRefused("http_status", status))
    assert outcome(drive) == ("completed", "STREAM_DISCONNECTED", "stream")
    assert_nothing_left(drive)


def test_no_more_attempts_than_were_asked_for() -> None:
    drive = lasting(1)
    drive.feed(BREAK)
    drive.after(0.3)
    drive.feed(AgentOpened(), BREAK)
    assert outcome(drive) == ("completed", "STREAM_DISCONNECTED", "stream")
    assert_nothing_left(drive)


def test_a_connection_that_lasted_begins_to_count_anew() -> None:
    drive = lasting(1)
    for _ in range(3):
        drive.after(11)
        drive.feed(BREAK)
        drive.after(0.3)
        assert opened(drive)[0].reconnect is not None
        drive.feed(AgentOpened())
    drive.feed(AgentHangup(drain=False))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")


def test_a_caller_who_hangs_up_while_the_agent_is_away() -> None:
    drive = lasting()
    drive.feed(BREAK)
    drive.after(0.3)
    drive.feed(LegEnded(A), AgentOpened())
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "caller")
    assert_nothing_left(drive)


def test_without_retries_a_break_ends_the_call() -> None:
    drive = streamed()
    drive.feed(BREAK)
    assert outcome(drive) == ("completed", "STREAM_DISCONNECTED", "stream")


def test_hold_gives_music_and_silence_and_takes_them_back() -> None:
    drive = streamed()
    drive.feed(AgentHold(True))
    assert drive.effects == [
        FillSilence(A, "music"),
        ListenAgent("silence"),
        TellAgentDone(Hold(True)),
    ]
    assert drive.feed(AgentHold(True)) == [TellAgentDone(Hold(True))]
    assert ListenAgent("silence") in drive.feed(AgentMute(True))
    assert ListenAgent("silence") in drive.feed(AgentHold(False)), "it is still mute"
    assert ListenAgent("resume") in drive.feed(AgentMute(False))


def test_what_the_api_orders_goes_before_what_the_agent_wants() -> None:
    drive = streamed()
    assert ListenAgent("pause") in drive.feed(ListenRequested("pause"))
    assert ListenAgent("pause") in drive.feed(AgentMute(True))
    assert ListenAgent("silence") in drive.feed(ListenRequested("resume"))


def test_an_agent_that_comes_back_finds_its_hold() -> None:
    drive = lasting()
    drive.feed(AgentHold(True), BREAK)
    assert FillSilence(A, "noise") not in drive.done(FillSilence), "the music goes on"
    drive.after(0.3)
    drive.feed(AgentOpened())
    assert ListenAgent("silence") in drive.effects
    drive.feed(AgentHangup(drain=False))
    assert drive.done(FillSilence)[-1] == FillSilence(A, None)


def test_an_agent_records_the_call() -> None:
    drive = streamed()
    drive.feed(AgentRecord("pause"))
    assert drive.effects == [TellAgentError("refused", "the call is not being recorded", "record")]
    drive.feed(AgentRecord("start"))
    assert StartRecording(A, 2) in drive.effects
    assert drive.effects[-1] == TellAgentDone(Record("start"))
    drive.feed(AgentRecord("start"))
    assert isinstance(drive.effects[-1], TellAgentError)
    for action in ("pause", "resume", "stop"):
        drive.feed(AgentRecord(action))
        assert ControlRecording(action) in drive.effects
        assert drive.effects[-1] == TellAgentDone(Record(action))


def test_what_an_agent_says_was_said_is_kept() -> None:
    drive = streamed()
    drive.after(3.0)
    drive.feed(AgentTranscript("user", "hel", final=False))
    assert not drive.effects
    drive.feed(AgentTranscript("user", "hello"), AgentTranscript("agent", "hi", True, 1500, 2100))
    assert drive.effects == [
        Transcribe(TranscriptSegment("user", "hello", 3000, 3000)),
        Transcribe(TranscriptSegment("agent", "hi", 1500, 2100)),
    ]


@pytest.mark.parametrize(
    ("failure", "reason", "message"),
    [
        ((AgentRefused("timeout"),), "timeout", "the voice agent could not be reached: timeout"),
        (
            (AgentRefused("http_status", 403),),
            "http_status",
            "the voice agent could not be reached: http_status 403",
        ),
    ],
)
def test_the_fallback_is_asked_when_the_agent_cannot_be_reached(
    failure: tuple[AgentRefused, ...], reason: str, message: str
) -> None:
    drive = Drive(Stream(AGENT.choice, FALLBACK), Pause(1.0)).start()
    drive.feed(*failure)
    (asked,) = drive.done(AskWebhook)
    assert (asked.url, asked.event) == (FALLBACK.url, FALLBACK_EVENT)
    assert dict(asked.facts) == {
        "failed_url": AGENT.choice.url,
        "error_reason": reason,
        "error_message": message,
    }
    assert form_fields(drive.record, asked.facts)["ErrorUrl"] == AGENT.choice.url
    assert "stream.failed" in drive.events()
    assert not drive.record.status.ended


@pytest.mark.parametrize("leaving", [AgentClosed(AgentExit.NORMAL, 1000), BREAK])
@pytest.mark.parametrize("retries", [0, 3])
def test_an_agent_may_leave_before_its_transfer_is_answered(leaving: AgentClosed, retries: int) -> None:
    drive = lasting(retries)
    drive.feed(AgentHold(True), AgentTransfer("+919812345678"), leaving)
    assert drive.effects[-1] == PlayRingback(A)
    assert not drive.record.status.ended
    drive.feed(LegAnswered(B, b"sdp"))
    kinds = [type(effect) for effect in drive.effects]
    assert kinds.index(StopAudio) < kinds.index(StopAgent) < kinds.index(LinkMedia)
    assert "call.transferred" in drive.events()
    drive.feed(LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_an_agent_that_left_and_whose_transfer_fails() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"), AgentClosed(AgentExit.NORMAL, 1000), LegFailed(B, 486))
    assert outcome(drive) == ("completed", "USER_BUSY", "stream")
    assert_nothing_left(drive)


@pytest.mark.parametrize(("status", "cause"), [(200, "NORMAL_CLEARING"), (603, "CALL_REJECTED")])
def test_an_agent_may_leave_before_its_refer_is_over(status: int, cause: str) -> None:
    drive = streamed()
    drive.feed(AgentTransfer("tel:+9198", mode="refer"), AgentClosed(AgentExit.NORMAL, 1000))
    drive.feed(LegReferred(A, 180))
    assert not drive.record.status.ended
    drive.feed(LegReferred(A, status))
    assert outcome(drive) == ("completed", cause, "stream")
    assert ("call.transferred" in drive.events()) is (status == 200)
    assert_nothing_left(drive)


def test_a_caller_who_hangs_up_while_being_handed_over() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"), AgentClosed(AgentExit.NORMAL), LegEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "caller")
    assert drive.record.from_ == CALLER
    assert_nothing_left(drive)


def test_the_timer_of_a_break_does_not_outlive_the_call() -> None:
    drive = lasting()
    drive.feed(BREAK)
    assert Timer.RECONNECT in drive.timers
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


def test_an_agent_is_told_what_its_customer_asked_for() -> None:
    choice = choose_stream("wss://agent.example/ws?stream_events=speech,hold")
    drive = Drive(Stream(choice)).start()
    drive.feed(AgentOpened(), LegConfirmed(A))
    assert DetectSpeech(A) in drive.all
    drive.feed(SpeechStarted(A), SpeechEnded(A, 700), LegHeld(A, True), SpeechStarted(B))
    assert drive.effects == [TellAgentSpeech(True), TellAgentSpeech(False), TellAgentHold(True)]
    drive.feed(AgentHangup(drain=False))
    assert StopSpeech(A) in drive.effects
    unasked = streamed()
    assert not unasked.feed(SpeechStarted(A), LegHeld(A, True))
    assert not unasked.done(DetectSpeech)
