"""Masking sessions: two parties who reach each other by one masked number, until the session is over."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any, Final, Literal

from callcontrol.clock import timestamp
from callcontrol.masking.calls import local_number

SessionStatus = Literal["active", "expired", "closed"]

DEFAULT_EXPIRY_S: Final = 86_400
MIN_EXPIRY_S: Final = 60
MAX_EXPIRY_S: Final = 31_536_000
"""A year: a mapping that is never ended blocks its number for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingSession:
    """
    Two parties and their masked number, all in E.164.

    ``call_time_limit_s`` applies to each call and counts from its answer, None for no limit; ``record`` is
    None for the account's setting. ``ended`` and ``ended_at`` belong to a session that was closed, or that
    was found to have expired.
    """

    session_id: str
    account_sid: str
    party_a: str
    party_b: str
    masked_number: str
    expires_at: datetime
    created_at: datetime
    updated_at: datetime
    call_time_limit_s: int | None = None
    record: bool | None = None
    geo_match: bool = False
    ended: Literal["closed", "expired"] | None = None
    ended_at: datetime | None = None

    def status_at(self, now: datetime) -> SessionStatus:
        """The status at a time; a session past its expiry is expired even if this is not recorded yet."""
        if self.ended is not None:
            return self.ended
        return "active" if now < self.expires_at else "expired"

    def peer_of(self, party: str) -> str:
        """The party that is reached by a party of the session."""
        return self.party_b if party == self.party_a else self.party_a

    @property
    def mappings(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Pairs of caller and callee, both ways."""
        return (self.party_a, self.party_b), (self.party_b, self.party_a)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """A request for a session; numbers are in E.164, and without a masked number one is chosen."""

    party_a: str
    party_b: str
    masked_number: str | None = None
    expires_in_s: int = DEFAULT_EXPIRY_S
    call_time_limit_s: int | None = None
    record: bool | None = None
    geo_match: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Filter of a list of sessions; numbers are in E.164."""

    status: SessionStatus | None = None
    party: str | None = None
    masked_number: str | None = None


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """Number of sessions created in a period, number of them that are active now, and of their mappings."""

    total: int
    active: int
    mappings: int


def choose(pool: Sequence[str], taken: set[str], party_a: str, *, geo_match: bool) -> str | None:
    """
    Choose the masked number for two parties; None when every number has a mapping of either already.

    ``pool`` is in the order of preference. ``geo_match`` prefers the number that shares most leading digits
    with that of the first party: numbers of one region begin alike.
    """
    free = [number for number in pool if number not in taken]
    if geo_match and free:
        return max(free, key=lambda number: _digits_in_common(number, party_a))
    return free[0] if free else None


def _digits_in_common(one: str, two: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def session_object(session: MaskingSession, now: datetime) -> dict[str, Any]:
    """A session as a JSON object."""
    status = session.status_at(now)
    ended_at = {"active": None, "expired": session.expires_at, "closed": session.ended_at}[status]
    return {
        "session_id": session.session_id,
        "status": status,
        "masked_number": session.masked_number,
        "party_a": local_number(session.party_a),
        "party_b": local_number(session.party_b),
        "mappings": [
            {"caller_number": caller, "masked_number": session.masked_number, "target_number": target}
            for caller, target in session.mappings
        ],
        "call_time_limit_sec": session.call_time_limit_s,
        "record": session.record,
        "geo_match": session.geo_match,
        "expires_at": timestamp(session.expires_at),
        "ended_at": timestamp(ended_at),
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
    }
