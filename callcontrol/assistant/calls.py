"""
Calls with voice agents in the API and the webhooks of the assistant.

A call belongs to the assistant when an agent takes part in it, regardless of who placed it; the call API
shows it like any other.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, get_args
from uuid import UUID, uuid5

from callcontrol.agents.transcripts import segments_of
from callcontrol.assistant.sandbox import is_sandbox
from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, CallStatus, SubscribedEvent, TranscriptSegment, VoiceAgent
from callcontrol.wallet.money import rupees
from callcontrol.webhooks.subscriptions import ServiceEvents

PRODUCT: Final = "assistant"
"""``CallRecord.product`` of these calls."""

AssistantStatus = Literal[
    "queued", "ringing", "in-progress", "completed", "failed", "no-answer", "busy", "voicemail"
]

ENDED: Final = frozenset({"completed", "failed", "no-answer", "busy", "voicemail"})
"""The final statuses."""

AssistantEvent = Literal[
    "call.started",
    "call.answered",
    "call.completed",
    "call.transferred",
    "transcript.ready",
    "agent.updated",
    "error.occurred",
]
EVENTS: Final = ServiceEvents("assistant", get_args(AssistantEvent), created_at="timestamp", called="webhook")
"""Events that the assistant's webhooks subscribe to."""

_EVENT_IDS: Final = UUID("7c1b9a52-93f4-4f0e-8a56-1d0a52f7c3e8")
"""Namespace of the ids of the events of start and end: those of one call are always the same."""

_STATUSES: Final[Mapping[CallStatus, AssistantStatus]] = {
    CallStatus.QUEUED: "queued",
    CallStatus.INITIATED: "queued",
    CallStatus.RINGING: "ringing",
    CallStatus.IN_PROGRESS: "in-progress",
    CallStatus.COMPLETED: "completed",
    CallStatus.BUSY: "busy",
    CallStatus.NO_ANSWER: "no-answer",
    CallStatus.FAILED: "failed",
    # Whichever side gave up first, the call was not answered.
    CallStatus.CANCELED: "no-answer",
}

_EVENT_NAMES: Final[Mapping[str, str]] = {
    "call.answered": "call.answered",
    "call.transferred": "call.transferred",
    "call.transfer_failed": "error.occurred",
    "stream.failed": "error.occurred",
    "webhook.failed": "error.occurred",
}
"""The assistant's names for events of an active call; other events are not published."""


def assistant_details(
    agent_id: str,
    *,
    language: str,
    context: Mapping[str, str] | None = None,
    sandbox_carrier: str | None = None,
) -> dict[str, Any]:
    """
    The ``details`` of an assistant call's record.

    ``sandbox`` is the carrier that a sandbox call is confined to; see ``callcontrol.assistant.sandbox``.
    ``error`` is added after a failure, and the transcript counts its segments there.
    """
    return {
        "agent_id": agent_id,
        "language": language,
        "context": dict(context or {}),
        "sandbox": sandbox_carrier,
    }


def status_of(status: CallStatus, answered_by: str | None) -> AssistantStatus:
    """The status of a call; a completed call that a machine answered is ``voicemail``."""
    if status is CallStatus.COMPLETED and answered_by == "machine":
        return "voicemail"
    return _STATUSES[status]


def phone_number_of(record: CallRecord) -> str:
    """The number of the party that the agent talks with."""
    return record.to if record.direction == "outbound" else record.from_


def transcript_url(record: CallRecord, base_url: str) -> str | None:
    """URL of the transcript of a call, None if the call was not answered."""
    return None if record.answered_at is None else f"{base_url}/api/v1/calls/{record.call_sid}/transcript"


def segment_object(segment: TranscriptSegment) -> dict[str, Any]:
    """A segment of a transcript as a JSON object."""
    return {
        "role": segment.role,
        "text": segment.text,
        "start_ms": segment.start_ms,
        "end_ms": segment.end_ms,
    }


def assistant_object(record: CallRecord, said: Sequence[TranscriptSegment] = ()) -> dict[str, Any]:
    """The call as a JSON object; ``cost`` is in rupees."""
    details: Mapping[str, Any] = record.details or {}
    return {
        "id": record.call_sid,
        "agent_id": details.get("agent_id"),
        "phone_number": phone_number_of(record),
        "direction": record.direction,
        "from": record.from_,
        "to": record.to,
        "status": status_of(record.status, record.answered_by),
        "answered_by": record.answered_by,
        "context": details.get("context") or {},
        "sandbox": is_sandbox(record),
        "created_at": timestamp(record.created_at),
        "started_at": timestamp(record.answered_at),
        "ended_at": timestamp(record.ended_at),
        "duration_seconds": record.duration_sec,
        "hangup_cause": record.hangup_cause,
        "error": details.get("error"),
        "recording_url": record.recording_url,
        "transcript": [segment_object(segment) for segment in said],
        "cost": rupees(record.price_paise) if record.price_paise is not None else None,
        "currency": record.currency,
    }


def assistant_event(
    record: CallRecord, name: str, data: Mapping[str, Any], *, event_id: str, at: datetime
) -> SubscribedEvent | None:
    """
    The event of an active call for subscribers; None for an event that is not published.

    ``data`` is the data of the status webhook beyond the call's fields. An error is stored in the record.
    """
    event = _EVENT_NAMES.get(name)
    if record.product != PRODUCT or event is None:
        return None
    more: dict[str, Any] = {}
    if event == "call.transferred":
        transfer: Mapping[str, Any] = data.get("transfer") or {}
        more["transferred_to"] = transfer.get("to")
    if event == "error.occurred":
        more["error"] = _error_of(record, name, data)
        record.details = {**(record.details or {}), "error": more["error"]}
    return _event(record, event, more, event_id=event_id, at=at)


def start_events(record: CallRecord) -> list[SubscribedEvent]:
    """The event of the start of a call; empty for a call of another product."""
    if record.product != PRODUCT:
        return []
    event = "call.started"
    return [_event(record, event, {}, event_id=_event_id(record, event), at=record.created_at)]


def end_events(record: CallRecord, now: datetime, base_url: str) -> list[SubscribedEvent]:
    """
    The events of the end of a call, in order; empty for a call of another product.

    A failure that was not reported before comes first, the event of a non-empty transcript last.
    """
    if record.product != PRODUCT or not record.status.ended:
        return []
    events: list[tuple[str, dict[str, Any]]] = []
    error = (record.details or {}).get("error")
    if record.status is CallStatus.FAILED and error is None:
        cause = record.hangup_cause or "UNKNOWN"
        error = {"code": cause, "message": f"The call failed: {cause}."}
        record.details = {**(record.details or {}), "error": error}
        events.append(("error.occurred", {"error": error}))
    events.append(("call.completed", {}))
    if segments_of(record) and record.answered_at is not None:
        events.append(("transcript.ready", {}))
    return [
        _event(
            record,
            event,
            more,
            event_id=_event_id(record, event),
            at=now,
            found_at=transcript_url(record, base_url),
        )
        for event, more in events
    ]


def agent_updated(agent: VoiceAgent, changes: Iterable[str], event_id: str, at: datetime) -> SubscribedEvent:
    """The event of a change of an agent; ``changes`` name the fields. It belongs to no call."""
    data = {
        "call_id": None,
        "agent_id": agent.agent_id,
        "phone_number": None,
        "duration_seconds": None,
        "status": None,
        "transcript_url": None,
        "name": agent.name,
        "changed_fields": sorted(changes),
        "updated_at": timestamp(agent.updated_at),
    }
    return EVENTS.published("agent.updated", data, event_id=event_id, account_sid=agent.account_sid, at=at)


def _event_id(record: CallRecord, event: str) -> str:
    return str(uuid5(_EVENT_IDS, f"{record.call_sid}/{event}"))


def _event(
    record: CallRecord,
    event: str,
    more: Mapping[str, Any],
    *,
    event_id: str,
    at: datetime,
    found_at: str | None = None,
) -> SubscribedEvent:
    data = {
        "call_id": record.call_sid,
        "agent_id": (record.details or {}).get("agent_id"),
        "phone_number": phone_number_of(record),
        "direction": record.direction,
        "status": status_of(record.status, record.answered_by),
        "duration_seconds": (record.duration_sec or 0) if record.status.ended else _seconds(record, at),
        "transcript_url": found_at,
        "sandbox": is_sandbox(record),
        **more,
    }
    sid = record.call_sid
    return EVENTS.published(event, data, event_id=event_id, account_sid=record.account_sid, at=at, order=sid)


def _seconds(record: CallRecord, at: datetime) -> int:
    if record.answered_at is None:
        return 0
    return max(0, int((at - record.answered_at).total_seconds()))


def _error_of(record: CallRecord, name: str, data: Mapping[str, Any]) -> dict[str, str]:
    """The error of an event, without transcript text or secrets."""
    if name == "call.transfer_failed":
        transfer: Mapping[str, Any] = data.get("transfer") or {}
        cause = transfer.get("hangup_cause") or transfer.get("cause") or "no answer"
        return {"code": "TRANSFER_FAILED", "message": f"The transfer failed: {cause}."}
    reason = str(data.get("reason") or "unknown")
    if name == "webhook.failed":
        return {"code": "WEBHOOK_FAILED", "message": f"The server of the call could not be asked: {reason}."}
    if reason == "dropped":
        return {"code": "AGENT_DISCONNECTED", "message": f"The connection to the agent failed: {reason}."}
    status = data.get("http_status")
    answered = f" (HTTP {status})" if status else ""
    return {"code": "AGENT_UNREACHABLE", "message": f"The agent could not be reached: {reason}{answered}."}
