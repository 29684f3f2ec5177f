"""Operations of one transaction: run one after the other, shared by those of one kind, or each apart."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy.engine import Connection

from callcontrol.database.aio.database import Operation
from callcontrol.database.errors import is_transient
from callcontrol.database.functions import Execution
from sip.values import frozen

V = TypeVar("V")


@frozen
class Shared(Generic[V]):
    """
    Operation that all of its kind in a transaction share, so that they share its statements.

    ``run`` returns an outcome for each value. It must have the effect of being run for one value after the
    other; a failure runs it again for each value apart. Operations with an equal ``run`` are of one kind.
    """

    run: Callable[[Connection, Sequence[V]], Sequence[Any]]
    value: V
    as_function: Callable[[V], Execution | None] = lambda _: None
    """Returns the same for a value alone as a function of PostgreSQL, if there is one."""

    def execution(self) -> Execution | None:
        """Return the operation as a function of PostgreSQL, if there is one."""
        return self.as_function(self.value)

    def __call__(self, connection: Connection) -> Any:
        """Run for this value alone."""
        (outcome,) = self.run(connection, [self.value])
        return outcome


@frozen
class Failed:
    """Outcome of an operation that failed alone."""

    error: Exception


def together(operations: Sequence[Operation[Any]], connection: Connection) -> list[Any]:
    """Run operations, all of a shared kind in the place of its first; returns the outcome of each."""
    if len(operations) == 1:
        return [operations[0](connection)]
    kinds: dict[Any, list[tuple[int, Shared[Any]]]] = {}
    for place, operation in enumerate(operations):
        if isinstance(operation, Shared):
            kinds.setdefault(operation.run, []).append((place, operation))
    outcomes: list[Any] = [None] * len(operations)
    for place, operation in enumerate(operations):
        if not isinstance(operation, Shared):
            outcomes[place] = operation(connection)
        elif (alike := kinds.pop(operation.run, None)) is not None:
            found = operation.run(connection, [other.value for _, other in alike])
            for (other_place, _), outcome in zip(alike, found, strict=True):
                outcomes[other_place] = outcome
    return outcomes


def apart(operations: Sequence[Operation[Any]], connection: Connection) -> list[Any]:
    """Run each operation under its own savepoint, so that a failure undoes only that operation."""
    outcomes: list[Any] = []
    for operation in operations:
        try:
            with connection.begin_nested():
                outcomes.append(operation(connection))
        except Exception as error:  # Whatever an operation raises, it fails alone.
            if is_transient(error):
                raise
            outcomes.append(Failed(error))
    return outcomes
