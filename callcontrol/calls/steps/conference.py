"""Participation in a conference, as a step of a plan and a table of states."""

from collections.abc import Iterator
from enum import IntEnum, auto
from typing import Final

from callcontrol.calls.conference_room import MemberTerms
from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import EnterConference, LeaveConference
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import (
    ConferenceBegan,
    ConferenceEntered,
    ConferenceOver,
    ConferenceRefused,
)
from callcontrol.calls.plan import JoinConference
from callcontrol.calls.steps.base import CallParts, TableStep
from sip.machine import Rules, compile_rules


class ConferringState(IntEnum):
    """States of a conference member, in order."""

    NEW = 0
    ENTERING = 1
    WAITING = 2
    """The conference has not begun; the party hears music."""
    TALKING = 3
    OVER = 4


class ConferringInput(IntEnum):
    """Inputs of the step."""

    BEGIN = auto()
    WAITS = auto()
    TALKS = auto()
    REFUSED = auto()
    """The conference is full, or the media engine refused the leg."""
    DISMISSED = auto()
    """The conference is over."""
    STOP = auto()
    """Command: the call ends, or continues with other steps."""


class ConferenceStep(TableStep[ConferringState]):
    """The step that joins a conference; the plan goes on when the conference is over."""

    keeps_party = True

    def __init__(self, call: CallParts, wanted: JoinConference) -> None:
        super().__init__(call, ConferringState.NEW)
        self._wanted = wanted
        self._leg = call.a_leg.id

    def begin(self) -> Iterator[Effect]:
        """Join the conference."""
        yield from self.trigger(ConferringInput.BEGIN)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        match event:
            case ConferenceEntered():
                what = ConferringInput.WAITS if event.waits else ConferringInput.TALKS
                yield from self.trigger(what, event)
            case ConferenceBegan():
                yield from self.trigger(ConferringInput.TALKS, event)
            case ConferenceRefused():
                yield from self.trigger(ConferringInput.REFUSED, event)
            case ConferenceOver():
                yield from self.trigger(ConferringInput.DISMISSED, event)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Leave the conference."""
        yield from self.trigger(ConferringInput.STOP)

    def _enter(self, _: Event | None) -> Iterator[Effect]:
        wanted = self._wanted
        terms = MemberTerms(wanted.muted, wanted.starts, wanted.ends, wanted.beep)
        yield EnterConference(self._leg, wanted.name, terms, wanted.max_members)

    def _tell(self, _: Event | None) -> Iterator[Effect]:
        yield self._told("conference.joined")

    def _refused(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, ConferenceRefused)
        yield self._told("conference.refused", event.problem)

    def _dismissed(self, _: Event | None) -> Iterator[Effect]:
        yield self._told("conference.left")

    def _leave(self, _: Event | None) -> Iterator[Effect]:
        yield LeaveConference(self._leg)
        yield self._told("conference.left")

    def _withdraw(self, _: Event | None) -> Iterator[Effect]:
        yield LeaveConference(self._leg)

    def _told(self, event: str, problem: str | None = None) -> Save:
        details: dict[str, object] = {"conference": {"name": self._wanted.name, "muted": self._wanted.muted}}
        return Save(event, details if problem is None else {**details, "reason": problem})


_S, _I = ConferringState, ConferringInput
RULES: Final[Rules[ConferringState, ConferringInput]] = {
    (_S.NEW, _I.BEGIN): (_S.ENTERING, ConferenceStep._enter),
    (_S.NEW, _I.STOP): (_S.OVER, ConferenceStep._nothing),
    (_S.ENTERING, _I.WAITS): (_S.WAITING, ConferenceStep._nothing),
    (_S.ENTERING, _I.TALKS): (_S.TALKING, ConferenceStep._tell),
    (_S.ENTERING, _I.REFUSED): (_S.OVER, ConferenceStep._refused),
    (_S.ENTERING, _I.STOP): (_S.OVER, ConferenceStep._withdraw),
    (_S.WAITING, _I.TALKS): (_S.TALKING, ConferenceStep._tell),
    (_S.WAITING, _I.DISMISSED): (_S.OVER, ConferenceStep._nothing),
    (_S.WAITING, _I.STOP): (_S.OVER, ConferenceStep._withdraw),
    (_S.TALKING, _I.DISMISSED): (_S.OVER, ConferenceStep._dismissed),
    (_S.TALKING, _I.STOP): (_S.OVER, ConferenceStep._leave),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in ConferringInput if what not in (_I.BEGIN, _I.STOP)}
    | {(_S.ENTERING, _I.BEGIN), (_S.ENTERING, _I.DISMISSED)}
    | {(_S.WAITING, _I.BEGIN), (_S.WAITING, _I.WAITS), (_S.WAITING, _I.REFUSED)}
    | {(_S.TALKING, what) for what in ConferringInput if what not in (_I.DISMISSED, _I.STOP)}
    | {(_S.OVER, what) for what in ConferringInput}
)

ConferenceStep.ROWS = compile_rules(RULES)
