"""Reads call logs."""

from callcontrol.aio.database import Database
from callcontrol.aio.writer import Writer
from callcontrol.call_logs import CallLog, CallLogFilter
from callcontrol.models import Page
from callcontrol.store.repositories import call_logs

__all__ = ["CallLogService"]


class CallLogService:
    """Call logs of accounts."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def list(
        self, account_sid: str, query: CallLogFilter, page: int = 1, per_page: int = 20
    ) -> Page[CallLog]:
        """Call logs of the account, newest first; state that still waits to be written is written first."""
        await self._writer.catch_up()
        found, total = await self._database.read(
            lambda connection: call_logs.page(
                connection, account_sid, query, offset=(page - 1) * per_page, limit=per_page
            )
        )
        return Page(found, total, page, per_page)
