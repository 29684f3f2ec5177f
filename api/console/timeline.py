"""
Everything that happened in a call, on one time axis, as JSON for its page and for the export.

Times are milliseconds since the call began. What a key may not see is left out: webhooks need their scope,
and what agents say that of the voice assistant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from api.console.feed import call_summary, legs_of
from api.console.rendering import refusal_text
from api.console.visit import HOME, Visit
from api.routes.ladder import label_of
from callcontrol.aio.tokens import utc_now
from callcontrol.calls.aio.sip_trace import TraceEntry
from callcontrol.calls.records.call_json import call_object
from callcontrol.calls.records.journal import HookBodies, JournalEntry
from callcontrol.clock import timestamp
from callcontrol.errors import NodeUnreachable
from callcontrol.models import Attempt, CallRecord, Delivery, TranscriptSegment

__all__ = ["timeline_of"]

_MOST_BODY_CHARS: Final = 4000
# What the recording begins with, where the journal is gone: the answer.
_RECORD: Final = "record"


async def timeline_of(visit: Visit, record: CallRecord) -> dict[str, Any]:
    """
    Return the time axis of a call.

    Raises:
        NodeUnreachable: Another node has its signalling and its journal.
    """
    calls, storage = visit.services.calls, visit.storage
    trace, entries = calls.trace(record.call_sid), storage.calls.journal.of(record.call_sid)
    if not trace and not entries and await storage.membership.is_another(record.node):
        raise NodeUnreachable(record.node, refusal_text("trace_kept"))
    begun = record.created_at
    webhooks = None
    if visit.may("webhooks.read"):
        webhooks = await storage.subscriptions.deliveries_of_call(record.account_sid, record.call_sid)
    of = storage.transcripts.of_parties
    if visit.may("assistant", "assistant"):
        of = storage.transcripts.of_call
    return {
        "call": {**call_object(record), **call_summary(record, legs_of(visit.services, record.call_sid))},
        "now_ms": _ms(begun, utc_now()),
        "end_ms": None if record.ended_at is None else _ms(begun, record.ended_at),
        "answer_ms": None if record.answered_at is None else _ms(begun, record.answered_at),
        "sip": _messages(trace, begun),
        "lanes": _lanes(trace),
        "journal": [_entry(entry, begun, visit.may("webhooks.read")) for entry in entries],
        "dropped": storage.calls.journal.dropped(record.call_sid),
        "quality": _histories(visit, record),
        "levels": _levels(storage.calls.journal.levels_of(record.call_sid), begun),
        "webhooks": None if webhooks is None else [_delivery(delivery, begun) for delivery in webhooks],
        "charge": _charge(record),
        "transcript": _transcript(await of(record.call_sid), record),
        "recording": _recording(record, entries),
    }


def _levels(
    lines: Mapping[str, Sequence[tuple[float, float, float]]], begun: datetime
) -> list[dict[str, Any]]:
    return [
        {
            "leg": leg,
            "direction": direction,
            "points": [
                {"at_ms": max(0, round((at_s - begun.timestamp()) * 1000)), "level_dbfs": of[place]}
                for at_s, *of in line
            ],
        }
        for leg, line in lines.items()
        for place, direction in enumerate(("received", "sent"))
    ]


def _ms(begun: datetime, at: datetime) -> int:
    return max(0, round((at - begun).total_seconds() * 1000))


def _messages(trace: Sequence[TraceEntry], begun: datetime) -> list[dict[str, Any]]:
    return [
        {
            "at_ms": _ms(begun, entry.at),
            "lane": entry.call_id or entry.peer,
            "leg": entry.leg,
            "out": entry.direction == "out",
            "label": label_of(entry.message),
            "peer": entry.peer,
            "transport": entry.transport,
            "text": entry.message,
        }
        for entry in trace
    ]


def _lanes(trace: Iterable[TraceEntry]) -> list[dict[str, Any]]:
    """Lifelines of the ladder: a party for each dialog, and the side of the server that it stands on."""
    found: dict[str, dict[str, Any]] = {}
    for entry in trace:
        lane = entry.call_id or entry.peer
        if lane not in found:
            left = entry.direction != "out"
            found[lane] = {"lane": lane, "leg": entry.leg, "peer": entry.peer, "left": left}
    return list(found.values())


def _entry(entry: JournalEntry, begun: datetime, with_bodies: bool) -> dict[str, Any]:
    details = {name: _plain(value) for name, value in entry.details.items() if value is not None}
    at_ms = _ms(begun, entry.at)
    shown: dict[str, Any] = {"at_ms": at_ms, "kind": entry.kind, "name": entry.name, "details": details}
    if entry.kind == "webhook" and with_bodies:
        shown["exchange"] = None if entry.bodies is None else _exchange(entry.bodies)
    return shown


def _exchange(bodies: HookBodies) -> dict[str, Any]:
    return {
        "request": bodies.request,
        "body": bodies.answer,
        "body_bytes": bodies.answer_bytes,
        "is_whole": bodies.is_whole,
    }


def _plain(value: Any) -> Any:
    """Value of a detail as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int | float) or value is None:
        return value
    # The names that an agent gives to marks may have lone surrogates, and UTF-8 has none.
    return str(value).encode("utf-8", "replace").decode()


def _histories(visit: Visit, record: CallRecord) -> list[dict[str, Any]]:
    """Quality of each leg and direction over time."""
    runner = visit.services.calls.active(record.call_sid)
    journal = visit.storage.calls.journal
    found = journal.quality_of(record.call_sid) if runner is None else runner.media.histories()
    return [
        {
            "leg": history.leg,
            "direction": direction,
            "points": [
                {"at_ms": _ms(record.created_at, point.at), **asdict(getattr(point, direction))}
                for point in points
            ],
        }
        for history in found
        for points in [history.points]
        for direction in ("received", "sent")
    ]


def _delivery(delivery: Delivery, begun: datetime) -> dict[str, Any]:
    event = delivery.event
    return {
        "at_ms": _ms(begun, event.created_at),
        "event": event.event,
        "method": event.method,
        "url": event.url,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "response_code": delivery.response_code,
        "problem": delivery.last_error,
        "delivered_ms": None if delivery.delivered_at is None else _ms(begun, delivery.delivered_at),
        "next_attempt_at": timestamp(delivery.next_attempt_at) if delivery.status == "pending" else None,
        "body": event.body.decode("utf-8", "replace")[:_MOST_BODY_CHARS],
        "log": [_attempt(attempt, begun) for attempt in delivery.attempt_log],
    }


def _attempt(attempt: Attempt, begun: datetime) -> dict[str, Any]:
    return {
        "at_ms": _ms(begun, attempt.at),
        "number": attempt.number,
        "took_ms": attempt.took_ms,
        "status": attempt.status,
        "problem": attempt.problem,
        "body": attempt.body,
        "body_bytes": attempt.body_bytes,
        "is_whole": attempt.is_whole,
    }


def _charge(record: CallRecord) -> dict[str, Any] | None:
    if record.price_paise is None or record.ended_at is None:
        return None
    at_ms = _ms(record.created_at, record.ended_at)
    return {"at_ms": at_ms, "paise": record.price_paise, "billed_s": record.bill_duration_sec}


def _transcript(said: Iterable[TranscriptSegment], record: CallRecord) -> list[dict[str, Any]]:
    """Utterances, whose times count from the answer."""
    answer_ms = _ms(record.created_at, record.answered_at or record.created_at)
    return [
        {"at_ms": answer_ms + segment.start_ms, "role": segment.role, "text": segment.text}
        for segment in said
    ]


def _recording(record: CallRecord, entries: Iterable[JournalEntry]) -> dict[str, Any] | None:
    if record.recording_status is None:
        return None
    began = next((entry.at for entry in entries if entry.name == _RECORD), record.answered_at)
    path = f"{HOME}/calls/{record.call_sid}"
    return {
        "status": record.recording_status,
        "at_ms": _ms(record.created_at, began or record.created_at),
        "url": f"{path}/recording.wav",
        "waveform": f"{path}/waveform",
    }
