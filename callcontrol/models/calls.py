"""Call records with their streams and their quality."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from callcontrol.models.money import CURRENCY
from sip.values import constructed_natively, frozen

Direction = Literal["inbound", "outbound"]
HangupSource = Literal["caller", "callee", "carrier", "api", "stream", "system"]
RecordingStatus = Literal["in-progress", "paused", "completed", "failed", "deleted"]


class CallStatus(StrEnum):
    """
    Status of a call, spelled as in every interface.

    Attributes:
        ended: True if the status is final.
    """

    ended: bool

    QUEUED = "queued"
    INITIATED = "initiated"
    RINGING = "ringing"
    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"
    BUSY = "busy"
    NO_ANSWER = "no-answer"
    FAILED = "failed"
    CANCELED = "canceled"

    def __init__(self, value: str) -> None:
        self.ended = value not in ("queued", "initiated", "ringing", "in-progress")


@dataclass(slots=True)
class StreamInfo:
    """
    Agent stream of a call in the call object.

    ``model`` is the name of a vendor's speech model that is the agent, ``usage`` what the vendor counted.
    """

    stream_sid: str | None = None
    stream_url: str | None = None
    protocol: str = "exotel"
    encoding: str = "l16"
    sample_rate: int = 8000
    state: str | None = None
    model: str | None = None
    usage: dict[str, int] | None = None


@frozen
class DirectionQuality:
    """Audio quality in one direction of a leg; None where nothing was measured."""

    mos: float | None = None
    jitter_ms: float | None = None
    packet_loss_pct: float | None = None


@frozen
class LegQuality:
    """
    Audio quality of one leg: ``received`` from its party, and ``sent`` to it, by its RTCP reports.

    ``leg`` is ``a`` for the A-leg and ``b`` for others.
    """

    leg: str
    codec: str | None
    encrypted: bool
    rtt_ms: float | None
    received: DirectionQuality
    sent: DirectionQuality


@constructed_natively
@dataclass(slots=True)
class Quality:
    """
    Media quality over the whole call.

    The values of the call are those received from its A-leg.
    """

    mos: float | None = None
    jitter_ms: float | None = None
    packet_loss_pct: float | None = None
    codec: str | None = None
    encrypted: bool = False
    legs: list[LegQuality] = field(default_factory=list)


@constructed_natively
@dataclass(slots=True)
class CallRecord:
    """
    Record of a call; owned and changed by the one task that runs the call.

    ``node`` is the process that runs the call, ``sequence`` the number of the last webhook sent for it.
    ``dialogs`` is the state that a later process needs to end each leg in SIP, kept while the call is active.
    ``price_paise`` is set by the settlement. ``product`` placed the call, None for the call interface; its
    data of the call is in ``details``. The owner changes fields, then hands the record to
    ``CallStore.update``; the store writes the state at the time the transaction is assembled, so a record is
    never written older than it was handed over.
    """

    call_sid: str
    account_sid: str
    direction: Direction
    from_: str
    to: str
    created_at: datetime
    status: CallStatus = CallStatus.QUEUED
    parent_call_sid: str | None = None
    answered_by: str | None = None
    carrier_sid: str | None = None
    gateway_sid: str | None = None
    phone_number_id: str | None = None
    app_sid: str | None = None
    stream: StreamInfo | None = None
    ringing_at: datetime | None = None
    answered_at: datetime | None = None
    ended_at: datetime | None = None
    duration_sec: int | None = None
    bill_duration_sec: int | None = None
    hangup_cause: str | None = None
    hangup_cause_code: int | None = None
    hangup_source: HangupSource | None = None
    sip_status: int | None = None
    sip_reason: str | None = None
    sip_call_id: str | None = None
    sip: Mapping[str, Any] | None = None
    price_paise: int | None = None
    currency: str = CURRENCY
    recording_url: str | None = None
    recording_path: str | None = None
    recording_status: RecordingStatus | None = None
    quality: Quality | None = None
    tag: str | None = None
    status_webhook_url: str | None = None
    status_webhook_events: tuple[str, ...] = ()
    product: str | None = None
    details: Mapping[str, Any] | None = None
    sequence: int = 0
    node: str = ""
    dialogs: dict[str, Mapping[str, Any]] = field(default_factory=dict)


@frozen
class TranscriptSegment:
    """
    Utterance on a call: by its agent or the ``user`` that talks with it, or by the party of a leg.

    Times are in milliseconds from the answer of the call. ``text`` may be private: ``repr`` omits it.
    """

    role: Literal["agent", "user", "a", "b"]
    text: str = field(repr=False)
    start_ms: int
    end_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """
    Voicemail message, in a file named after the message.

    ``path`` is None if the file was deleted. The store sets ``created_at`` and ``node``.
    """

    message_sid: str
    account_sid: str
    call_sid: str
    path: str | None
    duration_ms: int
    created_at: datetime | None = None
    node: str | None = None


@frozen
class CallFilter:
    """
    Filter of a list of calls; ``start`` (inclusive) and ``end`` (exclusive) apply to ``created_at``.

    ``text`` occurs in one of the numbers or the Call-ID; ``cause`` is a hangup cause. A ``product`` of ``""``
    stands for calls of the call interface. ``active`` calls have not ended. A bound of
    length, MOS or price finds calls that have one.
    """

    status: CallStatus | None = None
    direction: Direction | None = None
    from_: str | None = None
    to: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    text: str | None = None
    cause: str | None = None
    carrier_sid: str | None = None
    product: str | None = None
    min_duration_s: int | None = None
    max_mos: float | None = None
    min_price_paise: int | None = None
    active: bool = False

    @property
    def asks_for_outcome(self) -> bool:
        """True if what a call matches may change until its end."""
        outcome = (self.cause, self.min_duration_s, self.max_mos, self.min_price_paise)
        return self.status is not None or any(value is not None for value in outcome)
