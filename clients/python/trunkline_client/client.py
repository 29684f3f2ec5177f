"""The clients: `Client` blocks, `AsyncClient` awaits; both have every resource of the API as an attribute."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

import httpx

from trunkline_client.generated.client import AsyncResources, Resources
from trunkline_client.retries import DEFAULT_POLICY, RetryPolicy
from trunkline_client.transport import AsyncTransport, Options, Transport

__all__ = ["AsyncClient", "Client"]

_DEFAULT_BASE = "http://127.0.0.1:8080"


def _options(
    key: str | None, base_url: str | None, account_sid: str | None, timeout_s: float, retries: RetryPolicy
) -> Options:
    """Make the options; the key and the address may stand in the environment."""
    key = key or os.environ.get("TRUNKLINE_KEY") or os.environ.get("KEY")
    if not key:
        raise ValueError("name a key, or set TRUNKLINE_KEY")
    base = base_url or os.environ.get("TRUNKLINE_BASE") or os.environ.get("BASE") or _DEFAULT_BASE
    return Options(
        base_url=base.rstrip("/"), key=key, account_sid=account_sid, timeout_s=timeout_s, policy=retries
    )


class Client(Resources):
    """
    A client whose methods return when the server has answered.

    Without `key` and `base_url` it takes TRUNKLINE_KEY and TRUNKLINE_BASE, or KEY and BASE, of the
    environment. `transport` replaces the network, in tests.
    """

    def __init__(
        self,
        key: str | None = None,
        *,
        base_url: str | None = None,
        account_sid: str | None = None,
        timeout_s: float = 30.0,
        retries: RetryPolicy = DEFAULT_POLICY,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = Transport(_options(key, base_url, account_sid, timeout_s, retries), transport)
        super().__init__(self._transport)
        self._transport.client = self

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(AsyncResources):
    """
    A client whose methods are awaited.

    Without `key` and `base_url` it takes TRUNKLINE_KEY and TRUNKLINE_BASE, or KEY and BASE, of the
    environment. `transport` replaces the network, in tests.
    """

    def __init__(
        self,
        key: str | None = None,
        *,
        base_url: str | None = None,
        account_sid: str | None = None,
        timeout_s: float = 30.0,
        retries: RetryPolicy = DEFAULT_POLICY,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport = AsyncTransport(_options(key, base_url, account_sid, timeout_s, retries), transport)
        super().__init__(self._transport)
        self._transport.client = self

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
