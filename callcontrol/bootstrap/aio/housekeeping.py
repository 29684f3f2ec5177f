"""Deletion of expired rows in small transactions, while calls run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from callcontrol.aio.tasks import ended
from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.idempotency import IdempotencyStore
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import DomainError
from callcontrol.webhooks.store import deliveries

log = logging.getLogger(__name__)

WEBHOOKS_KEPT: Final = timedelta(days=30)

# Let the start finish first.
_FIRST_S: Final = 60.0
_EVERY_S: Final = 3600.0
_ROWS: Final = 200
# Background deletions leave most of the writer's time to calls.
_PAUSE_S: Final = 0.02


class Housekeeper:
    """
    Deletes old webhook deliveries and idempotency keys, a minute after the start and then every hour.

    ``others`` are deletions of other services with the same schedule.

    A pending delivery stays a week longer. On SQLite, transactions run on the event loop, so each deletes at
    most 200 rows.
    """

    def __init__(
        self,
        writer: Writer,
        idempotency: IdempotencyStore,
        others: Sequence[Callable[[], Awaitable[int]]],
        webhooks_kept: timedelta = WEBHOOKS_KEPT,
    ) -> None:
        self._writer = writer
        self._idempotency = idempotency
        self._others = list(others)
        self._webhooks_kept = webhooks_kept
        self._task: asyncio.Task[None] | None = None

    def also(self, other: Callable[[], Awaitable[int]]) -> None:
        """Add the deletion of another service."""
        self._others.append(other)

    def start(self) -> None:
        """Start the task."""
        self._task = asyncio.create_task(self._run(), name="database-housekeeping")

    async def close(self) -> None:
        """Stop the task, if it was started."""
        await ended(self._task)
        self._task = None

    async def clean(self) -> None:
        """
        Delete expired rows.

        Raises:
            ServiceUnavailable: The database is failing; the remaining rows are deleted next time.
        """
        keys = await self._purge_keys()
        rows = await self._purge_deliveries()
        for other in self._others:
            await other()
        if keys or rows:
            log.info("deleted %d expired idempotency keys and %d expired webhook deliveries", keys, rows)

    async def _purge_keys(self) -> int:
        total = 0
        while True:
            gone = await self._idempotency.purge(_ROWS)
            total += gone
            if gone < _ROWS:
                return total
            await asyncio.sleep(_PAUSE_S)

    async def _purge_deliveries(self) -> int:
        before = utc_now() - self._webhooks_kept
        total, place = 0, 0
        while True:
            gone, following = await self._writer.commit(
                partial(deliveries.purge, before=before, place=place, limit=_ROWS)
            )
            total += gone
            if following is None:
                return total
            place = following
            await asyncio.sleep(_PAUSE_S)

    async def _run(self) -> None:
        await asyncio.sleep(_FIRST_S)
        while True:
            try:
                await self.clean()
            except DomainError as error:
                log.warning("expired rows could not be deleted: %s", error)
            await asyncio.sleep(_EVERY_S)
