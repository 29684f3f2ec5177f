"""
Pages of long lists, with an exact total that is counted incrementally.

Rows older than a while no longer change: they are counted once, and for the next page only newer rows are
counted. The counts of the most recently counted lists are kept in memory.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.listing import Condition, Listing
from callcontrol.database.statements import to_micros, to_micros_or_none
from callcontrol.models import Page, Position

T = TypeVar("T")

_KEPT_LISTS: Final = 1000
_KEPT_FOR: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """
    Query of a list.

    Attributes:
        key: Identity of the list: the account and the filter.
        conditions: Conditions of its rows, without those on time.
        start, end: Time range; ``end`` is exclusive.
        settled_after: Age beyond which no rows are added or removed.
    """

    key: Hashable
    conditions: Sequence[Condition]
    start: datetime | None
    end: datetime | None
    settled_after: timedelta


@dataclass(frozen=True, slots=True)
class _Counted:
    """Number of rows of a list older than ``before_micros``, counted at ``at``."""

    number: int
    before_micros: int
    at: datetime


class Pager:
    """Reads parts of one listing; its methods run inside a database operation, on any thread."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._counted: OrderedDict[Hashable, _Counted] = OrderedDict()

    def page(
        self,
        connection: Connection,
        query: ListQuery,
        rows: Callable[[Connection, Sequence[str]], list[T]],
        *,
        page: int,
        per_page: int,
        after: Position | None = None,
    ) -> Page[T]:
        """Read a page by its number, from 1, or the one after a position; ``rows`` reads by identifiers."""
        total = self.count(connection, query)
        conditions, limit = self._all(query), per_page + 1
        if after is None:
            offset = (page - 1) * per_page
            found = self._listing.page(connection, conditions, offset=offset, limit=limit, total=total)
        else:
            found = self._listing.after(connection, conditions, after, limit=limit)
        places = found[:per_page]
        items = rows(connection, [place.identifier for place in places])
        return Page(items, total, page, per_page, places[-1] if len(found) > per_page else None)

    def count(self, connection: Connection, query: ListQuery) -> int:
        """Exact number of rows of the list."""
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
        # A count from the future predates a clock set back; rows may have been added since.
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
