from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from api.http.app import REQUESTS_PER_MINUTE, create_app
from api.process.metrics import Metrics
from tests.unit.api.client import Client, client_for
from tests.unit.api.fakes import Fakes


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture
async def client(fakes: Fakes) -> AsyncIterator[Client]:
    app = create_app(
        fakes.services(),
        metrics=Metrics(),
        public_url="http://127.0.0.1:8080",
        trusted_sources=(ip_network("10.0.0.0/8"),),
        requests_per_minute={**REQUESTS_PER_MINUTE, "platform": 20},
        check_replies=True,
    )
    async with client_for(app) as client:
        yield client
