"""Calls of the voice assistant, with transcripts and analytics (telephony specification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.http.request_context import current_request
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
from callcontrol.assistant.calls import PRODUCT, assistant_object, segment_object
from callcontrol.errors import (
    CallEnded,
    Conflict,
    InsufficientBalance,
    NotFound,
    NumberNotOwned,
    SpendLimitReached,
)
from callcontrol.models import CURRENCY
from callcontrol.routing.targets import recorded_address

__all__ = ["ASSISTANT", "ENDPOINTS", "OUTBOUND"]


async def start_assistant_call(context: Context[StartCall, NoQuery]) -> Reply:
    """Answer POST /v1/calls/outbound of the voice assistant."""
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


async def get_assistant_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/calls/{call_id} of the voice assistant."""
    assistant = context.services.assistant
    record = await assistant.get_call(
        context.account_sid, context.path["call_id"], sandbox_only=context.principal.sandbox
    )
    return Reply(assistant_object(record, await assistant.said(record)))


async def list_assistant_calls(context: Context[NoBody, AssistantCallList]) -> Reply:
    """Answer GET /v1/calls of the voice assistant."""
    query = context.query
    start, end = time_span(query.start_date, query.end_date)
    wanted = AssistantCallFilter(
        status=query.status,
        direction=query.direction,
        agent_id=query.agent_id,
        phone_number=recorded_address(query.phone_number) if query.phone_number else None,
        sandbox=_environment(context, query.environment),
        start=start,
        end=end,
    )
    page = await context.services.assistant.list_calls(
        context.account_sid, wanted, query.page, query.per_page
    )
    return Reply([assistant_object(record) for record in page.items], page_meta(page))


async def end_assistant_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /v1/calls/{call_id} of the voice assistant."""
    record = await context.services.assistant.end_call(
        context.account_sid, context.path["call_id"], sandbox_only=context.principal.sandbox
    )
    return Reply(assistant_object(record))


async def get_transcript(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/calls/{call_id}/transcript of the voice assistant."""
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


async def delete_transcript(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /v1/calls/{call_id}/transcript of the voice assistant."""
    await context.services.assistant.delete_transcript(
        context.account_sid, context.path["call_id"], sandbox_only=context.principal.sandbox
    )
    return Reply(None)


async def get_assistant_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/calls/{call_id}/recording of the voice assistant."""
    services, call_id = context.services, context.path["call_id"]
    await services.assistant.get_call(context.account_sid, call_id, sandbox_only=context.principal.sandbox)
    url = await services.recordings.link_of_product(context.account_sid, call_id, PRODUCT)
    return Reply({"url": url, "call_sid": call_id})


async def get_analytics(context: Context[NoBody, Analytics]) -> Reply:
    """Answer GET /v1/analytics of the voice assistant."""
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
    """True for sandbox calls, False for live ones, None for both; a sandbox key sees sandbox calls only."""
    if context.principal.sandbox:
        return True
    return None if asked is None else asked == "sandbox"


ASSISTANT: dict[str, Any] = {"tag": "voice assistant", "scope": "assistant", "service": "assistant"}
"""Common fields of the assistant's endpoints: they require a key of that service."""

_CALLS = "/api/v1/calls"
OUTBOUND = _CALLS + "/outbound"
"""Path of the endpoint that places calls."""

_ONE = _CALLS + "/{call_id}"

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=OUTBOUND,
        handler=start_assistant_call,
        summary="Have an agent call somebody",
        description=(
            "Without from the account's oldest registered number calls. Calls to test numbers are sandbox"
            " calls: they are not charged and reach the sandbox carrier alone."
        ),
        success=201,
        body=StartCall,
        response=AssistantCallObject,
        errors=(InsufficientBalance, SpendLimitReached, NumberNotOwned, NotFound),
        places_calls=True,
        idempotent=True,
        **ASSISTANT,
    ),
    Endpoint(
        method="GET",
        path=_CALLS,
        handler=list_assistant_calls,
        summary="List calls of agents, newest first",
        description="Without their transcripts.",
        query=AssistantCallList,
        response=AssistantCallObject,
        paged=True,
        **ASSISTANT,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_assistant_call,
        summary="Get a call of an agent, with what was said on it so far",
        response=AssistantCallObject,
        **ASSISTANT,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=end_assistant_call,
        summary="Hang up a call of an agent",
        description="The answered call may still say in-progress.",
        response=AssistantCallObject,
        errors=(CallEnded,),
        **ASSISTANT,
    ),
    Endpoint(
        method="GET",
        path=_ONE + "/transcript",
        handler=get_transcript,
        summary="Get what was said on a call that has ended",
        description="404 until the call has ended; the event transcript.ready tells of it.",
        response=TranscriptObject,
        **ASSISTANT,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE + "/transcript",
        handler=delete_transcript,
        summary="Delete what was said on a call",
        description="For ever. 409 while the call is up.",
        success=204,
        response=None,
        errors=(Conflict,),
        **ASSISTANT,
    ),
    Endpoint(
        method="GET",
        path=_ONE + "/recording",
        handler=get_assistant_recording,
        summary="Get a link to the recording of a call of an agent",
        description="The link opens it for an hour, without a key.",
        response=RecordingLinkObject,
        **ASSISTANT,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/analytics",
        handler=get_analytics,
        summary="What calls of agents come to, in all and by day",
        description="Days are those of UTC. Without dates, the last 30 days.",
        query=Analytics,
        response=AnalyticsObject,
        **ASSISTANT,
    ),
)
