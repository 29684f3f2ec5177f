"""Request and response models of the voice assistant's calls."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.http.time_ranges import time_span
from api.schemas.base import RequestModel, ResponseModel
from api.schemas.calls import DEFAULT_TIMEOUT_S, MAX_TIME_LIMIT_S, MAX_TIMEOUT_S, MIN_TIMEOUT_S
from api.schemas.common import E164, EndDate, Id, Page, PeriodRequest, PerPage, StartDate, Timestamp
from api.schemas.forms import QueryAddress, WebUrl
from callcontrol.aio.tokens import utc_now
from callcontrol.assistant.analytics import query_of
from callcontrol.assistant.calls import AssistantStatus
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.errors import FieldError, ValidationFailed

__all__ = [
    "Analytics",
    "AnalyticsObject",
    "AssistantCallList",
    "AssistantCallObject",
    "StartCall",
    "TranscriptObject",
]


_Environment = Annotated[
    Literal["live", "sandbox"], Field(description="A sandbox key sees the sandbox only.")
]
_Context = Annotated[
    dict[
        Annotated[str, Field(min_length=1, max_length=64)],
        Annotated[str, Field(max_length=1000)],
    ],
    Field(max_length=40, description="Context for the agent: up to 40 texts by name."),
]


class StartCall(RequestModel):
    """A call for an agent to place."""

    phone_number: Annotated[E164, Field(description="Number to call.")]
    agent_id: Id
    context: _Context = {}
    from_: Annotated[E164 | None, Field(alias="from", description="A registered number.")] = None
    machine_detection: Literal["off", "detect", "hangup"] = "off"
    record: bool = False
    timeout: Annotated[int, Field(ge=MIN_TIMEOUT_S, le=MAX_TIMEOUT_S, description="Ringing seconds.")] = (
        DEFAULT_TIMEOUT_S
    )
    time_limit: Annotated[int, Field(ge=1, le=MAX_TIME_LIMIT_S, description="Seconds from the answer.")] = (
        MAX_TIME_LIMIT_S
    )
    status_webhook_url: (
        Annotated[WebUrl, Field(description="Receives the status events of this call.")] | None
    ) = None

    urls = {"status_webhook_url": WEB_SCHEMES}


class AssistantCallList(PeriodRequest):
    """Filters and page of the list of agents' calls."""

    status: AssistantStatus | None = None
    direction: Literal["inbound", "outbound"] | None = None
    agent_id: Id | None = None
    phone_number: QueryAddress | None = None
    environment: _Environment | None = None
    start_date: StartDate | None = None
    end_date: EndDate | None = None
    page: Page = 1
    per_page: PerPage = 20


class Segment(ResponseModel):
    """One utterance; times count from the answer."""

    role: Literal["agent", "user"]
    text: str
    start_ms: int
    end_ms: int | None


class CallError(ResponseModel):
    """Error of a call."""

    code: str
    message: str


class AssistantCallObject(ResponseModel):
    """A call with an agent."""

    model_config = ConfigDict(populate_by_name=True)

    id: str
    agent_id: str | None
    phone_number: Annotated[str, Field(description="Whom the agent talks with.")]
    direction: Literal["inbound", "outbound"]
    from_: Annotated[str, Field(alias="from")]
    to: str
    status: AssistantStatus
    answered_by: str | None
    context: dict[str, str]
    sandbox: bool
    created_at: Timestamp
    started_at: Annotated[Timestamp | None, Field(description="When it was answered.")]
    ended_at: Timestamp | None
    duration_seconds: int | None
    hangup_cause: str | None
    error: CallError | None
    recording_url: str | None
    transcript: Annotated[list[Segment], Field(description="Empty in lists.")]
    cost: Annotated[float | None, Field(description="Rupees; null until the call has ended.")]
    currency: str


class TranscriptObject(ResponseModel):
    """Transcript of a call, in order."""

    call_id: str
    language: str | None
    segments: list[Segment]


class Analytics(PeriodRequest):
    """Filters of the calls to count."""

    start_date: StartDate | None = None
    end_date: EndDate | None = None
    agent_id: Id | None = None
    environment: _Environment | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse a period that is too long, or ends before it begins."""
        if errors := super().cross_check(given):
            return errors
        try:
            query_of(*time_span(given.get("start_date"), given.get("end_date")), utc_now())
        except ValidationFailed as refusal:
            return list(refusal.errors)
        return []


class Period(ResponseModel):
    """A period of time, both ends included."""

    start: Timestamp
    end: Timestamp


class Figures(ResponseModel):
    """Call statistics."""

    total_calls: int
    completed_calls: int
    failed_calls: int
    no_answer_calls: int
    busy_calls: int
    voicemail_calls: int
    in_progress_calls: Annotated[int, Field(description="Those that have not ended.")]
    avg_duration_seconds: Annotated[float, Field(description="Of calls that were answered.")]
    total_minutes: float
    success_rate: Annotated[float, Field(description="Completed calls among those that have ended, 0 to 1.")]
    total_cost: Annotated[float, Field(description="Rupees.")]


class DayFigures(Figures):
    """Call statistics of one day."""

    date: str


class AnalyticsObject(Figures):
    """Call statistics of a period, in total and by day."""

    period: Period
    currency: str
    by_day: list[DayFigures]
