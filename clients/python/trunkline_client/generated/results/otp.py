# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class OtpCall(Result):
    """
    State of a one-time password and its call, without the password itself.
    """

    id: str
    call_sid: str
    to: Annotated[str, Field(description='Masked: ******3210.')]
    from_: Annotated[str, Field(alias='from')]
    status: Literal['initiated', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled']
    language: str
    repeat: int
    played_count: Annotated[int, Field(description='Number of complete repetitions.')]
    reference: str | None
    created_at: datetime
    expires_at: datetime
    verified_at: datetime | None
    answered_at: datetime | None
    ended_at: datetime | None
    duration_sec: int | None
    hangup_cause: str | None
    price: float | None
    currency: str


class PeriodObject(Result):
    """
    First and last day, both included.
    """

    start: str
    end: str


class Verification(Result):
    """
    Result of a verification.
    """

    verified: bool
    attempts_left: int
    reason: Annotated[
        Literal['verified', 'wrong', 'expired', 'used', 'exhausted'],
        Field(description='exhausted: too many guesses; used: already verified.'),
    ]


class OtpStats(Result):
    """
    Statistics of the passwords of a period; each is counted under exactly one status.
    """

    period: PeriodObject
    total_calls: int
    answered_calls: int
    completed_calls: int
    failed_calls: int
    no_answer_calls: int
    busy_calls: int
    canceled_calls: int
    in_progress_calls: int
    verified_calls: int
    total_duration_sec: int
    total_cost: float
    currency: str
