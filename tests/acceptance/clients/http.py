"""An HTTP client for JSON, with one key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import aiohttp

from tests.acceptance.clients.waiting import PATIENCE_S

__all__ = ["Api", "Reply"]

# Long enough between two looks that the limit of 100 requests a minute is not reached.
_LOOK_S: Final = 0.15


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; `body` is its JSON, or None."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    body: Any

    def expect(self, status: int) -> Self:
        """Require a status, and return the reply."""
        assert self.status == status, (
            f"{self.status}, not {status}: {self.content[:2000].decode('utf-8', 'replace')}"
        )
        return self

    @property
    def data(self) -> Any:
        """Payload of a success."""
        assert isinstance(self.body, dict) and "data" in self.body, self.body
        return self.body["data"]

    @property
    def meta(self) -> Any:
        """Details beside the payload."""
        assert isinstance(self.body, dict) and "meta" in self.body, self.body
        return self.body["meta"]


class Api:
    """The server as its customer reaches it: an address and a key."""

    def __init__(self, session: aiohttp.ClientSession, url: str, key: str | None = None) -> None:
        self.url = url
        self._session = session
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def with_key(self, key: str | None) -> Api:
        """Return a client with another key, or without one."""
        return Api(self._session, self.url, key)

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; a body is sent as JSON."""
        async with self._session.request(
            method,
            self.url + path,
            json=body,
            params=query,
            headers={**self._headers, **(headers or {})},
            allow_redirects=False,
        ) as response:
            content = await response.read()
            return Reply(response.status, response.headers, content, _json(content))

    async def get(self, path: str, **query: str | int) -> Reply:
        """Get a resource or a list."""
        return await self.request("GET", path, query={name: str(value) for name, value in query.items()})

    async def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        """Post an object; headers are named with underscores."""
        return await self.request(
            "POST", path, body, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    async def put(self, path: str, body: Any) -> Reply:
        """Put an object."""
        return await self.request("PUT", path, body)

    async def patch(self, path: str, body: Any) -> Reply:
        """Change fields of an object."""
        return await self.request("PATCH", path, body)

    async def delete(self, path: str, **query: str) -> Reply:
        """Delete a resource."""
        return await self.request("DELETE", path, query=query)

    async def until(
        self, path: str, done: Callable[[Any], object], *, timeout_s: float = PATIENCE_S, **query: str | int
    ) -> Any:
        """Get a resource again and again until its data is as wanted, and return the data."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + timeout_s
        while True:
            found = (await self.get(path, **query)).expect(200).data
            if done(found):
                return found
            assert loop.time() < end_s, f"GET {path} after {timeout_s:.0f} s: {found}"
            await asyncio.sleep(_LOOK_S)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
