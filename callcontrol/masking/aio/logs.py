"""Reads lists and statistics of masked calls."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.records.store import calls
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Writer
from callcontrol.masking.logs import MaskedCallFilter, MaskingStats, period_of
from callcontrol.masking.store import calls as masked_calls
from callcontrol.masking.store import sessions as masking_sessions
from callcontrol.models import CallRecord, Page

# A call is routed within seconds of its creation; its outcome is known when the longest call has ended.
_ROUTED_AFTER: Final = timedelta(minutes=10)
_ENDED_AFTER: Final = timedelta(hours=5)


class MaskingLogs:
    """
    Masked calls of accounts, listed and counted.

    Reads include all earlier changes: pending state is written first.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._pager = Pager(masked_calls.LISTING)

    async def list(
        self, account_sid: str, query: MaskedCallFilter, page: int = 1, per_page: int = 20
    ) -> Page[CallRecord]:
        """Masked calls of the account, newest first."""
        await self._writer.flush_pending()
        wanted = ListQuery(
            (account_sid, replace(query, start=None, end=None)),
            masked_calls.conditions(account_sid, query),
            query.start,
            query.end,
            _ENDED_AFTER if query.status else _ROUTED_AFTER,
        )

        return await self._database.read(
            lambda connection: self._pager.page(
                connection, wanted, calls.by_sids, page=page, per_page=per_page
            )
        )

    async def stats(self, account_sid: str, start: datetime | None, end: datetime | None) -> MaskingStats:
        """
        The use of masking from ``start`` on and before ``end``; see ``period_of`` for the defaults.

        Raises:
            ValidationFailed: It would end before it begins.
        """
        now = utc_now()
        since, until = period_of(start, end, now)
        await self._writer.flush_pending()
        return await self._database.read(
            lambda connection: MaskingStats(
                start=since,
                end=until,
                calls=masked_calls.counts(connection, account_sid, since, until),
                sessions=masking_sessions.counts(connection, account_sid, since, until, now),
            )
        )
