"""Lists of calls: SQL conditions of each filter, in a form that the indexes support."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from callcontrol.database.listing import Condition, Listing
from callcontrol.database.tables import calls
from callcontrol.models import CallFilter

LISTING: Final = Listing(calls.c.created_at, calls.c.call_sid)


def conditions(account_sid: str, query: CallFilter) -> Sequence[Condition]:
    """Return the conditions of a list of calls, except for its time."""
    mine = calls.c.account_sid == account_sid
    equal = {
        calls.c.direction: query.direction,
        calls.c.from_number: query.from_,
        calls.c.to_number: query.to,
    }
    wanted = {column: value for column, value in equal.items() if value is not None}
    if query.status is None or query.status.ended:
        found = [mine, *(column == value for column, value in wanted.items())]
        if query.status is not None:
            found.append(calls.c.outcome == query.status.value)
        return found
    # Active calls are few and have an index of their own. The other columns are wrapped, so that no planner
    # chooses one of the long indexes for them.
    return [
        mine,
        calls.c.ended_at.is_(None),
        calls.c.status == query.status.value,
        *(sa.func.coalesce(column, "") == value for column, value in wanted.items()),
    ]
