# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class CallListener(Result):
    """
    Somebody who listens in on a call, or has.
    """

    listener_sid: str
    call_sid: str
    listened_by: Annotated[
        str,
        Field(
            description='Id of the API key, or operator: with the name of an operator of the server.'
        ),
    ]
    created_at: datetime
    ended_at: datetime | None
    reason: Annotated[str | None, Field(description='Reason of the end.')]


class CallListeners(Result):
    """
    Everybody who listens or has listened to a call.
    """

    call_sid: str
    listeners: Annotated[
        list[CallListener], Field(description='In order, the first 200.')
    ]


class CallSip(Result):
    """
    Further headers of an inbound call's INVITE: unverified, and only those that were present. For a caller that withholds its number, fields that contain it are left out.
    """

    headers: dict[str, str] | None = None
    display_name: str | None = None
    privacy: list[str] | None = None
    diversion: list[str] | None = None
    history_info: list[str] | None = None
    user_to_user: list[str] | None = None
    session_id: str | None = None
    identity: list[str] | None = None


class DirectionQuality(Result):
    """
    Audio quality in one direction of a leg.
    """

    mos: Annotated[
        float | None, Field(description='By the E-model (ITU-T G.107), 1 to 4.5.')
    ]
    jitter_ms: float | None
    packet_loss_pct: float | None


class LegQuality(Result):
    """
    Audio quality of one leg of a call.
    """

    leg: Annotated[
        Literal['a', 'b'], Field(description='a: the first party; b: any other.')
    ]
    codec: str | None
    encrypted: bool
    rtt_ms: float | None
    received: DirectionQuality
    sent: Annotated[
        DirectionQuality, Field(description="As the far end's RTCP reports say.")
    ]


class NewCallListener(Result):
    """
    A listener, with the answer to the browser's offer.
    """

    listener_sid: str
    call_sid: str
    listened_by: Annotated[
        str,
        Field(
            description='Id of the API key, or operator: with the name of an operator of the server.'
        ),
    ]
    created_at: datetime
    ended_at: datetime | None
    reason: Annotated[str | None, Field(description='Reason of the end.')]
    sdp: Annotated[
        str, Field(description="Answer for the browser's RTCPeerConnection.")
    ]


class Quality(Result):
    """
    Quality of the audio received from the first party over the whole call, and of each leg.
    """

    mos: float | None
    jitter_ms: float | None
    packet_loss_pct: float | None
    codec: str | None
    encrypted: bool
    legs: list[LegQuality]


class Sentence(Result):
    """
    One sentence; times count from the answer.
    """

    speaker: Annotated[
        Literal['a', 'b'], Field(description='a: the first party; b: any other.')
    ]
    text: str
    start_ms: int
    end_ms: int | None


class StreamObject(Result):
    """
    The agent stream of a call.
    """

    stream_sid: str | None
    stream_url: str | None
    protocol: str
    encoding: str
    sample_rate: int
    state: str | None
    model: str | None = None
    usage: dict[str, int] | None = None


class TraceMessage(Result):
    """
    One SIP message of a call.
    """

    at: datetime
    leg: str | None
    direction: Literal['in', 'out']
    transport: str
    peer: Annotated[str, Field(description='host:port of the other side.')]
    call_id: str | None
    message: Annotated[str, Field(description='The message as it was on the wire.')]


class Trace(Result):
    """
    Signalling of a call, as messages and as a ladder diagram.
    """

    call_sid: str
    ladder: Annotated[str, Field(description='Ladder diagram in plain text.')]
    messages: list[TraceMessage]


class Call(Result):
    """
    A call.
    """

    call_sid: str
    sid: Annotated[str, Field(description='Alias of call_sid.')]
    account_sid: str
    parent_call_sid: str | None
    direction: Literal['inbound', 'outbound']
    from_: Annotated[str, Field(alias='from')]
    to: str
    status: Literal['queued', 'initiated', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled']
    answered_by: Literal['human', 'machine', 'unknown'] | None
    carrier_sid: str | None
    phone_number_id: str | None
    app_sid: str | None
    stream: StreamObject | None
    created_at: datetime
    ringing_at: datetime | None
    answered_at: datetime | None
    ended_at: datetime | None
    duration_sec: int | None
    bill_duration_sec: int | None
    hangup_cause: str | None
    hangup_cause_code: int | None
    hangup_source: Literal['caller', 'callee', 'carrier', 'api', 'stream', 'system'] | None
    sip_status: int | None
    sip_reason: str | None
    sip_call_id: str | None
    sip: CallSip | None
    price: float | None
    currency: str
    recording_url: str | None
    recording_status: Annotated[
        Literal['in-progress', 'paused', 'completed', 'failed', 'deleted'] | None,
        Field(
            description='failed: the call went on without it, as when the disk is full. deleted: it was asked to be, or was kept for long enough.'
        ),
    ]
    quality: Quality | None
    tag: str | None


class CallTranscript(Result):
    """
    Sentences of a transcribed call so far.
    """

    call_sid: str
    sentences: list[Sentence]
