"""
Pages of long lists, with a total that is exact and need not be counted anew each time.

What is older than a while does not change any more: it was counted once, and for the next page only what
came since is counted. The count is kept in memory, for the lists that were counted last.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.listing import Condition, Listing
from callcontrol.database.values import to_micros, to_micros_or_none
from callcontrol.models import Position

_KEPT_LISTS: Final = 1000
_KEPT_FOR: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """
    A list as it is asked for.

    Attributes:
        key: What tells this list from others: the account and the filter.
        conditions: What its rows meet, but for their time.
        start, end: The time, ``end`` being exclusive.
        settled_after: The age from which on rows neither come nor go.
    """

    key: Hashable
    conditions: Sequence[Condition]
    start: datetime | None
    end: datetime | None
    settled_after: timedelta


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a list: the places of its rows, how long the list is, and where it goes on."""

    places: list[Position]
    total: int
    after: Position | None


@dataclass(frozen=True, slots=True)
class _Counted:
    """How many rows of a list are older than a moment; counted at another."""

    number: int
    before_micros: int
    at: datetime


class Pager:
    """Reads stretches of one listing; its methods run inside a database operation, on any thread."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._counted: OrderedDict[Hashable, _Counted] = OrderedDict()

    def page(self, connection: Connection, query: ListQuery, *, page: int, per_page: int) -> Stretch:
        """A page by its number, from 1."""
        total = self.count(connection, query)
        offset = (page - 1) * per_page
        conditions = self._all(query)
        found = self._listing.page(connection, conditions, offset=offset, limit=per_page + 1, total=total)
        places = found[:per_page]
        return Stretch(places, total, places[-1] if len(found) > per_page else None)

    def after(self, connection: Connection, query: ListQuery, place: Position, *, per_page: int) -> Stretch:
        """What follows a place."""
        total = self.count(connection, query)
        found = self._listing.after(connection, self._all(query), place, limit=per_page + 1)
        places = found[:per_page]
        return Stretch(places, total, places[-1] if len(found) > per_page else None)

    def count(self, connection: Connection, query: ListQuery) -> int:
        """How many rows the list has, exactly."""
        start, end = to_micros_or_none(query.start), to_micros_or_none(query.end)
        known = self._settled(connection, query, utc_now())
        if end is not None and end <= known.before_micros:
            return known.number
        since = known.before_micros if start is None else max(start, known.before_micros)
        recent = [*query.conditions, *self._listing.between(since, end)]
        return known.number + self._listing.count(connection, recent)

    def _settled(self, connection: Connection, query: ListQuery, now: datetime) -> _Counted:
        key = (query.key, query.start, query.end)
        known = self._counted.get(key)
        # One that was made later than now is of before the clock was set back; rows may have come since.
        if known is None or not known.at <= now <= known.at + _KEPT_FOR:
            settled = to_micros(now - query.settled_after)
            before = settled if query.end is None else min(settled, to_micros(query.end))
            span = self._listing.between(to_micros_or_none(query.start), before)
            known = _Counted(self._listing.count(connection, [*query.conditions, *span]), before, now)
            self._counted[key] = known
            while len(self._counted) > _KEPT_LISTS:
                self._counted.popitem(last=False)
        return known

    def _all(self, query: ListQuery) -> list[Condition]:
        span = self._listing.between(to_micros_or_none(query.start), to_micros_or_none(query.end))
        return [*query.conditions, *span]
