"""A conference as those decide about it who are in it: when it begins, and when it is over."""

from dataclasses import dataclass
from typing import Final

MAX_MEMBERS: Final = 40
"""As many as may hear each other in one conference, whatever its members say."""


@dataclass(frozen=True, slots=True)
class MemberTerms:
    """
    On what terms somebody takes part.

    It is heard unless ``muted``. The conference begins when somebody is there who ``starts`` it, and is over
    when somebody leaves who ``ends`` it. The others hear it come and go when it ``beeps``.
    """

    muted: bool = False
    starts: bool = True
    ends: bool = False
    beeps: bool = True


@dataclass(frozen=True, slots=True)
class Entered:
    """What came of it that somebody entered: whether it has to wait, and who waits no longer."""

    waits: bool
    freed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """What came of it that somebody left: whose time is over with it, and whether nobody is there."""

    dismissed: tuple[str, ...] = ()
    empty: bool = False


class ConferenceRoom:
    """One conference. Members are known by names that nobody else has."""

    def __init__(self) -> None:
        self._members: dict[str, MemberTerms] = {}
        self.begun = False

    @property
    def members(self) -> tuple[str, ...]:
        """Who is there, in the order in which they came."""
        return tuple(self._members)

    def has_room(self, max_members: int) -> bool:
        """Whether one more may enter, by whose reckoning so many may be there."""
        return len(self._members) < min(max_members, MAX_MEMBERS)

    def enter(self, member: str, terms: MemberTerms) -> Entered:
        """Let somebody in."""
        waiting = () if self.begun else self.members
        self._members[member] = terms
        self.begun = self.begun or terms.starts
        return Entered(not self.begun, waiting if self.begun else ())

    def leave(self, member: str, *, took_part: bool = True) -> Left:
        """Let somebody go, who ends nothing if it never took part; harmless when it is not there."""
        terms = self._members.pop(member, None)
        over = terms is not None and terms.ends and self.begun and took_part
        dismissed = self.members if over else ()
        if over:
            self._members.clear()
        return Left(dismissed, not self._members)
