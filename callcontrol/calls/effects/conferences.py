"""Effects on conferences."""

from dataclasses import dataclass

from callcontrol.calls.conference_room import MemberTerms
from callcontrol.ids import LegId


@dataclass(frozen=True, slots=True)
class EnterConference:
    """
    Add a leg to a conference of the account, unless it has ``max_members`` already.

    ``ConferenceEntered`` or ``ConferenceRefused`` follows, later ``ConferenceBegan`` for a leg that waits,
    and ``ConferenceOver`` when the conference is over for all.
    """

    leg: LegId
    name: str
    terms: MemberTerms
    max_members: int


@dataclass(frozen=True, slots=True)
class LeaveConference:
    """Remove a leg from its conference, if it is in one."""

    leg: LegId
