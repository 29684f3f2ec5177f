"""Transfers that parties ask for, and calls that are joined."""

from dataclasses import dataclass

from callcontrol.ids import CallSid, LegId
from sip import Replaces, SipUri


@dataclass(frozen=True, slots=True)
class TransferRequested:
    """
    A party asks, by REFER, for the other one to be connected elsewhere.

    ``local`` says that the target names a host of ours; ``replaces`` is the dialog to take the place of.
    """

    leg: LegId
    target: SipUri
    replaces: Replaces | None = None
    local: bool = False


@dataclass(frozen=True, slots=True)
class LegReferred:
    """A party that we asked to call someone else tells how it goes; a final status is the last news."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class ReplacementCalled:
    """A caller wants the place of a leg (INVITE with Replaces); it waits under ``token``."""

    leg: LegId
    token: int
    caller: str = ""


@dataclass(frozen=True, slots=True)
class PartnerFound:
    """The dialog to replace is a leg of another call of the account."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerMissing:
    """The dialog to replace is no leg of any other call of the account."""


@dataclass(frozen=True, slots=True)
class JoinRequested:
    """Another call asks for the party that hears a leg of ours; that leg is to be given up."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerReady:
    """The other call has given up its leg: this party of it is to be joined with ours."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerRefused:
    """The other call cannot be joined now."""


@dataclass(frozen=True, slots=True)
class PartnerDigit:
    """The party of the call that this one is joined with pressed a key; see ``DigitReceived``."""

    digit: str
    duration_ms: int
    in_band: bool


@dataclass(frozen=True, slots=True)
class PartnerGone:
    """The call that this one is joined with is over."""
