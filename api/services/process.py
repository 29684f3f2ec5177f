"""What the server is doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Lifecycle", "Phase"]


class Phase(Enum):
    """What the server is doing."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"


@dataclass(slots=True)
class Lifecycle:
    """The phase of the server, changed by `api.server` and read by the routes."""

    phase: Phase = Phase.STARTING

    @property
    def takes_calls(self) -> bool:
        """Whether new calls are accepted."""
        return self.phase is Phase.READY
