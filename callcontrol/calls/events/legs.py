"""Events of a leg's signalling."""

from typing import Literal

from callcontrol.calls.events import Event
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, RECOVERY_ON_TIMER_EXPIRE, HangupCause
from callcontrol.ids import LegId
from sip.values import frozen


@frozen
class OfferTaken(Event):
    """The caller's first offer is accepted and has its RTP stream."""

    leg: LegId


@frozen
class LegProgress(Event):
    """A provisional response above 100; a body means early media."""

    leg: LegId
    status: int
    body: bytes = b""


@frozen
class LegAnswered(Event):
    """The party we dialled answered."""

    leg: LegId
    body: bytes = b""


@frozen
class LegConfirmed(Event):
    """The caller acknowledged our answer; a body is the answer to our late offer."""

    leg: LegId
    body: bytes = b""


FailureKind = Literal["response", "timeout", "transport", "cancelled", "resolve", "full"]


@frozen
class LegFailed(Event):
    """
    A leg ended without an answer: one we dialled, or that of a caller whose transport failed.

    ``kind`` is ``response`` for a final response and otherwise the reason why there was none; ``timeout``
    means that no response came at all, ``full`` that the trunk's own limits allowed no further leg. ``cause``
    is the cause in the Reason header of the response, if it adds to the status.
    """

    leg: LegId
    status: int
    reason: str = ""
    kind: FailureKind = "response"
    retry_after_s: float | None = None
    cause: HangupCause | None = None


@frozen
class LegCancelled(Event):
    """The caller cancelled before the answer; ``cause`` is that of its Reason header, if any."""

    leg: LegId
    cause: HangupCause | None = None


@frozen
class LegEnded(Event):
    """
    An answered leg has ended: the party hung up, or its signalling was lost (``clean`` is False).

    ``cause`` is that of the party's Reason header, if any.
    """

    leg: LegId
    clean: bool = True
    cause: HangupCause | None = None

    @property
    def hangup_cause(self) -> HangupCause:
        """Hangup cause of a call that ends with this leg."""
        if not self.clean:
            return RECOVERY_ON_TIMER_EXPIRE
        return self.cause or NORMAL_CLEARING


@frozen
class LegOffered(Event):
    """The party offers changed media (hold, resume, codec); an empty body asks for our offer."""

    leg: LegId
    body: bytes


@frozen
class MediaConnected(Event):
    """The party's answer is applied: audio may flow."""

    leg: LegId


MediaProblem = Literal["codec", "ports"]


@frozen
class LegRefused(Event):
    """The leg can have no media: its SDP has nothing in common with ours, or no RTP port is free."""

    leg: LegId
    problem: MediaProblem
