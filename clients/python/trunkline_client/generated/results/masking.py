# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class Leg(Result):
    """
    State of one of the two parties.
    """

    party: Literal['a', 'b']
    status: Literal['queued', 'initiated', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled']
    answered_at: datetime | None
    hangup_cause: str | None


class Mapping(Result):
    """
    Caller and target of a call to the masked number; numbers are in E.164.
    """

    caller_number: str
    masked_number: str
    target_number: str


class MaskedCall(Result):
    """
    A call between two parties that see one of your numbers instead of each other's.
    """

    id: str
    platform_call_sid: str
    session_id: Annotated[
        str | None, Field(description='The masking session it was routed by, if any.')
    ]
    caller_number: Annotated[
        str, Field(description='Who is called first, or called; in E.164.')
    ]
    target_number: Annotated[
        str | None,
        Field(description='The other party, Indian numbers without country code.'),
    ]
    masked_number: str
    direction: Literal['click_to_call', 'inbound']
    status: Literal['initiated', 'a_ringing', 'a_answered', 'b_ringing', 'in-progress', 'completed', 'failed', 'no-answer']
    legs: list[Leg]
    max_duration_sec: int | None
    started_at: datetime
    answered_at: Annotated[
        datetime | None, Field(description='When both parties were connected.')
    ]
    ended_at: datetime | None
    duration_sec: Annotated[
        int | None, Field(description='From answered_at to ended_at.')
    ]
    bill_duration_sec: Annotated[
        int | None,
        Field(
            description='Seconds of the started pulses from answered_at to ended_at.'
        ),
    ]
    hangup_cause: str | None
    price: float | None
    currency: str
    recording_url: str | None


class MaskedNumber(Result):
    """
    A number enrolled for masking.
    """

    phone_number_id: str
    number: Annotated[str, Field(description='E.164.')]
    language: str
    status: Literal['active', 'suspended', 'pending', 'released']
    created_at: datetime


class MaskingBilling(Result):
    """
    The balance that pays for masked calls.
    """

    wallet_balance: Annotated[
        float, Field(description='In rupees; active calls are not charged yet.')
    ]
    currency: str
    updated_at: datetime


class MaskingSettings(Result):
    """
    The account's settings of masked calls.
    """

    webhook_url: str | None
    has_webhook_secret: Annotated[
        bool, Field(description='Whether the webhook has a secret of its own.')
    ]
    webhook_active: Annotated[
        bool,
        Field(
            description='false: paused, by yourself or because its server answered 410.'
        ),
    ]
    routing_url: str | None
    record_calls: bool
    updated_at: Annotated[datetime | None, Field(description='null: never changed.')]


class Session(Result):
    """
    Two parties that reach each other by a masked number until the session ends.
    """

    session_id: str
    status: Literal['active', 'expired', 'closed']
    masked_number: Annotated[
        str, Field(description='Number that the parties call and see, in E.164.')
    ]
    party_a: str
    party_b: str
    mappings: list[Mapping]
    call_time_limit_sec: int | None
    record: bool | None
    geo_match: bool
    expires_at: datetime
    ended_at: Annotated[
        datetime | None, Field(description='When it was closed, or had expired.')
    ]
    created_at: datetime
    updated_at: datetime


class StartedMaskedCall(Result):
    """
    An accepted masked call; its first party is being called.
    """

    call_sid: str
    status: Literal['initiated', 'a_ringing', 'a_answered', 'b_ringing', 'in-progress', 'completed', 'failed', 'no-answer']
    party_a: str
    party_b: str
    masked_number: Annotated[
        str, Field(description='Number that both parties see, in E.164.')
    ]


class Window(Result):
    """
    A period of time, both ends included.
    """

    start: datetime
    end: datetime


class MaskingStats(Result):
    """
    Usage of masking in a window, by the start of calls and the creation of sessions.
    """

    period: Window
    total_sessions: int
    active_sessions: Annotated[
        int, Field(description='Of total_sessions, those that are active now.')
    ]
    total_mappings: Annotated[
        int, Field(description='Of total_sessions; a session has two.')
    ]
    total_calls: int
    answered_calls: Annotated[int, Field(description='Whose parties were connected.')]
    failed_calls: Annotated[
        int, Field(description='Which ended with the status failed.')
    ]
    no_answer_calls: Annotated[
        int, Field(description='Which ended with the status no-answer.')
    ]
    in_progress_calls: Annotated[int, Field(description='Which have not ended.')]
    total_minutes: Annotated[
        float, Field(description='The sum of bill_duration_sec, in minutes.')
    ]
    total_cost: Annotated[
        float, Field(description='What calls that have ended were charged, in rupees.')
    ]
    currency: str
