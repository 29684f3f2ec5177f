"""
The two requests of Twilio's REST interface that clients of media streams send.

A stock client ends its call by `Status=completed`; path, form body and responses must be those of Twilio.
"""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from api.http.endpoint import Context, Reply, Routes
from api.http.errors import ErrorStyle
from api.http.middleware import current_request
from api.schemas.base import NoBody, NoQuery, RequestModel, ResponseModel
from api.schemas.calls import CallStatusName
from callcontrol.errors import CallEnded, ValidationFailed
from callcontrol.models import CallRecord
from callcontrol.wallet.money import rupees

__all__ = ["routes"]

_Moment = Annotated[str, Field(description="As in mail: Sun, 22 Nov 2026 03:00:00 +0000.")]


class UpdateTwilioCall(RequestModel):
    """Update of a call: only its end is supported."""

    Status: Annotated[
        Literal["completed", "canceled"],
        Field(description="completed ends a call in any state, canceled one that is not answered yet."),
    ]


class TwilioCall(ResponseModel):
    """A call, in the shape of Twilio's call resource."""

    sid: str
    account_sid: str
    parent_call_sid: str | None
    from_: Annotated[str, Field(alias="from")]
    to: str
    status: CallStatusName
    direction: Literal["inbound", "outbound-api"]
    answered_by: Literal["human", "machine", "unknown"] | None
    date_created: _Moment
    start_time: _Moment | None
    end_time: _Moment | None
    duration: Annotated[str, Field(description="Seconds.")] | None
    price: Annotated[str, Field(description="Negative: what the call cost.")] | None
    price_unit: str
    api_version: Literal["2010-04-01"]
    uri: str


_VERSION = "2010-04-01"
_ONE = f"/{_VERSION}/Accounts/{{sid}}/Calls/{{callSid}}.json"

routes = Routes("calls.read", "calls.write", style=ErrorStyle.TWILIO, tag="calls, as Twilio's clients ask")


@routes.get(_ONE, response=TwilioCall)
async def get_twilio_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a call, in Twilio's shape."""
    record = await context.services.calls.get_call(context.account_sid, context.path["callSid"])
    return Reply(_shown(record))


@routes.post(_ONE, errors=(CallEnded,), response=TwilioCall)
async def update_twilio_call(context: Context[UpdateTwilioCall, NoQuery]) -> Reply:
    """
    End a call, as Twilio's clients do.

    The user name is the account_sid, the password a platform key, the body a form.
    """
    calls, call_sid = context.services.calls, context.path["callSid"]
    current_request().call_sid = call_sid
    status = context.body.Status
    if status == "canceled" and (await calls.get_call(context.account_sid, call_sid)).answered_at is not None:
        raise ValidationFailed.of("Status", "canceled is for calls that are not answered; send completed")
    record = await calls.hangup_call(context.account_sid, call_sid)
    # The hang-up is in progress: clients expect the status that they requested, and do not ask again.
    return Reply({**_shown(record), "status": status})


def _shown(record: CallRecord) -> dict[str, Any]:
    return {
        "sid": record.call_sid,
        "account_sid": record.account_sid,
        "parent_call_sid": record.parent_call_sid,
        "from": record.from_,
        "to": record.to,
        "status": record.status.value,
        "direction": "inbound" if record.direction == "inbound" else "outbound-api",
        "answered_by": record.answered_by,
        "date_created": _moment(record.created_at),
        "start_time": _moment(record.answered_at),
        "end_time": _moment(record.ended_at),
        "duration": str(record.duration_sec) if record.duration_sec is not None else None,
        "price": f"{-rupees(record.price_paise):.2f}" if record.price_paise is not None else None,
        "price_unit": record.currency,
        "api_version": _VERSION,
        "uri": _ONE.format(sid=record.account_sid, callSid=record.call_sid),
    }


def _moment(moment: datetime | None) -> str | None:
    return format_datetime(moment) if moment is not None else None
