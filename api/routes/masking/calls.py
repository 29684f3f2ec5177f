"""Masked calls (masking specification; ending one over the API is additive)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.http.errors import ErrorStyle
from api.http.request_context import current_request
from api.schemas.base import NoBody, NoQuery
from api.schemas.masking.calls import MaskedCallObject, StartedMaskedCallObject, StartMaskedCall
from callcontrol.errors import (
    CallEnded,
    InsufficientBalance,
    InvalidNumbers,
    NumberNotOwned,
    SpendLimitReached,
)
from callcontrol.masking.calls import masked_object, started_object
from callcontrol.masking.request import MaskedCallRequest

__all__ = ["ENDPOINTS", "MASKING"]

REQUESTS_PER_MINUTE = 100

MASKING: dict[str, Any] = {
    "tag": "masking",
    "style": ErrorStyle.MASKING,
    "requests_per_minute": REQUESTS_PER_MINUTE,
    "limited_as": "masking",
}
"""Common fields of the masking endpoints: one shared rate limit, and lower-case error codes."""


async def start_masked_call(context: Context[StartMaskedCall, NoQuery]) -> Reply:
    """Answer POST /masking/calls."""
    body = context.body
    record = await context.services.masking.start_call(
        context.account_sid, MaskedCallRequest(body.party_a, body.party_b, body.max_duration_sec)
    )
    current_request().call_sid = record.call_sid
    return Reply(started_object(record))


async def get_masked_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /masking/calls/{call_sid}."""
    call_sid = current_request().call_sid = context.path["call_sid"]
    return Reply(masked_object(await context.services.masking.get_call(context.account_sid, call_sid)))


async def end_masked_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /masking/calls/{call_sid}."""
    call_sid = current_request().call_sid = context.path["call_sid"]
    return Reply(masked_object(await context.services.masking.end_call(context.account_sid, call_sid)))


_ONE = "/v1/masking/calls/{call_sid}"

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path="/v1/masking/calls",
        handler=start_masked_call,
        scope="masking.write",
        summary="Connect two parties who see a masked number",
        description="party_a is called, party_b after its answer. The response does not wait.",
        success=201,
        body=StartMaskedCall,
        response=StartedMaskedCallObject,
        errors=(InvalidNumbers, InsufficientBalance, SpendLimitReached, NumberNotOwned),
        places_calls=True,
        idempotent=True,
        **MASKING,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_masked_call,
        scope="masking.read",
        summary="Get a masked call",
        description="Ask every 2 to 3 seconds until the status is completed, failed or no-answer.",
        response=MaskedCallObject,
        **MASKING,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=end_masked_call,
        scope="masking.write",
        summary="End a masked call",
        response=MaskedCallObject,
        errors=(CallEnded,),
        **MASKING,
    ),
)
