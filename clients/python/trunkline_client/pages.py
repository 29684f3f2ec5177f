"""Lists that ask for their pages as they are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from trunkline_client.operation import Slice

__all__ = ["AsyncPages", "Pages"]

ItemT = TypeVar("ItemT")


class Pages(Generic[ItemT]):
    """
    A list. ``for`` reads all items, page after page; each reading begins anew.

    A list with a cursor is read by it, so that nothing is skipped or repeated when items are added meanwhile.
    """

    def __init__(self, turn: Callable[[int, Mapping[str, Any]], Slice], read: Callable[[Any], ItemT]) -> None:
        self._turn, self._read = turn, read

    def __iter__(self) -> Iterator[ItemT]:
        page, query = 1, dict[str, Any]()
        while True:
            found = self._turn(page, query)
            yield from map(self._read, found.items)
            if found.following is None:
                return
            page, query = page + 1, dict(found.following)

    def first(self) -> list[ItemT]:
        """Items of the first page, by one request."""
        return [self._read(item) for item in self._turn(1, {}).items]

    def total(self) -> int:
        """Count of all items, by one request."""
        return self._turn(1, {}).total


class AsyncPages(Generic[ItemT]):
    """
    A list. ``async for`` reads all items, page after page; each reading begins anew.

    A list with a cursor is read by it, so that nothing is skipped or repeated when items are added meanwhile.
    """

    def __init__(
        self, turn: Callable[[int, Mapping[str, Any]], Awaitable[Slice]], read: Callable[[Any], ItemT]
    ) -> None:
        self._turn, self._read = turn, read

    async def __aiter__(self) -> AsyncIterator[ItemT]:
        page, query = 1, dict[str, Any]()
        while True:
            found = await self._turn(page, query)
            for item in found.items:
                yield self._read(item)
            if found.following is None:
                return
            page, query = page + 1, dict(found.following)

    async def first(self) -> list[ItemT]:
        """Items of the first page, by one request."""
        return [self._read(item) for item in (await self._turn(1, {})).items]

    async def total(self) -> int:
        """Count of all items, by one request."""
        return (await self._turn(1, {})).total
