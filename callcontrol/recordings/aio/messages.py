"""Storage of voicemail messages."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.writer import Writer
from callcontrol.models import Message
from callcontrol.recordings.store import messages

log = logging.getLogger(__name__)


class MessageStore:
    """Stores messages: an added message is found at once, and kept in memory while the database is down."""

    def __init__(self, database: Database, writer: Writer, *, node: str = "local") -> None:
        self._database = database
        self._writer = writer
        self._node = node
        self._held: dict[str, Message] = {}
        self._taken: dict[str, Message] = {}
        writer.attach(self)

    def add(self, message: Message) -> None:
        """Store a message of this server; never blocks, and never fails while the database is down."""
        made = replace(message, created_at=utc_now(), node=self._node)
        self._held[made.message_sid] = made
        self._writer.schedule_flush("soon")

    async def find(self, message_sid: str) -> Message | None:
        """Find a message of any account."""
        held = self._held.get(message_sid) or self._taken.get(message_sid)
        return held or await self._database.look_up(partial(messages.get, message_sid=message_sid))

    async def of_call(self, call_sid: str) -> Sequence[Message]:
        """List the available messages of a call, oldest first."""
        await self._writer.flush_pending()
        return await self._database.read(lambda connection: messages.of_call(connection, call_sid))

    async def flush(self) -> None:
        """Wait until all messages added so far are durable."""
        await self._writer.flush()

    # Source of the writer: called when it builds a transaction and when the transaction has ended.

    def drain(self) -> Operation[None] | None:
        """Operation that writes all held messages; None without any."""
        if not self._held:
            return None
        self._taken, self._held = self._held, {}
        return partial(messages.insert, kept=list(self._taken.values()))

    def written(self, result: None) -> None:
        """Drop the taken messages, which are durable now."""
        self._taken = {}

    def restore(self) -> None:
        """Restore the taken messages."""
        self._held = {**self._taken, **self._held}
        self._taken = {}

    def rejected(self, error: Exception) -> None:
        """Drop the taken messages, which can never be stored."""
        log.error("voicemail messages are lost: %s", ", ".join(self._taken), exc_info=error)
        self._taken = {}
