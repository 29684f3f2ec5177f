"""Lifecycle of the server process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

__all__ = ["Lifecycle", "Phase"]


class Phase(Enum):
    """Lifecycle phase of the server."""

    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"
    DRAINING = "draining"
    STOPPED = "stopped"


def _nothing() -> str | None:
    """Default of `lacks`: nothing is missing."""
    return None


@dataclass(slots=True)
class Lifecycle:
    """
    The phase of the server, changed by `api.process.server` and read by the routes.

    A server that leaves is not ready, and takes new calls until load balancers have seen that.
    `lacks` names the missing resource for which a ready server refuses new calls; None when it accepts them.
    """

    phase: Phase = Phase.STARTING
    lacks: Callable[[], str | None] = _nothing

    @property
    def takes_calls(self) -> bool:
        """True while the API accepts new calls and sessions."""
        return self.phase in (Phase.READY, Phase.LEAVING)
