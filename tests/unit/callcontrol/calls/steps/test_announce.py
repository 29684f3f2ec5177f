"""Announcements on virtual time: how often they are said, the key that asks for more, what is never shown."""

import pytest

from callcontrol.calls.effects.media import PlaySounds, StopAudio
from callcontrol.calls.events.answers import Timer
from callcontrol.calls.events.commands import (
    ListenRequested,
    LiveCommand,
    RecordingRequested,
    RedirectRequested,
    TransferCommand,
)
from callcontrol.calls.events.legs import LegEnded
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded
from callcontrol.calls.live.control import reject_reason
from callcontrol.calls.plan import Announce
from callcontrol.calls.steps.announce import LISTEN_S
from callcontrol.otp.product import OTP
from media.audio import Clip, Pause
from tests.support.call_drive import A, Drive, assert_nothing_left, make_party, outcome, placed

SECRET = b"\x01\x02" * 80
SOUNDS = (Clip(SECRET), Pause(150), Clip(SECRET))


def announced(times: int = 2, **changes: int) -> Drive:
    return placed(Announce(SOUNDS, times, **changes))


def said(drive: Drive) -> None:
    """The current speech ends."""
    drive.feed(PlaybackEnded(A, turn=drive.done(PlaySounds)[-1].turn))


def star(drive: Drive, digit: str = "*") -> None:
    drive.feed(DigitReceived(A, digit, 160))


def spoken(drive: Drive) -> int:
    return len(drive.done(PlaySounds))


def played(drive: Drive) -> int:
    return int((drive.record.details or {}).get("played_count", 0))


def test_it_is_said_as_often_as_asked_and_then_the_call_ends() -> None:
    drive = announced(3)
    for number in range(3):
        assert (spoken(drive), played(drive)) == (number + 1, number)
        said(drive)
    assert drive.done(PlaySounds)[0] == PlaySounds(A, (Pause(500), *SOUNDS), 1)
    assert not drive.record.status.ended, "it may be asked for again"
    drive.after(LISTEN_S)
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "system")
    assert (spoken(drive), played(drive)) == (3, 3)
    assert_nothing_left(drive)


def test_the_key_has_it_said_again_after_the_last_time() -> None:
    drive = announced(1)
    said(drive)
    drive.after(LISTEN_S - 1)
    star(drive)
    assert (spoken(drive), drive.timers.get(Timer.PAUSE)) == (2, None)
    said(drive)
    drive.after(LISTEN_S)
    assert played(drive) == 2
    assert_nothing_left(drive)


def test_the_key_begins_anew_what_is_being_said() -> None:
    drive = announced(2)
    star(drive)
    assert drive.effects[-2:] == [StopAudio(A), PlaySounds(A, (Pause(500), *SOUNDS), 2)]
    drive.feed(PlaybackEnded(A, turn=1))
    assert (spoken(drive), played(drive)) == (2, 0), "the end of what was cut off came too late to count"
    said(drive)
    said(drive)
    drive.after(LISTEN_S)
    assert played(drive) == 2
    assert_nothing_left(drive)


def test_it_is_not_said_for_ever() -> None:
    drive = announced(1, max_again=2)
    for _ in range(5):
        said(drive)
        star(drive)
    drive.after(LISTEN_S)
    assert played(drive) == 3
    assert_nothing_left(drive)


def test_other_keys_mean_nothing() -> None:
    drive = announced()
    for digit in "0123456789#":
        star(drive, digit)
    assert (spoken(drive), drive.done(StopAudio)) == (1, [])


def test_who_hangs_up_has_heard_it_as_often_as_it_was_said_to_its_end() -> None:
    drive = announced()
    said(drive)
    drive.feed(LegEnded(A))
    assert outcome(drive) == ("completed", "NORMAL_CLEARING", "callee")
    assert played(drive) == 1
    assert_nothing_left(drive)


@pytest.mark.parametrize(
    "order",
    [
        RecordingRequested("start"),
        ListenRequested("pause"),
        TransferCommand("a", make_party("+919812345678")),
        RedirectRequested("https://customer.example/", "POST"),
    ],
)
def test_nobody_else_may_hear_a_password(order: LiveCommand) -> None:
    drive = announced()
    drive.record.product, drive.machine.policy = "otp", OTP
    assert "password" in str(reject_reason(drive.machine, order))


def test_an_order_that_was_not_judged_does_nothing() -> None:
    drive = announced()
    drive.record.product, drive.machine.policy = "otp", OTP
    drive.feed(RecordingRequested("start"))
    assert drive.effects == []


def test_sounds_that_cannot_be_played_end_the_call() -> None:
    drive = announced()
    drive.feed(PlaybackEnded(A, "the stream was closed", 1))
    assert played(drive) == 0
    assert_nothing_left(drive)


@pytest.mark.parametrize("shown", [Announce(SOUNDS), PlaySounds(A, SOUNDS)])
def test_what_is_said_is_shown_by_no_repr(shown: object) -> None:
    assert "pcm" not in repr(shown) and "\\x01" not in repr(shown)
