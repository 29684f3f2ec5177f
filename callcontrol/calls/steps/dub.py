"""A change of the tracks that the first party hears beside everything else."""

from collections.abc import Iterator

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.records import unheard
from callcontrol.calls.events import Event
from callcontrol.calls.plan import Dub
from callcontrol.calls.steps.base import CallParts, RunningStep


class DubStep(RunningStep):
    """Change a track, and go on at once; a change that is impossible is passed over and reported."""

    keeps_keys = True

    def __init__(self, call: CallParts, step: Dub) -> None:
        super().__init__(call)
        self._dub = step

    def begin(self) -> Iterator[Effect]:
        """Carry out the change, and finish at once."""
        self.over = True
        tracks = self.call.a_leg.tracks
        problem = tracks.reject_reason(self._dub)
        if problem is None:
            yield from tracks.change(self._dub)
        else:
            yield unheard("dub", problem, None)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Ignore all events."""
        yield from ()
