"""Registry of active calls: other calls find them here, to join two calls or to replace a party."""

from typing import Final, Protocol

from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.events import Event, PartnerGone
from callcontrol.ids import CallSid, LegId
from callcontrol.models import CallRecord
from sip import Replaces
from sip.aio import Session, UserAgent

__all__ = ["Member", "Place", "Switchboard"]

Place = tuple[CallSid, LegId]
"""Position of a session: its call and its leg there. The sessions of calls keep it as their `data`."""


class Member(Protocol):
    """A call, as seen by other calls."""

    record: CallRecord

    @property
    def media(self) -> MediaLegs:
        """Media of its legs."""

    def post(self, event: Event) -> None:
        """Put an event in its queue."""


class Switchboard:
    """All calls of the process by their identifiers, and which of them are joined."""

    def __init__(self, user_agent: UserAgent) -> None:
        self._user_agent: Final = user_agent
        self._members: dict[CallSid, Member] = {}
        self._partners: dict[CallSid, CallSid] = {}

    def enter(self, member: Member) -> None:
        """Register a call."""
        self._members[member.record.call_sid] = member

    def leave(self, call_sid: CallSid) -> None:
        """Remove an ended call and notify the call that it is joined with."""
        self._members.pop(call_sid, None)
        partner = self._partners.pop(call_sid, None)
        if partner is not None and self._partners.pop(partner, None) == call_sid:
            self.post(partner, PartnerGone())

    def find(self, replaces: Replaces, seeker: CallRecord) -> Place | None:
        """
        Find the leg of another call of the same account by its dialog; None when there is none.

        The trunk of that leg must have the right to transfer, too.
        """
        session = self._user_agent.session_of(replaces)
        place = place_of(session)
        if session is None or place is None or not session.allows_refer or place[0] == seeker.call_sid:
            return None
        member = self._members.get(place[0])
        return place if member is not None and member.record.account_sid == seeker.account_sid else None

    def member(self, call_sid: CallSid) -> Member | None:
        """Return a call; None after its end."""
        return self._members.get(call_sid)

    def pair(self, one: CallSid, other: CallSid) -> bool:
        """Record that two calls are joined; False when one of them has ended, or is joined already."""
        if not {one, other} <= self._members.keys() or {one, other} & self._partners.keys():
            return False
        self._partners[one], self._partners[other] = other, one
        return True

    def part(self, one: CallSid, other: CallSid) -> None:
        """Revert a `pair` whose join failed."""
        if self._partners.get(one) == other:
            del self._partners[one], self._partners[other]

    def tell_partner(self, call_sid: CallSid, event: Event) -> None:
        """Post an event to the call that a call is joined with, if any."""
        partner = self._partners.get(call_sid)
        if partner is not None:
            self.post(partner, event)

    def post(self, call_sid: CallSid, event: Event) -> bool:
        """Post an event to a call; False when it has ended."""
        member = self._members.get(call_sid)
        if member is not None:
            member.post(event)
        return member is not None


def place_of(session: Session | None) -> Place | None:
    """Return the call and leg of a session; None when it belongs to no call."""
    if session is None or not isinstance(session.data, tuple):
        return None
    call_sid, leg = session.data
    return call_sid, leg
