"""
Parties that join an active call: a caller that replaces another party (INVITE with Replaces), and a party of
another call.
"""

from collections.abc import Iterator
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import RelayDigit, SendDigits
from callcontrol.calls.effects.records import Save
from callcontrol.calls.effects.transfers import AdoptLeg, PassDigit, RefuseReplacement
from callcontrol.calls.events import Event
from callcontrol.calls.events.legs import LegCancelled, LegEnded, LegFailed, LegRefused, OfferTaken
from callcontrol.calls.events.media import DigitReceived
from callcontrol.calls.events.transfers import PartnerDigit, PartnerGone, ReplacementCalled
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.calls.leg import InboundLeg, LegInput, LegParams
from callcontrol.calls.steps.base import RunningStep
from callcontrol.models import CallStatus
from sip.machine import Machine, Rules, compile_rules

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine


class PartnerStep(RunningStep):
    """The first party is connected with a party of another call, until one of the two calls ends."""

    needs_answer = False

    def begin(self) -> Iterator[Effect]:
        """Do nothing: the two are already connected."""
        yield from ()

    def handle(self, event: Event) -> Iterator[Effect]:
        """End with the other call; relay digits between the two parties as between two legs."""
        leg = self.call.a_leg.id
        match event:
            case PartnerGone():
                self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "callee")
                self.over = True
            case DigitReceived() if event.leg == leg:
                yield PassDigit(event.digit, event.duration_ms, event.in_band)
            case PartnerDigit(in_band=True):
                yield RelayDigit(leg, event.digit, event.duration_ms)
            case PartnerDigit():
                yield SendDigits(leg, event.digit, event.duration_ms)


class ReplacementState(IntEnum):
    """States of a replacement, in order."""

    NEW = 0
    TAKING = 1
    """The new caller's offer is being applied."""
    OVER = 2


class ReplacementInput(IntEnum):
    """Inputs of a replacement."""

    BEGIN = auto()
    TAKEN = auto()
    REFUSED = auto()
    """The offer cannot be used."""
    GONE = auto()
    """The new caller gave up, or the party to be replaced hung up."""
    STOP = auto()
    """Command: the call ends."""


class Replacement(Machine[ReplacementState]):
    """A caller that replaces one leg of the call."""

    def __init__(self, call: "CallMachine", asked: ReplacementCalled, leg: InboundLeg) -> None:
        self.state = ReplacementState.NEW
        self._call = call
        self._asked = asked
        self._leg = leg

    @property
    def over(self) -> bool:
        """True after the replacement has succeeded or failed."""
        return self.state is ReplacementState.OVER

    def begin(self) -> Iterator[Effect]:
        """Apply the new caller's offer."""
        yield from self.trigger(ReplacementInput.BEGIN)

    def stop(self) -> Iterator[Effect]:
        """Stop, because the call ends; the call hangs up its legs."""
        yield from self.trigger(ReplacementInput.STOP)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        what = _INPUTS.get(type(event))
        leg = getattr(event, "leg", None)
        if what is not None and leg == self._leg.id:
            yield from self.trigger(what, event)
        elif isinstance(event, LegEnded) and leg == self._asked.leg:
            yield from self.trigger(ReplacementInput.GONE, event)

    def _adopt(self, _: Event | None) -> Iterator[Effect]:
        yield AdoptLeg(self._leg.id, self._asked.token)
        yield from self._leg.handle(LegInput.START)

    def _answer(self, _: Event | None) -> Iterator[Effect]:
        yield from self._leg.handle(LegInput.ACCEPT)
        yield from self._call.transfers.replace_leg(self._asked.leg, self._leg)
        yield from self._call.transfers.drop_leg(self._asked.leg)
        yield Save("call.transferred", {"transfer": {"mode": "replaced", "to": self._asked.caller}})

    def _refuse(self, event: Event | None) -> Iterator[Effect]:
        ports = isinstance(event, LegRefused) and event.problem == "ports"
        yield from self._leg.handle(LegInput.REFUSED, LegParams(status=503 if ports else 488))

    def _drop(self, event: Event | None) -> Iterator[Effect]:
        what = LegInput.LOST if getattr(event, "leg", None) == self._leg.id else LegInput.HANG_UP
        yield from self._leg.handle(what, LegParams(status=603))

    def _quiet(self, _: Event | None) -> Iterator[Effect]:
        yield from ()


def refuse_replacement(asked: ReplacementCalled) -> Iterator[Effect]:
    """Decline a caller that asks to replace a leg which cannot be replaced now."""
    yield RefuseReplacement(asked.token)


_INPUTS: Final[dict[type, ReplacementInput]] = {
    OfferTaken: ReplacementInput.TAKEN,
    LegRefused: ReplacementInput.REFUSED,
    LegCancelled: ReplacementInput.GONE,
    LegFailed: ReplacementInput.GONE,
    LegEnded: ReplacementInput.GONE,
}

_S, _I = ReplacementState, ReplacementInput
RULES: Final[Rules[ReplacementState, ReplacementInput]] = {
    (_S.NEW, _I.BEGIN): (_S.TAKING, Replacement._adopt),
    (_S.TAKING, _I.TAKEN): (_S.OVER, Replacement._answer),
    (_S.TAKING, _I.REFUSED): (_S.OVER, Replacement._refuse),
    (_S.TAKING, _I.GONE): (_S.OVER, Replacement._drop),
    (_S.TAKING, _I.STOP): (_S.OVER, Replacement._quiet),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in ReplacementInput if what is not _I.BEGIN}
    | {(_S.TAKING, _I.BEGIN)}
    | {(_S.OVER, what) for what in ReplacementInput}
)

Replacement.ROWS = compile_rules(RULES)
