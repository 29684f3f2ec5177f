"""Listening in on active calls (additive)."""

from __future__ import annotations

from functools import partial

from api.http.body import TextForm
from api.http.endpoint import Context, Reply, Routes
from api.http.middleware import current_request
from api.schemas.base import NoBody, NoQuery
from api.schemas.listeners import (
    CallListenerObject,
    CallListenersObject,
    ListenBody,
    NewCallListenerObject,
)
from api.schemas.serializers import shown
from callcontrol.errors import CallEnded, Conflict, WrongCallState
from callcontrol.webrtc.listeners import LISTEN_SCOPE

__all__ = ["routes"]

_LISTENERS = "/v1/calls/{callSid}/listeners"

routes = Routes("calls.read", LISTEN_SCOPE, tag="calls")


@routes.post(
    _LISTENERS,
    response=NewCallListenerObject,
    success=201,
    errors=(CallEnded, Conflict, WrongCallState),
    text=TextForm("application/sdp", "sdp"),
)
async def listen_to_call(context: Context[ListenBody, NoQuery]) -> Reply:
    """
    Listen in on an active call from a browser.

    The answer to the offer is returned at once. The browser hears both parties, is not heard, and changes
    nothing of the call. Who listens, from when and until when, is recorded with the call. It ends with the
    call, with the browser's connection, and with the key. Needs a key that names the scope.

    The body may be the offer itself as `application/sdp`. Then the answer to it is the response, also as
    `application/sdp`.
    """
    services, principal = context.services, context.principal
    listener, answer = await services.listeners.open(
        context.account_sid,
        context.path["callSid"],
        context.body.sdp,
        principal.key_id,
        partial(services.browser_calls.is_admitted, principal),
    )
    location = f"/v1/calls/{listener.call_sid}/listeners/{listener.listener_sid}"
    current_request().headers["Location"] = location
    return Reply(shown(NewCallListenerObject, listener, sdp=answer))


@routes.get(_LISTENERS, response=CallListenersObject)
async def list_call_listeners(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get who listens to a call, and who has.

    For an active call those of now are among them, without an end.
    """
    call_sid = context.path["callSid"]
    found = await context.services.listeners.of_call(context.account_sid, call_sid)
    listed = [shown(CallListenerObject, listener) for listener in found]
    return Reply({"call_sid": call_sid, "listeners": listed})


@routes.delete(_LISTENERS + "/{listener_sid}", owned=True)
async def end_call_listener(context: Context[NoBody, NoQuery]) -> Reply:
    """
    End a listening.

    One that has ended stays as it is.
    """
    await context.services.listeners.close_one(
        context.account_sid, context.path["callSid"], context.path["listener_sid"]
    )
    return Reply(None)
