# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class CallError(Result):
    """
    Error of a call.
    """

    code: str
    message: str


class DayFigures(Result):
    """
    Call statistics of one day.
    """

    total_calls: int
    completed_calls: int
    failed_calls: int
    no_answer_calls: int
    busy_calls: int
    voicemail_calls: int
    in_progress_calls: Annotated[int, Field(description='Those that have not ended.')]
    avg_duration_seconds: Annotated[
        float, Field(description='Of calls that were answered.')
    ]
    total_minutes: float
    success_rate: Annotated[
        float, Field(description='Completed calls among those that have ended, 0 to 1.')
    ]
    total_cost: Annotated[float, Field(description='Rupees.')]
    date: str


class Period(Result):
    """
    A period of time, both ends included.
    """

    start: datetime
    end: datetime


class Segment(Result):
    """
    One utterance; times count from the answer.
    """

    role: Literal['agent', 'user']
    text: str
    start_ms: int
    end_ms: int | None


class Transcript(Result):
    """
    Transcript of a call, in order.
    """

    call_id: str
    language: str | None
    segments: list[Segment]


class AnalyticsObject(Result):
    """
    Call statistics of a period, in total and by day.
    """

    total_calls: int
    completed_calls: int
    failed_calls: int
    no_answer_calls: int
    busy_calls: int
    voicemail_calls: int
    in_progress_calls: Annotated[int, Field(description='Those that have not ended.')]
    avg_duration_seconds: Annotated[
        float, Field(description='Of calls that were answered.')
    ]
    total_minutes: float
    success_rate: Annotated[
        float, Field(description='Completed calls among those that have ended, 0 to 1.')
    ]
    total_cost: Annotated[float, Field(description='Rupees.')]
    period: Period
    currency: str
    by_day: list[DayFigures]


class AssistantCall(Result):
    """
    A call with an agent.
    """

    id: str
    agent_id: str | None
    phone_number: Annotated[str, Field(description='Whom the agent talks with.')]
    direction: Literal['inbound', 'outbound']
    from_: Annotated[str, Field(alias='from')]
    to: str
    status: Literal['queued', 'ringing', 'in-progress', 'completed', 'failed', 'no-answer', 'busy', 'voicemail']
    answered_by: str | None
    context: dict[str, str]
    sandbox: bool
    created_at: datetime
    started_at: Annotated[datetime | None, Field(description='When it was answered.')]
    ended_at: datetime | None
    duration_seconds: int | None
    hangup_cause: str | None
    error: CallError | None
    recording_url: str | None
    transcript: Annotated[list[Segment], Field(description='Empty in lists.')]
    cost: Annotated[
        float | None, Field(description='Rupees; null until the call has ended.')
    ]
    currency: str
