"""SQL of call records."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.calls.records.quality import quality_fields, stored_quality
from callcontrol.database.statements import (
    Statement,
    clean,
    insert_into,
    pack,
    pack_exact,
    to_micros,
    to_moment,
    to_moment_or_none,
    unpack,
    update_columns,
    update_rows,
)
from callcontrol.database.tables.calls import calls
from callcontrol.models import CallRecord, CallStatus, StreamInfo

# Columns that never change after the insert; an update writes all the others.
_FIXED: Final = frozenset(
    {"call_sid", "account_sid", "parent_call_sid", "direction", "from_number", "to_number", "created_at"}
    | {"currency", "tag", "sip", "status_webhook_url", "status_webhook_events", "product", "node"}
)
MUTABLE: Final = tuple(column.name for column in calls.c if column.name not in _FIXED)
# Columns without a value until the call is recorded or over; a value once set never goes. Most updates leave
# them out, and with them the indexes over them.
_LATE: Final = dict.fromkeys(
    ("outcome", "ended_at", "duration_sec", "bill_duration_sec", "price_paise", "quality")
    + ("hangup_cause", "hangup_cause_code", "hangup_source")
    + ("recording_url", "recording_path", "recording_status")
)

_NAMES: Final = tuple(column.name for column in calls.c)

_INSERT: Final = insert_into(calls, ignore_conflict=True)
_INSERT_ACTIVE: Final = insert_into(calls, ignore_conflict=True, empty=_LATE)
_ACTIVE: Final = tuple(name for name in MUTABLE if name not in _LATE)
_UPDATE: Final = update_columns(calls, calls.c.call_sid, MUTABLE)
_UPDATE_ACTIVE: Final = update_columns(calls, calls.c.call_sid, _ACTIVE)
_UPDATE_AT_ONCE: Final = update_rows(calls, calls.c.call_sid, MUTABLE)
_UPDATE_ACTIVE_AT_ONCE: Final = update_rows(calls, calls.c.call_sid, _ACTIVE)
_BY_SID: Final = Statement(sa.select(calls).where(calls.c.call_sid == sa.bindparam("call_sid")))
# Literal as in the index: SQLite uses a partial index only if the condition matches its text.
_PENDING: Final = sa.text("recording_status IN ('in-progress', 'paused')")


def row_of(record: CallRecord) -> dict[str, Any]:
    """Return the row for the present state of a record."""
    return {
        **_active_row_of(record),
        **_late_row_of(record),
        "account_sid": record.account_sid,
        "parent_call_sid": record.parent_call_sid,
        "direction": record.direction,
        "from_number": clean(record.from_),
        "to_number": clean(record.to),
        "created_at": to_micros(record.created_at),
        "sip": pack(record.sip) if record.sip else None,
        "currency": record.currency,
        "tag": record.tag and clean(record.tag),
        "status_webhook_url": record.status_webhook_url,
        "status_webhook_events": ",".join(record.status_webhook_events) or None,
        "node": record.node,
    }


def changes_of(record: CallRecord) -> dict[str, Any]:
    """Return what ``update`` needs: the columns that may have changed, or the row for a product."""
    if record.product is not None:
        return row_of(record)
    # The end of a call sets all the other late columns.
    active = record.ended_at is None and record.price_paise is None and record.hangup_cause_code is None
    row = _active_row_of(record)
    is_plain = active and record.recording_status is None and not record.status.ended
    return row if is_plain else {**row, **_late_row_of(record)}


def _active_row_of(record: CallRecord) -> dict[str, Any]:
    return {
        "call_sid": record.call_sid,
        "_call_sid": record.call_sid,
        "status": str(record.status),
        "answered_by": record.answered_by,
        "carrier_sid": record.carrier_sid,
        "gateway_sid": record.gateway_sid,
        "phone_number_id": record.phone_number_id,
        "app_sid": record.app_sid,
        "stream": pack(asdict(record.stream)) if record.stream else None,
        "ringing_at": record.ringing_at and to_micros(record.ringing_at),
        "answered_at": record.answered_at and to_micros(record.answered_at),
        "sip_status": record.sip_status,
        "sip_reason": record.sip_reason and clean(record.sip_reason),
        "sip_call_id": clean(record.sip_call_id),
        "product": record.product,
        "details": pack(record.details) if record.details is not None else None,
        "sequence": record.sequence,
        "dialogs": pack_exact(record.dialogs) if record.dialogs and record.ended_at is None else None,
    }


def _late_row_of(record: CallRecord) -> dict[str, Any]:
    return {
        "outcome": str(record.status) if record.status.ended else None,
        "ended_at": record.ended_at and to_micros(record.ended_at),
        "duration_sec": record.duration_sec,
        "bill_duration_sec": record.bill_duration_sec,
        "hangup_cause": record.hangup_cause,
        "hangup_cause_code": record.hangup_cause_code,
        "hangup_source": record.hangup_source,
        "price_paise": record.price_paise,
        "recording_url": record.recording_url,
        "recording_path": record.recording_path,
        "recording_status": record.recording_status,
        "quality": pack(quality_fields(record.quality)) if record.quality else None,
    }


def record_of(row: Mapping[str, Any]) -> CallRecord:
    """Return the record of a row."""
    events = row["status_webhook_events"]
    return CallRecord(
        call_sid=row["call_sid"],
        account_sid=row["account_sid"],
        parent_call_sid=row["parent_call_sid"],
        direction=row["direction"],
        from_=row["from_number"],
        to=row["to_number"],
        status=CallStatus(row["status"]),
        answered_by=row["answered_by"],
        carrier_sid=row["carrier_sid"],
        gateway_sid=row["gateway_sid"],
        phone_number_id=row["phone_number_id"],
        app_sid=row["app_sid"],
        stream=StreamInfo(**unpack(row["stream"])) if row["stream"] else None,
        created_at=to_moment(row["created_at"]),
        ringing_at=to_moment_or_none(row["ringing_at"]),
        answered_at=to_moment_or_none(row["answered_at"]),
        ended_at=to_moment_or_none(row["ended_at"]),
        duration_sec=row["duration_sec"],
        bill_duration_sec=row["bill_duration_sec"],
        hangup_cause=row["hangup_cause"],
        hangup_cause_code=row["hangup_cause_code"],
        hangup_source=row["hangup_source"],
        sip_status=row["sip_status"],
        sip_reason=row["sip_reason"],
        sip_call_id=row["sip_call_id"],
        sip=unpack(row["sip"]) if row["sip"] else None,
        price_paise=row["price_paise"],
        currency=row["currency"],
        recording_url=row["recording_url"],
        recording_path=row["recording_path"],
        recording_status=row["recording_status"],
        quality=stored_quality(unpack(row["quality"])) if row["quality"] else None,
        tag=row["tag"],
        status_webhook_url=row["status_webhook_url"],
        status_webhook_events=tuple(events.split(",")) if events else (),
        product=row["product"],
        details=unpack(row["details"]) if row["details"] else None,
        sequence=row["sequence"],
        node=row["node"],
        dialogs=unpack(row["dialogs"]) if row["dialogs"] else {},
    )


def insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new calls; an existing call is left unchanged."""
    ended = [row for row in rows if any(map(row.get, _LATE))]
    (_INSERT if ended else _INSERT_ACTIVE).many(connection, rows)


def update(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the newest state of inserted calls, each as ``changes_of`` or ``row_of`` returns it."""
    one_by_one, at_once = _UPDATE_ACTIVE, _UPDATE_ACTIVE_AT_ONCE
    if [row for row in rows if "ended_at" in row]:
        # One statement for all, also for active calls.
        one_by_one, at_once = _UPDATE, _UPDATE_AT_ONCE
        rows = [{**_LATE, **row} for row in rows]
    if len(rows) > 1 and connection.dialect.name == "postgresql":
        at_once.all(connection, rows)
    else:
        one_by_one.many(connection, rows)


def delete(connection: Connection, call_sid: str) -> None:
    """Delete a call whose insertion was abandoned."""
    connection.execute(sa.delete(calls).where(calls.c.call_sid == call_sid))


def get(connection: Connection, call_sid: str) -> CallRecord | None:
    """Return one call, of any account."""
    row = _BY_SID.first(connection, {"call_sid": call_sid})
    return record_of(row) if row is not None else None


def unfinished(connection: Connection, node: str) -> list[CallRecord]:
    """Calls of a node without an end, oldest first."""
    rows = connection.execute(
        sa.select(calls).where(calls.c.ended_at.is_(None), calls.c.node == node).order_by(calls.c.created_at)
    )
    return [_record(row) for row in rows]


def with_pending_recording(connection: Connection, node: str) -> list[CallRecord]:
    """Ended calls of a node with an unfinished recording: their process was killed in between."""
    rows = connection.execute(
        sa.select(calls).where(calls.c.node == node, _PENDING, calls.c.ended_at.is_not(None))
    )
    return [_record(row) for row in rows]


def by_sids(connection: Connection, call_sids: Sequence[str]) -> list[CallRecord]:
    """Calls with these identifiers, in their order."""
    rows = connection.execute(sa.select(calls).where(calls.c.call_sid.in_(call_sids)))
    found = {record.call_sid: record for record in map(_record, rows)}
    return [found[call_sid] for call_sid in call_sids if call_sid in found]


def _record(row: Row[Any]) -> CallRecord:
    return record_of(dict(zip(_NAMES, row, strict=True)))
