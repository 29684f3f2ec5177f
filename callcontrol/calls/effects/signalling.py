"""Effects on the SIP dialogs of the parties."""

from dataclasses import dataclass

from callcontrol.calls.hangup_cause import HangupCause
from callcontrol.ids import LegId
from callcontrol.routing.party import Party
from callcontrol.routing.targets import Attempt


@dataclass(frozen=True, slots=True)
class TakeOffer:
    """Open the RTP stream of the caller's leg, apply its offer; ``OfferTaken`` or ``LegRefused`` follows."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class DialLeg:
    """Open the RTP stream of the leg and send its INVITE; ``like`` is the leg whose codec is preferred."""

    leg: LegId
    attempt: Attempt
    party: Party
    like: LegId | None = None


@dataclass(frozen=True, slots=True)
class RingLeg:
    """Send a provisional response to the caller, with our SDP answer when media already flows."""

    leg: LegId
    status: int = 180
    early_media: bool = False


@dataclass(frozen=True, slots=True)
class AnswerLeg:
    """Answer the caller."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class RejectLeg:
    """Reject the caller with a final response."""

    leg: LegId
    status: int
    cause: HangupCause


@dataclass(frozen=True, slots=True)
class HangUpLeg:
    """End the leg from our side: BYE when it is answered, CANCEL when we dialled it and it is not."""

    leg: LegId
    cause: HangupCause
