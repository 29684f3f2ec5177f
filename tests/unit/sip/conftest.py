"""Two user agents on one in-memory network."""

import pytest

from tests.support.sip_stage import Stage, make_stage


@pytest.fixture
async def stage() -> Stage:
    return await make_stage()
