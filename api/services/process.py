"""What the server is doing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

__all__ = ["Lifecycle", "Phase"]


class Phase(Enum):
    """What the server is doing."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"


def _nothing() -> str | None:
    """Lack nothing."""
    return None


@dataclass(slots=True)
class Lifecycle:
    """
    The phase of the server, changed by `api.process.server` and read by the routes.

    `lacks` names what new calls are refused for while the server is ready otherwise; None when they are not.
    """

    phase: Phase = Phase.STARTING
    lacks: Callable[[], str | None] = _nothing

    @property
    def takes_calls(self) -> bool:
        """Whether new calls are accepted."""
        return self.phase is Phase.READY
