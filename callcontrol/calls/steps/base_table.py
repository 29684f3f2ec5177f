"""
Machines that are tables: from what they are and what they are told, to what they become and do.

A machine names its rules; what a rule does not speak of is ignored, and listed beside the rules as such.
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
"""The state that follows, and what is done on the way there, by state and input."""


class TableMachine(ABC, Generic[StateT, InputT]):
    """Something with a state that only rules change, and that never goes back to a former one."""

    state: StateT

    @abstractmethod
    def rules(self) -> Rules[StateT, InputT]:
        """The table of the machine."""

    def _take(self, what: InputT, event: Event | None = None) -> list[Effect]:
        """Follow the rule for what the machine is told, if there is one."""
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
    """The last state of a machine; looking through an enumeration takes long, and there are few of them."""
    return max(states)


class TableStep(RunningStep, TableMachine[StateT, InputT]):
    """A step of a call that is such a machine; it is over in the last of its states."""

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
