"""Masked calls (masking specification; ending one over the API is additive)."""

from __future__ import annotations

from api.http.endpoint import Context, Reply, Routes
from api.http.errors import ErrorStyle
from api.http.middleware import current_request
from api.schemas.base import NoBody, NoQuery
from api.schemas.masking.calls import MaskedCallObject, StartedMaskedCallObject, StartMaskedCall
from api.schemas.recordings import RecordingLinkObject
from callcontrol.errors import (
    CallEnded,
    InsufficientBalance,
    InvalidNumbers,
    NumberNotOwned,
    SpendLimitReached,
)
from callcontrol.masking.calls import masked_object, started_object

__all__ = ["masking_routes", "routes"]

REQUESTS_PER_MINUTE = 100

_ONE = "/v1/masking/calls/{call_sid}"


def masking_routes() -> Routes:
    """Make routes of masking: one shared rate limit, and lower-case error codes."""
    return Routes(
        "masking.read",
        "masking.write",
        tag="masking",
        style=ErrorStyle.MASKING,
        requests_per_minute=REQUESTS_PER_MINUTE,
        limited_as="masking",
    )


routes = masking_routes()


@routes.post(
    "/v1/masking/calls",
    response=StartedMaskedCallObject,
    success=201,
    errors=(InvalidNumbers, InsufficientBalance, SpendLimitReached, NumberNotOwned),
    places_calls=True,
    idempotent=True,
)
async def start_masked_call(context: Context[StartMaskedCall, NoQuery]) -> Reply:
    """
    Connect two parties who see a masked number.

    party_a is called, party_b after its answer. The response does not wait.
    """
    body = context.body
    record = await context.services.masking.start_call(
        context.account_sid, body.party_a, body.party_b, body.max_duration_sec
    )
    current_request().call_sid = record.call_sid
    return Reply(started_object(record))


@routes.get(_ONE, response=MaskedCallObject)
async def get_masked_call(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get a masked call.

    Ask every 2 to 3 seconds until the status is completed, failed or no-answer.
    """
    call_sid = current_request().call_sid = context.path["call_sid"]
    return Reply(masked_object(await context.services.masking.get_call(context.account_sid, call_sid)))


@routes.delete(_ONE, response=MaskedCallObject, errors=(CallEnded,))
async def end_masked_call(context: Context[NoBody, NoQuery]) -> Reply:
    """End a masked call."""
    call_sid = current_request().call_sid = context.path["call_sid"]
    return Reply(masked_object(await context.services.masking.end_call(context.account_sid, call_sid)))


@routes.get(_ONE + "/recording", response=RecordingLinkObject, tag="recordings", owned=True)
async def get_masked_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a link to the recording of a masked call, valid for an hour."""
    services, call_sid = context.services, context.path["call_sid"]
    await services.masking.get_call(context.account_sid, call_sid)
    url = await services.recordings.link(context.account_sid, call_sid)
    return Reply({"url": url, "call_sid": call_sid})
