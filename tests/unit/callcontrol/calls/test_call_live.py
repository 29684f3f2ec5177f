"""Orders of the API to calls that are up, and who answered, on virtual time."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from callcontrol.calls.effects.agent import ListenAgent, StopAgent, TellAgentDigitsSent, TellAgentTransfer
from callcontrol.calls.effects.instructions import AskWebhook, StopAsking
from callcontrol.calls.effects.media import (
    ControlRecording,
    DetectMachine,
    LeaveConference,
    LinkMedia,
    MuteLeg,
    PlayAudio,
    PlayRingback,
    SendDigits,
    StartRecording,
    StopAudio,
    StopDetecting,
)
from callcontrol.calls.effects.records import Arm, Save
from callcontrol.calls.effects.signalling import DialLeg, HangUpLeg, RejectLeg
from callcontrol.calls.effects.transfers import AcceptTransfer, TellTransfer
from callcontrol.calls.events.agent import AgentClosed, AgentExit
from callcontrol.calls.events.answers import RouteRefused
from callcontrol.calls.events.commands import (
    DigitsRequested,
    HangupRequested,
    ListenRequested,
    ListenStatus,
    LiveCommand,
    MuteRequested,
    PartyName,
    RecordingRequested,
    RedirectRequested,
    StepsRequested,
    TimeLimitRequested,
    TransferCommand,
)
from callcontrol.calls.events.instructions import InstructionsReceived
from callcontrol.calls.events.legs import LegAnswered, LegEnded, LegFailed, LegProgress
from callcontrol.calls.events.media import (
    ConferenceEntered,
    DigitReceived,
    DigitsSent,
    GreetingOver,
    MachineDetected,
    PlaybackEnded,
    RecordingEnded,
)
from callcontrol.calls.hangup_cause import NO_ANSWER, NO_ROUTE_DESTINATION
from callcontrol.calls.live import control
from callcontrol.calls.live.control import leg_views
from callcontrol.calls.live.requests import LiveUpdate, TransferRequest, commands_of
from callcontrol.calls.plan import Gather, JoinConference, Pause, Play, RequestInstructions, SendDtmf, Step
from callcontrol.errors import DestinationForbidden, Forbidden, ValidationFailed
from callcontrol.models import CallRecord, CallStatus
from callcontrol.models.parties import PhoneTarget
from tests.support.call_drive import (
    AGENT,
    A,
    B,
    C,
    Drive,
    assert_nothing_left,
    bridged,
    forward,
    make_party,
    outcome,
    placed,
    streamed,
)
from tests.support.domain import OWN_NUMBER

NEW = make_party("+919812345678")
NOT_REACHED = {
    "mode": "bridge",
    "to": "+919812345678",
    "sip_status": 486,
    "hangup_cause": "USER_BUSY",
}
MENU = RequestInstructions("https://customer.example/menu")
GIVE_UP = HangupRequested("api", NO_ANSWER, CallStatus.NO_ANSWER)


def to_new(party: PartyName = "a") -> TransferCommand:
    return TransferCommand(party, NEW)


def reject_reason(drive: Drive, command: LiveCommand) -> str | None:
    """Return the reason to refuse a command; a refused one must do nothing."""
    reason = control.reject_reason(drive.machine, command)
    if reason is not None:
        assert drive.feed(command) == []
    return reason


def status(drive: Drive) -> str | None:
    return drive.record.recording_status


def details(drive: Drive, event: str) -> list[dict[str, object]]:
    return [dict(effect.details) for effect in drive.done(Save) if effect.event == event]


# --- the end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inbound", [True, False])
def test_a_call_that_nobody_answered_yet_is_given_up(inbound: bool) -> None:
    drive = Drive(Pause(1), inbound=inbound)
    drive.obliging = False
    drive.start()
    drive.feed(LegProgress(A, 180))
    drive.feed(GIVE_UP)
    assert outcome(drive) == ("no-answer", "NO_ANSWER", "api")
    assert bool(drive.done(RejectLeg)) is inbound
    if inbound:
        assert drive.done(RejectLeg)[0].status == 480


def test_an_answered_call_is_not_given_up_but_ended() -> None:
    drive = streamed()
    assert reject_reason(drive, GIVE_UP) == "the call was answered; end it with completed"
    drive.feed(HangupRequested())
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")


@pytest.mark.parametrize(("limit_s", "left_s"), [(100.0, 70.0), (10.0, 0.0)])
def test_a_new_time_limit_counts_from_the_answer(limit_s: float, left_s: float) -> None:
    drive = streamed()
    drive.after(30)
    drive.feed(TimeLimitRequested(limit_s))
    drive.after(left_s - 1 if left_s else 0)
    assert drive.record.status.ended is (left_s == 0.0)
    drive.after(1)
    assert outcome(drive) == ("completed", "ALLOTTED_TIMEOUT", "system")


def test_a_time_limit_may_be_set_before_the_answer() -> None:
    drive = Drive(Pause(600), inbound=False).start()
    drive.feed(TimeLimitRequested(5.0))
    drive.after(20)
    drive.feed(LegAnswered(A, b"sdp"))
    drive.after(5)
    assert outcome(drive) == ("completed", "ALLOTTED_TIMEOUT", "system")


# --- what is heard ------------------------------------------------------------------------------------------


def test_either_party_may_be_muted_while_both_are_there() -> None:
    drive = bridged()
    assert drive.feed(MuteRequested("a", says=True)) == [MuteLeg(A, says=True, hears=False)]
    assert drive.feed(MuteRequested("b", hears=True)) == [MuteLeg(B, says=False, hears=True)]
    ringing = forward()
    for party in ("a", "b"):
        assert reject_reason(ringing, MuteRequested(party, says=True)) == f"its party {party} is not there"
    assert reject_reason(streamed(), MuteRequested("b", says=True)) == "its party b is not there"


def shown(drive: Drive) -> list[tuple[object, ...]]:
    """Party and mute of each leg of a call that is not over."""
    return [(leg.leg, leg.name, leg.muted) for leg in leg_views(drive.machine)]


def test_legs_say_by_which_party_they_are_muted_and_how() -> None:
    assert leg_views(Drive(Pause(9), inbound=False).machine) == []
    assert shown(forward()) == [(A, None, None), (B, None, None)], "neither is answered"
    drive = bridged()
    assert shown(drive) == [(A, "a", None), (B, "b", None)]
    assert drive.machine._transfers is None, "a look makes nothing"
    drive.feed(MuteRequested("a", says=True))
    assert drive.feed(MuteRequested("a", says=True)) == [], "it is muted already"
    assert shown(drive) == [(A, "a", "says"), (B, "b", None)]
    assert drive.feed(MuteRequested("a", hears=True)) == [MuteLeg(A, says=True, hears=True)]
    assert shown(drive)[0] == (A, "a", "both")
    drive.feed(MuteRequested("a", says=False))
    assert shown(drive)[0] == (A, "a", "hears")
    drive.feed(MuteRequested("a", hears=False))
    assert shown(drive)[0] == (A, "a", None)


def test_an_agent_hears_what_the_api_lets_it_hear() -> None:
    drive = streamed()
    stream = drive.record.stream
    assert stream is not None
    states: dict[ListenStatus, str] = {"pause": "paused", "silence": "silenced", "resume": "streaming"}
    for status, state in states.items():
        drive.feed(ListenRequested(status))
        assert drive.effects == [ListenAgent(status), Save()]
        assert stream.state == state
    for other in (bridged(), Drive(AGENT).start(), placed(Pause(9))):
        assert reject_reason(other, ListenRequested("pause")) == "no agent hears the call"


def test_digits_of_the_api_are_no_digits_of_the_plan() -> None:
    drive = placed(SendDtmf("123"), Pause(60))
    drive.feed(DigitsRequested("a", "9"))
    assert drive.effects == [SendDigits(A, "9", by_api=True)]
    assert drive.feed(DigitsSent(A, "9", by_api=True)) == [], "the plan still waits for its own"
    assert any(isinstance(effect, Arm) for effect in drive.feed(DigitsSent(A, "123")))
    agent = streamed()
    agent.feed(DigitsRequested("a", "9"), DigitsSent(A, "9", by_api=True))
    assert not agent.done(TellAgentDigitsSent)
    assert bridged().feed(DigitsRequested("b", "9")) == [SendDigits(B, "9", by_api=True)]
    assert reject_reason(forward(), DigitsRequested("b", "9")) is not None


# --- recording ----------------------------------------------------------------------------------------------


def test_a_recording_is_started_paused_resumed_and_stopped() -> None:
    drive = bridged()
    for action in ("stop", "pause", "resume"):
        assert reject_reason(drive, RecordingRequested(action)) == "the call is not being recorded"
    drive.feed(RecordingRequested("start", 1))
    assert drive.effects[0] == StartRecording(A, 1)
    assert reject_reason(drive, RecordingRequested("start")) == "the call is being recorded already"
    drive.feed(RecordingRequested("pause"))
    assert drive.effects == [ControlRecording("pause"), Save()]
    assert status(drive) == "paused"
    drive.feed(RecordingRequested("pause"))
    assert drive.effects == [ControlRecording("pause")], "nothing has changed"
    drive.feed(RecordingRequested("resume"))
    assert status(drive) == "in-progress"
    drive.feed(RecordingRequested("stop"), RecordingEnded(A, "/x.wav", 1200))
    assert drive.record.recording_status == "completed"
    assert details(drive, "call.recording.ready") == [{"recording_duration_ms": 1200}]
    assert "one recording" in str(reject_reason(drive, RecordingRequested("start")))
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


def test_the_end_of_a_paused_recording_is_waited_for() -> None:
    drive = bridged(record=True)
    drive.feed(RecordingRequested("pause"), LegEnded(A))
    assert drive.record.status.ended and not drive.machine.finished
    drive.feed(RecordingEnded(A, "/x.wav", 500))
    assert drive.record.recording_status == "completed"
    assert_nothing_left(drive)


def test_a_call_that_was_not_answered_is_not_recorded() -> None:
    assert reject_reason(forward(), RecordingRequested("start")) == "the call was not answered yet"


# --- transfers ----------------------------------------------------------------------------------------------


def test_the_party_of_an_agent_is_put_through() -> None:
    drive = streamed()
    drive.feed(to_new())
    assert drive.done(DialLeg)[-1].party.target == PhoneTarget("+919812345678")
    drive.feed(LegProgress(B, 180))
    assert not drive.done(PlayRingback), "it hears its agent meanwhile"
    drive.feed(LegAnswered(B, b"sdp"))
    assert LinkMedia(A, B) in drive.effects
    assert StopAgent("stopped", "transferred") in drive.effects
    assert not drive.done(TellAgentTransfer), "the agent asked for nothing"
    assert details(drive, "call.transferred") == [{"transfer": {"mode": "bridge", "to": "+919812345678"}}]
    drive.feed(LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_an_agent_keeps_its_party_when_nobody_is_reached() -> None:
    drive = streamed()
    drive.feed(to_new(), LegFailed(B, 486))
    assert details(drive, "call.transfer_failed") == [{"transfer": NOT_REACHED}]
    assert not drive.done(TellAgentTransfer)
    assert reject_reason(drive, to_new()) is None
    drive.feed(AgentClosed(AgentExit.AT_ONCE))
    assert_nothing_left(drive)


@pytest.mark.parametrize(("party", "stays", "leaves"), [("a", A, B), ("b", B, A)])
def test_a_party_is_put_through_and_the_other_one_leaves(party: PartyName, stays: int, leaves: int) -> None:
    drive = bridged()
    drive.feed(to_new(party))
    assert reject_reason(drive, to_new()) == "its parties are being transferred already"
    drive.feed(LegProgress(C, 180), LegAnswered(C, b"sdp"))
    assert LinkMedia(stays, C) in drive.effects
    assert not drive.done(AcceptTransfer) and not drive.done(TellTransfer), "nobody sent a REFER"
    drive.after(0.1)
    assert any(isinstance(e, HangUpLeg) and e.leg == leaves for e in drive.all)
    assert details(drive, "call.transferred") == [{"transfer": {"mode": "bridge", "to": "+919812345678"}}]
    drive.feed(LegEnded(C))
    assert drive.record.status is CallStatus.COMPLETED
    assert_nothing_left(drive)


def test_two_parties_go_on_talking_when_nobody_is_reached() -> None:
    drive = bridged()
    drive.feed(to_new(), LegFailed(C, 404))
    assert not drive.record.status.ended
    assert details(drive, "call.transfer_failed")[0]["transfer"] == {
        "mode": "bridge",
        "to": "+919812345678",
        "sip_status": 404,
        "hangup_cause": "UNALLOCATED_NUMBER",
    }
    drive.obliging = False
    drive.feed(to_new(), RouteRefused(NO_ROUTE_DESTINATION, "no"))
    assert details(drive, "call.transfer_failed")[1]["transfer"] == {
        "mode": "bridge",
        "to": "+919812345678",
        "sip_status": None,
        "hangup_cause": "NO_ROUTE_DESTINATION",
    }
    drive.obliging = True
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


def test_whoever_plays_something_stops_and_lets_it_ring() -> None:
    drive = placed(Play("prompt:x"), Pause(5))
    drive.feed(to_new())
    assert drive.effects[0] == StopAudio(A)
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    assert PlayRingback(A) in drive.all and LinkMedia(A, B) in drive.all
    assert drive.events()[-1] == "call.transferred"
    drive.feed(LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)
    nobody = placed(Play("prompt:x"), Pause(5))
    nobody.feed(to_new(), LegFailed(B, 486))
    assert outcome(nobody) == ("completed", "USER_BUSY", "callee")
    assert details(nobody, "call.transfer_failed") == [{"transfer": NOT_REACHED}]
    assert_nothing_left(nobody)


def test_a_member_of_a_conference_leaves_it_only_for_a_party_that_answers() -> None:
    drive = placed(JoinConference("sales"))
    drive.feed(ConferenceEntered(A, False), to_new())
    assert reject_reason(drive, to_new()) == "its parties are being transferred already"
    drive.feed(LegProgress(B, 183, b"sdp"), LegFailed(B, 486))
    assert details(drive, "call.transfer_failed") == [{"transfer": NOT_REACHED}]
    assert not drive.done(LeaveConference) and not drive.done(PlayRingback) and not drive.done(LinkMedia)
    drive.feed(to_new(), LegAnswered(C, b"sdp"))
    assert drive.effects.index(LeaveConference(A)) < drive.effects.index(LinkMedia(A, C))
    assert drive.events()[-2:] == ["conference.left", "call.transferred"]
    drive.feed(LegEnded(C))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


def test_keys_are_gathered_while_a_transfer_rings_and_the_plan_goes_on_when_it_fails() -> None:
    drive = placed(Gather((Play("prompt:menu"),), num_digits=2, action=MENU), Pause(5))
    drive.feed(to_new(), DigitReceived(A, "4", 100), LegFailed(B, 486))
    assert details(drive, "call.transfer_failed") == [{"transfer": NOT_REACHED}]
    drive.feed(DigitReceived(A, "2", 100))
    assert dict(drive.done(AskWebhook)[0].facts)["digits"] == "42"
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)


def test_a_party_whose_step_is_over_hears_ringing_until_the_transfer_is_decided() -> None:
    drive = placed(Gather(num_digits=1, action=MENU), Pause(5))
    drive.feed(to_new(), DigitReceived(A, "4", 100))
    assert drive.effects[-1] == PlayRingback(A) and not drive.done(AskWebhook)
    drive.feed(LegFailed(B, 486))
    assert StopAudio(A) in drive.effects and len(drive.done(AskWebhook)) == 1
    drive.feed(LegEnded(A))
    assert_nothing_left(drive)
    reached = placed(Gather(num_digits=1, action=MENU), Pause(5))
    reached.feed(to_new(), DigitReceived(A, "4", 100), LegAnswered(B, b"sdp"))
    assert StopAudio(A) in reached.effects and not reached.done(AskWebhook)
    reached.feed(LegEnded(B))
    assert outcome(reached) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(reached)


def test_a_call_that_ends_or_is_sent_elsewhere_gives_its_transfer_up() -> None:
    drive = placed(JoinConference("sales"))
    drive.feed(ConferenceEntered(A, False), to_new(), LegEnded(A))
    assert LeaveConference(A) in drive.effects and drive.done(HangUpLeg)[0].leg == B
    assert_nothing_left(drive)
    sent = placed(JoinConference("sales"))
    sent.feed(ConferenceEntered(A, False), to_new(), RedirectRequested("https://x.example/"))
    sent.feed(InstructionsReceived(1, (Play("prompt:x"),)))
    assert LeaveConference(A) in sent.effects and sent.done(HangUpLeg)[0].leg == B
    sent.feed(PlaybackEnded(A))
    assert outcome(sent) == ("completed", "NORMAL_CLEARING", "system")
    assert_nothing_left(sent)


def test_a_call_is_given_other_steps_instead_of_its_own() -> None:
    drive = placed(Pause(60), Play("prompt:never"))
    drive.feed(RedirectRequested("https://x.example/"), StepsRequested((Play("prompt:now"),)))
    assert [effect.number for effect in drive.done(StopAsking)] == [1]
    assert [effect.url for effect in drive.done(PlayAudio)] == ["prompt:now"]
    drive.feed(InstructionsReceived(1, (Pause(9),)), PlaybackEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")
    assert_nothing_left(drive)
    unanswered = Drive(Pause(9), inbound=False).start()
    assert reject_reason(unanswered, StepsRequested((Pause(1),))) is not None


def test_what_cannot_be_transferred() -> None:
    assert reject_reason(Drive(Pause(9), inbound=False).start(), to_new()) == "the call was not answered yet"
    assert reject_reason(streamed(), to_new("b")) == "it has no second party"
    dialling = placed(Pause(1), forward().plan.steps[0])
    dialling.after(2)
    assert reject_reason(dialling, to_new()) == "its second party is still being called"
    leaving = streamed()
    leaving.feed(AgentClosed(AgentExit.NORMAL))
    assert reject_reason(leaving, to_new()) is not None


def test_a_server_is_asked_what_to_do_with_a_call_that_is_there() -> None:
    ask = RedirectRequested("https://x.example/")
    assert reject_reason(streamed(), ask) is None
    assert reject_reason(forward(), ask) is None, "a caller who waits may be sent elsewhere"
    placed_only = Drive(Pause(9), inbound=False).start()
    assert (
        control.reject_reason(placed_only.machine, ask) == "the call cannot be redirected: it is not answered"
    )
    moving = bridged()
    moving.feed(to_new())
    assert "being transferred" in str(control.reject_reason(moving.machine, ask))


# --- who answered -------------------------------------------------------------------------------------------


def test_who_answered_is_told_once() -> None:
    drive = placed(Pause(60), machine_detection="detect")
    assert drive.done(DetectMachine) == [DetectMachine(A)]
    drive.feed(MachineDetected(A, "machine", "long_greeting", 1900), MachineDetected(A, "human", "x", 1))
    assert drive.record.answered_by == "machine"
    assert details(drive, "call.machine_detection") == [{"reason": "long_greeting", "detection_ms": 1900}]
    drive.feed(GreetingOver(A, "beep", 7000))
    assert drive.effects == [
        Save("call.greeting_ended", {"reason": "beep", "detection_ms": 7000}),
        StopDetecting(A),
    ]


@pytest.mark.parametrize("who", ["human", "unknown"])
def test_people_are_not_hung_up_on(who: str) -> None:
    drive = placed(Pause(60), machine_detection="hangup")
    drive.feed(MachineDetected(A, who, "short_greeting", 1200))
    assert drive.record.answered_by == who
    assert StopDetecting(A) in drive.effects
    assert not drive.record.status.ended


def test_a_machine_is_hung_up_on_when_people_were_wanted() -> None:
    drive = placed(AGENT, machine_detection="hangup")
    drive.feed(MachineDetected(A, "machine", "beep", 900))
    assert outcome(drive) == ("completed", "MACHINE_DETECTED", "system")
    assert drive.events()[-1] == "call.machine_detection"


def test_nobody_is_listened_for_unless_asked() -> None:
    assert not placed(Pause(60)).done(DetectMachine)


# --- requests -----------------------------------------------------------------------------------------------


def steps_of(record: CallRecord, verbs: Sequence[Mapping[str, Any]], webhook_format: str) -> list[Step]:
    assert (record.direction, webhook_format) == ("inbound", "json")
    return [Pause(verb["length"]) for verb in verbs]


def read(**update: Any) -> list[LiveCommand]:
    return commands_of(LiveUpdate(**update), streamed().record, {"IN"}, check_url, steps_of)


def check_url(url: str, *, schemes: object) -> None:
    if "10.0.0.1" in url:
        raise DestinationForbidden("leads to a private address")
    if not url.startswith("http"):
        raise ValidationFailed.of("url", "must be http or https")


def test_a_request_means_its_orders_in_their_order() -> None:
    assert read(
        party="b",
        mute_status="mute",
        mute_direction="both",
        listen_status="silence",
        recording="start",
        recording_channels="mono",
        digits="1",
        digits_party="b",
        time_limit_s=9.0,
        transfer=TransferRequest(to="9812345678", timeout_s=5.0, headers=(("X-A", "b"),)),
    ) == [
        TimeLimitRequested(9.0),
        MuteRequested("b", says=True, hears=True),
        ListenRequested("silence"),
        RecordingRequested("start", 1),
        DigitsRequested("b", "1"),
        TransferCommand(
            "a",
            make_party("+919812345678", caller_id=OWN_NUMBER, ring_timeout_s=5.0, headers=(("X-A", "b"),)),
        ),
    ]
    assert read(mute_status="unmute", mute_direction="hears") == [MuteRequested("a", hears=False)]
    assert read(call_status="no-answer") == [GIVE_UP]
    assert read(webhook_url="https://x.example/") == [RedirectRequested("https://x.example/")]
    assert read(verbs=[{"length": 3}]) == [StepsRequested((Pause(3),))]


@pytest.mark.parametrize("url", ["ftp://x.example/", "http://10.0.0.1/"])
def test_a_webhook_must_be_one_that_may_be_reached(url: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        read(webhook_url=url)
    assert [error.field for error in refused.value.errors] == ["webhook_url"]


def test_a_transfer_names_what_is_wrong_with_it() -> None:
    with pytest.raises(ValidationFailed) as refused:
        read(transfer=TransferRequest(to="nobody", caller_id="no one"))
    assert [error.field for error in refused.value.errors] == ["transfer.to", "transfer.caller_id"]
    with pytest.raises(Forbidden):
        read(transfer=TransferRequest(to="+14155550100"))
