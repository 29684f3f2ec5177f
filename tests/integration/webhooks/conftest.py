"""A receiver, an outbox over its own database, and an eye on what they leave behind."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until
from tests.support.webhook_stage import Receiver, Stage


@pytest.fixture(autouse=True)
async def no_leaks() -> AsyncIterator[None]:
    """Every test leaves no task behind, and nothing complains to the event loop."""
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    yield
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert not complaints


@pytest.fixture
async def receiver(no_leaks: None) -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.close()


@pytest.fixture
async def stage(no_leaks: None, receiver: Receiver, tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path)
    yield made
    await made.close()
