"""What a channel is that nothing was ever set of, and what may be set."""

from typing import Final

__all__ = [
    "DEFAULT_DISPLAY_NAME",
    "DEFAULT_MESSAGES_PER_SECOND",
    "MAX_DISPLAY_NAME_CHARACTERS",
    "MAX_MESSAGES_PER_SECOND",
    "SANDBOX_NUMBER",
]

SANDBOX_NUMBER: Final = "+918001100000"
"""What messages come from whose account has set no number of its own, or does not have it any more."""

DEFAULT_DISPLAY_NAME: Final = "Sandbox"
DEFAULT_MESSAGES_PER_SECOND: Final = 80
MAX_DISPLAY_NAME_CHARACTERS: Final = 128
MAX_MESSAGES_PER_SECOND: Final = 1000
