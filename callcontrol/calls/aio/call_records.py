"""Service that reads call logs."""

from datetime import timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.calls.records.logs import CallLog, CallLogFilter
from callcontrol.calls.records.store import lists as call_lists
from callcontrol.calls.records.store import logs as call_logs
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Writer
from callcontrol.models import Page

__all__ = ["CallLogService"]

# No call lasts longer: older calls are over, and their gateway and answer no longer change.
_SETTLED_AFTER: Final = timedelta(hours=5)


class CallLogService:
    """Call logs of accounts."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._pager = Pager(call_lists.LISTING)

    async def list(
        self, account_sid: str, query: CallLogFilter, page: int = 1, per_page: int = 20
    ) -> Page[CallLog]:
        """Call logs of the account, newest first; queued state is written first."""
        await self._writer.catch_up()
        narrowed = (account_sid, query.direction, query.answered, query.carrier_sid, query.text)
        wanted = ListQuery(
            narrowed, call_logs.conditions(account_sid, query), query.start, query.end, _SETTLED_AFTER
        )

        def read(connection: Connection) -> Page[CallLog]:
            stretch = self._pager.page(connection, wanted, page=page, per_page=per_page)
            found = call_logs.by_sids(connection, [place.identifier for place in stretch.places])
            return Page(found, stretch.total, page, per_page)

        return await self._database.read(read)
