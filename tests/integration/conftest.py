"""Fixtures of tests that run once for each path of an agent's socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from callcontrol.calls.aio.media.audio import LegAudio
from media.aio import MediaEngine
from tests.support.agent_paths import PATHS, Carrier
from tests.support.phone import engine_settings


@pytest.fixture(params=PATHS)
async def carrier(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Run a test once for each path, with streams that are connected by `Carrier.stream`."""
    if request.param == "python":
        yield
        return
    engine = MediaEngine(engine_settings(10))
    await engine.start()
    Carrier.stream = engine.open_stream(lambda event: None)
    try:
        yield
    finally:
        Carrier.stream = None
        await engine.close()


@pytest.fixture(params=PATHS)
def call_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with whole calls once for each path."""
    path: str = request.param
    if path == "python":
        monkeypatch.setattr(LegAudio, "carrier", None)
    return path
