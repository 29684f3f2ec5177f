"""Effects of transfers and joined calls."""

from dataclasses import dataclass

from callcontrol.calls.effects import Effect
from callcontrol.ids import CallSid, LegId
from sip import Replaces


@dataclass(frozen=True, slots=True)
class AcceptTransfer(Effect):
    """Accept a party's REFER: its target is being called."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class RefuseTransfer(Effect):
    """Reject a party's REFER."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class TellTransfer(Effect):
    """Send a party a NOTIFY with the progress of its transfer; a final status is the last one."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class ReferLeg(Effect):
    """Send a party a REFER; ``LegReferred`` follows, several times."""

    leg: LegId
    target: str


@dataclass(frozen=True, slots=True)
class FindPartner(Effect):
    """Look up the call of ours that has a dialog; ``PartnerFound`` or ``PartnerMissing`` follows at once."""

    replaces: Replaces


@dataclass(frozen=True, slots=True)
class AskPartner(Effect):
    """Ask another call to drop a leg for ours; ``PartnerReady`` or ``PartnerRefused`` follows."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class AnswerPartner(Effect):
    """Answer ``AskPartner`` of another call with the leg to link with; None refuses."""

    call_sid: CallSid
    leg: LegId | None


@dataclass(frozen=True, slots=True)
class LinkPartner(Effect):
    """Link a leg with one of another call; the end of either call ends the other."""

    leg: LegId
    call_sid: CallSid
    other: LegId


@dataclass(frozen=True, slots=True)
class PassDigit(Effect):
    """Notify the joined call of a pressed key."""

    digit: str
    duration_ms: int
    in_band: bool


@dataclass(frozen=True, slots=True)
class AdoptLeg(Effect):
    """Make the session of a waiting caller, known by ``token``, a leg of the call."""

    leg: LegId
    token: int


@dataclass(frozen=True, slots=True)
class RefuseReplacement(Effect):
    """Decline a caller that asks to replace a leg."""

    token: int
