"""Calls of the voice assistant, with transcripts and analytics (telephony specification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.http.middleware import current_request
from api.http.time_ranges import time_span
from api.schemas.assistant.calls import (
    Analytics,
    AnalyticsObject,
    AssistantCallList,
    AssistantCallObject,
    StartCall,
    TranscriptObject,
)
from api.schemas.base import NoBody, NoQuery
from api.schemas.recordings import RecordingLinkObject
from api.schemas.serializers import page_meta
from callcontrol.assistant.aio.service import OutboundCall
from callcontrol.assistant.analytics import AssistantCallFilter, analytics_object
from callcontrol.assistant.calls import assistant_object, segment_object
from callcontrol.errors import (
    CallEnded,
    Conflict,
    Forbidden,
    InsufficientBalance,
    NotFound,
    NumberNotOwned,
    SpendLimitReached,
)
from callcontrol.models import CURRENCY

__all__ = ["OUTBOUND", "routes"]

_CALLS = "/api/v1/calls"
OUTBOUND = _CALLS + "/outbound"
"""Path of the endpoint that places calls."""

_ONE = _CALLS + "/{call_id}"

routes = Routes("assistant", tag="voice assistant", service="assistant")


@routes.post(
    OUTBOUND,
    response=AssistantCallObject,
    success=201,
    errors=(InsufficientBalance, SpendLimitReached, NumberNotOwned, NotFound),
    places_calls=True,
    idempotent=True,
)
async def start_assistant_call(context: Context[StartCall, NoQuery]) -> Reply:
    """
    Place a call of an agent.

    Without from the account's oldest registered number calls. Calls to test numbers are sandbox calls:
    they are not charged and reach the sandbox carrier alone.
    """
    body = context.body
    record = await context.services.assistant.start_call(
        context.account_sid,
        OutboundCall(
            phone_number=body.phone_number,
            agent_id=body.agent_id,
            context=body.context,
            from_=body.from_,
            machine_detection=body.machine_detection,
            record=body.record,
            timeout_s=float(body.timeout),
            time_limit_s=float(body.time_limit),
            status_webhook_url=body.status_webhook_url,
        ),
        sandbox_only=context.principal.sandbox,
    )
    current_request().call_sid = record.call_sid
    return Reply(assistant_object(record))


@routes.get(_CALLS, response=AssistantCallObject, paged=True)
async def list_assistant_calls(context: Context[NoBody, AssistantCallList]) -> Reply:
    """
    List calls of agents, newest first.

    Without their transcripts.
    """
    query = context.query
    start, end = time_span(query.start_date, query.end_date)
    wanted = AssistantCallFilter(
        status=query.status,
        direction=query.direction,
        agent_id=query.agent_id,
        phone_number=query.phone_number,
        sandbox=_environment(context, query.environment),
        start=start,
        end=end,
    )
    page = await context.services.assistant.list_calls(
        context.account_sid, wanted, query.page, query.per_page
    )
    return Reply([assistant_object(record) for record in page.items], page_meta(page))


@routes.get(_ONE, response=AssistantCallObject)
async def get_assistant_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a call of an agent, with what was said on it so far."""
    assistant = context.services.assistant
    record = await assistant.get_call(
        context.account_sid, context.path["call_id"], sandbox_only=context.principal.sandbox
    )
    return Reply(assistant_object(record, await assistant.said(record)))


@routes.delete(_ONE, response=AssistantCallObject, errors=(CallEnded,))
async def end_assistant_call(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Hang up a call of an agent.

    The answered call may still say in-progress.
    """
    record = await context.services.assistant.end_call(
        context.account_sid, context.path["call_id"], sandbox_only=context.principal.sandbox
    )
    return Reply(assistant_object(record))


@routes.get(_ONE + "/transcript", response=TranscriptObject)
async def get_transcript(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get what was said on a call that has ended.

    404 until the call has ended; the event transcript.ready tells of it.
    """
    record, said = await context.services.assistant.transcript(
        context.account_sid, context.path["call_id"], sandbox_only=context.principal.sandbox
    )
    return Reply(
        {
            "call_id": record.call_sid,
            "language": (record.details or {}).get("language"),
            "segments": [segment_object(segment) for segment in said],
        }
    )


@routes.delete(_ONE + "/transcript", errors=(Conflict,))
async def delete_transcript(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete what was said on a call.

    For ever. 409 while the call is up.
    """
    await context.services.assistant.delete_transcript(
        context.account_sid, context.path["call_id"], sandbox_only=context.principal.sandbox
    )
    return Reply(None)


@routes.get(_ONE + "/recording", response=RecordingLinkObject, owned=True)
async def get_assistant_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get a link to the recording of a call of an agent.

    The link opens it for an hour, without a key.
    """
    services, call_id = context.services, context.path["call_id"]
    await services.assistant.get_call(context.account_sid, call_id, sandbox_only=context.principal.sandbox)
    url = await services.recordings.link(context.account_sid, call_id)
    return Reply({"url": url, "call_sid": call_id})


@routes.get("/api/v1/analytics", response=AnalyticsObject)
async def get_analytics(context: Context[NoBody, Analytics]) -> Reply:
    """
    Get statistics of the calls of agents, in all and by day.

    Days are those of UTC. Without dates, the last 30 days.
    """
    query = context.query
    start, end = time_span(query.start_date, query.end_date)
    found, counts = await context.services.assistant.analytics(
        context.account_sid,
        start,
        end,
        agent_id=query.agent_id,
        sandbox=bool(_environment(context, query.environment)),
    )
    return Reply(analytics_object(found, counts, CURRENCY))


def _environment(context: Context[Any, Any], asked: str | None) -> bool | None:
    """
    True for sandbox calls, False for live ones, None for both.

    Raises:
        Forbidden: A sandbox key, which sees sandbox calls only, asks for live ones.
    """
    if context.principal.sandbox:
        if asked == "live":
            raise Forbidden("A sandbox key sees sandbox calls only; omit environment, or use a live key.")
        return True
    return None if asked is None else asked == "sandbox"
