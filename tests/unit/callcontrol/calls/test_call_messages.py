"""Chat messages that the plan of a call sends, on virtual time: the result, and the way on behind it."""

from __future__ import annotations

from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.media import PlayAudio
from callcontrol.calls.effects.signalling import RingLeg
from callcontrol.calls.events.commands import StepsRequested
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded
from callcontrol.calls.plan import Gather, Pause, Play, RequestInstructions, SendMessage
from callcontrol.calls.steps.send_message import MessageHandled, SendChatMessage
from tests.support.call_drive import A, Drive, assert_nothing_left, outcome, placed
from tests.support.domain import CALLEE

ASK = RequestInstructions("https://customer.example/sent", event="call.messaged")
SOUND = Play("prompt:beep")
FAILED = MessageHandled(1, "failed", None, "OPTED_OUT", "to: has opted out")


def test_a_message_is_sent_while_a_caller_waits_and_the_list_goes_on() -> None:
    drive = Drive(SendMessage(CALLEE, "Hello"), Pause(1.0)).start()
    assert drive.done(SendChatMessage) == [SendChatMessage(1, CALLEE, "Hello")]
    assert drive.done(RingLeg) and drive.record.answered_at is None
    drive.feed(MessageHandled(1, "accepted", "m-1"))
    drive.after(1.1)
    assert outcome(drive)[0] == "no-answer"
    assert_nothing_left(drive)


def test_a_refused_message_ends_nothing_and_its_server_is_told() -> None:
    drive = placed(SendMessage(CALLEE, "Hello", action=ASK), SOUND)
    drive.feed(FAILED)
    (asked,) = drive.done(AskWebhook)
    assert (asked.event, dict(asked.facts)) == (
        "call.messaged",
        {
            "message_status": "failed",
            "message_id": None,
            "message_error_code": "OPTED_OUT",
            "message_error": "to: has opted out",
        },
    )
    assert not drive.record.status.ended and not drive.done(PlayAudio)


def test_a_late_result_belongs_to_no_other_message() -> None:
    drive = placed(SendMessage(CALLEE, "one"))
    drive.feed(StepsRequested([SendMessage(CALLEE, "two"), SOUND]))
    drive.feed(MessageHandled(1, "accepted", "m-1"))
    assert not drive.done(PlayAudio)
    drive.feed(MessageHandled(2, "accepted", "m-2"))
    assert len(drive.done(PlayAudio)) == 1
    drive.feed(PlaybackEnded(A))
    assert drive.record.status.ended


def test_keys_pressed_while_a_message_is_handed_over_count() -> None:
    drive = placed(SendMessage(CALLEE, "Hello"), Gather(num_digits=1, action=ASK))
    drive.feed(DigitReceived(A, "7", 100))
    drive.feed(MessageHandled(1, "accepted", "m-1"))
    (asked,) = drive.done(AskWebhook)
    assert dict(asked.facts)["digits"] == "7"


def test_a_text_is_not_shown() -> None:
    assert "secret" not in repr([SendMessage(CALLEE, "secret"), SendChatMessage(1, CALLEE, "secret")])
