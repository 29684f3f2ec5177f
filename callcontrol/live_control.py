"""What the API asks of a call that is up: a part of ``callcontrol.call``."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from callcontrol.effects import Effect, MuteLeg
from callcontrol.events import Event, HangupRequested, MuteRequested
from callcontrol.hangup import ORIGINATOR_CANCEL
from callcontrol.hunt import Ending
from callcontrol.models import CallStatus

if TYPE_CHECKING:
    from callcontrol.call import CallMachine


class LiveControl:
    """The orders from our own side to one call."""

    def __init__(self, call: "CallMachine") -> None:
        self._call = call

    def takes(self, event: Event) -> bool:
        """Whether an event is such an order."""
        return type(event) in _HANDLERS

    def handle(self, event: Event) -> Iterator[Effect]:
        """Carry an order out."""
        yield from _HANDLERS[type(event)](self, event)

    def _mute(self, event: MuteRequested) -> Iterator[Effect]:
        call = self._call
        leg = call.a_leg.id if event.party == "a" else call.other_of(call.a_leg.id)
        if leg is not None and call.is_up(leg):
            yield MuteLeg(leg, event.muted)

    def _hang_up(self, event: HangupRequested) -> Iterator[Effect]:
        if event.source == "api":
            cause = event.cause if self._call.answered else ORIGINATOR_CANCEL
            status = CallStatus.CANCELED
        else:
            status, cause = CallStatus.FAILED, event.cause
        yield from self._call.end(Ending(status, cause, event.source))


_HANDLERS: Final[dict[type[Event], Callable[[LiveControl, Any], Iterator[Effect]]]] = {
    MuteRequested: LiveControl._mute,
    HangupRequested: LiveControl._hang_up,
}
