"""Defaults of a channel, and limits of its settings."""

from typing import Final

__all__ = [
    "DEFAULT_DISPLAY_NAME",
    "DEFAULT_MESSAGES_PER_SECOND",
    "MAX_DISPLAY_NAME_CHARACTERS",
    "MAX_MESSAGES_PER_SECOND",
    "SANDBOX_NUMBER",
]

SANDBOX_NUMBER: Final = "+918001100000"
"""Sender of an account without a number of its own, or whose number it does not own any more."""

DEFAULT_DISPLAY_NAME: Final = "Sandbox"
DEFAULT_MESSAGES_PER_SECOND: Final = 80
MAX_DISPLAY_NAME_CHARACTERS: Final = 128
MAX_MESSAGES_PER_SECOND: Final = 1000
