"""Calls in the format of Twilio's REST interface."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel

__all__ = ["TwilioCall", "UpdateTwilioCall"]

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
    status: Literal[
        "queued",
        "initiated",
        "ringing",
        "in-progress",
        "completed",
        "busy",
        "no-answer",
        "failed",
        "canceled",
    ]
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
