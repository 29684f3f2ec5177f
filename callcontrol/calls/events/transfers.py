"""Transfers requested by parties, and joined calls."""

from callcontrol.calls.events import Event
from callcontrol.ids import CallSid, LegId
from sip import Replaces, SipUri
from sip.values import frozen


@frozen
class TransferRequested(Event):
    """
    A party's REFER: connect the other party elsewhere.

    ``local`` says that the target names a host of ours; ``replaces`` is the dialog to replace.
    """

    leg: LegId
    target: SipUri
    replaces: Replaces | None = None
    local: bool = False


@frozen
class LegReferred(Event):
    """NOTIFY progress of a REFER we sent; a final status is the last one."""

    leg: LegId
    status: int


@frozen
class ReplacementCalled(Event):
    """A caller asks to replace a leg (INVITE with Replaces); it waits under ``token``."""

    leg: LegId
    token: int
    caller: str = ""


@frozen
class PartnerFound(Event):
    """The dialog to replace is a leg of another call of the account."""

    call_sid: CallSid
    leg: LegId


@frozen
class PartnerMissing(Event):
    """The dialog to replace is no leg of any other call of the account."""


@frozen
class JoinRequested(Event):
    """Another call asks for the peer of a leg of ours; that leg is to be dropped."""

    call_sid: CallSid
    leg: LegId


@frozen
class PartnerReady(Event):
    """The other call has dropped its leg: this party of it is to be linked with ours."""

    call_sid: CallSid
    leg: LegId


@frozen
class PartnerRefused(Event):
    """The other call cannot be joined now."""


@frozen
class PartnerDigit(Event):
    """The party of the joined call pressed a key; see ``DigitReceived``."""

    digit: str
    duration_ms: int
    in_band: bool


@frozen
class PartnerGone(Event):
    """The joined call has ended."""
