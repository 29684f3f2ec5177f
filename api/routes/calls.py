"""Calls (telephony specification, calls; the additive trace of a call's signalling)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.http.middleware import current_request
from api.http.time_ranges import time_span
from api.routes.ladder import ladder_of
from api.schemas.base import NoBody, NoQuery, RequestModel
from api.schemas.calls import (
    CallList,
    CallObject,
    CallTranscriptObject,
    CreateCall,
    CreateStreamCall,
    TraceMessage,
    TraceObject,
)
from api.schemas.forms import CallTarget
from api.schemas.live import LiveTransfer, UpdateLiveCall
from api.schemas.serializers import keyset_meta, shown
from api.schemas.streams import StreamFields
from callcontrol.calls import requests as domain
from callcontrol.calls.live.requests import LiveUpdate, TransferRequest
from callcontrol.calls.plan import USUAL_LANGUAGE
from callcontrol.calls.records.call_json import call_object
from callcontrol.errors import (
    CallEnded,
    Conflict,
    InsufficientBalance,
    NodeUnreachable,
    NumberNotOwned,
    SpendLimitReached,
)
from callcontrol.models import CallFilter, CallStatus

__all__ = ["call_request", "routes"]

_ORIGINATE: dict[str, Any] = {
    "success": 201,
    "response": CallObject,
    "errors": (InsufficientBalance, SpendLimitReached, NumberNotOwned),
    "places_calls": True,
    "idempotent": True,
}
_STREAM_FIELDS = set(StreamFields.model_fields)
_ONE = "/v1/Accounts/{sid}/Calls/{callSid}"

routes = Routes("calls.read", "calls.write", tag="calls")


@routes.post("/v1/calls", **_ORIGINATE)
async def create_call(context: Context[CreateCall, NoQuery]) -> Reply:
    """
    Originate a call.

    Not idempotent without an Idempotency-Key.
    """
    return await _create(context)


@routes.get("/v1/calls", response=CallObject, paged=True, keyset=True)
async def list_calls(context: Context[NoBody, CallList]) -> Reply:
    """
    List calls, newest first.

    By page or by cursor, which skips and repeats nothing while calls arrive.
    """
    query = context.query
    place = query.place(query.cursor)
    page = await context.services.calls.list_calls(
        context.account_sid, _filter(query), query.page, query.per_page, place
    )
    meta = keyset_meta(page, query.listed[0], by_cursor=bool(place))
    return Reply([call_object(record) for record in page.items], meta)


@routes.get("/v1/calls/{callSid}", response=CallObject)
async def get_call_by_sid(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a call by its identifier alone."""
    return await get_call(context)


@routes.get("/v1/calls/{callSid}/trace", response=TraceObject, owned=True)
async def trace_call(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get the signalling of a call.

    Messages are kept in memory, for recent calls only.
    """
    calls = context.services.calls
    record = await calls.get_call(context.account_sid, context.path["callSid"])
    entries = calls.trace(record.call_sid)
    if not entries and await context.storage.membership.is_another(record.node):
        raise NodeUnreachable(record.node, "The trace of the call is kept")
    messages = [shown(TraceMessage, entry) for entry in entries]
    return Reply({"call_sid": record.call_sid, "ladder": ladder_of(entries), "messages": messages})


@routes.get("/v1/calls/{callSid}/transcript", response=CallTranscriptObject)
async def get_call_transcript(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get what the parties of a transcribed call have said so far.

    Without sentences if the call is not transcribed.
    """
    record = await context.services.calls.get_call(context.account_sid, context.path["callSid"])
    said = await context.storage.transcripts.of_parties(record.call_sid)
    sentences = [
        {
            "speaker": segment.role,
            "text": segment.text,
            "start_ms": segment.start_ms,
            "end_ms": segment.end_ms,
        }
        for segment in said
    ]
    return Reply({"call_sid": record.call_sid, "sentences": sentences})


@routes.delete("/v1/calls/{callSid}/transcript", errors=(Conflict,))
async def delete_call_transcript(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete the transcript of a call.

    For ever. 409 while the call is up.
    """
    record = await context.services.calls.get_call(context.account_sid, context.path["callSid"])
    calls = context.services.calls
    # Its last words may come for some seconds after its end.
    if not record.status.ended or calls.active(record.call_sid) is not None:
        raise Conflict("The call is up; hang it up, or delete its transcript when it has ended.")
    await context.storage.transcripts.delete_of_parties(record.call_sid)
    return Reply(None)


@routes.post("/v1/Accounts/{sid}/Calls", **_ORIGINATE)
async def create_stream_call(context: Context[CreateStreamCall, NoQuery]) -> Reply:
    """
    Originate a call for a WebSocket streaming agent.

    Not idempotent without an Idempotency-Key.
    """
    return await _create(context)


@routes.get("/v1/Accounts/{sid}/Calls", response=CallObject, paged=True, keyset=True)
async def list_account_calls(context: Context[NoBody, CallList]) -> Reply:
    """
    List calls of the account, newest first.

    The same list as without the account.
    """
    return await list_calls(context)


@routes.get(_ONE, response=CallObject)
async def get_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a call."""
    return Reply(
        call_object(await context.services.calls.get_call(context.account_sid, context.path["callSid"]))
    )


@routes.post(_ONE, response=CallObject, success=202, errors=(CallEnded, Conflict, NumberNotOwned))
async def update_live_call(context: Context[UpdateLiveCall, NoQuery]) -> Reply:
    """
    Change an active call.

    All changes are made or none; 409 if the call's state forbids one.
    """
    record = await context.services.calls.update_call(
        context.account_sid, context.path["callSid"], _live_update(context.body)
    )
    return Reply(call_object(record))


@routes.delete(_ONE, response=CallObject, errors=(CallEnded,))
async def hangup_call(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Hang up a call.

    The returned call object may still say in-progress.
    """
    record = await context.services.calls.hangup_call(context.account_sid, context.path["callSid"])
    return Reply(call_object(record))


async def _create(context: Context[Any, NoQuery]) -> Reply:
    record = await context.services.calls.create_call(context.account_sid, call_request(context.body))
    current_request().call_sid = record.call_sid
    return Reply(call_object(record))


def _filter(query: CallList) -> CallFilter:
    start, end = time_span(query.start_date, query.end_date)
    return CallFilter(
        status=CallStatus(query.status) if query.status else None,
        direction=query.direction,
        from_=query.from_,
        to=query.to,
        start=start,
        end=end,
    )


def call_request(body: CreateCall | CreateStreamCall) -> domain.CreateCall:
    """Convert a body; the domain checks its values, and uses the same field names."""
    asked = body if isinstance(body, CreateCall) else None
    verbs = asked.verbs if asked is not None else None
    fields = body.model_dump(include=_STREAM_FIELDS, exclude_none=True)
    return domain.CreateCall(
        from_=body.from_,
        to=body.to.address if isinstance(body.to, CallTarget) else body.to,
        stream=domain.StreamRequest(body.stream_url, fields) if body.stream_url else None,
        verbs=None if verbs is None else [_given(verb) for verb in verbs],
        webhook_url=asked.webhook_url if asked is not None else None,
        webhook_method=asked.webhook_method if asked is not None else "POST",
        webhook_format=asked.webhook_format if asked is not None else "json",
        fallback_url=body.fallback_url,
        agent_id=body.agent_id,
        model=_given(asked.model) if asked is not None and asked.model is not None else None,
        timeout_s=float(body.timeout),
        time_limit_s=float(body.time_limit),
        record=body.record,
        recording_channels=body.recording_channels,
        transcribe=body.transcribe,
        transcription_language=body.transcription_language,
        machine_detection=body.machine_detection,
        send_digits=body.send_digits,
        caller_name=body.caller_name,
        headers=body.headers,
        tag=body.tag,
        carrier_sid=body.carrier_sid,
        app_sid=body.app_sid,
        stream_fields=fields,
        needs_stream=asked is None,
        status_webhook_url=body.status_webhook_url,
        # An application says what the request does not, so a default of ours is no wish of the customer's.
        status_webhook_events=(
            tuple(body.status_webhook_events) if "status_webhook_events" in body.model_fields_set else None
        ),
    )


def _given(model: RequestModel, *but: str) -> dict[str, Any]:
    return model.model_dump(by_alias=True, exclude_none=True, exclude=set(but))


def _live_update(body: UpdateLiveCall) -> LiveUpdate:
    """Convert the body of a change to an active call."""
    transfer = body.transfer
    return LiveUpdate(
        call_status=body.call_status,
        mute_status=body.mute_status,
        mute_direction=body.mute_direction or "says",
        party=body.party or "a",
        listen_status=body.listen_status,
        recording=body.record.action if body.record else None,
        recording_channels=body.record.channels if body.record else "dual",
        transcription=body.transcribe.action if body.transcribe else None,
        transcription_language=(body.transcribe and body.transcribe.language) or USUAL_LANGUAGE,
        dub=_given(body.dub, "party") if body.dub else None,
        dub_party=body.dub.party if body.dub else "a",
        digits=body.dtmf.digits if body.dtmf else None,
        digits_party=body.dtmf.party if body.dtmf else "a",
        transfer=_transfer(transfer) if transfer is not None else None,
        time_limit_s=float(body.time_limit) if body.time_limit is not None else None,
        webhook_url=body.webhook_url,
        webhook_method=body.webhook_method or "POST",
    )


def _transfer(body: LiveTransfer) -> TransferRequest:
    return TransferRequest(
        to=body.to.address if isinstance(body.to, CallTarget) else body.to,
        party=body.party,
        caller_id=body.caller_id,
        timeout_s=float(body.timeout),
        headers=tuple(body.headers.items()),
    )
