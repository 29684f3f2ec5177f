"""The one shape of all state machines here: a table from (state, event) to (next state, action)."""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Generic, TypeVar

from sip.effects import Effect

__all__ = ["NOTHING", "Action", "Machine", "Rows", "Rules", "compile_rules"]

StateT = TypeVar("StateT", bound=IntEnum)
EventT = TypeVar("EventT", bound=IntEnum)

Action = Callable[[Any, Any], Sequence[Effect]]
"""Action of a rule: called with the machine and the data of the event, returns the effects."""

Rules = Mapping[tuple[StateT, EventT], tuple[StateT, Action]]
Rows = list[list[tuple[StateT, Action] | None]]

NOTHING: Sequence[Effect] = ()


def compile_rules(rules: Rules[StateT, EventT], states: type[StateT], events: type[EventT]) -> Rows[StateT]:
    """Compile a rule table into rows indexed by state and event, which avoids hashing for each message."""
    return [[rules.get((state, event)) for event in events] for state in states]


class Machine(Generic[StateT]):
    """
    A state machine whose states are ordered and never go back.

    A subclass sets its compiled table as `ROWS`. Pairs without a rule are in the `IGNORED` set of its
    module, and a test proves that rules and ignored pairs cover every pair.
    """

    __slots__ = ("state",)

    ROWS: Rows[Any]
    state: StateT

    def handle(self, event: int, about: Any = None) -> Sequence[Effect]:
        """Apply the rule of this event in this state and return its effects."""
        rule = self.ROWS[self.state][event]
        if rule is None:
            return NOTHING
        target, action = rule
        effects = action(self, about)
        assert target >= self.state
        self.state = target
        return effects
