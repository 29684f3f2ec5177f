"""Tracks beside all else that a party hears, on virtual time: by verbs and by changes to the call."""

from __future__ import annotations

import pytest

from callcontrol.calls.effects.media import PlayTrack, StopTrack
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events.commands import DubRequested, PartyName
from callcontrol.calls.events.media import TrackFailed
from callcontrol.calls.live import control
from callcontrol.calls.plan import Dub, Pause, Play, Say, Step, TrackAction
from callcontrol.calls.product import ProductPolicy
from callcontrol.calls.steps.dub import MAX_TRACKS
from callcontrol.masking.product import MASKING
from callcontrol.otp.product import OTP
from media.aio.playback import MAX_TRACKS as ENGINE_TRACKS
from tests.support.call_drive import A, B, Drive, assert_nothing_left, bridged, placed, streamed

MUSIC = Play("https://customer.example/music.wav")


def reports(drive: Drive) -> list[tuple[object, object, object]]:
    """Reason, message and URL of what was reported."""
    saved = [effect.details for effect in drive.done(Save) if effect.event == "webhook.failed"]
    return [(said["reason"], said["message"], said["webhook_url"]) for said in saved]


def order(action: TrackAction, track: str = "music", party: PartyName = "a") -> DubRequested:
    sounds: dict[str, Play | Say] = {"play": MUSIC, "say": Say("Hello", "hi-IN", voice="nova")}
    sound = sounds.get(action)
    return DubRequested(party, Dub(action, track, sound))


def test_verbs_change_tracks_and_the_list_goes_on_at_once() -> None:
    steps: list[Step] = [
        Dub("add", "music", MUSIC, loop=True, gain_db=-10.0),
        Dub("add", "hints"),
        Dub("say", "hints", Say("Hello", "hi-IN", voice="nova")),
        Dub("silence", "music"),
        Dub("remove", "music"),
        Dub("add", "office", MUSIC),
    ]
    drive = placed(*steps, Pause(5))
    assert drive.done(PlayTrack) == [
        PlayTrack(A, 0, MUSIC.url, loop=True, gain_db=-10.0),
        PlayTrack(A, 1, None, "Hello", "hi-IN", "nova"),
        PlayTrack(A, 0, MUSIC.url),
    ]
    assert drive.done(StopTrack) == [StopTrack(A, 0), StopTrack(A, 0)]
    assert not reports(drive)
    drive.after(6)
    assert_nothing_left(drive)


def test_what_is_impossible_is_passed_over_and_reported() -> None:
    many: list[Step] = [Dub("add", f"track {number}") for number in range(MAX_TRACKS + 1)]
    again: list[Step] = [Dub("add", "track 0", MUSIC)]
    drive = placed(Dub("play", "music", MUSIC), Dub("silence", "music"), *many, *again, Pause(5))
    assert reports(drive) == [
        ("dub", "there is no track music", None),
        ("dub", "there is no track music", None),
        ("dub", "there are 4 tracks already", None),
    ]
    assert drive.done(PlayTrack) == [PlayTrack(A, 0, MUSIC.url)], "adding one that is there plays on it"
    assert MAX_TRACKS == ENGINE_TRACKS


def test_each_party_of_a_bridge_has_tracks_of_its_own() -> None:
    drive = bridged()
    assert control.reject_reason(drive.machine, order("play")) == "there is no track music"
    assert drive.feed(order("play")) == []
    drive.feed(order("add"), order("add", party="b"), order("play", party="b"), order("say"))
    assert [(effect.leg, effect.track, effect.url) for effect in drive.done(PlayTrack)] == [
        (B, 0, MUSIC.url),
        (A, 0, None),
    ]
    for number in range(1, MAX_TRACKS):
        drive.feed(order("add", f"track {number}"))
    assert control.reject_reason(drive.machine, order("add", "more")) == "there are 4 tracks already"
    assert control.reject_reason(drive.machine, order("add", "more", "b")) is None


def test_who_is_not_there_hears_nothing() -> None:
    drive = Drive(Pause(1), inbound=True)
    drive.obliging = False
    drive.start()
    assert control.reject_reason(drive.machine, order("add")) == "its party a is not there"
    drive = streamed()
    assert control.reject_reason(drive.machine, order("add", party="b")) == "its party b is not there"
    assert drive.feed(order("add", party="b")) == []


@pytest.mark.parametrize(("policy", "refuses"), [(OTP, True), (MASKING, False)])
def test_a_password_is_not_spoken_over(policy: ProductPolicy, refuses: bool) -> None:
    drive = streamed()
    drive.machine.policy = policy
    assert bool(control.reject_reason(drive.machine, order("add"))) is refuses


def test_a_sound_that_cannot_be_had_is_reported() -> None:
    drive = placed(Dub("add", "music", MUSIC), Pause(5))
    drive.feed(TrackFailed(A, "answered with status 404", MUSIC.url))
    assert reports(drive) == [("dub", "answered with status 404", MUSIC.url)]
    assert not drive.record.status.ended
