"""Says of a disagreement what each party knows of that call, so that one run is enough to understand it."""

from __future__ import annotations

from typing import Any

from tests.faults.oracle.evidence import Discrepancy, Evidence, Leg
from tests.faults.oracle.reconcile import reconcile

__all__ = ["assert_nothing_lost"]

_SHOWN = 8
_OF_RECORD = (
    "direction",
    "status",
    "created_at",
    "answered_at",
    "ended_at",
    "duration_sec",
    "hangup_cause",
    "hangup_source",
    "price",
    "sip_call_id",
)


def assert_nothing_lost(evidence: Evidence) -> None:
    """Raise with everything in which the parties do not agree; nothing when they do."""
    found = reconcile(evidence)
    if found:
        shown = "\n\n".join(_explain(evidence, one) for one in found[:_SHOWN])
        kills = [round(at, 2) for at in evidence.kills]
        raise AssertionError(f"{len(found)} discrepancies; killed at {kills}\n\n{shown}")


def _explain(evidence: Evidence, found: Discrepancy) -> str:
    records = [record for record in evidence.records if found.call in _names(record)]
    dialogs = {record["sip_call_id"] for record in records} | {found.call}
    sessions = {leg.session_id for leg in evidence.legs if leg.call_id in dialogs and leg.session_id}
    legs = [
        leg
        for leg in evidence.legs
        if leg.call_id in dialogs or leg.session_id in sessions or leg.session_id == found.call
    ]
    records += [
        record
        for record in evidence.records
        if record not in records and record["sip_call_id"] in {leg.call_id for leg in legs}
    ]
    sids = {record["call_sid"] for record in records} | {found.call}
    told = [f"{hook.sequence} {hook.event} {hook.at:.2f}" for hook in evidence.hooks if hook.call_sid in sids]
    lines = [
        *(f"  record {record['call_sid']}: {_some(record)}" for record in records),
        *(f"  leg {_leg(leg)}" for leg in legs),
        f"  events {told}",
    ]
    return "\n".join([str(found), *lines])


def _names(record: dict[str, Any]) -> tuple[Any, Any]:
    return record["call_sid"], record["sip_call_id"]


def _some(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record.get(name) for name in _OF_RECORD}


def _leg(leg: Leg) -> str:
    moments = {
        name: round(at, 2)
        for name in ("began_at", "rang_at", "answered_at", "confirmed_at", "ended_at", "last_rtp_at")
        if (at := getattr(leg, name)) is not None
    }
    counts = {
        name: getattr(leg, name)
        for name in ("status", "ended_by", "reason", "byes_sent", "byes_received", "cancels", "repeated")
    }
    return f"{leg.call_id} {leg.role} {leg.kind} {leg.number} session {leg.session_id}: {moments} {counts}"
