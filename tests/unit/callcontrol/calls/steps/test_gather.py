"""Texts that are spoken and keys that are gathered, on virtual time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.media import PlayAudio, PlaySounds, Speak, StopAudio
from callcontrol.calls.effects.records import Save
from callcontrol.calls.effects.signalling import AnswerLeg
from callcontrol.calls.events.answers import Timer
from callcontrol.calls.events.instructions import InstructionsReceived
from callcontrol.calls.events.legs import LegEnded
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded
from callcontrol.calls.plan import Gather, Hangup, Pause, Play, RequestInstructions, Say, Step
from callcontrol.calls.steps.base import MAX_KEPT
from tests.support.call_drive import A, Drive, assert_nothing_left, outcome, placed

ACTION = RequestInstructions("https://customer.example/menu", event="call.gathered")
MENU = (Say("Press one or two."), Pause(0.5), Play("https://customer.example/menu.wav"))


def ended(drive: Drive, problem: str | None = None) -> None:
    """The gathering ends, or cannot start."""
    heard = [e for e in drive.all if isinstance(e, Speak | PlayAudio | PlaySounds)][-1]
    drive.feed(PlaybackEnded(A, problem, heard.turn))


def press(drive: Drive, keys: str) -> None:
    for key in keys:
        drive.feed(DigitReceived(A, key, 100))


def heard(drive: Drive) -> list[str]:
    return [type(e).__name__ for e in drive.all if isinstance(e, Speak | PlayAudio | PlaySounds)]


def told(drive: Drive) -> dict[str, object]:
    """The facts of the only question."""
    (asked,) = drive.done(AskWebhook)
    assert asked.url == ACTION.url
    return dict(asked.facts)


def test_a_text_is_spoken_as_often_as_asked() -> None:
    drive = placed(Say("Hello.", "hi-IN", 3))
    for number in range(1, 4):
        assert drive.done(Speak)[-1] == Speak(A, "Hello.", "hi-IN", number)
        ended(drive)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")
    assert_nothing_left(drive)


def test_a_text_that_cannot_be_spoken_is_passed_over_at_once() -> None:
    drive = placed(Say("Hello.", loops=5), Pause(60.0))
    ended(drive, "espeak-ng is not installed")
    assert len(drive.done(Speak)) == 1
    assert Timer.PAUSE in drive.timers, "the next step"


def test_what_is_said_is_in_no_repr() -> None:
    assert "secret" not in repr(Speak(A, "the secret word", "en-IN"))


def test_a_caller_is_answered_before_it_is_spoken_to() -> None:
    drive = Drive(Say("Hello.")).start()
    assert [type(e) for e in drive.all].index(AnswerLeg) < [type(e) for e in drive.all].index(Speak)


def test_hanging_up_while_a_text_is_spoken() -> None:
    drive = placed(Say("Hello."))
    drive.feed(LegEnded(A, clean=True))
    assert not drive.done(StopAudio), "there is nobody to be silent for"
    assert_nothing_left(drive)


def test_the_prompts_are_heard_one_after_the_other_and_then_the_time_runs() -> None:
    drive = placed(Gather(MENU, timeout_s=4.0), Hangup())
    for expected in (["Speak"], ["Speak", "PlaySounds"], ["Speak", "PlaySounds", "PlayAudio"]):
        assert heard(drive) == expected
        assert Timer.PAUSE not in drive.timers
        ended(drive)
    drive.after(3.9)
    assert not drive.record.status.ended
    drive.after(0.2)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "api"), "no key, no question: the plan goes on"
    assert_nothing_left(drive)


def test_a_prompt_that_cannot_be_fetched_is_passed_over_and_reported() -> None:
    drive = placed(Gather((Play("https://customer.example/menu.wav", 3), Say("Press one.")), timeout_s=4.0))
    ended(drive, "answered with status 404")
    assert heard(drive) == ["PlayAudio", "Speak"]
    ended(drive, "espeak-ng is not installed")
    (alert,) = [save for save in drive.done(Save) if save.event == "webhook.failed"]
    assert (alert.details["reason"], alert.details["webhook_url"]) == (
        "play",
        "https://customer.example/menu.wav",
    )
    assert Timer.PAUSE in drive.timers


def test_the_first_key_cuts_the_prompt_off() -> None:
    drive = placed(Gather(MENU, num_digits=2, action=ACTION))
    press(drive, "4")
    assert drive.done(StopAudio) == [StopAudio(A)]
    ended(drive)  # on its way when it was cut off
    assert heard(drive) == ["Speak"]
    press(drive, "2")
    assert told(drive) == {"digits": "42", "finished_on_key": None}


@pytest.mark.parametrize(
    ("keys", "finish", "digits", "key"),
    [("12#", "#", "12", "#"), ("#", "#", "", "#"), ("12*", "*#", "12", "*"), ("123#9", "", "123#9", None)],
)
def test_a_key_that_finishes_is_no_digit(keys: str, finish: str, digits: str, key: str | None) -> None:
    gather = Gather(num_digits=5, finish_on_key=finish, action=ACTION, action_on_empty=True)
    drive = placed(gather, Hangup())
    press(drive, keys)
    assert told(drive) == {"digits": digits, "finished_on_key": key}


def test_the_time_runs_anew_with_each_key() -> None:
    drive = placed(Gather(timeout_s=5.0, action=ACTION))
    for key in "123":
        drive.after(4.9)
        press(drive, key)
    assert not drive.done(AskWebhook)
    drive.after(5.0)
    assert told(drive) == {"digits": "123", "finished_on_key": None}


@pytest.mark.parametrize("on_empty", [True, False])
def test_nothing_pressed(on_empty: bool) -> None:
    drive = placed(Gather(timeout_s=5.0, action=ACTION, action_on_empty=on_empty), Say("Good bye."))
    drive.after(5.0)
    assert (len(drive.done(AskWebhook)), len(drive.done(Speak))) == ((1, 0) if on_empty else (0, 1))


def test_the_rest_of_the_plan_gives_way_to_the_answer() -> None:
    drive = placed(Gather(num_digits=1, action=ACTION), Say("You pressed nothing."))
    press(drive, "1")
    drive.feed(InstructionsReceived(drive.done(AskWebhook)[0].number, (Say("Sales."),)))
    assert [effect.text for effect in drive.done(Speak)] == ["Sales."]


@pytest.mark.parametrize("before", [Say("Welcome."), Play("https://customer.example/a.wav"), Pause(5.0)])
def test_keys_pressed_ahead_count(before: Step) -> None:
    drive = placed(before, Gather(MENU, num_digits=2, action=ACTION))
    press(drive, "42")
    if isinstance(before, Pause):
        drive.after(5.0)
    else:
        ended(drive)
    assert told(drive) == {"digits": "42", "finished_on_key": None}
    assert not [e for e in drive.done(Speak) if e.text == "Press one or two."] or drive.done(StopAudio)


def test_keys_beyond_the_first_question_are_for_the_next() -> None:
    drive = placed(Say("Welcome."), Gather(num_digits=1), Gather(num_digits=2, action=ACTION))
    press(drive, "123")
    ended(drive)
    assert told(drive) == {"digits": "23", "finished_on_key": None}


def test_no_more_keys_are_kept_than_mean_anything() -> None:
    drive = placed(Say("Welcome."), Gather(num_digits=500, action=ACTION))
    press(drive, "1" * 200)
    ended(drive)
    press(drive, "#")
    assert told(drive)["digits"] == "1" * MAX_KEPT


@given(st.text("0123456789*#", max_size=12), st.integers(1, 6), st.sampled_from(["", "#", "*#"]))
def test_whatever_is_pressed_the_digits_are_those_before_the_end(keys: str, most: int, finish: str) -> None:
    drive = placed(Gather(num_digits=most, finish_on_key=finish, action=ACTION, action_on_empty=True))
    press(drive, keys)
    drive.after(60.0 if not drive.done(AskWebhook) else 0.0)
    wanted = ""
    for key in keys:
        if key in finish or len(wanted) == most:
            break
        wanted += key
    assert told(drive)["digits"] == wanted


def test_the_call_ends_in_the_midst_of_a_question() -> None:
    for keys in ("", "1"):
        drive = placed(Gather(MENU, action=ACTION))
        press(drive, keys)
        drive.feed(LegEnded(A, clean=True))
        assert not drive.done(AskWebhook)
        assert_nothing_left(drive)
