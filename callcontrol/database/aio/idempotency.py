"""Idempotency keys: a request repeated with its key has one effect and one response."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database import idempotency as keys
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.database.encryption import Cipher
from callcontrol.errors import IdempotencyConflict, SecretsUnreadable
from callcontrol.models import InterruptedRequest, StoredReply

KEPT: Final = timedelta(hours=24)
_PURPOSE: Final = "idempotency"

CLAIM: Final[ContextVar[tuple[str, str] | None]] = ContextVar("idempotency_claim", default=None)
"""
Claim of the current request: account and key.

Many functions lie between the request and its commit, and only the first and the last of them use the claim;
so it is a context variable of the task and not an argument of every function.
"""


class IdempotencyStore:
    """Claims of idempotency keys by requests, kept for ``KEPT``."""

    def __init__(self, database: Database, writer: Writer, secrets: Cipher, *, node: str = "local") -> None:
        self._database = database
        self._writer = writer
        self._secrets = secrets
        self._node = node
        # Requests running in this process, so that their repetitions fail without a database query.
        self._running: dict[tuple[str, str], tuple[str, str]] = {}

    async def begin(self, account_sid: str, key: str, endpoint: str, body_hash: str) -> StoredReply | None:
        """
        Claim a key for a request, durably.

        Returns:
            None if the key is claimed and the request may run; else the response to the first request.

        Raises:
            IdempotencyConflict: The key was used for another request, the first is still running, or its
                response is encrypted with a secret key that this process no longer has.
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
            # Gone if this process has meanwhile ended the claim of a dead node for the same key.
            if not claimed and self._running.get(name) is request:
                del self._running[name]
        if stored is not None:
            return self._unsealed(name, stored)
        CLAIM.set(name)
        return None

    async def _claim(self, name: tuple[str, str], endpoint: str, body_hash: str) -> StoredReply | None:
        now = utc_now()
        # Keyed, because a body with a password of a few digits could be found from a plain hash by search.
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

    async def complete(
        self, account_sid: str, key: str, status: int, body: bytes, *, seal: bool = False
    ) -> None:
        """Store the response for repetitions; with ``seal`` encrypted, for it shows a secret."""
        CLAIM.set(None)
        if seal:
            body = self._secrets.seal(_sealed_for((account_sid, key)), body.decode()).encode()
        reply = StoredReply(status, body)
        await self._end(account_sid, key, lambda connection, name: keys.complete(connection, name, reply))

    async def release(self, account_sid: str, key: str) -> None:
        """Release the key: the request did nothing, so a repetition may run."""
        CLAIM.set(None)
        await self._end(account_sid, key, keys.release)

    def _unsealed(self, name: tuple[str, str], stored: StoredReply) -> StoredReply:
        text = stored.body.decode(errors="replace")
        if not self._secrets.is_sealed(text):
            return stored
        try:
            return replace(stored, body=self._secrets.open(_sealed_for(name), text).encode())
        except SecretsUnreadable:
            raise IdempotencyConflict(
                "The response to the first request can no longer be read; use a new Idempotency-Key."
            ) from None

    async def _end(
        self, account_sid: str, key: str, end: Callable[[Connection, tuple[str, str]], None]
    ) -> None:
        name = (account_sid, key)
        try:
            # If rejected as overload, every repetition would get "still running" for a day.
            await self._writer.commit(lambda connection: end(connection, name), continues=True)
        finally:
            self._running.pop(name, None)

    async def free(self) -> int:
        """
        Release keys of requests that an earlier run of this process left running; returns their number.

        Only requests without effect: see ``interrupted`` for the others. Call it before accepting requests.
        """
        self._running.clear()
        return await self._writer.commit(lambda connection: self.free_node(connection, self._node))

    def free_node(self, connection: Connection, node: str) -> int:
        """Release keys of requests that a dead node left running, in a transaction of the caller."""
        return keys.free(connection, node)

    async def interrupted(self, node: str | None = None) -> list[InterruptedRequest]:
        """List requests that an earlier run, or a dead node, left running after they took effect."""
        return await self._database.read(lambda connection: keys.interrupted(connection, node or self._node))

    async def purge(self, limit: int = 10_000) -> int:
        """Delete claims older than ``KEPT``, up to ``limit``; returns their number."""
        before = utc_now() - KEPT
        return await self._writer.commit(lambda connection: keys.purge(connection, before, limit))


def _sealed_for(name: tuple[str, str]) -> str:
    """Purpose of a sealed response, so that it opens for its account and key alone."""
    return f"{_PURPOSE} {' '.join(name)}"
