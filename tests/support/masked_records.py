"""Masked calls as records, without the calls: for what lists and adds them up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.records.store import calls
from callcontrol.clock import timestamp
from callcontrol.masking.calls import ENDED, PRODUCT, masked_details
from callcontrol.masking.store import calls as masked_calls
from callcontrol.models import CallRecord, CallStatus
from tests.support.domain import new_record

MASKED = "+918047491899"
_STATUSES = {
    "completed": CallStatus.COMPLETED,
    "failed": CallStatus.FAILED,
    "no-answer": CallStatus.NO_ANSWER,
}


def masked_record(
    account_sid: str,
    at: datetime,
    *,
    caller: str = "+919800000001",
    target: str | None = "+919800000002",
    direction: str = "click_to_call",
    session_id: str | None = None,
) -> CallRecord:
    """A masked call that begins."""
    return new_record(
        account_sid,
        "inbound" if direction == "inbound" else "outbound",
        from_=MASKED,
        to=caller,
        created_at=at,
        product=PRODUCT,
        details=masked_details(
            direction=direction,
            caller_number=caller,
            target_number=target,
            masked_number=MASKED,
            session_id=session_id,
        ),
    )


def move(
    record: CallRecord, status: str, *, billed_s: int = 0, price_paise: int = 0, connected: bool = False
) -> None:
    """Move a call to a status, and end it when that is a final one."""
    changes: dict[str, Any] = {"status": status}
    if connected or status in ("in-progress", "completed"):
        changes["bridged_at"] = timestamp(record.created_at)
    if status in ENDED:
        record.status = _STATUSES[status]
        record.ended_at = record.created_at + timedelta(seconds=billed_s)
        record.price_paise = price_paise
        changes["bill_duration_sec"] = billed_s
    record.details = {**(record.details or {}), **changes}


def some_records(
    account_sid: str, count: int, chance: random.Random, at: datetime, span_s: int, parties: Sequence[str]
) -> list[CallRecord]:
    """Calls of few moments, parties and sessions, so that every filter and every tie occurs."""
    made = []
    for _ in range(count):
        caller, target = chance.sample(parties, 2)
        direction = chance.choice(("click_to_call", "click_to_call", "inbound"))
        record = masked_record(
            account_sid,
            at + timedelta(seconds=chance.randrange(span_s), microseconds=chance.choice((0, 0, 1, 999_999))),
            caller=caller,
            target=chance.choice((target, target, None)) if direction == "inbound" else target,
            direction=direction,
            session_id=chance.choice(("s1", "s2")) if direction == "inbound" else None,
        )
        status = chance.choice(("initiated", "b_ringing", "in-progress", "completed", "failed", "no-answer"))
        move(record, status, billed_s=60 * chance.randrange(5), price_paise=chance.randrange(500))
        made.append(record)
    return made


async def store(storage: Storage, records: Sequence[CallRecord]) -> None:
    """Write records as they are, with the rows that lists read."""

    def write(connection: Connection) -> None:
        for record in records:
            row = calls.row_of(record)
            calls.insert(connection, [row])
            masked_calls.ROWS.insert(connection, [row])

    await storage.database.write(write)
