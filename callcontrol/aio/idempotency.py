"""Idempotency keys: a request that is repeated with its key has one effect and one answer."""

from datetime import timedelta
from typing import Final

from callcontrol.aio.secrets import SecretBox
from callcontrol.aio.tokens import utc_now
from callcontrol.aio.writer import Writer
from callcontrol.models import StoredReply
from callcontrol.store.repositories import idempotency as keys

KEPT: Final = timedelta(hours=24)
_PURPOSE: Final = "idempotency"


class IdempotencyStore:
    """Claims of idempotency keys by requests, kept for ``KEPT``."""

    def __init__(self, writer: Writer, secrets: SecretBox) -> None:
        self._writer = writer
        self._secrets = secrets

    async def begin(self, account_sid: str, key: str, endpoint: str, body_hash: str) -> StoredReply | None:
        """
        Claim a key for a request, durably; None says that it is ours and the request may run.

        Returns:
            What the first request with this key was answered, when there was one.

        Raises:
            IdempotencyConflict: The key was used for another request, or the first is still running.
        """
        now = utc_now()
        # A body with a password of a few digits could be found from a plain hash of it, by trying them all.
        asked = body_hash.encode()
        claimed = self._secrets.digest(_PURPOSE, asked).hex()

        def is_same(stored: str) -> bool:
            return self._secrets.matches(_PURPOSE, asked, bytes.fromhex(stored))

        return await self._writer.commit(
            lambda connection: keys.begin(
                connection, (account_sid, key), endpoint, claimed, is_same, now=now, before=now - KEPT
            ),
            undo=lambda connection: keys.release(connection, (account_sid, key)),
        )

    async def complete(self, account_sid: str, key: str, status: int, body: bytes) -> None:
        """Keep the answer for repetitions."""
        reply = StoredReply(status, body)
        await self._writer.commit(lambda connection: keys.complete(connection, (account_sid, key), reply))

    async def release(self, account_sid: str, key: str) -> None:
        """Give the key back: the request did nothing, so its repetition shall run."""
        await self._writer.commit(lambda connection: keys.release(connection, (account_sid, key)))

    async def purge(self) -> int:
        """Delete what is older than ``KEPT``; how much that was."""
        before = utc_now() - KEPT
        return await self._writer.commit(lambda connection: keys.purge(connection, before))
