"""What the signalling of a leg reports."""

from dataclasses import dataclass
from typing import Literal

from callcontrol.calls.hangup_cause import NORMAL_CLEARING, RECOVERY_ON_TIMER_EXPIRE, HangupCause
from callcontrol.ids import LegId


@dataclass(frozen=True, slots=True)
class OfferTaken:
    """The caller's first offer is acceptable and has its RTP stream."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class LegProgress:
    """A provisional response above 100; a body means early media."""

    leg: LegId
    status: int
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class LegAnswered:
    """The party we dialled answered."""

    leg: LegId
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class LegConfirmed:
    """The caller acknowledged our answer; a body is the answer to our late offer."""

    leg: LegId
    body: bytes = b""


FailureKind = Literal["response", "timeout", "transport", "cancelled", "resolve", "full"]


@dataclass(frozen=True, slots=True)
class LegFailed:
    """
    A leg we dialled is over without an answer.

    ``kind`` is ``response`` for a final response and otherwise says why there was none; ``timeout`` means
    that nothing at all came back, ``full`` that the trunk's own limits left no room for it. ``cause`` is what
    the Reason header of the response added to its status.
    """

    leg: LegId
    status: int
    reason: str = ""
    kind: FailureKind = "response"
    retry_after_s: float | None = None
    cause: HangupCause | None = None


@dataclass(frozen=True, slots=True)
class LegCancelled:
    """The caller gave up before the answer; ``cause`` is what its Reason header said of that, if it did."""

    leg: LegId
    cause: HangupCause | None = None


@dataclass(frozen=True, slots=True)
class LegEnded:
    """
    An answered leg is over: the party hung up, or its signalling was lost (``clean`` is False).

    ``cause`` is what the party's Reason header said, if it did.
    """

    leg: LegId
    clean: bool = True
    cause: HangupCause | None = None

    @property
    def hangup_cause(self) -> HangupCause:
        """Why the call is over that ends with this leg."""
        if not self.clean:
            return RECOVERY_ON_TIMER_EXPIRE
        return self.cause or NORMAL_CLEARING


@dataclass(frozen=True, slots=True)
class LegOffered:
    """The party offers changed media (hold, resume, codec); an empty body asks for our offer."""

    leg: LegId
    body: bytes


@dataclass(frozen=True, slots=True)
class MediaConnected:
    """The party's answer is applied: audio may flow."""

    leg: LegId


MediaProblem = Literal["codec", "ports"]


@dataclass(frozen=True, slots=True)
class LegRefused:
    """The leg can have no media: nothing in common with its SDP, or no RTP port left."""

    leg: LegId
    problem: MediaProblem
