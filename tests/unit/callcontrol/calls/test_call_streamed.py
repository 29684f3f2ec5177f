"""Streamed and transferred calls on virtual time: every way they can go and end."""

import pytest

from callcontrol.calls.effects.agent import (
    DrainAgent,
    OpenAgent,
    StartAgent,
    StopAgent,
    TellAgentDigit,
    TellAgentDigitsSent,
    TellAgentError,
    TellAgentTransfer,
)
from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.media import LinkMedia, PlayAudio, SendDigits
from callcontrol.calls.effects.records import Arm, Finish, Save
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RejectLeg, RingLeg, TakeOffer
from callcontrol.calls.effects.transfers import ReferLeg
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import (
    AgentClosed,
    AgentDigits,
    AgentExit,
    AgentHangup,
    AgentOpened,
    AgentRefused,
    AgentTransfer,
)
from callcontrol.calls.events.answers import Timer
from callcontrol.calls.events.instructions import InstructionsReceived
from callcontrol.calls.events.legs import (
    LegAnswered,
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegProgress,
)
from callcontrol.calls.events.media import DigitReceived, DigitsSent, PlaybackEnded, PlayoutDrained
from callcontrol.calls.events.transfers import LegReferred
from callcontrol.calls.plan import FALLBACK_EVENT, Pause, Play, RequestInstructions, Stream
from callcontrol.models import CallStatus
from tests.support.call_drive import (
    AGENT,
    A,
    B,
    Drive,
    assert_nothing_left,
    outcome,
    streamed,
)

FALLBACK = RequestInstructions("https://customer.example/fallback", event=FALLBACK_EVENT)


def test_a_caller_is_answered_when_the_agent_is_there() -> None:
    drive = Drive(AGENT).start()
    assert [type(effect) for effect in drive.all] == [TakeOffer, RingLeg, Save, OpenAgent]
    drive.feed(AgentOpened())
    assert [effect for effect in drive.effects if isinstance(effect, AnswerLeg | StartAgent)] == [
        AnswerLeg(A),
        StartAgent(A),
    ]
    drive.feed(DigitReceived(A, "5", 160))
    assert TellAgentDigit("5", 160) in drive.effects
    drive.feed(LegEnded(A))
    assert StopAgent("callended", "caller_hangup") in drive.effects
    assert drive.events() == [
        "call.ringing",
        "call.answered",
        "stream.started",
        "call.dtmf",
        "stream.stopped",
    ]
    assert_nothing_left(drive)


def test_an_agent_that_refuses() -> None:
    drive = Drive(AGENT).start()
    drive.feed(AgentRefused("http_status", 403, 1))
    assert outcome(drive) == ("failed", "STREAM_DISCONNECTED", "stream")
    assert drive.done(RejectLeg)[0].status == 480
    saved = [effect for effect in drive.done(Save) if effect.event == "stream.failed"]
    assert saved[0].details["http_status"] == 403
    assert_nothing_left(drive)


def test_a_caller_who_cancels_while_the_agent_is_connected() -> None:
    drive = Drive(AGENT).start()
    drive.feed(LegCancelled(A))
    assert StopAgent("callended", "caller_hangup") in drive.effects
    drive.feed(AgentOpened(), AgentRefused("timeout"))
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    "leaving", [AgentClosed(AgentExit.NORMAL, 1000), AgentHangup(drain=True)], ids=["close", "hangup"]
)
def test_an_agent_that_leaves_is_heard_to_its_end(leaving: AgentClosed | AgentHangup) -> None:
    drive = streamed()
    drive.feed(leaving)
    assert drive.effects == [Arm(Timer.DRAIN, 10.0), DrainAgent(A)]
    drive.feed(AgentClosed(AgentExit.LOST), AgentDigits("1"), DigitReceived(A, "1", 100))
    drive.after(4)
    drive.feed(PlayoutDrained(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert_nothing_left(drive)


@pytest.mark.parametrize("drain", [True, False])
@pytest.mark.parametrize("ends_call", [True, False])
def test_an_agent_ends_the_call_or_its_stream_alone(drain: bool, ends_call: bool) -> None:
    drive = Drive(AGENT, Pause(3.0)).start()
    drive.feed(AgentOpened(), LegConfirmed(A))
    drive.feed(AgentHangup(drain, ends_call))
    if drain:
        drive.feed(PlayoutDrained(A))
    assert (drive.record.status is CallStatus.COMPLETED) is ends_call
    drive.after(3.1)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream" if ends_call else "system")
    assert_nothing_left(drive)


def test_the_last_words_of_an_agent_are_bounded() -> None:
    drive = streamed()
    drive.feed(AgentClosed(AgentExit.NORMAL, 1000))
    drive.after(9.9)
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.after(0.2)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    ("leaving", "cause"),
    [
        (AgentClosed(AgentExit.AT_ONCE, 4000), "NORMAL_CLEARING"),
        (AgentHangup(drain=False), "NORMAL_CLEARING"),
        (AgentClosed(AgentExit.LOST, 1006), "STREAM_DISCONNECTED"),
    ],
)
def test_an_agent_that_leaves_at_once(leaving: AgentClosed | AgentHangup, cause: str) -> None:
    drive = streamed()
    drive.feed(leaving)
    assert outcome(drive) == ("completed", cause, "stream")
    assert ("stream.failed" in drive.events()) is (cause == "STREAM_DISCONNECTED")
    assert_nothing_left(drive)


def test_an_agent_sends_digits() -> None:
    drive = streamed()
    assert drive.feed(AgentDigits("1#", 100, 50)) == [SendDigits(A, "1#", 100, 50)]
    assert drive.feed(DigitsSent(A, "1#")) == [TellAgentDigitsSent("1#")]
    drive.feed(DigitsSent(A, "1#", "the far end takes none"))
    assert drive.effects == [TellAgentError("dtmf_unavailable", "the far end takes none", "dtmf")]


def test_an_outbound_party_and_its_agent() -> None:
    drive = Drive(AGENT, inbound=False).start()
    assert not drive.done(OpenAgent)
    drive.feed(LegProgress(A, 180), LegProgress(A, 180))
    assert len(drive.done(OpenAgent)) == 1
    drive.feed(AgentOpened())
    assert not drive.done(StartAgent)
    drive.feed(LegAnswered(A, b"sdp"))
    assert drive.done(StartAgent) == [StartAgent(A)]
    drive.feed(LegEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_an_outbound_party_that_answers_before_its_agent() -> None:
    drive = Drive(AGENT, inbound=False).start()
    drive.feed(LegAnswered(A, b"sdp"))
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.feed(AgentOpened())
    assert drive.done(StartAgent) == [StartAgent(A)]


def test_an_agent_that_is_lost_while_the_party_rings() -> None:
    for news in (AgentClosed(AgentExit.LOST), AgentClosed(AgentExit.NORMAL), AgentHangup()):
        drive = Drive(AGENT, inbound=False).start()
        drive.feed(LegProgress(A, 180), AgentOpened(), news)
        assert outcome(drive) == ("failed", "STREAM_DISCONNECTED", "stream")
        assert drive.done(HangUpLeg)[0].leg == A
        assert_nothing_left(drive)


@pytest.mark.parametrize(
    "news",
    [(AgentRefused("http_status", 404),), (AgentOpened(), AgentClosed(AgentExit.LOST))],
    ids=["refused", "lost"],
)
def test_an_agent_that_fails_while_the_party_rings_leaves_the_answer_to_the_fallback(
    news: tuple[Event, ...],
) -> None:
    drive = Drive(Stream(AGENT.choice, FALLBACK), Play("prompt:sorry"), inbound=False).start()
    drive.feed(LegProgress(A, 180), *news, LegProgress(A, 180))
    assert drive.record.status is CallStatus.RINGING
    assert drive.events()[-1] == "stream.failed"
    assert not drive.done(AskWebhook), "instructions are for a party that is there"
    drive.feed(LegAnswered(A, b"sdp"))
    assert [(asked.url, asked.event) for asked in drive.done(AskWebhook)] == [(FALLBACK.url, FALLBACK.event)]
    drive.feed(InstructionsReceived(1, (Play("prompt:bye"),)), PlaybackEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")
    assert_nothing_left(drive)


def test_an_agent_that_fails_while_the_party_rings_leaves_the_answer_to_the_next_step() -> None:
    drive = Drive(AGENT, AGENT, Play("prompt:sorry"), inbound=False, routes=2).start()
    drive.feed(LegProgress(A, 180), AgentRefused("http_status", 401), LegProgress(A, 183), LegFailed(A, 503))
    assert len(drive.done(OpenAgent)) == 1, "the second agent is connected at the answer"
    drive.feed(LegAnswered(1, b"sdp"))
    assert len(drive.done(OpenAgent)) == 2
    drive.feed(AgentRefused("http_status", 401))
    assert drive.done(PlayAudio) == [PlayAudio(1, "prompt:sorry")]


def test_a_party_that_does_not_answer_after_its_agent_failed() -> None:
    drive = Drive(AGENT, Play("prompt:sorry"), inbound=False).start()
    drive.feed(LegProgress(A, 180), AgentRefused("http_status", 401), LegFailed(A, 486))
    assert outcome(drive) == ("busy", "USER_BUSY", "callee")
    assert_nothing_left(drive)


def test_an_agent_connected_while_ringing_survives_a_change_of_gateway() -> None:
    drive = Drive(AGENT, inbound=False, routes=2).start()
    drive.feed(LegProgress(A, 180), AgentOpened(), LegFailed(A, 503))
    drive.feed(LegAnswered(1, b"sdp"))
    assert drive.done(StartAgent) == [StartAgent(1)]
    drive.feed(LegEnded(1))
    assert_nothing_left(drive)


def test_a_plan_may_go_on_after_an_agent() -> None:
    drive = Drive(AGENT, Play("prompt:bye")).start()
    drive.feed(AgentOpened(), AgentClosed(AgentExit.AT_ONCE, 4000))
    assert drive.done(PlayAudio) == [PlayAudio(A, "prompt:bye")]
    drive.feed(PlaybackEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")


def test_a_fallback_for_an_agent_that_refuses() -> None:
    drive = Drive(AGENT, Play("prompt:sorry")).start()
    drive.feed(AgentRefused("timeout"))
    assert AnswerLeg(A) in drive.effects
    assert drive.done(PlayAudio) == [PlayAudio(A, "prompt:sorry")]


def test_a_transfer_takes_the_place_of_the_stream() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"))
    assert drive.done(DialLeg)[0].party.caller_id == "+918047491899"
    drive.feed(LegProgress(B, 180))
    assert drive.effects == [TellAgentTransfer("ringing", 180)]
    drive.feed(LegAnswered(B, b"sdp"))
    kinds = [type(effect) for effect in drive.effects]
    assert kinds.index(StopAgent) < kinds.index(LinkMedia)
    assert StopAgent("stopped", "transferred") in drive.effects
    drive.feed(AgentClosed(AgentExit.NORMAL), LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert drive.done(Finish)[0].charge_paise == 100
    assert_nothing_left(drive)


def test_a_transfer_that_fails_leaves_the_stream() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"), LegFailed(B, 486))
    assert drive.effects[-1] == TellAgentTransfer("failed", 486, "USER_BUSY")
    drive.feed(AgentTransfer("+919812345678"), AgentTransfer("+919812345679"))
    assert isinstance(drive.effects[-1], TellAgentError)
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


def test_transfers_that_are_refused() -> None:
    for command in (AgentTransfer("nobody"), AgentTransfer("+919812345678", mode="conference")):
        drive = streamed()
        drive.feed(command)
        assert isinstance(drive.effects[-1], TellAgentError)
        assert not drive.done(DialLeg)


@pytest.mark.parametrize(
    ("to", "target"),
    [("+919812345678", "tel:+919812345678"), ("tel:+9198", "tel:+9198"), ("sip:a@b?X-A=1", "sip:a@b?X-A=1")],
)
def test_an_agent_sends_the_party_elsewhere_by_refer(to: str, target: str) -> None:
    drive = streamed()
    drive.feed(AgentTransfer(to, mode="refer"))
    assert drive.done(ReferLeg) == [ReferLeg(A, target)]
    drive.feed(LegReferred(A, 100), LegReferred(A, 180), LegReferred(A, 200))
    assert [effect.status for effect in drive.done(TellAgentTransfer)] == ["ringing", "answered"]
    assert "call.transferred" in drive.events()
    assert drive.done(StopAgent)[0].detail == "transferred"
    assert_nothing_left(drive)


def test_a_refer_that_fails_leaves_the_stream() -> None:
    drive = streamed()
    drive.feed(LegReferred(A, 200))
    drive.feed(AgentTransfer("tel:+9198", mode="refer"), AgentTransfer("+919812345678"))
    assert isinstance(drive.effects[-1], TellAgentError)
    drive.feed(LegReferred(A, 603))
    assert drive.effects == [TellAgentTransfer("failed", 603, "CALL_REJECTED")]
    drive.feed(AgentTransfer("+919812345678"), LegAnswered(B, b"sdp"), LegEnded(B))
    assert_nothing_left(drive)


def test_an_agent_that_leaves_during_a_transfer_gives_it_up() -> None:
    drive = streamed()
    drive.feed(AgentTransfer("+919812345678"), AgentHangup(drain=False))
    assert drive.done(HangUpLeg)[0].leg == B
    assert_nothing_left(drive)


def test_an_event_shows_the_call_of_its_moment() -> None:
    drive = Drive(AGENT, inbound=False)
    drive.record.status_webhook_url = "https://customer.example/events"
    drive.start()
    drive.feed(LegProgress(A, 180))
    drive.feed(LegAnswered(A, b"sdp"))
    drive.feed(AgentOpened())
    drive.feed(LegEnded(A))
    shown = {effect.event: effect.shown for effect in drive.done(Save) if effect.shown is not None}
    assert {name: (call["status"], (call["stream"] or {}).get("state")) for name, call in shown.items()} == {
        "call.ringing": ("ringing", None),
        "call.answered": ("in-progress", "connecting"),
        "stream.started": ("in-progress", "streaming"),
        "stream.stopped": ("in-progress", "stopped"),
    }
