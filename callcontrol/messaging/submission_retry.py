"""Delays before a message is handed to the network again."""

from typing import Final

__all__ = ["MAX_ATTEMPTS", "UNAVAILABLE", "retry_delay_s"]

UNAVAILABLE: Final = "NETWORK_UNAVAILABLE"
"""The ``error_code`` of messages that could not be handed to the network."""

MAX_ATTEMPTS: Final = 15
"""With the delays below that is half an hour."""

_FIRST_S: Final = 1.0
_LAST_S: Final = 300.0
_SPREAD: Final = 0.2


def retry_delay_s(attempts: int, *, jitter: float) -> float | None:
    """Seconds from the last of ``attempts`` to the next one; None for no more. ``jitter`` is from 0 to 1."""
    if attempts >= MAX_ATTEMPTS:
        return None
    delay_s = min(_FIRST_S * 2 ** (attempts - 1), _LAST_S)
    return float(delay_s * (1 - _SPREAD + 2 * _SPREAD * jitter))
