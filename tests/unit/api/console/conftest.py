from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, console_client, sign_in
from tests.unit.api.client import Client


@pytest.fixture
async def web(stage: ApiStage) -> AsyncIterator[Client]:
    """Somebody's browser, not signed in."""
    async with console_client(stage) as client:
        yield client


@pytest.fixture
async def person(web: Client) -> Person:
    """Somebody with a key of every scope of the platform."""
    return await sign_in(web)
