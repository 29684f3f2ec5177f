"""
Functions of PostgreSQL that are a whole transaction of the writer, and so one message to the database.

A transaction takes its turn, and only then may its statements look at what others have written; on their own
they need a round trip for BEGIN, the turn, each statement and COMMIT. Within a function every statement sees
what was committed before it begins, as it does without one, and the turn is held for no round trip.

A function is temporary: each connection makes it from this program's statements, so no two versions of the
program share one.

When its answer is lost, a function may have been executed, and may still come to be. So each execution has a
token, and does nothing once ``rule_out`` has written that down.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.schema import TURN
from callcontrol.database.statements import Given
from callcontrol.database.tables.system import writer_probe

NOTHING_DONE: Final = 0
"""Answer of a function that has changed nothing, as its first statement found nothing to change."""
DONE: Final = 1
"""Answer of a function that has executed its statements."""
FENCED: Final = 2
"""Answer of a function whose node another has replaced, or which is ruled out."""

_TEXT: Final = """\
CREATE FUNCTION pg_temp.{name}({parameters}) RETURNS integer LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM pg_advisory_xact_lock({turn});
    PERFORM FROM nodes WHERE node = p_writer AND incarnation = p_incarnation
        AND NOT EXISTS (SELECT FROM writer_probe WHERE node = p_token) FOR KEY SHARE OF nodes;
    IF NOT FOUND THEN RETURN {fenced}; END IF;
    {statements}
    RETURN {done};
END $function$"""
_CHECK: Final = "IF NOT FOUND THEN RETURN {nothing_done}; END IF;"


class Parameters(Given):
    """
    Values that a clause takes from the parameters of a function.

    Args:
        fixed: Values of integers that are no parameters.
    """

    def __init__(self, fixed: Mapping[str, int]) -> None:
        super().__init__()
        self._fixed = fixed

    def text(self, name: str) -> sa.ColumnElement[str]:
        """A value that is text."""
        return sa.literal_column(f"p_{name}", sa.Text)

    def whole(self, name: str) -> sa.ColumnElement[int]:
        """A value that is an integer."""
        fixed = self._fixed.get(name)
        return sa.literal_column(f"p_{name}" if fixed is None else str(fixed), sa.BigInteger)

    def into(self, table: sa.Table) -> sa.Insert:
        """INSERT of a row whose columns are parameters."""
        return sa.insert(table).inline().values({name: self.text(name) for name in table.c.keys()})


class Function:
    """
    A transaction; its first statement says by a changed row that it is to be made.

    Args:
        name: Name of the function.
        columns: Columns, text or integers, after which its parameters are named.
        make: Makes its statements.
        fixed: Values of integers in them that are no parameters.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[sa.Column[Any]],
        make: Callable[[Parameters], Sequence[sa.Insert | sa.Update]],
        fixed: Mapping[str, int],
    ) -> None:
        self.name = name
        self._columns = columns
        self._make = make
        self._fixed = fixed

    @cached_property
    def definition(self) -> str:
        """The statement that makes it on a connection."""
        # Looked up here: a server on SQLite does not need this dialect.
        sql = sa.make_url("postgresql+asyncpg://").get_dialect()()
        statements = [
            str(clause.compile(dialect=sql, compile_kwargs={"literal_binds": True})) + ";"
            for clause in self._make(Parameters(self._fixed))
        ]
        statements.insert(1, _CHECK.format(nothing_done=NOTHING_DONE))
        types = ["p_writer text", "p_incarnation text", "p_token text"]
        types += [f"p_{column.name} {column.type.compile(dialect=sql)}" for column in self._columns]
        return _TEXT.format(
            name=self.name,
            parameters=", ".join(types),
            turn=TURN,
            statements="\n    ".join(statements),
            fenced=FENCED,
            done=DONE,
        )

    @property
    def execution(self) -> str:
        """The statement that executes it, for the writer, its incarnation, a token and the values."""
        given = ", ".join(f"${number}" for number in range(1, len(self._columns) + 4))
        return f"SELECT pg_temp.{self.name}({given})"

    def values(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the parameters."""
        return [values[column.name] for column in self._columns]


class Execution(NamedTuple):
    """
    An operation as the execution of a function.

    Attributes:
        function: The function.
        values: Values of its parameters, in order.
        outcome: Outcome of the operation if the function is executed.
        happened: Operation that tells whether it has been, from what it writes.
    """

    function: Function
    values: Sequence[Any]
    outcome: Any
    happened: Callable[[Connection], bool]


class Token(NamedTuple):
    """The transaction of an execution, for the question of a commit in doubt."""

    identifier: str
    happened: Callable[[Connection], bool]


def rule_out(connection: Connection, transaction: Token) -> bool:
    """Return True if an execution has been committed; it never will be, if it has not been."""
    if transaction.happened(connection):
        return True
    known = sa.select(writer_probe.c.node).where(writer_probe.c.node == transaction.identifier)
    if connection.scalar(known) is None:
        connection.execute(sa.insert(writer_probe).values(node=transaction.identifier, probed_at=0))
    return False
