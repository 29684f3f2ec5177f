"""Taking part in conferences."""

from dataclasses import dataclass

from callcontrol.calls.conference_room import MemberTerms
from callcontrol.ids import LegId


@dataclass(frozen=True, slots=True)
class EnterConference:
    """
    Let a leg take part in a conference of the account, unless so many are there already.

    ``ConferenceEntered`` or ``ConferenceRefused`` follows, later ``ConferenceBegan`` to one that waits, and
    ``ConferenceOver`` when it is over for all.
    """

    leg: LegId
    name: str
    terms: MemberTerms
    max_members: int


@dataclass(frozen=True, slots=True)
class LeaveConference:
    """Take a leg out of its conference, if it is in one."""

    leg: LegId
