"""Stored state of requests with an idempotency key."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredReply:
    """Stored response to a request with an idempotency key, for its repetitions."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class InterruptedRequest:
    """
    Request with an idempotency key whose process was killed after it took effect.

    ``effect`` is the created object, as kind and identifier (``call:0198...``), ``endpoint`` its method and
    path.
    """

    account_sid: str
    key: str
    effect: str
    endpoint: str
