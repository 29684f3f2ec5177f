"""Request and response models of call logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.calls import CallStatusName
from api.schemas.common import EndDate, Id, Page, PerPage, QueryText, StartDate, Timestamp
from callcontrol.errors import FieldError

__all__ = ["CallLogList", "CallLogObject"]


class CallLogList(RequestModel):
    """Filters of call logs; the last 30 days unless days, or start and end, give another period."""

    days: (
        Annotated[int, Field(ge=1, le=30, description="Number of last days; replaces start and end.")] | None
    ) = None
    start: StartDate | None = None
    end: (
        Annotated[EndDate, Field(description="As end_date of other lists; at most 31 days, both included.")]
        | None
    ) = None
    start_date: (
        Annotated[StartDate, Field(description="Another name of start, as other lists have it.")] | None
    ) = None
    end_date: Annotated[EndDate, Field(description="Another name of end, as other lists have it.")] | None = (
        None
    )
    direction: Literal["inbound", "outbound"] | None = None
    answered: (
        Annotated[bool, Field(description="true: answered calls; false: those never answered.")] | None
    ) = None
    carrier_sid: Id | None = None
    filter: (
        Annotated[
            QueryText,
            Field(
                min_length=1,
                description="A number in any common writing, or part of one or of the SIP Call-ID.",
            ),
        ]
        | None
    ) = None
    page: Page = 1
    per_page: PerPage = 20

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse two names of one end of the period."""
        return [
            FieldError(f"{name}_date", f"is another name of {name}; leave one of them out")
            for name in ("start", "end")
            if name in given and f"{name}_date" in given
        ]


class CallLogObject(ResponseModel):
    """One call, from the perspective of a trunk operator."""

    call_sid: str
    from_: Annotated[str, Field(alias="from")]
    to: str
    direction: Literal["inbound", "outbound"]
    status: CallStatusName
    answered: bool
    duration: Annotated[int | None, Field(description="Seconds from answer to end.")]
    attempted_at: Timestamp
    answered_at: Timestamp | None
    terminated_at: Timestamp | None
    termination_reason: Annotated[str | None, Field(description="The hangup cause.")]
    terminated_by: Literal["caller", "callee", "carrier", "api", "stream", "system"] | None
    sip_status: int | None
    sip_reason: str | None
    sip_call_id: str | None
    host: Annotated[str, Field(description="The server that carried the call.")]
    remote_host: Annotated[str | None, Field(description="The gateway's host.")]
    trunk: Annotated[str | None, Field(description="The carrier's name.")]
    carrier_sid: str | None
    gateway_sid: str | None
    app_sid: str | None
    codec: str | None
    mos: Annotated[float | None, Field(description="Of what the first party sent; 1 to 4.5.")]
    jitter_ms: float | None
    packet_loss_pct: float | None
