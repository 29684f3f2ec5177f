"""The one shape of all state machines: a table from (state, event) to (next state, action)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any, ClassVar, Generic, TypeVar

StateT = TypeVar("StateT", bound=IntEnum)
EventT = TypeVar("EventT", bound=Enum)
NumberedT = TypeVar("NumberedT", bound=IntEnum)

Action = Callable[[Any, Any], Iterable[Any]]
"""Action of a rule: called with the machine and the data of the event, returns the effects."""

Rules = Mapping[tuple[StateT, EventT], tuple[StateT, Action]]
Rows = list[list[tuple[StateT, Action] | None]]

NOTHING: Sequence[Any] = ()


def compile_rules(rules: Mapping[tuple[StateT, NumberedT], tuple[StateT, Action]]) -> Rows[StateT]:
    """Compile a rule table into rows indexed by state and event, which avoids hashing for each event."""
    state, event = next(iter(rules))
    rows: Rows[StateT] = [[None] * (max(type(event)) + 1) for _ in range(max(type(state)) + 1)]
    for (state, event), rule in rules.items():
        rows[state][event] = rule
    return rows


def next_state(rules: Mapping[tuple[StateT, EventT], Sequence[Any]], state: StateT, event: EventT) -> Any:
    """Return the next state by a table without actions; None when no rule exists."""
    rule = rules.get((state, event))
    return None if rule is None else rule[0]


class Machine(Generic[StateT]):
    """
    A state machine that only the rules of its table change.

    A subclass sets its compiled table as `ROWS`. Pairs without a rule are in the `IGNORED` set of its
    module. A test proves that rules and ignored pairs cover every pair, and that states never go back.
    """

    __slots__ = ("state",)

    ROWS: ClassVar[Rows[Any]]

    state: StateT

    def trigger(self, event: int, about: Any = None) -> list[Any]:
        """Apply the rule of this event in this state and return its effects."""
        rule = self.ROWS[self.state][event]
        if rule is None:
            return []
        target, action = rule
        effects = [*action(self, about)]
        self.state = target
        return effects
