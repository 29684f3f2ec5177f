"""WebRTC (additive): tokens of telephones in pages, calls of browsers and to browsers, listening in."""

from __future__ import annotations

from functools import partial
from typing import Final

from aiohttp import web

from api.http.body import TextForm
from api.http.endpoint import Context, Handover, Reply, Routes, Spoken
from api.http.event_stream import send_events
from api.http.middleware import current_request
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import shown
from api.schemas.webrtc import (
    BrowserAnswerBody,
    BrowserCallBody,
    BrowserCallDialQuery,
    BrowserCallObject,
    BrowserCallQuery,
    BrowserRestartBody,
    CallListenerObject,
    CallListenersObject,
    IceServerObject,
    ListenBody,
    NewBrowserCallObject,
    NewCallListenerObject,
    PhoneEventsQuery,
    PhoneTokenBody,
    PhoneTokenObject,
)
from callcontrol.bootstrap.aio.services import Services
from callcontrol.errors import (
    CallEnded,
    Conflict,
    Forbidden,
    NumberNotOwned,
    ValidationFailed,
    WrongCallState,
)
from callcontrol.models import Principal
from callcontrol.webrtc.aio.service import BrowserCallRequest
from callcontrol.webrtc.listeners import LISTEN_SCOPE
from callcontrol.webrtc.tokens import TOKEN_PREFIX, token_of

__all__ = ["routes"]

_CALLS = "/v1/webrtc/calls"
_CALL = _CALLS + "/{call_sid}"
_LISTENERS = "/v1/calls/{callSid}/listeners"
# A telephone whose last page was closed must not ring for long.
_LOOK_S: Final = 1.0
_EVENTS = {
    "type": "object",
    "description": "One event: ready, ringing (call_sid, from, to) or over (call_sid, reason).",
    "properties": {"event": {"enum": ["ready", "ringing", "over"]}, "data": {"type": "string"}},
}

routes = Routes("calls.read", "calls.write", tag="webrtc")


async def _by_token(services: Services, text: str) -> Principal | None:
    if not text.startswith(TOKEN_PREFIX):
        return None
    return await services.browser_calls.authenticate(text)


@routes.post("/v1/webrtc/tokens", response=PhoneTokenObject, success=201)
async def create_phone_token(context: Context[PhoneTokenBody, NoQuery]) -> Reply:
    """
    Make a token with which a web page may call, and be called.

    Your server makes it with its key, and gives the data of the response to the page. It ends by itself, and
    with the key.
    """
    body = context.body
    token, text = context.services.browser_calls.make_token(
        context.principal,
        body.identity,
        body.from_,
        body.may_call,
        body.ttl_seconds,
        receives_calls=body.receives_calls,
    )
    ice = context.services.browser_calls.ice.offered(token.identity, token.expires_at_s)
    servers = [shown(IceServerObject, server) for server in ice]
    return Reply(shown(PhoneTokenObject, token, token=text, expires_at=token.expires_at, ice_servers=servers))


@routes.post(
    _CALLS,
    response=NewBrowserCallObject,
    success=201,
    errors=(NumberNotOwned,),
    places_calls=True,
    token=_by_token,
    text=TextForm("application/sdp", "sdp", "parameters", "X-"),
)
async def create_browser_call(context: Context[BrowserCallBody, BrowserCallDialQuery]) -> Reply:
    """
    Call from a browser.

    The answer to the offer is returned at once. The call begins when the browser has connected, and is
    charged as any inbound call. A number of the account leads where it is bound; everybody else is called
    as a number of the account in `from`. Takes a token of the page in place of a key.

    The body may be the offer itself as `application/sdp`, with `to`, `from` and parameters (`X-Order=17` is
    `Order`) in the query. Then the answer to it is the response, also as `application/sdp`.
    """
    body = context.body
    call = await context.services.browser_calls.place(
        context.account_sid,
        BrowserCallRequest(sdp=body.sdp, to=body.to, from_=body.from_, parameters=body.parameters),
        token_of(context.principal),
    )
    request = current_request()
    request.call_sid = call.call_sid
    request.headers["Location"] = f"{_CALLS}/{call.call_sid}"
    return Reply(shown(NewBrowserCallObject, call, sdp=call.answer))


@routes.get(_CALL, response=BrowserCallObject, token=_by_token, owned=True)
async def get_browser_call(context: Context[NoBody, BrowserCallQuery]) -> Reply:
    """
    Get the state of a browser's call.

    Until a minute after its end. With `after` the response comes once the state is another one.
    """
    call = context.services.browser_calls.get(
        context.account_sid, context.path["call_sid"], token_of(context.principal)
    )
    if context.query.after is not None:
        await call.differs(context.query.after)
    return Reply(shown(BrowserCallObject, call))


@routes.patch(_CALL, response=NewBrowserCallObject, errors=(CallEnded, WrongCallState), token=_by_token)
async def restart_browser_call(context: Context[BrowserRestartBody, NoQuery]) -> Reply:
    """
    Restart ICE of a browser whose network has changed, or hold a call or resume it.

    The offer is one after `restartIce()`, or one with another direction; it changes nothing else. The present
    path is used until the browser has another. The other side is on hold while the direction is `inactive`.
    """
    call = context.services.browser_calls.change(
        context.account_sid, context.path["call_sid"], context.body.sdp, token_of(context.principal)
    )
    return Reply(shown(NewBrowserCallObject, call, sdp=call.answer))


@routes.delete(_CALL, token=_by_token, owned=True)
async def end_browser_call(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Hang up a browser's call.

    One that has ended stays as it is.
    """
    context.services.browser_calls.hang_up(
        context.account_sid, context.path["call_sid"], token_of(context.principal)
    )
    return Reply(None)


@routes.post(
    _CALL + "/answer",
    response=NewBrowserCallObject,
    errors=(CallEnded, WrongCallState),
    token=_by_token,
    owned=True,
)
async def answer_browser_call(context: Context[BrowserAnswerBody, NoQuery]) -> Reply:
    """
    Answer a call to a browser.

    The page that answers first has the call; the others stop ringing.
    """
    call = context.services.browser_calls.answer(
        context.account_sid, context.path["call_sid"], context.body.sdp, token_of(context.principal)
    )
    return Reply(shown(NewBrowserCallObject, call, sdp=call.answer))


@routes.post(_CALL + "/refuse", errors=(CallEnded, WrongCallState), token=_by_token, owned=True)
async def refuse_browser_call(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Refuse a call to a browser, for all its pages.

    One that a page has answered goes on.
    """
    context.services.browser_calls.refuse(
        context.account_sid, context.path["call_sid"], token_of(context.principal)
    )
    return Reply(None)


@routes.get(
    "/v1/webrtc/events",
    scope="calls.write",
    token=_by_token,
    spoken=Spoken(answers={200: ("The stream.", {"text/event-stream": _EVENTS})}),
)
async def open_phone_events(context: Context[NoBody, PhoneEventsQuery]) -> Handover:
    """
    Open a page to calls, and receive them.

    A stream of events (server-sent events) as long as the page is open. Takes a token with `receives_calls`.
    """
    token, asked = token_of(context.principal), context.query.identity
    if token is not None:
        if not token.receives_calls:
            raise Forbidden("This token receives no calls; make one with receives_calls.")
        if asked not in (None, token.identity):
            raise Forbidden(f"This token is called as {token.identity}; leave out identity.")
        asked = token.identity
    if asked is None:
        raise ValidationFailed.of("identity", "is required")
    return Handover(partial(_stream, context.services, context.principal, asked))


@routes.post(
    _LISTENERS,
    response=NewCallListenerObject,
    success=201,
    errors=(CallEnded, Conflict, WrongCallState),
    text=TextForm("application/sdp", "sdp"),
    scope=LISTEN_SCOPE,
    tag="calls",
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


@routes.get(_LISTENERS, tag="calls", response=CallListenersObject)
async def list_call_listeners(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get who listens to a call, and who has.

    For an active call those of now are among them, without an end.
    """
    call_sid = context.path["callSid"]
    found = await context.services.listeners.of_call(context.account_sid, call_sid)
    listed = [shown(CallListenerObject, listener) for listener in found]
    return Reply({"call_sid": call_sid, "listeners": listed})


@routes.delete(_LISTENERS + "/{listener_sid}", owned=True, scope=LISTEN_SCOPE, tag="calls")
async def end_call_listener(context: Context[NoBody, NoQuery]) -> Reply:
    """
    End a listening.

    One that has ended stays as it is.
    """
    await context.services.listeners.close_one(
        context.account_sid, context.path["callSid"], context.path["listener_sid"]
    )
    return Reply(None)


async def _stream(
    services: Services, principal: Principal, identity: str, request: web.Request
) -> web.StreamResponse:
    calls = services.browser_calls
    with calls.open_page(principal.account_sid, identity) as page:
        return await send_events(
            request,
            page,
            partial(calls.is_admitted, principal),
            {"Cache-Control": "no-store"},
            look_s=_LOOK_S,
        )
