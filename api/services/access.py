"""API keys, and stored responses by idempotency key."""

from __future__ import annotations

from typing import Protocol

from callcontrol.models import Principal

__all__ = ["Idempotency", "Keys", "StoredReply"]


class Keys(Protocol):
    """API keys; see ``callcontrol.accounts.aio.keys.KeyService``."""

    async def authenticate(self, key: str) -> Principal:
        """
        Return the principal of a key.

        Raises:
            Unauthorized: It is malformed, unknown or revoked.
        """


class StoredReply(Protocol):
    """Stored response to a request with an idempotency key."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def body(self) -> bytes:
        """Exact bytes of the body."""


class Idempotency(Protocol):
    """Responses stored by idempotency key; see ``callcontrol.database.aio.idempotency``."""

    async def begin(self, account_sid: str, key: str, endpoint: str, body_hash: str) -> StoredReply | None:
        """
        Claim a key, or return the response that it already has.

        Raises:
            IdempotencyConflict: The key belongs to another request, or its first request is in progress.
        """

    async def complete(self, account_sid: str, key: str, status: int, body: bytes) -> None:
        """Store the response of a claimed key."""

    async def release(self, account_sid: str, key: str) -> None:
        """Release a claimed key after a request without effect."""
