"""Calls that are transcribed, on virtual time: who is listened to, and what is reported."""

from __future__ import annotations

import pytest

from callcontrol.calls.effects.media import EndTranscription, TranscribeLeg
from callcontrol.calls.effects.records import Save, Transcribe
from callcontrol.calls.events.commands import HangupRequested, TranscriptionRequested
from callcontrol.calls.events.legs import LegEnded
from callcontrol.calls.events.media import SentenceHeard, TranscriptionEnded
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.calls.live import control
from callcontrol.calls.plan import ChangeTranscription, Pause
from callcontrol.calls.product import ProductPolicy
from callcontrol.calls.transcription import MAX_CHARACTERS, MAX_SENTENCES
from callcontrol.masking.product import MASKING
from callcontrol.models import TranscriptSegment
from callcontrol.otp.product import OTP
from tests.support.call_drive import A, B, Drive, assert_nothing_left, bridged, placed, streamed

START = TranscriptionRequested("en-IN")
STOP = TranscriptionRequested(None)


def sentence(number: int = 1, text: str = "hello", duration_ms: int = 300) -> SentenceHeard:
    return SentenceHeard(number, text, 0.9, duration_ms)


def reported(drive: Drive) -> list[dict[str, object]]:
    return [
        dict(effect.details["transcript"]) for effect in drive.done(Save) if effect.event == "call.transcript"
    ]


def test_both_parties_of_a_bridge_are_listened_to_and_told_apart() -> None:
    drive = bridged()
    drive.feed(START)
    assert drive.done(TranscribeLeg) == [TranscribeLeg(A, 1, "en-IN"), TranscribeLeg(B, 2, "en-IN")]
    drive.after(2)
    drive.feed(sentence(1, "one"))
    drive.feed(sentence(2, "two"))
    first, second = reported(drive)
    assert (first["speaker"], first["text"], first["number"]) == ("a", "one", 1)
    assert (second["speaker"], second["text"], second["number"]) == ("b", "two", 2)
    assert isinstance(first["end_ms"], int) and first["start_ms"] == first["end_ms"] - 300
    assert drive.done(Transcribe)[0].segment == TranscriptSegment(
        "a", "one", first["end_ms"] - 300, first["end_ms"]
    )


def test_a_party_that_leaves_is_listened_to_no_more() -> None:
    drive = bridged()
    drive.feed(START)
    drive.feed(LegEnded(B))
    assert EndTranscription(2) in drive.done(EndTranscription)


def test_a_party_keeps_its_name_when_it_becomes_the_first() -> None:
    drive = bridged()
    drive.feed(START)
    drive.machine.replace_a_leg(B, joins_call=False)
    drive.feed(sentence(1, "last words of the first"), sentence(2, "words of the second"))
    assert [(said["speaker"], said["text"]) for said in reported(drive)] == [
        ("a", "last words of the first"),
        ("b", "words of the second"),
    ]


def test_an_order_is_refused_before_the_answer_and_where_there_is_nothing_to_end() -> None:
    drive = Drive(Pause(1), inbound=True)
    drive.obliging = False
    drive.start()
    assert control.reject_reason(drive.machine, START) == "the call was not answered yet"
    drive = streamed()
    assert control.reject_reason(drive.machine, STOP) == "the call is not being transcribed"
    assert drive.feed(STOP) == [] and not drive.done(TranscribeLeg)


@pytest.mark.parametrize("policy", [MASKING, OTP])
def test_products_with_secrets_refuse_it(policy: ProductPolicy) -> None:
    drive = streamed()
    drive.machine.policy = policy
    assert control.reject_reason(drive.machine, START)
    drive.feed(START)
    assert not drive.done(TranscribeLeg)


def test_another_language_begins_anew_and_the_same_one_changes_nothing() -> None:
    drive = streamed()
    drive.feed(START)
    assert drive.feed(START) == []
    effects = drive.feed(TranscriptionRequested("hi-IN"))
    assert effects == [EndTranscription(1), TranscribeLeg(A, 2, "hi-IN")]
    drive.feed(sentence(number=1, text="last words"), sentence(number=2, text="नमस्ते"))
    assert [said["language"] for said in reported(drive)] == ["en-IN", "hi-IN"]


def test_last_words_count_after_the_end_until_the_recogniser_is_done() -> None:
    drive = streamed()
    drive.feed(START)
    drive.feed(HangupRequested())
    assert drive.done(EndTranscription) == [EndTranscription(1)]
    assert drive.record.status.ended and not drive.machine.finished
    drive.feed(sentence(text="good bye"))
    assert [said["text"] for said in reported(drive)] == ["good bye"]
    drive.feed(TranscriptionEnded(1))
    assert drive.machine.finished
    assert_nothing_left(drive)


def test_last_words_that_never_come_do_not_hold_the_call() -> None:
    drive = streamed()
    drive.feed(START)
    drive.feed(HangupRequested())
    drive.after(10)
    assert drive.machine.finished
    drive.feed(sentence())
    assert not reported(drive)


def test_a_recogniser_that_is_not_there_is_not_asked_again() -> None:
    drive = streamed()
    drive.feed(START, TranscriptionEnded(1))
    drive.after(1)
    drive.feed(HangupRequested())
    assert len(drive.done(TranscribeLeg)) == 1 and drive.machine.finished


def test_sentences_of_unknown_runs_are_dropped() -> None:
    drive = streamed()
    drive.feed(START)
    drive.feed(sentence(number=7), sentence(number=0))
    assert not reported(drive)


def test_the_rate_of_sentences_is_bounded() -> None:
    drive = streamed()
    drive.feed(START)
    drive.feed(*[sentence() for _ in range(500)])
    assert len(reported(drive)) == 40
    drive.after(2)
    drive.feed(*[sentence() for _ in range(500)])
    assert len(reported(drive)) == 48


def test_the_number_and_the_length_of_sentences_are_bounded() -> None:
    drive = streamed(time_limit_s=100_000.0)
    drive.feed(START)
    transcription = drive.machine.transcription
    transcription._sentences = MAX_SENTENCES - 1
    drive.feed(sentence(), sentence())
    assert [said["number"] for said in reported(drive)] == [MAX_SENTENCES]
    transcription._sentences, transcription._characters = 5, MAX_CHARACTERS - 7
    drive.feed(sentence(text="12345"), sentence(text="12345"))
    assert len(reported(drive)) == 2


def test_a_step_begins_it_and_another_ends_it() -> None:
    drive = placed(ChangeTranscription("en-IN"), Pause(5), ChangeTranscription(None), Pause(5))
    assert drive.done(TranscribeLeg) == [TranscribeLeg(A, 1, "en-IN")]
    drive.after(5)
    assert drive.done(EndTranscription) == [EndTranscription(1)]
    assert not drive.record.status.ended


def test_a_step_that_waits_lasts_as_long_as_the_call() -> None:
    drive = placed(ChangeTranscription("en-IN", "https://a.example/said", waits=True), Pause(5))
    drive.after(60)
    drive.feed(sentence())
    (saved,) = [effect for effect in drive.done(Save) if effect.event == "call.transcript"]
    assert saved.hook_url == "https://a.example/said" and not drive.record.status.ended
    drive.feed(HangupRequested())
    assert drive.done(EndTranscription) == [EndTranscription(1)]


def test_a_plan_that_asks_for_it_is_transcribed_from_the_answer() -> None:
    drive = placed(Pause(5), transcribe="hi-IN")
    assert drive.done(TranscribeLeg) == [TranscribeLeg(A, 1, "hi-IN")]


def test_a_call_that_is_not_transcribed_has_nothing_of_it() -> None:
    drive = bridged()
    drive.feed(HangupRequested("api", NORMAL_CLEARING))
    assert drive.machine.finished and "transcription" not in vars(drive.machine)
