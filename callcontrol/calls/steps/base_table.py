"""
Table-driven state machines: from (state, input) to (next state, action).

A machine names its rules; pairs without a rule are ignored, and listed as such beside the rules.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Generic, TypeVar

from callcontrol.calls.effects import Effect
from callcontrol.calls.events import Event
from callcontrol.calls.steps.base import CallParts, RunningStep

StateT = TypeVar("StateT", bound=IntEnum)
InputT = TypeVar("InputT", bound=IntEnum)

Rules = Mapping[tuple[StateT, InputT], tuple[StateT, Callable[[Any, Event | None], Iterator[Effect]]]]
"""Next state and action, by state and input."""


class TableMachine(ABC, Generic[StateT, InputT]):
    """Object whose state only its rules change; it never returns to an earlier state."""

    state: StateT

    @abstractmethod
    def rules(self) -> Rules[StateT, InputT]:
        """The table of the machine."""

    def _take(self, what: InputT, event: Event | None = None) -> list[Effect]:
        """Apply the rule for an input in the current state, if there is one."""
        rule = self.rules().get((self.state, what))
        if rule is None:  # listed in IGNORED
            return []
        target, action = rule
        assert target >= self.state
        effects = list(action(self, event))
        self.state = target
        return effects


@cache
def _last_of(states: type[IntEnum]) -> IntEnum:
    """Return the last state of a machine; cached, because iterating an enumeration is slow."""
    return max(states)


class TableStep(RunningStep, TableMachine[StateT, InputT]):
    """A step of a call as such a state machine; it is over in the last state."""

    def __init__(self, call: CallParts, first: StateT) -> None:
        super().__init__(call)
        self.state = first
        self._last: IntEnum = _last_of(type(first))

    def _take(self, what: InputT, event: Event | None = None) -> list[Effect]:
        effects = super()._take(what, event)
        self.over = self.state is self._last
        return effects

    def _nothing(self, _: Event | None) -> Iterator[Effect]:
        """Do nothing on the way to the next state."""
        yield from ()
