"""
Calls in jambonz's interface: placing, listing, reading, changing and ending them.

Paths, bodies and responses are those of jambonz, below a base path of their own, since the platform's own
interface has the paths of jambonz itself. The domain functions are those of ``/v1/calls``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.http.errors import ErrorStyle
from api.http.middleware import current_request
from api.schemas.base import NoBody, NoQuery
from api.schemas.jambonz_api.base import ADDRESS_OF, JambonzSid, hook_of, status_url
from api.schemas.jambonz_api.calls import (
    CreateJambonzCall,
    JambonzCall,
    JambonzCallQuery,
    JambonzCalls,
    UpdateJambonzCall,
)
from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.calls.records.call_info import CUSTOMER_DATA, call_info, status_name
from callcontrol.calls.requests import CreateCall
from callcontrol.errors import (
    CallEnded,
    Conflict,
    InsufficientBalance,
    NumberNotOwned,
    SpendLimitReached,
    ValidationFailed,
)
from callcontrol.instructions.jambonz import RECORDING_ACTIONS, live_dub
from callcontrol.models import CallFilter, CallRecord, CallStatus

__all__ = ["ACCOUNT", "routes"]

ACCOUNT = "/jambonz/v1/Accounts/{sid}"
_ALL = f"{ACCOUNT}/Calls"
_ONE = f"{ACCOUNT}/Calls/{{callSid}}"

_MIN_RING_S, _MAX_RING_S = 5, 120
_MAX_LISTED = 500
_NAMES: Mapping[str, str] = {
    "webhook_url": "call_hook",
    "webhook_method": "call_hook.method",
    "status_webhook_url": "call_status_hook",
    "app_sid": "application_sid",
    "stream_url": "application_sid",
    "time_limit": "timeLimit",
    "caller_name": "callerName",
    "dub.url": "dub.play",
    "dub.text": "dub.say",
    "dub.language": "dub.say.synthesizer.language",
}
"""jambonz's name of each field that the domain may refuse."""
_ACTIVE = (CallStatus.QUEUED, CallStatus.INITIATED, CallStatus.RINGING, CallStatus.IN_PROGRESS)
_STATUSES: Mapping[str, tuple[CallStatus, ...]] = {
    "trying": (CallStatus.INITIATED,),
    "early-media": (),
    "no-answer": (CallStatus.NO_ANSWER, CallStatus.CANCELED),
}
"""Statuses that jambonz spells in another way, or has one for several of."""

routes = Routes("calls.read", "calls.write", style=ErrorStyle.JAMBONZ, tag="calls, as jambonz's clients ask")


@routes.post(
    _ALL,
    success=201,
    response=JambonzSid,
    errors=(InsufficientBalance, SpendLimitReached, NumberNotOwned),
    places_calls=True,
)
async def create_jambonz_call(context: Context[CreateJambonzCall, NoQuery]) -> Reply:
    """
    Place a call, as jambonz's clients do.

    The server at call_hook is asked in the form of jambonz once the call is answered.
    """
    body = context.body
    hook = hook_of(body.call_hook) if body.call_hook is not None else None
    request = CreateCall(
        from_=body.from_,
        to=body.to.address,
        webhook_url=hook.url if hook is not None else None,
        webhook_method=hook.method if hook is not None else "POST",
        webhook_format="jambonz",
        app_sid=body.application_sid,
        timeout_s=float(min(max(body.timeout, _MIN_RING_S), _MAX_RING_S)),
        time_limit_s=float(body.time_limit),
        caller_name=body.caller_name,
        headers=body.headers,
        status_webhook_url=status_url(body.call_status_hook),
        status_webhook_format="jambonz",
        customer_data=body.tag,
    )
    names = {**_NAMES, "to": f"to.{ADDRESS_OF[body.to.type]}"}
    try:
        record = await context.services.calls.create_call(context.account_sid, request)
    except ValidationFailed as refusal:
        raise refusal.renamed(lambda field: names.get(field, field)) from refusal
    current_request().call_sid = record.call_sid
    return Reply({"sid": record.call_sid})


@routes.get(_ALL, response=JambonzCalls)
async def list_jambonz_calls(context: Context[NoBody, JambonzCallQuery]) -> Reply:
    """
    List active calls in jambonz's shape, newest first, up to 500 of each status.

    callStatus also lists calls that have ended.
    """
    query = context.query
    statuses: tuple[CallStatus, ...] = _ACTIVE
    if query.status is not None:
        statuses = _STATUSES[query.status] if query.status in _STATUSES else (CallStatus(query.status),)
    found: list[CallRecord] = []
    for status in statuses:
        wanted = CallFilter(status=status, direction=query.direction, from_=query.from_, to=query.to)
        page = await context.services.calls.list_calls(context.account_sid, wanted, 1, _MAX_LISTED)
        found += page.items
    found.sort(key=lambda record: record.created_at, reverse=True)
    return Reply([_shown(record) for record in found])


@routes.get(_ONE, response=JambonzCall)
async def get_jambonz_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a call, in jambonz's shape."""
    record = await context.services.calls.get_call(context.account_sid, context.path["callSid"])
    return Reply(_shown(record))


@routes.put(_ONE, success=202, errors=(CallEnded, Conflict))
async def update_jambonz_call(context: Context[UpdateJambonzCall, NoQuery]) -> Reply:
    """
    Redirect, mute, record or end a call, as jambonz's clients do.

    All that is asked for is done, or nothing.
    """
    return await _update(context)


@routes.post(_ONE, success=202, errors=(CallEnded, Conflict))
async def change_jambonz_call(context: Context[UpdateJambonzCall, NoQuery]) -> Reply:
    """Change a call as PUT does."""
    return await _update(context)


@routes.delete(_ONE, errors=(CallEnded,))
async def delete_jambonz_call(context: Context[NoBody, NoQuery]) -> Reply:
    """End a call."""
    current_request().call_sid = context.path["callSid"]
    await context.services.calls.hangup_call(context.account_sid, context.path["callSid"])
    return Reply(None)


async def _update(context: Context[UpdateJambonzCall, NoQuery]) -> Reply:
    body, call_sid = context.body, context.path["callSid"]
    current_request().call_sid = call_sid
    hook = hook_of(body.call_hook) if body.call_hook is not None else None
    update = LiveUpdate(
        call_status=body.call_status,
        mute_status=body.mute_status or body.conf_mute_status,
        listen_status=body.listen_status,
        recording=RECORDING_ACTIONS[body.record.action] if body.record is not None else None,
        dub=live_dub(body.dub.model_dump(exclude_none=True)) if body.dub is not None else None,
        digits=body.dtmf.digit if body.dtmf is not None else None,
        webhook_url=hook.url if hook is not None else None,
        webhook_method=hook.method if hook is not None else "POST",
        webhook_format="jambonz",
    )
    try:
        await context.services.calls.update_call(context.account_sid, call_sid, update)
    except ValidationFailed as refusal:
        raise refusal.renamed(lambda field: _NAMES.get(field, field)) from refusal
    except Conflict as refusal:
        reasons = refusal.details["conflicts"].items()
        listed = "; ".join(f"{_NAMES.get(name, name)}: {reason}" for name, reason in reasons)
        raise Conflict(f"Nothing was changed. {listed}.") from refusal
    return Reply(None)


def _shown(record: CallRecord) -> dict[str, Any]:
    """Call of a record, in jambonz's shape."""
    return {
        **call_info(record, status_name(record.status)),
        "parent_call_sid": record.parent_call_sid,
        "duration": record.duration_sec or 0,
        "customerData": (record.details or {}).get(CUSTOMER_DATA),
    }
