"""Effects of transfers and joined calls."""

from callcontrol.calls.effects import Effect
from callcontrol.ids import CallSid, LegId
from sip import Replaces
from sip.values import frozen


@frozen
class AcceptTransfer(Effect):
    """Accept a party's REFER: its target is being called."""

    leg: LegId


@frozen
class RefuseTransfer(Effect):
    """Reject a party's REFER."""

    leg: LegId
    status: int


@frozen
class TellTransfer(Effect):
    """Send a party a NOTIFY with the progress of its transfer; a final status is the last one."""

    leg: LegId
    status: int


@frozen
class ReferLeg(Effect):
    """Send a party a REFER; ``LegReferred`` follows, several times."""

    leg: LegId
    target: str


@frozen
class FindPartner(Effect):
    """Look up the call of ours that has a dialog; ``PartnerFound`` or ``PartnerMissing`` follows at once."""

    replaces: Replaces


@frozen
class AskPartner(Effect):
    """Ask another call to drop a leg for ours; ``PartnerReady`` or ``PartnerRefused`` follows."""

    call_sid: CallSid
    leg: LegId


@frozen
class AnswerPartner(Effect):
    """Answer ``AskPartner`` of another call with the leg to link with; None refuses."""

    call_sid: CallSid
    leg: LegId | None


@frozen
class LinkPartner(Effect):
    """Link a leg with one of another call; the end of either call ends the other."""

    leg: LegId
    call_sid: CallSid
    other: LegId


@frozen
class PassDigit(Effect):
    """Notify the joined call of a pressed key."""

    digit: str
    duration_ms: int
    in_band: bool


@frozen
class AdoptLeg(Effect):
    """Make the session of a waiting caller, known by ``token``, a leg of the call."""

    leg: LegId
    token: int


@frozen
class RefuseReplacement(Effect):
    """Decline a caller that asks to replace a leg."""

    token: int
