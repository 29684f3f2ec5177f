"""Storage of voicemail messages."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.pending import Pending
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
        self._held = Pending[Message](lambda kept: partial(messages.insert, kept=kept), _log_lost)
        writer.attach(self._held)

    def add(self, message: Message) -> None:
        """Store a message of this server; never blocks, and never fails while the database is down."""
        made = replace(message, created_at=utc_now(), node=self._node)
        self._held.put(made.message_sid, made)
        self._writer.schedule_flush(self._held, "soon")

    async def find(self, message_sid: str) -> Message | None:
        """Find a message of any account."""
        held = self._held.get(message_sid)
        return held or await self._database.look_up(partial(messages.get, message_sid=message_sid))

    async def of_call(self, call_sid: str) -> Sequence[Message]:
        """List the available messages of a call, oldest first."""
        await self._writer.flush_pending()
        return await self._database.read(lambda connection: messages.of_call(connection, call_sid))

    async def flush(self) -> None:
        """Wait until all messages added so far are durable."""
        await self._writer.flush()


def _log_lost(lost: Mapping[str, Message], error: Exception) -> None:
    log.error("voicemail messages are lost: %s", ", ".join(lost), exc_info=error)
