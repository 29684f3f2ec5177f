"""Calls with voice agents for lists and analytics: a narrow row for each, updated with its record."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.assistant.analytics import AnalyticsQuery, AssistantCallFilter, DayCount
from callcontrol.assistant.calls import ENDED, status_of
from callcontrol.calls.records.store.product_rows import ProductRows
from callcontrol.database.listing import Condition, Listing, Narrowing
from callcontrol.database.statements import to_micros, unpack
from callcontrol.database.tables.assistant import assistant_calls
from callcontrol.models import CallStatus

LISTING: Final = Listing(assistant_calls.c.created_at, assistant_calls.c.call_sid)

_DAY_MICROS: Final = 86_400_000_000


def conditions(account_sid: str, query: AssistantCallFilter) -> Sequence[Condition]:
    """The conditions of a list of calls, without its period."""
    table = assistant_calls.c
    found = Narrowing(table.account_sid == account_sid)
    live = query.status is not None and query.status not in ENDED
    if live:
        # Active calls are few and have an index of their own.
        found.by_own_index(table.outcome.is_(None), table.status == query.status)
    found.by(table.phone_number, query.phone_number)
    found.by(table.agent_id, query.agent_id)
    found.by(table.outcome, None if live else query.status)
    if query.direction is not None:
        found.conditions.append(table.direction == query.direction)
    if query.sandbox is not None:
        found.conditions.append(table.sandbox.is_(query.sandbox))
    return found.conditions


def day_counts(connection: Connection, account_sid: str, query: AnalyticsQuery) -> list[DayCount]:
    """Counts of the calls of a period, for each day in UTC and each outcome, from one covering index."""
    table = assistant_calls.c
    # Both are whole numbers and not negative, so the remainder is the same on both databases.
    day = (table.created_at - table.created_at % _DAY_MICROS).label("day")
    wanted = (
        sa.select(
            day,
            table.outcome,
            sa.func.count().label("calls"),
            sa.func.coalesce(sa.func.sum(table.duration_sec), 0).label("duration_sec"),
            sa.func.coalesce(sa.func.sum(table.price_paise), 0).label("cost_paise"),
        )
        .where(
            table.account_sid == account_sid,
            table.sandbox.is_(query.sandbox),
            table.created_at >= to_micros(query.start),
            table.created_at < to_micros(query.end),
        )
        .group_by(day, table.outcome)
    )
    if query.agent_id is not None:
        wanted = wanted.where(table.agent_id == query.agent_id)
    return [
        DayCount(
            int(row.day) // _DAY_MICROS, row.outcome, row.calls, int(row.duration_sec), int(row.cost_paise)
        )
        for row in connection.execute(wanted)
    ]


def _row_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an assistant call, from its record's row ``call``."""
    details: Mapping[str, Any] = unpack(call["details"]) if call["details"] else {}
    status = status_of(CallStatus(call["status"]), call["answered_by"])
    ended = call["outcome"] is not None
    return {
        "call_sid": call["call_sid"],
        "account_sid": call["account_sid"],
        "agent_id": details.get("agent_id") or "",
        "direction": call["direction"],
        "phone_number": call["to_number"] if call["direction"] == "outbound" else call["from_number"],
        "sandbox": bool(details.get("sandbox")),
        "status": status,
        "outcome": status if ended else None,
        "duration_sec": call["duration_sec"] if ended and call["answered_at"] is not None else None,
        "price_paise": call["price_paise"] if ended else None,
        "created_at": call["created_at"],
    }


def _changed(row: Mapping[str, Any]) -> tuple[str, ...]:
    if row["outcome"] is None:
        return ("status",)
    return "status", "outcome", "duration_sec", "price_paise"


ROWS: Final = ProductRows(assistant_calls, _row_of, _changed)
"""Rows of assistant calls."""
