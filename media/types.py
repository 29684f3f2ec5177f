"""Values shared by the parts of `media`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["RemoteMedia"]


@dataclass(frozen=True, slots=True)
class RemoteMedia:
    """Where and how to send; `direction` is what this side does."""

    address: str
    port: int
    codec: str
    payload_type: int
    ptime_ms: int = 20
    dtmf_payload_type: int | None = None
    direction: Literal["sendrecv", "sendonly", "recvonly", "inactive"] = "sendrecv"
