"""
Polls the network for every template that is due, in one process at a time.

The work of a killed process is due again when its lease expires, and any process may take it over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import ended, woken
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import DomainError
from callcontrol.messaging.aio.template_reviews import LEASE, Clock, TemplateReviews
from callcontrol.messaging.store import templates

__all__ = ["TemplatePoller"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_AT_ONCE: Final = 50
_SHORTEST_S: Final = 0.05
_LONGEST_S: Final = 30.0
_AFTER_FAILURE_S: Final = 5.0


class TemplatePoller:
    """Asks the network about all templates that are due."""

    def __init__(self, database: Database, writer: Writer, reviews: TemplateReviews, clock: Clock) -> None:
        self._clock = clock
        self._database = database
        self._writer = writer
        self._reviews = reviews
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start, with the templates that are due already."""
        self._task = asyncio.create_task(self._keep_running(), name="template-poller")

    async def close(self) -> None:
        """Stop; the next start takes over the work under way."""
        await ended(self._task)
        self._task = None

    def wake(self) -> None:
        """Look for due templates now: a new one may be due before all others."""
        self._wake.set()

    async def run(self) -> timedelta | None:
        """
        Ask about all due templates; return the time until the next is due, None when none is.

        Raises:
            ServiceUnavailable: The database is failing.
        """
        now = self._clock()
        while (due := await self._database.read(templates.next_due)) is not None and due <= now:
            await self._handle(now, templates.claim_due, self._reviews.submit_or_check)
            await self._handle(now, templates.claim_withdrawals, self._reviews.withdraw)
        return None if due is None else due - now

    async def _handle(
        self, now: datetime, claim: Callable[..., Sequence[T]], process: Callable[[T], Awaitable[None]]
    ) -> None:
        def take(connection: Connection) -> Sequence[T]:
            return claim(connection, now, until=now + LEASE, limit=_AT_ONCE)

        claimed = await self._writer.commit(take)
        await asyncio.gather(*(process(item) for item in claimed))

    async def _keep_running(self) -> None:
        while True:
            self._wake.clear()
            wait_s = _AFTER_FAILURE_S
            try:
                wait = await self.run()
                wait_s = _LONGEST_S if wait is None else wait.total_seconds()
            except DomainError as error:
                log.warning("templates could not be polled, trying again: %s", error)
            except Exception:
                # A defect that one template triggers must not keep all others from being polled.
                log.exception("polling templates failed")
            await woken(self._wake, min(max(wait_s, _SHORTEST_S), _LONGEST_S))
