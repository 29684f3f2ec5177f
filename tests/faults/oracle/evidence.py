"""
Evidence of each party about the calls: the far ends, the receiver of webhooks, the records, the wallet.

Nothing here, nor elsewhere in this package, is shared with the product: a mistake that both made would be no
mistake any more. Moments are seconds of the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

__all__ = ["Discrepancy", "Evidence", "Hook", "Leg", "Tariff"]

_ENDS = frozenset({"completed", "failed", "no-answer", "busy", "canceled"})

Role = Literal["caller", "callee"]
EndedBy = Literal["us", "peer", "refused", "cancelled", "unanswered", "unknown_there"]


@dataclass(slots=True)
class Leg:
    """
    One dialog as a far end saw it.

    Attributes:
        session_id: What both sides of a bridged call have in common (RFC 7989).
        number: Who was called.
        peer: HOST:PORT with which it speaks SIP.
        invites: INVITEs that were no repetition and no re-INVITE; of a callee also those of other branches.
        repeated: Requests that came again, or had to be sent again.
        status: The final answer to the INVITE; None when there was none.
        confirmed_at: When the 2xx was acknowledged; the dialog counts from then.
        ended_by: Who ended it; `unknown_there` when the other side knew nothing of the dialog (481).
        first_rtp_at, last_rtp_at: When the first and the last packet came.
        longest_silence_s: Longest time between two packets.
    """

    call_id: str
    role: Role
    kind: str
    number: str
    session_id: str = ""
    peer: str = ""
    began_at: float = 0.0
    invites: int = 0
    repeated: int = 0
    rang_at: float | None = None
    status: int | None = None
    answered_at: float | None = None
    confirmed_at: float | None = None
    acks: int = 0
    cancels: int = 0
    byes_sent: int = 0
    byes_received: int = 0
    ended_at: float | None = None
    ended_by: EndedBy | None = None
    reason: str = ""
    rtp_sent: int = 0
    rtp_received: int = 0
    first_rtp_at: float | None = None
    last_rtp_at: float | None = None
    longest_silence_s: float = 0.0

    @property
    def answered(self) -> bool:
        """A 2xx went over the wire."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def dialog_s(self) -> float:
        """Duration of the dialog, in seconds; infinite before it ended."""
        if self.answered_at is None:
            return 0.0
        return (self.ended_at if self.ended_at is not None else float("inf")) - self.answered_at

    @property
    def rtp_s(self) -> float:
        """Seconds between the first and the last packet that was heard; before the answer is ringing."""
        if self.first_rtp_at is None or self.last_rtp_at is None:
            return 0.0
        return max(0.0, self.last_rtp_at - max(self.first_rtp_at, self.answered_at or 0.0))


@dataclass(slots=True)
class Hook:
    """One attempt to deliver an event, as the receiver saw it."""

    delivery_id: str
    event: str
    call_sid: str
    sequence: int
    signed: bool
    at: float
    data: dict[str, Any] = field(default_factory=dict)


def is_end(event: str) -> bool:
    """Return True for the event of a call's end; the end of its stream may be another matter."""
    kind, _, what = event.partition(".")
    return kind != "stream" and what.rpartition(".")[2] in _ENDS


@dataclass(frozen=True, slots=True)
class Tariff:
    """Agreed prices: paise for each started pulse of an inbound leg, and of an outbound one."""

    inbound_paise: int = 40
    outbound_paise: int = 60
    pulse_s: float = 60.0


@dataclass(slots=True)
class Evidence:
    """
    All that is known at the end, when nothing is under way any more.

    Attributes:
        placed: Calls that the API has accepted, by their sid, with their kind.
        unsure: Number of requests for a call that were never answered, however often they were repeated.
        records, ledger: As the REST API shows them; the ledger's entries since `balance_before_paise`.
        kills: When the server was killed.
        apart_s: How far apart the two ends of a call, and what it is billed for, may be: a BYE crosses the
            server, is sent again when it is lost, and a busy machine is slow.
        epoch_s: What the wall clock says when the monotonic one says 0; the records have its moments.
    """

    legs: list[Leg] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    placed: dict[str, str] = field(default_factory=dict)
    unsure: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    balance_before_paise: int = 0
    balance_after_paise: int = 0
    reserved_paise: int = 0
    kills: list[float] = field(default_factory=list)
    epoch_s: float = 0.0
    tariff: Tariff = field(default_factory=Tariff)
    apart_s: float = 3.0

    def moment(self, text: str) -> float:
        """Return the monotonic time of a moment that a record names."""
        return datetime.fromisoformat(text).timestamp() - self.epoch_s

    def seen_by_far_ends(self, seen: Mapping[str, Any]) -> None:
        """Add what their process wrote down."""
        self.legs += [Leg(**_known(Leg, leg)) for leg in seen["legs"]]
        self.hooks += [Hook(**_known(Hook, hook)) for hook in seen["hooks"]]
        self.placed.update(seen["placed"])
        self.unsure += len(seen["unsure"])


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Something in which the parties do not agree, and the call that it is about."""

    kind: str
    call: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.call}: {self.text}"


def to_json(items: Sequence[Leg] | Sequence[Hook]) -> list[dict[str, Any]]:
    """Legs or hooks as plain values."""
    return [asdict(item) for item in items]


def _known(kind: type[Leg] | type[Hook], values: Mapping[str, Any]) -> dict[str, Any]:
    return {item.name: values[item.name] for item in fields(kind) if item.name in values}
