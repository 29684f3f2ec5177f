"""Calls (telephony specification, calls; the additive trace of a call's signalling)."""

from __future__ import annotations

from typing import Any

from api.http.cursor import read_cursor
from api.http.endpoint import Context, Endpoint, Reply
from api.http.request_context import current_request
from api.http.time_ranges import time_span
from api.routes.call_request import call_request, live_update
from api.routes.ladder import ladder_of
from api.schemas.base import NoBody, NoQuery
from api.schemas.calls import CallList, CallObject, CreateCall, CreateStreamCall, TraceObject
from api.schemas.live import UpdateLiveCall
from api.schemas.serializers import keyset_meta, trace_json
from callcontrol.calls.records.call_json import call_object
from callcontrol.errors import (
    CallEnded,
    Conflict,
    InsufficientBalance,
    NumberNotOwned,
    SpendLimitReached,
)
from callcontrol.models import CallFilter, CallStatus
from callcontrol.routing.targets import recorded_address

__all__ = ["ENDPOINTS"]


async def create_call(context: Context[CreateCall, NoQuery]) -> Reply:
    """Answer POST /calls."""
    return await _create(context)


async def create_stream_call(context: Context[CreateStreamCall, NoQuery]) -> Reply:
    """Answer POST /Accounts/{sid}/Calls."""
    return await _create(context)


async def _create(context: Context[Any, NoQuery]) -> Reply:
    record = await context.services.calls.create_call(context.account_sid, call_request(context.body))
    current_request().call_sid = record.call_sid
    return Reply(call_object(record))


async def list_calls(context: Context[NoBody, CallList]) -> Reply:
    """Answer GET /calls."""
    query = context.query
    place = read_cursor(query.cursor)
    page = await context.services.calls.list_calls(
        context.account_sid, _filter(query), query.page, query.per_page, place
    )
    return Reply([call_object(record) for record in page.items], keyset_meta(page, by_cursor=bool(place)))


async def get_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /Accounts/{sid}/Calls/{callSid}."""
    return Reply(
        call_object(await context.services.calls.get_call(context.account_sid, context.path["callSid"]))
    )


async def hangup_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /Accounts/{sid}/Calls/{callSid}."""
    record = await context.services.calls.hangup_call(context.account_sid, context.path["callSid"])
    return Reply(call_object(record))


async def update_live_call(context: Context[UpdateLiveCall, NoQuery]) -> Reply:
    """Answer POST /Accounts/{sid}/Calls/{callSid}."""
    record = await context.services.calls.update_call(
        context.account_sid, context.path["callSid"], live_update(context.body)
    )
    return Reply(call_object(record))


async def trace_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /calls/{callSid}/trace; the look-up checks that the call belongs to the account."""
    calls = context.services.calls
    record = await calls.get_call(context.account_sid, context.path["callSid"])
    entries = calls.trace(record.call_sid)
    messages = [trace_json(entry) for entry in entries]
    return Reply({"call_sid": record.call_sid, "ladder": ladder_of(entries), "messages": messages})


def _filter(query: CallList) -> CallFilter:
    start, end = time_span(query.start_date, query.end_date)
    return CallFilter(
        status=CallStatus(query.status) if query.status else None,
        direction=query.direction,
        from_=recorded_address(query.from_) if query.from_ else None,
        to=recorded_address(query.to) if query.to else None,
        start=start,
        end=end,
    )


_CALLS: dict[str, Any] = {"tag": "calls"}
_ORIGINATE: dict[str, Any] = {
    "scope": "calls.write",
    "success": 201,
    "response": CallObject,
    "errors": (InsufficientBalance, SpendLimitReached, NumberNotOwned),
    "places_calls": True,
    "idempotent": True,
}
_ONE = "/v1/Accounts/{sid}/Calls/{callSid}"

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path="/v1/calls",
        handler=create_call,
        summary="Originate a call",
        description="Not idempotent without an Idempotency-Key.",
        body=CreateCall,
        **_ORIGINATE,
        **_CALLS,
    ),
    Endpoint(
        method="GET",
        path="/v1/calls",
        handler=list_calls,
        scope="calls.read",
        summary="List calls, newest first",
        description="By page or by cursor, which skips and repeats nothing while calls arrive.",
        query=CallList,
        response=CallObject,
        paged=True,
        keyset=True,
        **_CALLS,
    ),
    Endpoint(
        method="GET",
        path="/v1/calls/{callSid}/trace",
        handler=trace_call,
        scope="calls.read",
        summary="Get the signalling of a call",
        description="Messages are kept in memory, for recent calls only.",
        response=TraceObject,
        **_CALLS,
    ),
    Endpoint(
        method="POST",
        path="/v1/Accounts/{sid}/Calls",
        handler=create_stream_call,
        summary="Originate a call for a WebSocket streaming agent",
        description="Not idempotent without an Idempotency-Key.",
        body=CreateStreamCall,
        **_ORIGINATE,
        **_CALLS,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_call,
        scope="calls.read",
        summary="Get a call",
        response=CallObject,
        **_CALLS,
    ),
    Endpoint(
        method="POST",
        path=_ONE,
        handler=update_live_call,
        scope="calls.write",
        success=202,
        summary="Change an active call",
        description="All changes are made or none; 409 if the call's state forbids one.",
        body=UpdateLiveCall,
        response=CallObject,
        errors=(CallEnded, Conflict, NumberNotOwned),
        **_CALLS,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=hangup_call,
        scope="calls.write",
        summary="Hang up a call",
        description="The returned call object may still say in-progress.",
        response=CallObject,
        errors=(CallEnded,),
        **_CALLS,
    ),
)
