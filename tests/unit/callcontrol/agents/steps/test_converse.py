"""The built-in agent on virtual time: what it says, hears, writes down, and where its script leads."""

from typing import Any

import pytest

from callcontrol.agents.script import stock_script, stock_words
from callcontrol.agents.script_parser import read_script
from callcontrol.agents.steps.converse import Converse
from callcontrol.agents.steps.turn import CUT_SHORT, END_OF_SPEECH_S, MAX_SPEECH_S
from callcontrol.calls.effects.media import (
    DetectSpeech,
    LinkMedia,
    PlayRingback,
    Speak,
    StopAudio,
    StopSpeech,
)
from callcontrol.calls.effects.records import FindRoute, Transcribe
from callcontrol.calls.effects.signalling import AnswerLeg
from callcontrol.calls.events.answers import RouteRefused
from callcontrol.calls.events.commands import RedirectRequested, TransferCommand
from callcontrol.calls.events.instructions import InstructionsReceived
from callcontrol.calls.events.legs import LegAnswered, LegEnded, LegFailed, LegProgress
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded, SpeechEnded, SpeechStarted
from callcontrol.calls.hangup_cause import NO_ROUTE_DESTINATION
from callcontrol.calls.plan import Hangup
from callcontrol.models import CallStatus
from tests.support.call_drive import A, B, Drive, assert_nothing_left, make_party, outcome, placed
from tests.support.domain import CALLEE

BYE = {"say": "Goodbye.", "hangup": True}


def converse(nodes: dict[str, Any], *, greeting: str = "", max_turns: int = 50, **variables: str) -> Converse:
    script = read_script({"nodes": nodes, "max_turns": max_turns})
    return Converse("agent-1", script, "en-IN", greeting, variables)


def talk(nodes: dict[str, Any], **changes: Any) -> Drive:
    return placed(converse(nodes, **changes))


def said(drive: Drive, after_s: float = 0.0) -> None:
    """The current speech ends."""
    drive.after(after_s)
    drive.feed(PlaybackEnded(A, turn=drive.done(Speak)[-1].turn))


def press(drive: Drive, keys: str) -> None:
    drive.feed(*(DigitReceived(A, key, 160) for key in keys))


def words(drive: Drive) -> list[str]:
    return [effect.text for effect in drive.done(Speak)]


def transcript(drive: Drive) -> list[tuple[str, str]]:
    return [(effect.segment.role, effect.segment.text) for effect in drive.done(Transcribe)]


def menu(**gather: Any) -> dict[str, Any]:
    return {
        "start": {"say": "Press 1 or 2.", "gather": gather, "on": {"1": "one", "2": "two", "failed": "bye"}},
        "one": {"say": "First.", "next": "bye"},
        "two": {"say": "Second.", "next": "bye"},
        "bye": BYE,
    }


SPOKEN: dict[str, Any] = {
    "start": {"say": "Tell me.", "gather": {"retries": 0}, "on": {"speech": "bye"}},
    "bye": BYE,
}


def test_it_says_its_part_and_hangs_up() -> None:
    drive = talk({"start": {**BYE, "say": "Hello {{name|there}}. This is a test."}}, name="Ravi")
    assert drive.done(Speak) == [Speak(A, "Hello Ravi.", "en-IN", 1)]
    said(drive, 1.0)
    assert words(drive)[-1] == "This is a test."
    drive.feed(PlaybackEnded(A, turn=1))
    assert not drive.record.status.ended, "the end of the first sentence is not that of the second"
    said(drive, 1.5)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    (told,) = drive.done(Transcribe)
    segment = told.segment
    assert (segment.role, segment.text) == ("agent", "Hello Ravi. This is a test.")
    assert (segment.start_ms, segment.end_ms) == (0, 2500)
    assert_nothing_left(drive)


def test_a_caller_is_answered_first() -> None:
    drive = Drive(converse({"start": BYE})).start()
    kinds = [type(effect) for effect in drive.all]
    assert kinds.index(AnswerLeg) < kinds.index(Speak)


def test_a_key_breaks_off_what_is_said_and_leads_on() -> None:
    drive = talk(menu())
    drive.after(1.0)
    press(drive, "2")
    assert StopAudio(A) in drive.effects
    assert words(drive) == ["Press 1 or 2.", "Second."]
    assert transcript(drive) == [("agent", f"Press 1 {CUT_SHORT}"), ("user", "2")]
    said(drive)
    said(drive)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert_nothing_left(drive)


def test_what_is_broken_off_at_once_was_not_heard() -> None:
    drive = talk(menu())
    press(drive, "1")
    assert transcript(drive) == [("user", "1")]


def test_keys_that_may_not_break_off_count_when_all_is_said() -> None:
    drive = talk(menu(barge_in=False))
    press(drive, "1")
    assert words(drive) == ["Press 1 or 2."] and not drive.done(StopAudio)
    said(drive)
    assert words(drive)[-1] == "First."


def test_a_key_that_leads_nowhere_is_asked_again_and_given_up() -> None:
    drive = talk(menu(retries=1, retry_say="Once more."))
    press(drive, "7")
    assert words(drive)[-1] == "Once more."
    said(drive)
    press(drive, "8")
    assert words(drive)[-1] == "Goodbye."


def test_nobody_answers() -> None:
    drive = talk(menu(timeout_s=4))
    said(drive)
    drive.after(4)
    assert words(drive)[-1] == "Press 1 or 2.", "without other words it asks in the same ones"
    said(drive)
    drive.after(3.9)
    assert words(drive)[-1] == "Press 1 or 2."
    drive.after(0.2)
    assert words(drive)[-1] == "Goodbye."


@pytest.mark.parametrize(("keys", "wait_s"), [("12#", 0.0), ("12", 3.0), ("1234", 0.0)])
def test_several_keys_are_kept_by_their_name(keys: str, wait_s: float) -> None:
    drive = talk(
        {
            "start": {
                "gather": {"num_digits": 4, "timeout_s": 3, "variable": "pin"},
                "on": {"digits": "told"},
            },
            "told": {"say": "You pressed {{pin}}.", "hangup": True},
        }
    )
    assert not words(drive), "who has nothing to say listens"
    press(drive, keys)
    drive.after(wait_s)
    assert words(drive) == [f"You pressed {keys.strip('#')}."]
    assert transcript(drive) == [("user", keys.strip("#"))]


def test_a_finishing_key_alone_is_nothing() -> None:
    drive = talk(menu())
    said(drive)
    press(drive, "#")
    assert words(drive) == ["Press 1 or 2."]


def test_keys_are_kept_for_who_listens_next() -> None:
    drive = talk(
        {
            "start": {"say": "Welcome.", "next": "menu"},
            "menu": menu()["start"],
            **{k: v for k, v in menu().items() if k != "start"},
        }
    )
    press(drive, "2")
    assert words(drive) == ["Welcome."], "what listens for nothing is not broken off"
    said(drive)
    assert words(drive) == ["Welcome.", "Second."], "the menu need not be heard"


def test_speech_is_heard_to_its_end() -> None:
    drive = talk(SPOKEN)
    assert DetectSpeech(A) in drive.all
    said(drive)
    drive.after(1.0)
    drive.feed(SpeechStarted(A))
    drive.after(6.0)
    drive.feed(SpeechEnded(A, 1500))
    drive.after(END_OF_SPEECH_S - 0.1)
    drive.feed(SpeechStarted(A))
    drive.after(0.5)
    drive.feed(SpeechEnded(A, 600))
    assert words(drive) == ["Tell me."], "it may go on"
    drive.after(END_OF_SPEECH_S)
    assert words(drive) == ["Tell me.", "Goodbye."]
    assert transcript(drive)[1] == ("user", "[speech 2.1 s]")
    said(drive)
    assert drive.done(StopSpeech) == [StopSpeech(A)]
    assert_nothing_left(drive)


def test_speech_breaks_off_what_is_said() -> None:
    drive = talk(SPOKEN)
    drive.after(0.5)
    drive.feed(SpeechStarted(A))
    assert StopAudio(A) in drive.effects
    assert transcript(drive) == [("agent", f"Tell {CUT_SHORT}")]


def test_a_greeting_is_not_broken_off_by_a_hello() -> None:
    drive = talk(SPOKEN, greeting="Good day. This is Asha.")
    drive.feed(SpeechStarted(A), SpeechEnded(A, 400))
    assert not drive.done(StopAudio)
    said(drive)
    said(drive)
    assert words(drive) == ["Good day.", "This is Asha.", "Tell me."]
    drive.feed(SpeechStarted(A))
    assert StopAudio(A) in drive.effects


def test_who_talks_on_while_the_agent_does_is_heard_afterwards() -> None:
    drive = talk({**SPOKEN, "start": {**SPOKEN["start"], "gather": {"barge_in": False}}})
    drive.feed(SpeechStarted(A))
    said(drive)
    assert words(drive) == ["Tell me."] and not drive.done(StopAudio)
    drive.after(2)
    drive.feed(SpeechEnded(A, 2000))
    drive.after(END_OF_SPEECH_S)
    assert words(drive)[-1] == "Goodbye."


def test_who_talks_for_ever_is_not_heard_for_ever() -> None:
    drive = talk(SPOKEN)
    said(drive)
    drive.feed(SpeechStarted(A))
    drive.after(MAX_SPEECH_S)
    assert words(drive)[-1] == "Goodbye."
    assert transcript(drive)[1] == ("user", f"[speech {MAX_SPEECH_S:.1f} s]")


def test_a_key_while_somebody_talks_is_a_key() -> None:
    drive = talk(
        {**SPOKEN, "start": {"gather": {}, "on": {"1": "bye", "speech": "other"}}, "other": {"next": "bye"}}
    )
    drive.feed(SpeechStarted(A))
    press(drive, "1")
    assert transcript(drive) == [("user", "1")]


def test_speech_is_not_listened_for_where_it_leads_nowhere() -> None:
    drive = talk(menu())
    said(drive)
    drive.feed(SpeechStarted(A))
    assert not drive.done(DetectSpeech) and words(drive) == ["Press 1 or 2."]


def test_what_cannot_be_spoken_is_passed_over_and_not_written_down() -> None:
    drive = talk({"start": BYE})
    drive.feed(PlaybackEnded(A, "nobody speaks", turn=1))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert transcript(drive) == []


def test_a_caller_who_hangs_up_has_heard_a_part() -> None:
    drive = talk({"start": {**BYE, "say": "One. Two three four five six."}})
    said(drive, 1.0)
    drive.after(1.0)
    drive.feed(LegEnded(A))
    assert transcript(drive) == [("agent", f"One. Two three {CUT_SHORT}")]
    assert_nothing_left(drive)


def test_a_caller_who_hangs_up_in_the_middle_of_a_word_was_heard() -> None:
    drive = talk(SPOKEN)
    said(drive)
    drive.feed(SpeechStarted(A))
    drive.after(1.2)
    drive.feed(LegEnded(A))
    assert transcript(drive)[-1] == ("user", "[speech 1.2 s]")
    assert_nothing_left(drive)


def test_a_conversation_that_goes_round_ends_politely() -> None:
    drive = talk({"start": {"say": "Again?", "gather": {}, "on": {"digits": "start"}}}, max_turns=3)
    for _ in range(3):
        press(drive, "5")
    assert words(drive) == ["Again?"] * 3 + ["Thank you for your call."]
    said(drive)
    said(drive)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert_nothing_left(drive)


def test_the_stock_script_greets_listens_thanks_and_ends() -> None:
    greeting = stock_words("en-IN").greeting
    drive = placed(Converse("agent-1", stock_script("en-IN"), "en-IN", greeting, {"agent_name": "Asha"}))
    drive.feed(SpeechStarted(A), SpeechEnded(A, 300))
    said(drive)
    said(drive)
    assert words(drive) == ["Hello, this is Asha.", "How can I help you?"]
    drive.feed(SpeechStarted(A))
    drive.after(1)
    drive.feed(SpeechEnded(A, 1000))
    drive.after(END_OF_SPEECH_S)
    assert words(drive)[-1] == "Thank you, I have noted that."
    said(drive)
    said(drive)
    drive.after(5)
    said(drive)
    said(drive)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    assert transcript(drive)[-1] == ("agent", "Thank you for your call. Goodbye.")
    assert_nothing_left(drive)


# --- transfer ---------------------------------------------------------------------------------------------


def transfer(to: str = CALLEE, **changes: Any) -> dict[str, Any]:
    return {
        "start": {"say": "One moment.", "transfer": {"to": to, "timeout_s": 20}, "on": {"failed": "sorry"}},
        "sorry": {"say": "Nobody is there.", "hangup": True},
        **changes,
    }


def test_a_transfer_lets_the_call_live_on() -> None:
    drive = talk(transfer(), greeting="Hello.")
    said(drive)
    said(drive)
    party = drive.done(FindRoute)[-1].party
    assert (str(party.target), party.caller_id, party.ring_timeout_s) == (CALLEE, drive.record.from_, 20)
    drive.feed(LegProgress(B, 180))
    assert PlayRingback(A) in drive.effects
    drive.feed(LegAnswered(B, b"sdp"))
    assert LinkMedia(A, B) in drive.effects
    assert "call.transferred" in drive.events()
    drive.after(60)
    assert drive.record.status is CallStatus.IN_PROGRESS
    drive.feed(LegEnded(B))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    "failure", [LegFailed(B, 486, "Busy Here"), RouteRefused(NO_ROUTE_DESTINATION, "no")]
)
def test_a_transfer_that_fails_goes_on_with_the_script(failure: Any) -> None:
    drive = talk(transfer())
    drive.obliging = not isinstance(failure, RouteRefused)
    said(drive)
    drive.feed(failure)
    assert words(drive)[-1] == "Nobody is there."
    assert "call.transferred" not in drive.events()
    said(drive)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "stream")
    drive.obliging = True
    assert_nothing_left(drive)


def test_a_variable_that_is_no_number_is_a_transfer_that_fails() -> None:
    drive = talk(transfer("{{desk}}"), desk="reception")
    said(drive)
    assert words(drive)[-1] == "Nobody is there."
    plain = talk({"start": {"transfer": {"to": "{{desk}}"}}})
    assert words(plain)[-1] == "I am sorry, nobody can take your call at the moment."


def test_a_caller_who_hangs_up_is_not_transferred() -> None:
    drive = talk(transfer())
    said(drive)
    drive.feed(LegProgress(B, 180), LegEnded(A), LegFailed(B, 487))
    assert_nothing_left(drive)


# --- orders from outside ----------------------------------------------------------------------------------


def test_the_api_may_transfer_the_call_meanwhile() -> None:
    drive = talk(SPOKEN)
    drive.feed(TransferCommand("a", make_party("+919812345678")))
    assert {StopAudio(A), StopSpeech(A)} <= set(drive.effects)
    drive.feed(LegAnswered(B, b"sdp"))
    assert "call.transferred" in drive.events()


def test_the_api_may_have_something_else_done() -> None:
    drive = talk(SPOKEN)
    drive.feed(RedirectRequested("https://x.example/"))
    drive.feed(InstructionsReceived(1, (Hangup(),)))
    assert StopSpeech(A) in drive.effects
    assert_nothing_left(drive)
