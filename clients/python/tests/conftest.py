"""Clients that ask a `FakeServer`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fake_api import FakeServer, MakeAsyncClient, MakeClient
from trunkline_client import AsyncClient, Client, RetryPolicy

AT_ONCE = RetryPolicy(first_s=0.001, longest_s=0.002)


@pytest.fixture
def client_of() -> MakeClient:
    def make(server: FakeServer, **options: Any) -> Client:
        transport = httpx.MockTransport(server)
        return Client("vk_1", **{"retries": AT_ONCE, **options}, transport=transport)

    return make


@pytest.fixture
def async_client_of() -> MakeAsyncClient:
    def make(server: FakeServer, **options: Any) -> AsyncClient:
        transport = httpx.MockTransport(server)
        return AsyncClient("vk_1", **{"retries": AT_ONCE, **options}, transport=transport)

    return make
