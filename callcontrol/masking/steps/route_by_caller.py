"""
Routing of a call to a masked number until its target is known: a step of its plan, a table of states.

A known caller continues with a ``Connect``. An unknown caller hears, as early media and so without charge,
that the number is not active, and is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import ClassVar, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayAudio, StopAudio
from callcontrol.calls.effects.records import Arm, Disarm, Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.media import PlaybackEnded
from callcontrol.calls.hangup_cause import CALL_REJECTED, NO_ROUTE_DESTINATION, NORMAL_TEMPORARY_FAILURE
from callcontrol.calls.plan import Step
from callcontrol.calls.steps.base import CallParts, TableStep
from callcontrol.masking.routing import CallerRoute, RoutingResult
from callcontrol.models import CallStatus
from sip.machine import Rules, compile_rules

PROMPT: Final = "not-active"
PROMPT_REPEATS: Final = 2
MAX_PROMPT_S: Final = 20.0
"""Limits the prompt for a caller whose audio never starts."""

# 480 and not 404: the number exists, and a network that believed otherwise would look for it elsewhere.
_UNKNOWN: Final = Ending(CallStatus.FAILED, NO_ROUTE_DESTINATION, "system", 480)
_REJECTED: Final = Ending(CallStatus.BUSY, CALL_REJECTED, "api", 603)
_ROUTING_FAILED: Final = Ending(CallStatus.FAILED, NORMAL_TEMPORARY_FAILURE, "system", 480)


class RoutingState(IntEnum):
    """States of the step, in order."""

    NEW = 0
    REQUESTING = 1
    PROMPTING = 2
    """The caller hears that the number is not active."""
    OVER = 3


class RoutingInput(IntEnum):
    """Inputs of the step."""

    BEGIN = auto()
    ROUTED = auto()
    UNKNOWN = auto()
    REJECTED = auto()
    FAILED = auto()
    """The target of the caller could not be determined."""
    PROMPTED = auto()
    STOP = auto()
    """Command: the call ends."""


@dataclass(frozen=True, slots=True)
class RouteByCaller(Step):
    """
    Find the party that the caller of a masked number reaches, and ``Connect`` the two.

    ``caller_number`` is None for a caller without a number. A caller who reaches nobody hears an announcement
    in ``language``.
    """

    dials: ClassVar[bool] = True
    caller_number: str | None
    masked_number: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class RouteCaller(Effect):
    """
    Look up the party that a caller reaches by a masked number; both numbers are in E.164.

    ``CallerRouted`` of the same ``number`` follows. ``caller_number`` is None for a caller without a number.
    """

    number: int
    caller_number: str | None
    masked_number: str


@dataclass(frozen=True, slots=True)
class CallerRouted(Event):
    """The party that the caller of a masked number reaches; ``found`` is None when the lookup failed."""

    number: int
    found: RoutingResult | None


class RouteByCallerStep(TableStep[RoutingState]):
    """The step that finds the target of the caller of a masked number."""

    needs_answer = False

    def __init__(self, call: CallParts, wanted: RouteByCaller) -> None:
        super().__init__(call, RoutingState.NEW)
        self._wanted = wanted
        self._number = 0

    def begin(self) -> Iterator[Effect]:
        """Request the route; the caller hears nothing yet, as no party rings."""
        self._number = self.call.next_request_id()
        yield from self.trigger(RoutingInput.BEGIN)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        what = self._input_of(event)
        if what is not None:
            yield from self.trigger(what, event)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop waiting and playing."""
        yield from self.trigger(RoutingInput.STOP)

    def _input_of(self, event: Event) -> RoutingInput | None:
        match event:
            case CallerRouted(number, found) if number == self._number:
                return _INPUTS[found] if found is None or isinstance(found, str) else RoutingInput.ROUTED
            case PlaybackEnded() | TimerFired(Timer.RING):
                return RoutingInput.PROMPTED
        return None

    def _request(self, _: Event | None) -> Iterator[Effect]:
        yield RouteCaller(self._number, self._wanted.caller_number, self._wanted.masked_number)

    def _connect(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, CallerRouted) and isinstance(event.found, CallerRoute)
        route, record = event.found, self.call.record
        record.details = {
            **(record.details or {}),
            "target_number": route.target_number,
            "session_id": route.session_id,
            "max_duration_sec": route.max_duration_s,
        }
        self.call.set_next_steps((route.connect(self._wanted.masked_number),))
        yield Save()

    def _play_prompt(self, _: Event | None) -> Iterator[Effect]:
        yield from self.call.ring(183, early_media=True)
        yield Arm(Timer.RING, MAX_PROMPT_S)
        yield PlayAudio(self.call.a_leg.id, f"prompt:{self._wanted.language}/{PROMPT}", PROMPT_REPEATS)

    def _prompt_ended(self, _: Event | None) -> Iterator[Effect]:
        self.ending = _UNKNOWN
        yield Disarm(Timer.RING)

    def _reject(self, _: Event | None) -> Iterator[Effect]:
        self.ending = _REJECTED
        yield from ()

    def _fail(self, _: Event | None) -> Iterator[Effect]:
        self.ending = _ROUTING_FAILED
        yield from ()

    def _stop_prompt(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.RING)
        if not self.call.a_leg.over:
            yield StopAudio(self.call.a_leg.id)


_INPUTS: Final = {
    "unknown": RoutingInput.UNKNOWN,
    "rejected": RoutingInput.REJECTED,
    None: RoutingInput.FAILED,
}

_S, _I = RoutingState, RoutingInput
RULES: Final[Rules[RoutingState, RoutingInput]] = {
    (_S.NEW, _I.BEGIN): (_S.REQUESTING, RouteByCallerStep._request),
    (_S.NEW, _I.STOP): (_S.OVER, RouteByCallerStep._nothing),
    (_S.REQUESTING, _I.ROUTED): (_S.OVER, RouteByCallerStep._connect),
    (_S.REQUESTING, _I.UNKNOWN): (_S.PROMPTING, RouteByCallerStep._play_prompt),
    (_S.REQUESTING, _I.REJECTED): (_S.OVER, RouteByCallerStep._reject),
    (_S.REQUESTING, _I.FAILED): (_S.OVER, RouteByCallerStep._fail),
    (_S.REQUESTING, _I.STOP): (_S.OVER, RouteByCallerStep._nothing),
    (_S.PROMPTING, _I.PROMPTED): (_S.OVER, RouteByCallerStep._prompt_ended),
    (_S.PROMPTING, _I.STOP): (_S.OVER, RouteByCallerStep._stop_prompt),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in RoutingInput if what not in (_I.BEGIN, _I.STOP)}
    | {(_S.REQUESTING, _I.BEGIN), (_S.REQUESTING, _I.PROMPTED)}
    | {(_S.PROMPTING, what) for what in RoutingInput if what not in (_I.PROMPTED, _I.STOP)}
    | {(_S.OVER, what) for what in RoutingInput}
)

RouteByCallerStep.ROWS = compile_rules(RULES)
