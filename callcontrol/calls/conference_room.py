"""Membership of a conference: decides when it begins and when it is over."""

from dataclasses import dataclass
from typing import Final

MAX_MEMBERS: Final = 40
"""Upper limit of members in one conference, whatever its members request."""


@dataclass(frozen=True, slots=True)
class MemberTerms:
    """
    Terms of one member.

    The member is heard unless ``muted``. The conference begins when a member with ``starts`` joins, and is
    over when a member with ``ends`` leaves. The others hear a beep when a member with ``beeps`` comes or
    goes.
    """

    muted: bool = False
    starts: bool = True
    ends: bool = False
    beeps: bool = True


@dataclass(frozen=True, slots=True)
class Entered:
    """Result of joining: ``waits`` for the beginning; ``freed`` are members that no longer wait."""

    waits: bool
    freed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """Result of leaving: ``dismissed`` are members that leave as well; ``empty`` when nobody remains."""

    dismissed: tuple[str, ...] = ()
    empty: bool = False


class ConferenceRoom:
    """One conference. Members are identified by unique names."""

    def __init__(self) -> None:
        self._members: dict[str, MemberTerms] = {}
        self.begun = False

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, in the order of joining."""
        return tuple(self._members)

    def has_room(self, max_members: int) -> bool:
        """True when one more member may join, with ``max_members`` and ``MAX_MEMBERS`` as limits."""
        return len(self._members) < min(max_members, MAX_MEMBERS)

    def enter(self, member: str, terms: MemberTerms) -> Entered:
        """Add a member."""
        waiting = () if self.begun else self.members
        self._members[member] = terms
        self.begun = self.begun or terms.starts
        return Entered(not self.begun, waiting if self.begun else ())

    def leave(self, member: str, *, took_part: bool = True) -> Left:
        """Remove a member, which ends nothing if it never took part; harmless when it is absent."""
        terms = self._members.pop(member, None)
        over = terms is not None and terms.ends and self.begun and took_part
        dismissed = self.members if over else ()
        if over:
            self._members.clear()
        return Left(dismissed, not self._members)
