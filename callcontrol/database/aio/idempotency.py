"""Idempotency keys: a request that is repeated with its key has one effect and one answer."""

from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database import idempotency as keys
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.models import InterruptedRequest, StoredReply
from callcontrol.secrets.aio import SecretBox

KEPT: Final = timedelta(hours=24)
_PURPOSE: Final = "idempotency"

CLAIM: Final[ContextVar[tuple[str, str] | None]] = ContextVar("idempotency_claim", default=None)
"""
The claim of the request that runs now: account and key.

What a request does passes many hands before it is committed, and only the first and the last of them know of
claims; so it goes with the task and not through every signature between them.
"""


class IdempotencyStore:
    """Claims of idempotency keys by requests, kept for ``KEPT``."""

    def __init__(
        self, database: Database, writer: Writer, secrets: SecretBox, *, node: str = "local"
    ) -> None:
        self._database = database
        self._writer = writer
        self._secrets = secrets
        self._node = node
        # What runs in this process, so that its repeats do not all wait for the database to be told so.
        self._running: dict[tuple[str, str], tuple[str, str]] = {}

    async def begin(self, account_sid: str, key: str, endpoint: str, body_hash: str) -> StoredReply | None:
        """
        Claim a key for a request, durably; None says that it is ours and the request may run.

        Returns:
            What the first request with this key was answered, when there was one.

        Raises:
            IdempotencyConflict: The key was used for another request, or the first is still running.
        """
        name, request = (account_sid, key), (endpoint, body_hash)
        running = self._running.get(name)
        if running is not None:
            raise keys.still_running() if running == request else keys.used_otherwise()
        self._running[name] = request
        stored: StoredReply | None = None
        claimed = False
        try:
            stored = await self._claim(name, endpoint, body_hash)
            claimed = stored is None
        finally:
            if not claimed:
                del self._running[name]
        if claimed:
            CLAIM.set(name)
        return stored

    async def _claim(self, name: tuple[str, str], endpoint: str, body_hash: str) -> StoredReply | None:
        now = utc_now()
        # A body with a password of a few digits could be found from a plain hash of it, by trying them all.
        asked = body_hash.encode()
        claimed = self._secrets.digest(_PURPOSE, asked).hex()

        def is_same(stored: str) -> bool:
            return self._secrets.matches(_PURPOSE, asked, bytes.fromhex(stored))

        return await self._writer.commit(
            lambda connection: keys.begin(
                connection,
                name,
                endpoint,
                claimed,
                is_same,
                now=now,
                before=now - KEPT,
                node=self._node,
            ),
            undo=lambda connection: keys.release(connection, name),
        )

    async def complete(self, account_sid: str, key: str, status: int, body: bytes) -> None:
        """Keep the answer for repetitions."""
        CLAIM.set(None)
        reply = StoredReply(status, body)
        await self._end(account_sid, key, lambda connection, name: keys.complete(connection, name, reply))

    async def release(self, account_sid: str, key: str) -> None:
        """Give the key back: the request did nothing, so its repetition shall run."""
        CLAIM.set(None)
        await self._end(account_sid, key, keys.release)

    async def _end(
        self, account_sid: str, key: str, end: Callable[[Connection, tuple[str, str]], None]
    ) -> None:
        name = (account_sid, key)
        try:
            # Refused for being one too many it would have every repeat told for a day that the first runs.
            await self._writer.commit(lambda connection: end(connection, name), begun=True)
        finally:
            self._running.pop(name, None)

    async def free(self) -> int:
        """
        Give back the keys of requests that a former run of this process left running; how many.

        Only of those that had done nothing: see ``interrupted`` for the others. Call it before any request
        is taken.
        """
        self._running.clear()
        return await self._writer.commit(lambda connection: keys.free(connection, self._node))

    async def interrupted(self) -> list[InterruptedRequest]:
        """Requests that a former run of this process left running after they had taken effect."""
        return await self._database.read(lambda connection: keys.interrupted(connection, self._node))

    async def purge(self, limit: int = 10_000) -> int:
        """Delete what is older than ``KEPT``, so many at most; how much that was."""
        before = utc_now() - KEPT
        return await self._writer.commit(lambda connection: keys.purge(connection, before, limit))
