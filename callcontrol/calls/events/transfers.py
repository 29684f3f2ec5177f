"""Transfers requested by parties, and joined calls."""

from dataclasses import dataclass

from callcontrol.ids import CallSid, LegId
from sip import Replaces, SipUri


@dataclass(frozen=True, slots=True)
class TransferRequested:
    """
    A party's REFER: connect the other party elsewhere.

    ``local`` says that the target names a host of ours; ``replaces`` is the dialog to replace.
    """

    leg: LegId
    target: SipUri
    replaces: Replaces | None = None
    local: bool = False


@dataclass(frozen=True, slots=True)
class LegReferred:
    """NOTIFY progress of a REFER we sent; a final status is the last one."""

    leg: LegId
    status: int


@dataclass(frozen=True, slots=True)
class ReplacementCalled:
    """A caller asks to replace a leg (INVITE with Replaces); it waits under ``token``."""

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
    """Another call asks for the peer of a leg of ours; that leg is to be dropped."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerReady:
    """The other call has dropped its leg: this party of it is to be linked with ours."""

    call_sid: CallSid
    leg: LegId


@dataclass(frozen=True, slots=True)
class PartnerRefused:
    """The other call cannot be joined now."""


@dataclass(frozen=True, slots=True)
class PartnerDigit:
    """The party of the joined call pressed a key; see ``DigitReceived``."""

    digit: str
    duration_ms: int
    in_band: bool


@dataclass(frozen=True, slots=True)
class PartnerGone:
    """The joined call has ended."""
