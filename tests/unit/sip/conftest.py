"""Settings of the property tests (as many examples as usual, however slow the machine), and the stage."""

import pytest
from hypothesis import HealthCheck, settings

from tests.support.sip_stage import Stage, make_stage

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture
async def stage() -> Stage:
    return await make_stage()
