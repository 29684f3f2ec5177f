"""Calls (telephony specification, calls; the additive trace of a call's signalling)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from api.call_request import call_request, live_update
from api.endpoint import Context, Endpoint, Reply
from api.exchange import current_exchange
from api.ladder import ladder_of
from api.present import page_meta, trace_json
from api.schemas.base import NoBody, NoQuery
from api.schemas.calls import CallList, CallObject, CreateCall, CreateStreamCall, TraceObject
from api.schemas.live import UpdateLiveCall
from callcontrol.call_object import call_object
from callcontrol.errors import (
    CallEnded,
    Conflict,
    FieldError,
    InsufficientBalance,
    NumberNotOwned,
    ValidationFailed,
)
from callcontrol.models import CallFilter, CallStatus

__all__ = ["ENDPOINTS"]


async def create_call(context: Context[CreateCall, NoQuery]) -> Reply:
    """Answer POST /calls."""
    return await _create(context)


async def create_stream_call(context: Context[CreateStreamCall, NoQuery]) -> Reply:
    """Answer POST /Accounts/{sid}/Calls."""
    return await _create(context)


async def _create(context: Context[Any, NoQuery]) -> Reply:
    record = await context.services.calls.create_call(context.account_sid, call_request(context.body))
    current_exchange().call_sid = record.call_sid
    return Reply(call_object(record))


async def list_calls(context: Context[NoBody, CallList]) -> Reply:
    """Answer GET /calls."""
    query = context.query
    page = await context.services.calls.list_calls(
        context.account_sid, _filter(query), query.page, query.per_page
    )
    return Reply([call_object(record) for record in page.items], page_meta(page))


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
    """Answer GET /calls/{callSid}/trace; the call is looked up first, so that it must be the account's."""
    calls = context.services.calls
    record = await calls.get_call(context.account_sid, context.path["callSid"])
    entries = calls.trace(record.call_sid)
    messages = [trace_json(entry) for entry in entries]
    return Reply({"call_sid": record.call_sid, "ladder": ladder_of(entries), "messages": messages})


def _filter(query: CallList) -> CallFilter:
    errors: list[FieldError] = []
    start = _moment("start_date", query.start_date, errors, after_day=False)
    end = _moment("end_date", query.end_date, errors, after_day=True)
    if start and end and start >= end:
        errors.append(FieldError("end_date", "must be after start_date"))
    if errors:
        raise ValidationFailed(errors)
    return CallFilter(
        status=CallStatus(query.status) if query.status else None,
        direction=query.direction,
        from_=query.from_,
        to=query.to,
        start=start,
        end=end,
    )


def _moment(field: str, text: str | None, errors: list[FieldError], *, after_day: bool) -> datetime | None:
    """Read a date or a moment; a bare end date includes its whole day."""
    if text is None:
        return None
    # A plus sign that was not escaped arrives as a space: 2026-01-01T00:00:00 05:30.
    text = text.replace(" ", "+")
    try:
        if len(text) == len("YYYY-MM-DD"):
            day = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
            return day + timedelta(days=1) if after_day else day
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    errors.append(FieldError(field, "must be YYYY-MM-DD or RFC 3339 with an offset, 2026-01-31T12:00:00Z"))
    return None


_CALLS: dict[str, Any] = {"tag": "calls"}
_ORIGINATE: dict[str, Any] = {
    "scope": "calls.write",
    "success": 201,
    "response": CallObject,
    "errors": (InsufficientBalance, NumberNotOwned),
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
        query=CallList,
        response=CallObject,
        paged=True,
        **_CALLS,
    ),
    Endpoint(
        method="GET",
        path="/v1/calls/{callSid}/trace",
        handler=trace_call,
        scope="calls.read",
        summary="Get the signalling of a call",
        description="Messages are remembered in memory, for recent calls only.",
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
        summary="Change a call that is up",
        description="All that is asked for is done, or nothing: what the call's state forbids is a 409.",
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
        description="The answered call object may still say in-progress.",
        response=CallObject,
        errors=(CallEnded,),
        **_CALLS,
    ),
)
