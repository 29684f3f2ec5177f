"""Transfers that parties ask for, and calls that are joined."""

from dataclasses import dataclass

from callcontrol.ids import CallSid, LegId
from sip import Replaces


@dataclass(frozen=True, slots=True)
class AcceptTransfer:
    """Answer a party's REFER: its target is being called."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class RefuseTransfer:
    """Refuse a party's REFER."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class TellTransfer:
    """Tell a party how the transfer goes that it asked for; a final status is the last news."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class ReferLeg:
    """Ask a party to call someone else by itself; ``LegReferred`` follows, several times."""

    leg: LegId
    target: str


@dataclass(frozen=True, slots=True)
class FindPartner:
    """Look for the call of ours that has a dialog; ``PartnerFound`` or ``PartnerMissing`` follows at once."""

    replaces: Replaces


@dataclass(frozen=True, slots=True)
class AskPartner:
    """Ask another call to give up a leg for ours; ``PartnerReady`` or ``PartnerRefused`` follows."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class AnswerPartner:
    """Tell a call that asked which leg of ours its party is joined with, None for none."""

    call_sid: CallSid
    leg: LegId | None


@dataclass(frozen=True, slots=True)
class LinkPartner:
    """Let a leg and one of another call hear each other; the end of either call ends the other."""

    leg: LegId
    call_sid: CallSid
    other: LegId


@dataclass(frozen=True, slots=True)
class PassDigit:
    """Tell the call that this one is joined with that a key was pressed."""

    digit: str
    duration_ms: int
    in_band: bool


@dataclass(frozen=True, slots=True)
class AdoptLeg:
    """Make the session of a caller that waits, known by ``token``, a leg of the call."""

    leg: LegId
    token: int


@dataclass(frozen=True, slots=True)
class RefuseReplacement:
    """Decline a caller that would take the place of a leg."""

    token: int
