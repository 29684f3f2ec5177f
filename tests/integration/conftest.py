"""Fixtures of tests that run once for each path of an agent's socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from media.aio import MediaEngine
from tests.support.agent_paths import PATHS, Carrier, on_path
from tests.support.phone import engine_settings


@pytest.fixture(params=PATHS)
async def carrier(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Run a test once for each path, with streams that are connected by `Carrier.stream`."""
    engine = MediaEngine(engine_settings(10))
    await engine.start()
    Carrier.stream = engine.open_stream(lambda event: None)
    try:
        with on_path(request.param):
            yield
    finally:
        Carrier.stream = None
        await engine.close()


@pytest.fixture(params=PATHS)
def call_path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test with whole calls once for each path."""
    path: str = request.param
    with on_path(path):
        yield path
