"""Tracks of a leg: sounds that its party hears beside everything else, each under a name."""

from collections.abc import Iterator
from typing import Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayTrack, StopTrack
from callcontrol.calls.plan import Dub, Play, Say
from callcontrol.ids import LegId

MAX_TRACKS: Final = 4
"""Tracks of one leg, as many as the media engine has."""


class LegTracks:
    """The tracks of one leg by name; they end with the leg."""

    def __init__(self, leg: LegId) -> None:
        self._leg = leg
        self._numbers: dict[str, int] = {}
        """Numbers of the tracks in the media engine."""

    def reject_reason(self, dub: Dub) -> str | None:
        """Return why a change is impossible, None when it is possible."""
        if dub.track in self._numbers:
            return None
        if dub.action != "add":
            return f"there is no track {dub.track}"
        full = len(self._numbers) == MAX_TRACKS
        return f"there are {MAX_TRACKS} tracks already" if full else None

    def change(self, dub: Dub) -> Iterator[Effect]:
        """Carry out a change that is possible; a sound replaces that of its track."""
        used = set(self._numbers.values())
        free = next((number for number in range(MAX_TRACKS) if number not in used), 0)
        number = self._numbers.setdefault(dub.track, free)
        if dub.action == "remove":
            del self._numbers[dub.track]
        if dub.action in ("remove", "silence"):
            yield StopTrack(self._leg, number)
            return
        match dub.sound:
            case Play(url=url):
                yield PlayTrack(self._leg, number, url, loop=dub.loop, gain_db=dub.gain_db)
            case Say(text=text, language=language, voice=voice):
                yield PlayTrack(self._leg, number, None, text, language, voice, dub.loop, dub.gain_db)
