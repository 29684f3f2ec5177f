"""Telephones in web pages (additive): tokens, and calls of browsers by WebRTC."""

from __future__ import annotations

from api.http.endpoint import Context, Reply, Routes
from api.http.middleware import current_request
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import shown
from api.schemas.webrtc import (
    BrowserCallBody,
    BrowserCallObject,
    BrowserCallQuery,
    BrowserRestartBody,
    NewBrowserCallObject,
    PhoneTokenBody,
    PhoneTokenObject,
)
from callcontrol.bootstrap.aio.services import Services
from callcontrol.errors import CallEnded, NumberNotOwned
from callcontrol.models import Principal
from callcontrol.webrtc.aio import BrowserCallRequest
from callcontrol.webrtc.tokens import TOKEN_PREFIX, token_of

__all__ = ["routes"]

_CALLS = "/v1/webrtc/calls"
_CALL = _CALLS + "/{call_sid}"

routes = Routes("calls.read", "calls.write", tag="webrtc")


async def _by_token(services: Services, text: str) -> Principal | None:
    if not text.startswith(TOKEN_PREFIX):
        return None
    return await services.browser_calls.authenticate(text)


@routes.post("/v1/webrtc/tokens", response=PhoneTokenObject, success=201)
async def create_phone_token(context: Context[PhoneTokenBody, NoQuery]) -> Reply:
    """
    Make a token with which a web page may call.

    Your server makes it with its key, and gives it to the page. It ends by itself, and with the key.
    """
    body = context.body
    token, text = context.services.browser_calls.make_token(
        context.principal, body.identity, body.from_, body.may_call, body.ttl_seconds
    )
    return Reply(shown(PhoneTokenObject, token, token=text, expires_at=token.expires_at))


@routes.post(
    _CALLS,
    response=NewBrowserCallObject,
    success=201,
    errors=(NumberNotOwned,),
    places_calls=True,
    token=_by_token,
)
async def create_browser_call(context: Context[BrowserCallBody, NoQuery]) -> Reply:
    """
    Call a number of the account from a browser.

    The answer to the offer is returned at once. The call begins when the browser has connected, goes where
    the number is bound, and is charged as any inbound call. Takes a token of the page in place of a key.
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


@routes.patch(_CALL, response=NewBrowserCallObject, errors=(CallEnded,), token=_by_token)
async def restart_browser_call(context: Context[BrowserRestartBody, NoQuery]) -> Reply:
    """
    Restart ICE of a browser whose network has changed.

    The offer is one after `restartIce()`; it changes nothing else. The present path is used until the browser
    has another.
    """
    call = context.services.browser_calls.restart(
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
