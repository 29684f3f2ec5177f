"""
Usage of tools, counted in memory and written in batches.

A kill loses the counts of the last tenth of a second: billing does not use them.
"""

import logging
from datetime import timedelta
from functools import partial
from typing import Final

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.writer import Writer
from callcontrol.models import Principal
from callcontrol.tools.store import usage as tool_usage
from callcontrol.tools.usage import KEPT_DAYS, MAX_USAGE_ROWS, Usage, UsageFilter, UsageKey

log = logging.getLogger(__name__)

_FORGOTTEN_AT_ONCE: Final = 200


class UsageStore:
    """Counts the use of the tools of accounts. Attach it to one writer."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._counted: dict[UsageKey, Usage] = {}
        self._taken: dict[UsageKey, Usage] = {}
        writer.attach(self)

    def count(self, principal: Principal, tool: str, *, failed: bool, duration_ms: int) -> None:
        """Count one use of a tool."""
        key = UsageKey(principal.account_sid, utc_now().date().isoformat(), tool, principal.key_id)
        self._add(key, Usage(1, int(failed), duration_ms, duration_ms))
        self._writer.schedule_flush(self)

    async def of_account(
        self, account_sid: str, wanted: UsageFilter
    ) -> tuple[list[tuple[UsageKey, Usage]], bool]:
        """The usage of an account, newest day first; and True if there is more than is returned."""
        await self._writer.flush_pending()
        rows = await self._database.read(
            partial(tool_usage.of_account, account_sid=account_sid, wanted=wanted, limit=MAX_USAGE_ROWS + 1)
        )
        return rows[:MAX_USAGE_ROWS], len(rows) > MAX_USAGE_ROWS

    async def forget(self) -> int:
        """Delete expired days; return the number of rows."""
        before = (utc_now() - timedelta(days=KEPT_DAYS)).date().isoformat()
        total = 0
        while True:
            gone = await self._writer.commit(
                partial(tool_usage.forget, before_day=before, limit=_FORGOTTEN_AT_ONCE)
            )
            total += gone
            if gone < _FORGOTTEN_AT_ONCE:
                return total

    # The writer calls these four when it assembles a transaction and when that has ended.

    def drain(self) -> Operation[None] | None:
        """An operation that adds the counts since the last time; None if there are none."""
        self._taken, self._counted = self._counted, {}
        return partial(tool_usage.add, counted=self._taken) if self._taken else None

    def written(self, result: None) -> None:
        """Drop the counts, which are durable now."""
        self._taken = {}

    def restore(self) -> None:
        """Add the counts again that ``take`` returned."""
        for key, usage in self._taken.items():
            self._add(key, usage)
        self._taken = {}

    def rejected(self, error: Exception) -> None:
        """Drop counts that cannot be stored: a retry would fail again, and no caller waits for them."""
        log.error("%d usage counts of tools are lost: %s", len(self._taken), type(error).__name__)
        self._taken = {}

    def _add(self, key: UsageKey, usage: Usage) -> None:
        self._counted[key] = self._counted.get(key, Usage()) + usage
