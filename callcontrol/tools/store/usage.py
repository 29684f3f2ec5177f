"""Counts of the use of tools."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement
from callcontrol.database.tables.tools import tool_usage
from callcontrol.tools.usage import Usage, UsageFilter, UsageKey

_ADDED: Final = ("calls", "errors", "total_ms")
# Both databases use this spelling; SQLAlchemy has it only per dialect.
_ADD: Final = Statement(
    sa.insert(tool_usage)
    .inline()
    .values({column.name: sa.bindparam(column.name) for column in tool_usage.c}),
    suffix=" ON CONFLICT (account_sid, day, tool, key_id) DO UPDATE SET "
    + ", ".join(f"{name} = tool_usage.{name} + excluded.{name}" for name in _ADDED)
    + ", max_ms = CASE WHEN excluded.max_ms > tool_usage.max_ms"
    " THEN excluded.max_ms ELSE tool_usage.max_ms END",
)


def add(connection: Connection, counted: Mapping[UsageKey, Usage]) -> None:
    """Add counts to the stored ones."""
    # Always in one order: otherwise two processes that add to the same rows would wait for each other.
    _ADD.many(connection, [{**asdict(key), **asdict(counted[key])} for key in sorted(counted)])


def of_account(
    connection: Connection, account_sid: str, wanted: UsageFilter, limit: int
) -> list[tuple[UsageKey, Usage]]:
    """The usage of an account, newest day first, then by tool and key."""
    days = tool_usage.c.day
    narrowed = [tool_usage.c.account_sid == account_sid, days.between(wanted.first_day, wanted.last_day)]
    if wanted.tool is not None:
        narrowed.append(tool_usage.c.tool == wanted.tool)
    if wanted.key_id is not None:
        narrowed.append(tool_usage.c.key_id == wanted.key_id)
    rows = connection.execute(
        sa.select(tool_usage)
        .where(*narrowed)
        .order_by(days.desc(), tool_usage.c.tool, tool_usage.c.key_id)
        .limit(limit)
    )
    return [
        (
            UsageKey(row.account_sid, row.day, row.tool, row.key_id),
            Usage(row.calls, row.errors, row.total_ms, row.max_ms),
        )
        for row in rows
    ]


def forget(connection: Connection, before_day: str, limit: int) -> int:
    """Delete some rows of days before a day; return their number."""
    old = (
        sa.select(tool_usage.c.account_sid, tool_usage.c.day, tool_usage.c.tool, tool_usage.c.key_id)
        .where(tool_usage.c.day < before_day)
        .limit(limit)
    )
    names = sa.tuple_(tool_usage.c.account_sid, tool_usage.c.day, tool_usage.c.tool, tool_usage.c.key_id)
    return connection.execute(sa.delete(tool_usage).where(names.in_(old))).rowcount
