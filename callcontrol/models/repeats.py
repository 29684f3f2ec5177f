"""What is kept of requests that may be repeated with the same idempotency key."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The answer to a request with an idempotency key, kept for its repetitions."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class InterruptedRequest:
    """
    A request with an idempotency key whose process was killed after it had taken effect.

    ``effect`` is what it did, as kind and identifier (``call:0198...``), ``endpoint`` its method and path.
    """

    account_sid: str
    key: str
    effect: str
    endpoint: str
