"""Commits that are answered too late: what was refused is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.aio.database import Operation, T
from callcontrol.errors import ServiceUnavailable

__all__ = ["LateAnswer"]


class LateAnswer:
    """Holds the answer to each commit of a database until it is released; what is written is durable."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._write = storage.database.write
        self._answer = asyncio.Event()
        self.committed = asyncio.Event()
        database: Any = storage.database
        database.write = self._write_late
        self._settings, storage.writer._settings = (
            storage.writer._settings,
            replace(storage.writer._settings, timeout_s=0.05),
        )

    async def _write_late(self, operation: Operation[T]) -> T:
        result = await self._write(operation)
        self.committed.set()
        await self._answer.wait()
        return result

    async def refuse(self, request: Awaitable[Any]) -> None:
        """Make a request, and have it refused once it is committed."""
        with pytest.raises(ServiceUnavailable):
            await request
        await self.committed.wait()
        self.storage.writer._settings = self._settings

    def release(self) -> None:
        """Answer, now and from now on."""
        self._answer.set()
