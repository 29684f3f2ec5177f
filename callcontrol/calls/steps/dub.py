"""Tracks of a leg: sounds that its party hears beside everything else, each under a name."""

from collections.abc import Iterator
from typing import Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayTrack, StopTrack
from callcontrol.calls.effects.records import unheard
from callcontrol.calls.events import Event
from callcontrol.calls.leg import Leg
from callcontrol.calls.plan import Dub, Play, Say
from callcontrol.calls.steps.base import CallParts, RunningStep

MAX_TRACKS: Final = 4
"""Tracks of one leg, as many as the media engine has."""


def dub_problem(leg: Leg, dub: Dub) -> str | None:
    """Return why a change of a leg's tracks is impossible, None when it is possible."""
    if dub.track in leg.tracks:
        return None
    if dub.action != "add":
        return f"there is no track {dub.track}"
    return f"there are {MAX_TRACKS} tracks already" if len(leg.tracks) == MAX_TRACKS else None


def change_track(leg: Leg, dub: Dub) -> Iterator[Effect]:
    """Carry out a change that is possible; a sound replaces that of its track."""
    used = set(leg.tracks.values())
    free = next((number for number in range(MAX_TRACKS) if number not in used), 0)
    number = leg.tracks.setdefault(dub.track, free)
    if dub.action == "remove":
        del leg.tracks[dub.track]
    if dub.action in ("remove", "silence"):
        yield StopTrack(leg.id, number)
        return
    match dub.sound:
        case Play(url=url):
            yield PlayTrack(leg.id, number, url, loop=dub.loop, gain_db=dub.gain_db)
        case Say(text=text, language=language, voice=voice):
            yield PlayTrack(leg.id, number, None, text, language, voice, dub.loop, dub.gain_db)


class DubStep(RunningStep):
    """Change a track of the first party, and go on; what is impossible is passed over and reported."""

    keeps_keys = True

    def __init__(self, call: CallParts, step: Dub) -> None:
        super().__init__(call)
        self._dub = step

    def begin(self) -> Iterator[Effect]:
        """Carry out the change, and finish at once."""
        self.over = True
        leg = self.call.a_leg
        problem = dub_problem(leg, self._dub)
        if problem is None:
            yield from change_track(leg, self._dub)
        else:
            yield unheard("dub", problem, None)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Ignore all events."""
        yield from ()
