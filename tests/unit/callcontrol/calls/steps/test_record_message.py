"""Messages that parties leave, on virtual time."""

from typing import Any

import pytest

from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.media import (
    DetectSpeech,
    DropMessage,
    PlaySounds,
    Speak,
    StartMessage,
    StopMessage,
)
from callcontrol.calls.effects.records import KeepMessage, Save
from callcontrol.calls.events.answers import Timer
from callcontrol.calls.events.legs import LegEnded
from callcontrol.calls.events.media import (
    DigitReceived,
    MessageEnded,
    PlaybackEnded,
    SpeechEnded,
    SpeechStarted,
)
from callcontrol.calls.plan import Hangup, Pause, RecordMessage, RequestInstructions, Say
from callcontrol.calls.recording import MAX_MESSAGES, RECORDING_LIMIT_S
from tests.support.call_drive import A, Drive, assert_nothing_left, outcome, placed

SID = "7f1f1a52-6d0b-4b5f-8d39-1f0a5e1f7c11"
ACTION = RequestInstructions("https://customer.example/message", event="call.recorded")


def taking(*, beep: bool = True, **wanted: Any) -> Drive:
    drive = placed(RecordMessage(beep=beep, action=ACTION, **wanted), Say("Nobody spoke."))
    if beep:
        drive.feed(PlaybackEnded(A))
    return drive


def talk(drive: Drive, for_s: float = 2.0) -> None:
    drive.feed(SpeechStarted(A))
    drive.after(for_s)
    drive.feed(SpeechEnded(A, round(for_s * 1000)))


def written(drive: Drive, problem: str | None = None) -> None:
    """The file is complete."""
    number = drive.done(StartMessage)[-1].number
    drive.feed(MessageEnded(number, SID, "/var/message.wav", 2000, problem))


def test_the_beep_comes_first_and_then_the_file() -> None:
    drive = placed(RecordMessage(max_length_s=90.0))
    assert drive.done(PlaySounds) and not drive.done(StartMessage)
    drive.feed(PlaybackEnded(A))
    assert drive.done(StartMessage) == [StartMessage(A, 1, 90.0)]
    assert drive.done(DetectSpeech) == [DetectSpeech(A)]


def test_silence_ends_it_and_the_server_is_asked() -> None:
    drive = taking(silence_s=3.0)
    drive.after(2.0)
    talk(drive, 20.0)
    drive.after(2.9)
    assert not drive.done(StopMessage), "a pause to breathe"
    talk(drive)
    drive.after(3.0)
    assert drive.done(StopMessage) == [StopMessage(1)]
    assert not drive.done(AskWebhook), "the file is not complete"
    written(drive)
    (kept,) = drive.done(KeepMessage)
    assert (kept.message.message_sid, kept.message.call_sid) == (SID, drive.record.call_sid)
    assert [asked.url for asked in drive.done(AskWebhook)] == [ACTION.url]
    ready = next(e for e in drive.done(Save) if e.event == "call.recording.ready")
    assert ready.details == {
        "message_sid": SID,
        "recording_url": f"/recordings/{SID}.wav",
        "recording_duration_ms": 2000,
    }
    assert drive.record.recording_status is None, "the recording of the call is another thing"


def test_a_key_ends_it_and_no_other_does() -> None:
    drive = taking(finish_on_keys="#")
    talk(drive)
    drive.feed(DigitReceived(A, "5", 100))
    assert not drive.done(StopMessage)
    drive.feed(DigitReceived(A, "#", 100), DigitReceived(A, "#", 100))
    assert len(drive.done(StopMessage)) == 1
    written(drive)
    assert len(drive.done(AskWebhook)) == 1


def test_the_longest_message_ends_by_itself() -> None:
    drive = taking()
    drive.feed(SpeechStarted(A))
    written(drive)
    assert len(drive.done(KeepMessage)) == len(drive.done(AskWebhook)) == 1
    assert Timer.PAUSE not in drive.timers


@pytest.mark.parametrize("beep", [True, False])
def test_nobody_spoke(beep: bool) -> None:
    drive = taking(beep=beep, silence_s=5.0)
    drive.after(5.0)
    written(drive)
    assert drive.done(DropMessage) == [DropMessage("/var/message.wav")]
    assert not drive.done(KeepMessage) and not drive.done(AskWebhook)
    assert [effect.text for effect in drive.done(Speak)] == ["Nobody spoke."]


def test_a_full_disk_is_passed_over() -> None:
    drive = taking()
    drive.feed(SpeechStarted(A))
    written(drive, "No space left on device")
    assert drive.done(DropMessage)
    assert not drive.done(KeepMessage)
    assert drive.done(Speak)


def test_hanging_up_ends_most_messages_and_keeps_them() -> None:
    drive = taking()
    talk(drive)
    drive.feed(LegEnded(A))
    assert drive.record.status.ended and not drive.machine.finished
    written(drive)
    assert len(drive.done(KeepMessage)) == 1
    assert drive.events()[-2:] == ["call.completed", "call.recording.ready"] or "call.recording.ready" in (
        drive.events()
    )
    assert not drive.done(AskWebhook), "there is no call any more"
    assert_nothing_left(drive)


def test_a_file_that_is_never_complete_does_not_keep_the_call() -> None:
    drive = taking()
    talk(drive)
    drive.feed(LegEnded(A))
    drive.after(RECORDING_LIMIT_S)
    assert_nothing_left(drive)


def test_both_files_are_waited_for() -> None:
    drive = placed(RecordMessage(beep=False), record=True)
    talk(drive)
    drive.feed(LegEnded(A))
    written(drive)
    assert not drive.machine.finished
    drive.after(RECORDING_LIMIT_S)
    assert drive.record.recording_status == "failed"
    assert_nothing_left(drive)


def test_a_key_before_the_beep_ends_nothing() -> None:
    drive = placed(RecordMessage())
    drive.feed(DigitReceived(A, "#", 100), PlaybackEnded(A))
    assert drive.done(StartMessage) and not drive.done(StopMessage)


def test_several_messages_on_one_call() -> None:
    drive = placed(RecordMessage(beep=False), RecordMessage(beep=False), Hangup())
    for _ in range(2):
        talk(drive)
        drive.after(5.0)
        written(drive)
    assert [effect.number for effect in drive.done(StartMessage)] == [1, 2]
    assert len(drive.done(KeepMessage)) == 2
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api")


def test_there_is_an_end_to_messages() -> None:
    drive = placed(*[RecordMessage(beep=False)] * (MAX_MESSAGES + 1), Pause(60.0))
    for _ in range(MAX_MESSAGES):
        drive.after(5.0)
        written(drive)
    assert len(drive.done(StartMessage)) == MAX_MESSAGES
    assert not drive.record.status.ended, "the plan went on"
