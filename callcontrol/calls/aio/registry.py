"""Registry of active calls: other calls find them here, to join two calls or to replace a party."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from callcontrol.calls.events import Event
from callcontrol.calls.events.transfers import PartnerGone
from callcontrol.ids import CallSid, LegId
from callcontrol.models import CallRecord
from sip import Replaces
from sip.aio import Session, UserAgent

if TYPE_CHECKING:
    from callcontrol.calls.aio.runner import CallRunner

LegRef = tuple[CallSid, LegId]
"""A session's call and leg. The sessions of calls keep it as their `data`."""


class CallRegistry:
    """All ``calls`` of the process by their identifiers, and which of them are joined."""

    def __init__(self, user_agent: UserAgent, calls: "Mapping[CallSid, CallRunner]") -> None:
        self._user_agent: Final = user_agent
        self._calls: Final = calls
        self._partners: dict[CallSid, CallSid] = {}

    def leave(self, call_sid: CallSid) -> None:
        """Notify the call that an ended call is joined with."""
        partner = self._partners.pop(call_sid, None)
        if partner is not None and self._partners.pop(partner, None) == call_sid:
            self.post(partner, PartnerGone())

    def find(self, replaces: Replaces, asking: CallRecord) -> LegRef | None:
        """
        Find the leg of another call of the same account by its dialog; None when there is none.

        The trunk of that leg must have the right to transfer, too.
        """
        session = self._user_agent.session_of(replaces)
        leg_ref = leg_ref_of(session)
        if session is None or leg_ref is None or not session.allows_refer or leg_ref[0] == asking.call_sid:
            return None
        call = self.get(leg_ref[0])
        return leg_ref if call is not None and call.record.account_sid == asking.account_sid else None

    def get(self, call_sid: CallSid) -> "CallRunner | None":
        """Return a call; None after its end."""
        call = self._calls.get(call_sid)
        return None if call is None or call.over else call

    def join(self, one: CallSid, other: CallSid) -> bool:
        """Record that two calls are joined; False when one of them has ended, or is joined already."""
        if self.get(one) is None or self.get(other) is None or {one, other} & self._partners.keys():
            return False
        self._partners[one], self._partners[other] = other, one
        return True

    def unjoin(self, one: CallSid, other: CallSid) -> None:
        """Revert a `join` that failed."""
        if self._partners.get(one) == other:
            del self._partners[one], self._partners[other]

    def post_to_partner(self, call_sid: CallSid, event: Event) -> None:
        """Post an event to the call that a call is joined with, if any."""
        partner = self._partners.get(call_sid)
        if partner is not None:
            self.post(partner, event)

    def post(self, call_sid: CallSid, event: Event) -> bool:
        """Post an event to a call; False when it has ended."""
        call = self.get(call_sid)
        if call is not None:
            call.post(event)
        return call is not None


def leg_ref_of(session: Session | None) -> LegRef | None:
    """Return the call and leg of a session; None when it belongs to no call."""
    if session is None or not isinstance(session.data, tuple):
        return None
    call_sid, leg = session.data
    return call_sid, leg
