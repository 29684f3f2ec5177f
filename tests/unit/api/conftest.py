from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from api.http.app import REQUESTS_PER_MINUTE, Neighbours, create_app
from api.process.metrics import Metrics
from callcontrol.bootstrap.aio.services import Services, Storage
from tests.support.api_stage import URL, ApiStage, api_stage
from tests.unit.api.client import Client, client_for


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ApiStage]:
    async with api_stage(tmp_path) as opened:
        yield opened


@pytest.fixture
def services(stage: ApiStage) -> Services:
    return stage.services


@pytest.fixture
def storage(stage: ApiStage) -> Storage:
    return stage.storage


@pytest.fixture
async def client(stage: ApiStage) -> AsyncIterator[Client]:
    app = create_app(
        stage.services,
        mcp=stage.mcp,
        lifecycle=stage.lifecycle,
        metrics=Metrics(),
        public_url=URL,
        neighbours=Neighbours(trusted=(ip_network("10.0.0.0/8"),)),
        requests_per_minute={**REQUESTS_PER_MINUTE, "platform": 20},
        check_replies=True,
    )
    async with client_for(app) as client:
        yield client
