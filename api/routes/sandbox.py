"""Calls from the sandbox (additive: inbound calls without a carrier)."""

from __future__ import annotations

from api.http.endpoint import Context, Reply, Routes
from api.http.middleware import current_request
from api.schemas.base import NoQuery
from api.schemas.sandbox import PartyCallBody, PartyCallObject
from api.schemas.serializers import shown
from callcontrol.calls.sandbox import PartyCallRequest
from callcontrol.errors import NotFound, NumberNotOwned

__all__ = ["routes"]

routes = Routes("calls.read", "calls.write", tag="sandbox")


@routes.post(
    "/v1/sandbox/inbound",
    response=PartyCallObject,
    success=201,
    errors=(NotFound, NumberNotOwned),
    places_calls=True,
)
async def call_from_sandbox(context: Context[PartyCallBody, NoQuery]) -> Reply:
    """
    Place a call of a sandbox party to one of the account's numbers.

    The call arrives by SIP, goes where the number is bound and is charged as any inbound call.
    """
    body = context.body
    call = await context.services.sandbox_calls.place(
        context.account_sid,
        PartyCallRequest(
            to=body.to,
            from_=body.from_,
            behaviour=body.behaviour,
            send_digits=body.send_digits,
            hangup_after_ringing_s=body.hangup_after_ringing_seconds,
            hangup_after_s=body.hangup_after_seconds,
        ),
    )
    current_request().call_sid = call.call_sid
    return Reply(shown(PartyCallObject, call))
