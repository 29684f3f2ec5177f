"""Masked calls for lists and statistics: a narrow row for each, updated with its record."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.calls.records.store.product_rows import ProductRows
from callcontrol.database.listing import Condition, Listing, Narrowing
from callcontrol.database.statements import clean, to_micros, unpack
from callcontrol.database.tables.masking import masked_calls
from callcontrol.masking.calls import ENDED
from callcontrol.masking.logs import MaskedCallCounts, MaskedCallFilter

LISTING: Final = Listing(masked_calls.c.created_at, masked_calls.c.call_sid)


def conditions(account_sid: str, query: MaskedCallFilter) -> Sequence[Condition]:
    """The conditions of a list of calls, without its period."""
    table = masked_calls.c
    found = Narrowing(table.account_sid == account_sid)
    live = query.status is not None and query.status not in ENDED
    if live:
        # Active calls are few and have an index of their own.
        found.by_own_index(table.outcome.is_(None), table.status == query.status)
    found.by(table.session_id, query.session_id)
    if query.party is not None:
        # No row has the same number twice; see row_of.
        found.by_either((table.caller_number, table.target_number), query.party)
    found.by(table.outcome, None if live else query.status)
    found.by(table.direction, query.direction)
    return found.conditions


def counts(connection: Connection, account_sid: str, start: datetime, end: datetime) -> MaskedCallCounts:
    """Counts and totals of the calls that began from ``start`` on and before ``end``."""
    table = masked_calls.c
    window = (
        table.account_sid == account_sid,
        table.created_at >= to_micros(start),
        table.created_at < to_micros(end),
    )
    row = connection.execute(
        sa.select(
            sa.func.count().label("total"),
            sa.func.count(table.outcome).label("ended"),
            sa.func.count().filter(table.outcome == "failed").label("failed"),
            sa.func.count().filter(table.outcome == "no-answer").label("no_answer"),
            sa.func.count().filter(table.connected).label("connected"),
            _sum(table.bill_duration_sec).label("bill_duration_sec"),
            _sum(table.price_paise).label("cost_paise"),
        ).where(*window)
    ).one()
    talking = connection.scalar(
        sa.select(sa.func.count()).where(*window, table.outcome.is_(None), table.status == "in-progress")
    )
    return MaskedCallCounts(
        total=row.total,
        answered=row.connected + (talking or 0),
        failed=row.failed,
        no_answer=row.no_answer,
        in_progress=row.total - row.ended,
        bill_duration_sec=int(row.bill_duration_sec),
        cost_paise=int(row.cost_paise),
    )


def _sum(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(sa.func.sum(value), 0)


def row_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a masked call, from its record's row ``call``."""
    details: Mapping[str, Any] = unpack(call["details"]) if call["details"] else {}
    status = details.get("status") or "initiated"
    connected = details.get("bridged_at") is not None
    outcome = None
    if call["outcome"] is not None:
        # The record decides if a call is over; otherwise a defect could keep it in lists of active calls for
        # ever.
        if status not in ENDED:
            status = "completed" if connected else "failed"
        outcome = status
    caller, target = clean(details.get("caller_number")) or "", clean(details.get("target_number"))
    return {
        "call_sid": call["call_sid"],
        "account_sid": call["account_sid"],
        "session_id": clean(details.get("session_id")),
        "direction": details.get("direction") or "click_to_call",
        "caller_number": caller,
        # A party connected to itself is listed once.
        "target_number": target if target != caller else None,
        "status": status,
        "outcome": outcome,
        "connected": connected and outcome is not None,
        "bill_duration_sec": details.get("bill_duration_sec"),
        "price_paise": call["price_paise"],
        "created_at": call["created_at"],
    }


def _changed(row: Mapping[str, Any]) -> tuple[str, ...]:
    # Only the target of an inbound call is in an index and changes during the call.
    if row["outcome"] is not None:
        results = ("outcome", "connected", "bill_duration_sec", "price_paise")
        return "status", "session_id", "target_number", *results
    return ("status", "session_id", "target_number") if row["direction"] == "inbound" else ("status",)


ROWS: Final = ProductRows(masked_calls, row_of, _changed)
"""Rows of masked calls."""
