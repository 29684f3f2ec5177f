"""Steps that jambonz's verbs need: the way on behind a hook, tags, recordings by a plan, transfers."""

from __future__ import annotations

import pytest

from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.media import ControlRecording, PlaySounds, StartRecording
from callcontrol.calls.effects.records import Save
from callcontrol.calls.effects.signalling import DialLeg
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentClosed, AgentExit, AgentOpened, AgentRefused, VendorError
from callcontrol.calls.events.instructions import InstructionsReceived
from callcontrol.calls.events.legs import LegAnswered, LegConfirmed, LegEnded, LegFailed
from callcontrol.calls.events.media import DigitReceived
from callcontrol.calls.plan import (
    Annotate,
    Answer,
    ChangeRecording,
    Gather,
    Hangup,
    Pause,
    RequestInstructions,
    Stream,
    TransferParty,
    WebhookFormat,
)
from media.streams import choose_model
from tests.support.call_drive import AGENT, A, B, Drive, assert_nothing_left, make_party, outcome

HOOK = "https://customer.example/hook"


def asked(*otherwise: Pause | Hangup) -> RequestInstructions:
    return RequestInstructions(HOOK, event="call.gathered", format="jambonz", otherwise=otherwise)


def test_a_server_without_a_word_lets_the_list_go_on_where_it_is_to() -> None:
    drive = Drive(Answer(), asked(Pause(1.0), Hangup())).start()
    drive.answer_a()
    drive.feed(InstructionsReceived(1, ()))
    assert not drive.record.status.ended
    drive.after(1.1)
    assert outcome(drive)[0] == "completed"
    assert_nothing_left(drive)


def test_the_words_of_a_server_replace_the_list() -> None:
    drive = Drive(Answer(), asked(Pause(100.0))).start()
    drive.answer_a()
    drive.feed(InstructionsReceived(1, (Hangup(),)))
    assert outcome(drive)[0] == "completed"


def test_a_waiting_caller_goes_on_with_the_list_too() -> None:
    drive = Drive(asked(Answer(), Pause(1.0))).start()  # type: ignore[arg-type]  # any steps may follow
    drive.feed(InstructionsReceived(1, ()))
    drive.answer_a()
    assert drive.record.answered_at is not None


def test_a_key_shortens_the_wait_for_the_next() -> None:
    drive = Drive(Answer(), Gather(timeout_s=10.0, inter_digit_s=2.0, action=asked()), Hangup()).start()
    drive.answer_a()
    drive.after(5.0)
    drive.feed(DigitReceived(A, "4", 100))
    drive.after(1.9)
    assert not drive.done(AskWebhook)
    drive.after(0.2)
    (request,) = drive.done(AskWebhook)
    assert dict(request.facts) == {"digits": "4", "finished_on_key": None}


def test_details_are_added_while_a_caller_waits() -> None:
    drive = Drive(Annotate({"a": 1, "b": 1}), Annotate({"b": 2}), Pause(1.0)).start()
    assert drive.record.details == {"a": 1, "b": 2}
    assert drive.record.answered_at is None
    assert len([save for save in drive.done(Save) if save.event is None]) >= 2


def test_a_plan_records_the_call() -> None:
    orders = (
        ChangeRecording("start"),
        ChangeRecording("pause"),
        ChangeRecording("resume"),
        ChangeRecording("stop"),
    )
    drive = Drive(Answer(), *orders, Pause(1.0)).start()
    drive.answer_a()
    assert drive.done(StartRecording) == [StartRecording(A, 2)]
    assert [effect.action for effect in drive.done(ControlRecording)] == ["pause", "resume", "stop"]


def test_an_impossible_order_for_the_recording_is_passed_over() -> None:
    orders = (ChangeRecording("stop"), ChangeRecording("start"), ChangeRecording("start"))
    drive = Drive(Answer(), *orders, Pause(1.0)).start()
    drive.answer_a()
    assert len(drive.done(StartRecording)) == 1 and not drive.done(ControlRecording)


def transferred(action: RequestInstructions | None = None) -> Drive:
    drive = Drive(Answer(), TransferParty(make_party(), action), Pause(1.0), Hangup()).start()
    drive.answer_a()
    assert drive.done(DialLeg)
    return drive


def test_a_transferred_party_leaves_the_list() -> None:
    drive = transferred()
    drive.feed(LegAnswered(B, b"sdp"))
    assert "call.transferred" in drive.events()
    drive.feed(LegEnded(B))
    assert outcome(drive)[0] == "completed"
    assert not drive.done(PlaySounds)


@pytest.mark.parametrize("status", [486, 404])
def test_a_server_is_told_that_a_transfer_has_failed(status: int) -> None:
    drive = transferred(RequestInstructions(HOOK, event="call.referred"))
    drive.feed(LegFailed(B, status))
    (request,) = drive.done(AskWebhook)
    assert dict(request.facts) == {"refer_status": 202, "final_referred_call_status": status}
    assert "call.transfer_failed" in drive.events() and not drive.record.status.ended


def test_the_list_goes_on_behind_a_transfer_that_has_failed() -> None:
    drive = transferred()
    drive.feed(LegFailed(B, 486))
    assert not drive.record.status.ended
    drive.after(1.1)
    assert outcome(drive)[0] == "completed"


LOST = AgentClosed(AgentExit.LOST, 1011, VendorError("server_error", "No."), final=True)
SESSION = choose_model({"provider": "openai", "model": "gpt-realtime-2", "key": "desk"})


def completion(drive: Drive) -> dict[str, object]:
    (request,) = drive.done(AskWebhook)
    return dict(request.facts)


def with_model(form: WebhookFormat = "jambonz") -> Drive:
    behind = RequestInstructions(HOOK, event="call.streamed", format=form)
    return Drive(Stream(SESSION), behind).start()


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ((AgentOpened(), LegConfirmed(A), AgentClosed(AgentExit.AT_ONCE, 4000)), "normal conversation end"),
        ((AgentOpened(), LegConfirmed(A), LOST), "disconnect from remote end"),
        ((AgentRefused("connect"),), "connection failure"),
    ],
)
def test_a_hook_behind_a_model_is_told_how_its_session_ended(events: tuple[Event, ...], reason: str) -> None:
    drive = with_model()
    drive.feed(*events)
    assert completion(drive) == {"completion_reason": reason}


def test_other_forms_and_agents_have_no_completion_reason() -> None:
    drive = with_model("json")
    drive.feed(AgentOpened(), LegConfirmed(A), LOST)
    assert completion(drive) == {}
    behind = RequestInstructions(HOOK, event="call.streamed", format="jambonz")
    drive = Drive(AGENT, behind).start()
    drive.feed(AgentOpened(), LegConfirmed(A), LOST)
    assert completion(drive) == {}
