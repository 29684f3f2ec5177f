"""Performs the tracks of a call's legs: loads their sounds, and plays them beside everything else."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from callcontrol.calls.aio.context import ActiveCall, EffectPerformer
from callcontrol.calls.aio.media.performer import NO_SPEECH
from callcontrol.calls.aio.media.prompts import PROMPT_SCHEME, AudioUnavailable
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects import media as do
from callcontrol.calls.events.media import TrackFailed
from callcontrol.ids import LegId
from media.audio import AudioError, Clip
from media.errors import MediaError


class TrackPerformer(EffectPerformer):
    """Performs the effects on the tracks of one call's legs."""

    def __init__(self, call: ActiveCall) -> None:
        self._call = call
        self._loading: dict[tuple[LegId, int], asyncio.Task[None]] = {}
        """Tasks that load the sound of a track."""

    def _play(self, effect: do.PlayTrack) -> None:
        """Play a sound once it is loaded; until then the track plays what it played."""
        place = effect.leg, effect.track
        self._forget(place)
        task = self._loading[place] = self._call.mailbox.spawn_helper(self._play_loaded(effect))
        task.add_done_callback(lambda done: self._loaded(place, done))

    def _stop(self, effect: do.StopTrack) -> None:
        self._forget((effect.leg, effect.track))
        self._call.media.audio.stop_track(effect.leg, effect.track)

    async def _play_loaded(self, effect: do.PlayTrack) -> None:
        mailbox = self._call.mailbox
        try:
            sounds = [clip for clip in await self._sounds(effect) if clip.pcm]
            self._call.media.audio.play_track(
                effect.leg, effect.track, sounds, loop=effect.loop, gain_db=effect.gain_db
            )
        except (AudioUnavailable, AudioError, MediaError) as error:
            mailbox.log.warning("not played on a track: %s", error)
            mailbox.post(TrackFailed(effect.leg, str(error), effect.url))

    async def _sounds(self, effect: do.PlayTrack) -> Sequence[Clip]:
        context = self._call.context
        if effect.text is not None:
            speech = context.services.speech
            if speech is None:
                raise AudioUnavailable(NO_SPEECH)
            # All of it first: pieces that come too late would leave gaps, and a loop needs the whole.
            return [piece async for piece in speech.pieces(effect.text, effect.language, voice=effect.voice)]
        url = effect.url or ""
        if url.startswith(PROMPT_SCHEME):
            return [context.audio.prompt(url.removeprefix(PROMPT_SCHEME))]
        return [await context.audio.fetch(url)]

    def _forget(self, place: tuple[LegId, int]) -> None:
        """Cancel the loading of a sound that the track is not to play any more."""
        loading = self._loading.pop(place, None)
        if loading is not None:
            loading.cancel()

    def _loaded(self, place: tuple[LegId, int], task: asyncio.Task[None]) -> None:
        if self._loading.get(place) is task:
            del self._loading[place]


TRACK_EFFECTS: Final[dict[type[Effect], Callable[[TrackPerformer, Any], None]]] = {
    do.PlayTrack: TrackPerformer._play,
    do.StopTrack: TrackPerformer._stop,
}
"""Methods by effect."""
