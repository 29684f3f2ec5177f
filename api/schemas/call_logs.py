"""Request and response models of call logs."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from api.http.time_ranges import span_errors, time_span
from api.schemas.base import ResponseModel
from api.schemas.calls import CallStatusName
from api.schemas.common import EndDate, Id, Page, PeriodRequest, PerPage, QueryText, StartDate, Timestamp
from callcontrol.aio.tokens import utc_now
from callcontrol.calls.records.cdr import span_of
from callcontrol.errors import FieldError, ValidationFailed

__all__ = ["CallLogList", "CallLogObject"]

_DAYS = re.compile(r"[1-9][0-9]?", re.ASCII)


class CallLogList(PeriodRequest):
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
        """Refuse wrong ends of the period, and two names of one end."""
        twice = [
            FieldError(f"{name}_date", f"is another name of {name}; leave one of them out")
            for name in ("start", "end")
            if name in given and f"{name}_date" in given
        ]
        named = {error.field for error in twice}
        ends = super().cross_check(given)
        ends += span_errors(given.get("start"), given.get("end"), ("start", "end"))
        ends = [error for error in ends if error.field not in named] + twice
        return ends or _whole_errors(given)


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


def _whole_errors(given: Mapping[str, Any]) -> list[FieldError]:
    """Errors of the length of a period whose ends are valid, and of its last days beside its ends."""
    first, last = (given.get(name, given.get(f"{name}_date")) for name in ("start", "end"))
    days = str(given.get("days"))
    try:
        span_of(utc_now(), int(days) if _DAYS.fullmatch(days) else None, *time_span(first, last))
    except ValidationFailed as refusal:
        return list(refusal.errors)
    return []
