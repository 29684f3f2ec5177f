"""Every endpoint of the server, chapter by chapter of the specification."""

from __future__ import annotations

from typing import Any

from api.endpoint import Endpoint
from api.routes import agents, applications, calls, dids, numbers, otp, recordings, trunk_numbers, trunks

__all__ = ["ENDPOINTS"]

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    *calls.ENDPOINTS,
    *dids.ENDPOINTS,
    *numbers.ENDPOINTS,
    *trunks.ENDPOINTS,
    *otp.ENDPOINTS,
    *trunk_numbers.ENDPOINTS,
    *applications.ENDPOINTS,
    *recordings.ENDPOINTS,
    *agents.ENDPOINTS,
)
