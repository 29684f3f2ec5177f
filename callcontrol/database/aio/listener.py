"""Listener for the notifications of other servers on a PostgreSQL database."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callcontrol.aio.tasks import ended
from callcontrol.database.notifications import CHANNEL

if TYPE_CHECKING:
    from callcontrol.database.aio.postgres import Postgres

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """
    Times of the listener.

    Attributes:
        first_retry_s: Pause after a lost connection; each further one is twice as long.
        last_retry_s: Longest pause.
        probe_every_s: Pause between two tests of a silent connection.
    """

    first_retry_s: float = 0.1
    last_retry_s: float = 2.0
    probe_every_s: float = 10.0


class Listener:
    """
    Hears of changes on a connection of its own, until it is closed.

    Without PostgreSQL nobody else makes changes, and nothing is done.

    Args:
        heard: Called with the value of a notification, by its topic.
        missed: Called when notifications may have been missed: the connection is lost, or there again.

    Attributes:
        connected: True while notifications are heard.
        notifications: Number of notifications heard, by topic.
    """

    def __init__(
        self,
        database: "Postgres | None",
        heard: Mapping[str, Callable[[str], None]],
        missed: Callable[[], None],
        settings: ListenerSettings | None = None,
    ) -> None:
        self.connected = False
        self.notifications: Counter[str] = Counter(dict.fromkeys(heard, 0))
        self._database = database
        self._heard = heard
        self._missed = missed
        self._settings = settings or ListenerSettings()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start listening; the first connection is made beside the caller."""
        if self._database is not None:
            self._task = asyncio.create_task(self._run(self._database), name="listener")

    async def close(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        await ended(task)

    async def _run(self, database: "Postgres") -> None:
        pause_s = self._settings.first_retry_s
        told = False
        while True:
            try:
                await self._listen(database)
            except Exception as error:  # Whatever the driver raises: changes are polled meanwhile.
                if self.connected or not told:
                    log.warning(
                        "changes of other servers are not notified; they are polled: %s",
                        str(error) or type(error).__name__,
                    )
                    told = True
                if self.connected:
                    pause_s = self._settings.first_retry_s
            finally:
                self.connected = False
            self._missed()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._settings.last_retry_s)

    async def _listen(self, database: "Postgres") -> None:
        """Listen until the connection is lost, which an error says."""
        async with database.listening(CHANNEL, self._note) as listening:
            self.connected = True
            # What was committed before the server listened is looked up.
            self._missed()
            while True:
                try:
                    async with asyncio.timeout(self._settings.probe_every_s):
                        await listening.lost.wait()
                except TimeoutError:
                    await listening.probe()
                else:
                    raise ConnectionError("the connection of the listener is lost")

    def _note(self, payload: str) -> None:
        topic, _, value = payload.partition(" ")
        heard = self._heard.get(topic)
        if heard is not None:  # A newer version may have other topics.
            self.notifications[topic] += 1
            heard(value)
