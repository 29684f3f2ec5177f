"""Effects on the SIP dialogs of the parties."""

from callcontrol.calls.effects import Effect
from callcontrol.calls.hangup_cause import HangupCause
from callcontrol.ids import LegId
from callcontrol.models.parties import Party, RouteAttempt
from sip.values import frozen


@frozen
class TakeOffer(Effect):
    """Open the RTP stream of the caller's leg, apply its offer; ``OfferTaken`` or ``LegRefused`` follows."""

    leg: LegId


@frozen
class DialLeg(Effect):
    """Open the RTP stream of the leg and send its INVITE; the codec of ``peer_leg`` is preferred."""

    leg: LegId
    attempt: RouteAttempt
    party: Party
    peer_leg: LegId | None = None


@frozen
class RingLeg(Effect):
    """Send a provisional response to the caller, with our SDP answer when media already flows."""

    leg: LegId
    status: int = 180
    early_media: bool = False


@frozen
class AnswerLeg(Effect):
    """Answer the caller."""

    leg: LegId


@frozen
class RejectLeg(Effect):
    """Reject the caller with a final response."""

    leg: LegId
    status: int
    cause: HangupCause


@frozen
class HangUpLeg(Effect):
    """End the leg from our side: BYE when it is answered, CANCEL when we dialled it and it is not."""

    leg: LegId
    cause: HangupCause
