"""Whose keys open the API, and what was answered before."""

from __future__ import annotations

from typing import Protocol

from callcontrol.models import Principal

__all__ = ["Idempotency", "Keys", "StoredReply"]


class Keys(Protocol):
    """API keys; see ``callcontrol.accounts.aio.keys.KeyService``."""

    async def authenticate(self, key: str) -> Principal:
        """
        Whose key this is.

        Raises:
            Unauthorized: It is malformed, unknown or revoked.
        """


class StoredReply(Protocol):
    """The answer that a request with this idempotency key had."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def body(self) -> bytes:
        """The body, to the byte."""


class Idempotency(Protocol):
    """Answers remembered by idempotency key; see ``callcontrol.database.aio.idempotency``."""

    async def begin(self, account_sid: str, key: str, endpoint: str, body_hash: str) -> StoredReply | None:
        """
        Claim a key, or return the answer it already has.

        Raises:
            IdempotencyConflict: The key belongs to another request, or its first request is running.
        """

    async def complete(self, account_sid: str, key: str, status: int, body: bytes) -> None:
        """Remember the answer of a claimed key."""

    async def release(self, account_sid: str, key: str) -> None:
        """Give a claimed key back: nothing was done."""
